//! Deliberate changes as values: which there are, which are drawn, and which are known to make no
//! difference.

use std::{collections::BTreeMap, fmt};

use gradus_lab::faults::Chance;
use serde::Deserialize;

/// One change that cargo-mutants can make.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Mutant {
    /// `<file>:<line>:<column>: <change>`.
    pub name: String,
    pub file: String,
    span: Span,
    /// The source line where it begins.
    #[serde(skip)]
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Span {
    start: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Place {
    line: usize,
}

/// A change that makes no difference. Lines move, so it is known by the text of its line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    pub file: String,
    /// As cargo-mutants calls it.
    pub change: String,
    /// The source line where it begins.
    pub line: String,
    pub reason: String,
}

/// How many changes ended how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    pub caught: usize,
    pub missed: usize,
    /// They do not compile.
    pub unviable: usize,
}

impl Mutant {
    /// Takes its line out of the text of its file.
    pub fn find_line(&mut self, text: &str) {
        let number = self.span.start.line.saturating_sub(1);
        text.lines().nth(number).unwrap_or_default().clone_into(&mut self.text);
    }

    /// Its name without the place.
    fn change(&self) -> &str {
        self.name.split_once(": ").map_or(&self.name, |(_, change)| change)
    }
}

impl Equivalent {
    /// Is it this change?
    pub fn is(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file
            && self.change == mutant.change()
            && self.line == mutant.text.trim()
    }
}

impl Figures {
    pub fn sum(self) -> usize {
        self.caught + self.missed + self.unviable
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caught, missed, unviable } = self;
        write!(out, "{caught} caught, {missed} missed, {unviable} do not compile")
    }
}

/// So many of them, drawn by a seed, in their order.
pub fn sample(mut all: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let mut chance = Chance::new(seed);
    while all.len() > count {
        let drawn = chance.below(all.len() as u64);
        all.remove(usize::try_from(drawn).unwrap_or_default());
    }
    all
}

/// A regular expression that fits these changes alone.
pub fn pattern(chosen: &[Mutant]) -> String {
    let names: Vec<String> = chosen.iter().map(|mutant| escaped(&mutant.name)).collect();
    format!("^({})$", names.join("|"))
}

/// A difference that touches the lines of these changes alone, as it would stand in a commit:
/// cargo-mutants keeps to it also with those changes that no pattern of it reaches.
pub fn difference(chosen: &[Mutant]) -> String {
    let mut lines = BTreeMap::<&str, BTreeMap<usize, &str>>::new();
    for mutant in chosen {
        lines.entry(&mutant.file).or_default().insert(mutant.span.start.line, &mutant.text);
    }
    let mut text = String::new();
    for (file, lines) in lines {
        text.push_str(&format!("--- a/{file}\n+++ b/{file}\n"));
        for (added, (line, content)) in lines.into_iter().enumerate() {
            let before = line.saturating_sub(added + 1);
            text.push_str(&format!("@@ -{before},0 +{line},1 @@\n+{content}\n"));
        }
    }
    text
}

/// What means something else in a regular expression. Not all punctuation: an escaped `<` would, too.
const SIGNS: &str = r"\.+*?()|[]{}^$#&-~";

fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if SIGNS.contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line: usize, change: &str) -> Mutant {
        Mutant {
            name: format!("src/a.rs:{line}:5: {change}"),
            file: "src/a.rs".to_owned(),
            span: Span { start: Place { line } },
            text: String::new(),
        }
    }

    #[test]
    fn an_equivalent_change_is_known_by_its_line_wherever_that_is() {
        let known = Equivalent {
            file: "src/a.rs".to_owned(),
            change: "replace || with && in f".to_owned(),
            line: "a || b".to_owned(),
            reason: "b implies a".to_owned(),
        };
        let text = "fn f() {\n    a || b\n    c || d\n}";
        let cases = [
            ("the same", mutant(2, "replace || with && in f"), true),
            ("another line", mutant(3, "replace || with && in f"), false),
            ("another change", mutant(2, "replace || with ^ in f"), false),
        ];
        for (what, mut one, expected) in cases {
            one.find_line(text);
            assert_eq!(known.is(&one), expected, "{what}");
        }
    }

    #[test]
    fn a_sample_follows_its_seed_and_keeps_the_order() {
        let all: Vec<Mutant> = (1..100).map(|line| mutant(line, "x")).collect();
        let drawn = sample(all.clone(), 10, 3);
        assert_eq!(drawn.len(), 10);
        assert_eq!(drawn, sample(all.clone(), 10, 3));
        assert_ne!(drawn, sample(all.clone(), 10, 4));
        assert!(drawn.is_sorted_by_key(|one| one.span.start.line));
        assert_eq!(sample(all.clone(), 200, 3), all);
    }

    #[test]
    fn a_difference_adds_the_lines_of_the_changes_alone() {
        let mut chosen = [mutant(2, "x"), mutant(4, "x"), mutant(4, "y")];
        for one in &mut chosen {
            one.find_line("a\n  b\nc\n  d\n");
        }
        let expected =
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,0 +2,1 @@\n+  b\n@@ -2,0 +4,1 @@\n+  d\n";
        assert_eq!(difference(&chosen), expected);
    }

    #[test]
    fn a_pattern_takes_every_sign_as_it_is() {
        let chosen = [mutant(1, "replace f -> Option<(i32)> with None"), mutant(2, "delete !")];
        let first = r"src/a\.rs:1:5: replace f \-> Option<\(i32\)> with None";
        let expected = format!(r"^({first}|src/a\.rs:2:5: delete !)$");
        assert_eq!(pattern(&chosen), expected);
    }
}
