//! `completion`: what may come next on the command line?

mod scripts;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Arg, Args, FromArgMatches};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;

use super::truths::{self, Truth};
use super::{Caller, PLUGIN};
use crate::connection::Connection;
use crate::near;
use crate::output;

/// The words with which shells, and kubectl, ask for candidates.
const WITH_DESCRIPTIONS: &str = "__complete";
const WITHOUT_DESCRIPTIONS: &str = "__completeNoDesc";

/// Directives for the shell that asked, as kubectl's own completion knows them.
const FILES: u8 = 0;
const NO_FILES: u8 = 4;

/// Values of flags that are files or folders, by the names that help gives them.
const PATHS: [&str; 4] = ["FILE", "FILE.svg", "FOLDER", "BEHAVIOUR"];

/// How long a shell waits for live names.
const PATIENCE: &str = "3s";

/// Commands whose first argument is the name of something live.
const LIVE: [(&str, &Kind); 15] = [
    ("get rollout", &kinds::ROLLOUT),
    ("get experiment", &kinds::EXPERIMENT),
    ("promote", &kinds::ROLLOUT),
    ("pause", &kinds::ROLLOUT),
    ("restart", &kinds::ROLLOUT),
    ("abort", &kinds::ROLLOUT),
    ("retry rollout", &kinds::ROLLOUT),
    ("retry experiment", &kinds::EXPERIMENT),
    ("status", &kinds::ROLLOUT),
    ("undo", &kinds::ROLLOUT),
    ("set image", &kinds::ROLLOUT),
    ("terminate analysisrun", &kinds::ANALYSIS_RUN),
    ("terminate experiment", &kinds::EXPERIMENT),
    ("wait", &kinds::ROLLOUT),
    ("explain", &kinds::ROLLOUT),
];

/// Print the script that teaches a shell to complete commands and names
#[derive(Debug, Args)]
pub struct Arguments {
    /// bash, zsh, fish or powershell
    #[arg(value_name = "SHELL")]
    shells: Vec<String>,
}

/// Prints the script.
pub fn run(arguments: &Arguments, caller: Caller) -> anyhow::Result<()> {
    let [shell] = &arguments.shells[..] else {
        bail!("accepts 1 arg(s), received {}", arguments.shells.len());
    };
    let program = program(caller);
    let script = match shell.as_str() {
        "bash" => scripts::BASH,
        "zsh" => scripts::ZSH,
        "fish" => scripts::FISH,
        "powershell" => scripts::POWERSHELL,
        other => bail!("invalid argument \"{other}\" for \"{program} completion\""),
    };
    let function = program.replace('-', "_");
    Ok(output::print(&script.replace("PROGRAM", program).replace("FUNCTION", &function))?)
}

fn program(caller: Caller) -> &'static str {
    match caller {
        Caller::Gradus => "gradus",
        Caller::Kubectl => PLUGIN,
    }
}

/// The words to complete, if the program is asked for candidates.
pub fn asked(arguments: &[OsString]) -> Option<Words> {
    let first = arguments.get(1)?.to_str()?;
    let described = first == WITH_DESCRIPTIONS;
    if !described && first != WITHOUT_DESCRIPTIONS {
        return None;
    }
    let words = arguments[2..].iter().filter_map(|word| word.to_str());
    Some(Words { words: words.map(str::to_owned).collect(), described })
}

/// A command line up to the cursor; its last word is to be completed.
pub struct Words {
    words: Vec<String>,
    described: bool,
}

/// Prints the candidates, one per line, and the directive.
pub fn answer(table: clap::Command, words: Words) -> anyhow::Result<ExitCode> {
    let mut table = table;
    table.build();
    let (last, before) = match words.words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let place = Place::reach(&table, before);
    let (candidates, directive) = place.candidates(last);
    let mut text = String::new();
    for (name, about) in candidates {
        text += &name;
        if words.described && !about.is_empty() {
            text += &format!("\t{about}");
        }
        text.push('\n');
    }
    output::print(&format!("{text}:{directive}\n"))?;
    Ok(ExitCode::SUCCESS)
}

type Candidates = Vec<(String, String)>;

/// Where on the command line the cursor stands.
pub struct Place<'t> {
    /// The command that is reached.
    pub command: &'t clap::Command,
    /// The commands so far, by their full names.
    pub path: Vec<&'t str>,
    /// Arguments so far that are neither commands nor flags.
    arguments: usize,
    /// The flag whose value is being written.
    flag: Option<&'t Arg>,
    /// The connection flags so far.
    connection: Vec<String>,
}

impl<'t> Place<'t> {
    /// The place behind these words.
    pub fn reach(table: &'t clap::Command, words: &[String]) -> Self {
        let (path, connection) = (Vec::new(), vec![PLUGIN.to_owned()]);
        let mut place = Place { command: table, path, arguments: 0, flag: None, connection };
        for word in words {
            place.advance(word);
        }
        place
    }

