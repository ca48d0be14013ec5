//! How are flags that are on or off written? kubectl takes `--watch=false` and `-A=true` as well.

use std::ffi::OsString;

use clap::{Arg, ArgAction};

use super::completion::Place;

/// The arguments with `--flag=true` as `--flag`, and without `--flag=false`.
pub fn spelled_out(table: &clap::Command, arguments: &[OsString]) -> Vec<OsString> {
    let mut built = table.clone();
    built.build();
    let mut place = Place::reach(&built, &[]);
    let mut words: Vec<OsString> = Vec::new();
    let mut rest = arguments.iter();
    words.extend(rest.next().cloned());
    for word in rest.by_ref() {
        let Some(text) = word.to_str() else {
            words.push(word.clone());
            continue;
        };
        if text == "--" {
            words.push(word.clone());
            break;
        }
        match place.truth(text) {
            None => words.push(word.clone()),
            Some(Truth { flag, is_on }) if is_switch(flag) => {
                // The last one counts.
                let is_same = |known: &OsString| {
                    known.to_str().is_some_and(|known| named(flag).iter().any(|name| name == known))
                };
                words.retain(|known| !is_same(known));
                words.extend(is_on.then(|| named(flag)[0].clone().into()));
            }
            Some(Truth { flag, is_on }) => {
                words.push(format!("{}={is_on}", named(flag)[0]).into());
            }
        }
        place.advance(text);
    }
    words.extend(rest.cloned());
    words
}

/// A flag, on or off.
pub struct Truth<'t> {
    /// The flag.
    pub flag: &'t Arg,
    /// What was said of it.
    pub is_on: bool,
}

impl Truth<'_> {
    /// Whether a flag is one that is on or off.
    pub fn is_said_by(flag: &Arg) -> bool {
        let is_set = matches!(flag.get_action(), ArgAction::Set);
        is_switch(flag) || is_set && flag.is_require_equals_set()
    }
}

fn is_switch(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::SetTrue)
}

/// The values that mean yes or no.
pub fn parse(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The ways to write a flag, the first of them always there.
fn named(flag: &Arg) -> Vec<String> {
    let long = flag.get_long().map(|long| format!("--{long}"));
    let short = flag.get_short().map(|short| format!("-{short}"));
    long.into_iter().chain(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Caller, table};

    #[test]
    fn a_flag_is_on_or_off_as_the_last_word_about_it_says() {
        let cases = [
            ("promote web --full=true", "promote web --full"),
            ("promote web --full=0", "promote web"),
            ("list ro -A=T -w=f", "list ro --all-namespaces"),
            ("list ro -A --all-namespaces=false", "list ro"),
            ("get ro web --watch=false --watch", "get ro web --watch"),
            ("status web -w=F", "status web --watch=false"),
            ("promote web --full=perhaps", "promote web --full=perhaps"),
            ("-n promote get ro --no-color=1", "-n promote get ro --no-color"),
            ("create ar --from a -a b=true", "create ar --from a -a b=true"),
            ("abort -- --full=true", "abort -- --full=true"),
        ];
        for (written, expected) in cases {
            let words: Vec<OsString> =
                format!("program {written}").split(' ').map(OsString::from).collect();
            let read = spelled_out(&table(Caller::Kubectl), &words);
            let read: Vec<&str> = read.iter().skip(1).filter_map(|word| word.to_str()).collect();
            assert_eq!(read.join(" "), expected, "{written}");
        }
    }
}