    /// What a word says of a flag that is on or off: `--full=true`, `-w=false`.
    pub fn truth(&self, word: &str) -> Option<Truth<'t>> {
        if self.flag.is_some() || !word.starts_with('-') {
            return None;
        }
        let (name, value) = word.split_once('=')?;
        let flag = self.find_flag(name).filter(|flag| Truth::is_said_by(flag))?;
        truths::parse(value).map(|is_on| Truth { flag, is_on })
    }

    /// Goes on behind one more word.
    pub fn advance(&mut self, word: &str) {
        if let Some(flag) = self.flag.take() {
            self.note(flag, word);
        } else if word.starts_with('-') {
            let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
            let Some(flag) = self.find_flag(name) else { return };
            match value {
                Some(value) => self.note(flag, value),
                None if takes_value(flag) => self.flag = Some(flag),
                None => {}
            }
        } else if let Some(command) = self.command.find_subcommand(word) {
            self.path.push(command.get_name());
            self.command = command;
        } else {
            // `explain rollout NAME`: the kind is no name.
            let is_kind = self.path == ["explain"] && self.arguments == 0 && word == "rollout";
            self.arguments += usize::from(!is_kind);
        }
    }

    fn find_flag(&self, name: &str) -> Option<&'t Arg> {
        self.command.get_arguments().find(|flag| {
            let long = flag.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
            let short = flag.get_short().is_some_and(|short| name == format!("-{short}"));
            long || short
        })
    }

    /// Keeps connection flags: the names of the right cluster and namespace are wanted.
    fn note(&mut self, flag: &Arg, value: &str) {
        let known = Connection::augment_args(clap::Command::new(PLUGIN));
        let is_connection = known.get_arguments().any(|known| known.get_id() == flag.get_id());
        if let Some(long) = flag.get_long().filter(|_| is_connection) {
            self.connection.push(format!("--{long}={value}"));
        }
    }

    fn candidates(&self, last: &str) -> (Candidates, u8) {
        if let Some(flag) = self.flag {
            return values(flag, last);
        }
        if let Some((name, begun)) = last.split_once('=').filter(|_| last.starts_with('-')) {
            let flag = self.find_flag(name);
            return flag.map_or((Vec::new(), NO_FILES), |flag| values(flag, begun));
        }
        if last.starts_with('-') {
            let flags = self.command.get_arguments().filter(|flag| !flag.is_hide_set());
            let named = flags.filter_map(|flag| {
                Some((format!("--{}", flag.get_long()?), help(flag.get_help())))
            });
            return (starting(named.collect(), last), NO_FILES);
        }
        if self.command.has_subcommands() && self.arguments == 0 {
            let commands = self.command.get_subcommands().filter(|command| !command.is_hide_set());
            let named = commands
                .map(|command| (command.get_name().to_owned(), help(command.get_about())))
                .collect();
            return (starting(named, last), NO_FILES);
        }
        if self.path == ["completion"] {
            let shells = ["bash", "zsh", "fish", "powershell"];
            return (
                starting(shells.map(|name| (name.into(), String::new())).to_vec(), last),
                NO_FILES,
            );
        }
        let path = self.path.join(" ");
        let kind = LIVE.iter().find(|(command, _)| *command == path).map(|(_, kind)| *kind);
        match kind.filter(|_| self.arguments == 0) {
            Some(kind) => (starting(self.live(kind), last), NO_FILES),
            None => (Vec::new(), NO_FILES),
        }
    }

    /// The names that exist; none where there is no cluster to ask.
    fn live(&self, kind: &Kind) -> Candidates {
        let flags = Connection::augment_args(clap::Command::new(PLUGIN)).args_override_self(true);
        let mut given = self.connection.clone();
        // Somebody waits at the keyboard. What they say of it themselves stands behind.
        given.insert(1, format!("--request-timeout={PATIENCE}"));
        let Ok(matches) = flags.try_get_matches_from(&given) else { return Vec::new() };
        let Ok(connection) = Connection::from_arg_matches(&matches) else { return Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return Vec::new() };
        let listed = runtime.block_on(async {
            let cluster = connection.open().await.ok()?;
            cluster.list(kind, "").await.ok()
        });
        let names = near::names(&listed.unwrap_or_default());
        names.into_iter().map(|name| (name, String::new())).collect()
    }
}

/// What a flag may be set to. Files are offered for those that name one.
fn values(flag: &Arg, begun: &str) -> (Candidates, u8) {
    let known = flag.get_possible_values();
    let known = known.iter().map(|value| (value.get_name().to_owned(), help(value.get_help())));
    let known: Candidates = known.chain(forms(flag)).collect();
    let mut names = flag.get_value_names().into_iter().flatten();
    let is_path = names.any(|name| PATHS.contains(&name.as_str()));
    let directive = if known.is_empty() && is_path { FILES } else { NO_FILES };
    (starting(known, begun), directive)
}

/// The forms of `-o`, which are words of an own kind.
fn forms(flag: &Arg) -> Candidates {
    let is_form = flag.get_value_names().into_iter().flatten().any(|name| name == "FORMAT");
    let forms: &[&str] = if is_form { &["json", "yaml", "wide", "name"] } else { &[] };
    forms.iter().map(|form| ((*form).to_owned(), String::new())).collect()
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values() && !flag.is_require_equals_set()
}

fn starting(candidates: Candidates, last: &str) -> Candidates {
    candidates.into_iter().filter(|(name, _)| name.starts_with(last)).collect()
}

fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}
