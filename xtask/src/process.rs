//! How does a server we start end with us, whatever ends us?

use std::{
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

/// Starts the program and kills it as soon as standard input ends. The pipe's other end is ours,
/// so the kernel closes it when we return, panic or are killed ourselves. A program that was killed
/// (137) takes with it whatever it had started: all of this is one process group.
const GUARD: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{ read -r _ <&3; kill -9 "$program"; } 2>/dev/null &
lifeline=$!
wait "$program"
status=$?
[ "$status" -eq 137 ] && kill -9 0
kill "$lifeline" 2>/dev/null
exit "$status"
"#;

/// How much of a log an error message quotes.
const QUOTED_LINES: usize = 8;

/// What to run.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Name for messages and for the log file.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Its working folder, if not ours.
    pub folder: Option<PathBuf>,
    /// Environment variables beyond ours.
    pub variables: Vec<(String, OsString)>,
}

impl Recipe {
    pub fn new(name: &str, program: &Path) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments: Vec::new(),
            folder: None,
            variables: Vec::new(),
        }
    }

    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// `--name=value`.
    pub fn flag(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut text = OsString::from(format!("--{name}="));
        text.push(value);
        self.argument(text)
    }

    /// Runs it in this folder.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }
}

/// A running program whose life is tied to this value.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    /// How long the log was before.
    log_began: usize,
    guard: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts it with its output in `<folder>/<name>.log`, appended.
    pub fn start(recipe: &Recipe, folder: &Path) -> io::Result<Self> {
        let log = folder.join(format!("{}.log", recipe.name));
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let log_began = usize::try_from(output.metadata()?.len()).unwrap_or(usize::MAX);
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, &recipe.name])
            .arg(&recipe.program)
            .args(&recipe.arguments)
            .current_dir(recipe.folder.as_deref().unwrap_or(Path::new(".")))
            .envs(recipe.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A group of its own: Ctrl-C in a terminal reaches us alone, and we stop it in order.
            .process_group(0)
            .spawn()?;
        let lifeline = guard.stdin.take();
        Ok(Self { name: recipe.name.clone(), log, log_began, guard, lifeline })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `Some` once the program has ended, by itself or by us.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.guard.try_wait()
    }

    /// The number of the program itself.
    pub fn pid(&self) -> io::Result<u32> {
        let guard = self.guard.id();
        // The program is what the guard started first.
        let children = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children"))?;
        let program = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        program.ok_or_else(|| io::Error::other(format!("{}: it does not run", self.name)))
    }

    /// Asks the program to end, as Kubernetes asks a container.
    pub fn terminate(&self) -> io::Result<()> {
        let program = self.pid()?.to_string();
        Command::new("kill").args(["-TERM", &program]).status().map(drop)
    }

    /// `kill -9`; returns when it is gone. Killing a dead program does nothing.
    pub fn kill(&mut self) -> io::Result<()> {
        self.lifeline = None;
        self.guard.wait().map(drop)
    }

    /// What it has said so far, without those who wrote into the same log before.
    pub fn words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(text.get(self.log_began..).unwrap_or_default()).into_owned()
    }

    /// The end of its log, for a message about a failure.
    pub fn last_words(&self) -> String {
        let text = self.words();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{}: could not be stopped: {error}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    fn started(script: &str) -> (Folder, Process) {
        let folder = Folder::create("process-test").unwrap();
        let recipe = Recipe::new("sh", Path::new("/bin/sh")).argument("-c").argument(script);
        let process = Process::start(&recipe, folder.path()).unwrap();
        (folder, process)
    }

    /// Waits for a file that the program writes, without a clock.
    fn content(path: &Path) -> String {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn a_dropped_process_is_gone_and_so_is_what_it_started() {
        let folder = Folder::create("process-test").unwrap();
        let written = folder.path().join("pids");
        let script = format!("sleep 1000 & echo $$ $! > {}; wait", written.display());
        let recipe = Recipe::new("sh", Path::new("/bin/sh")).argument("-c").argument(script);
        let process = Process::start(&recipe, folder.path()).unwrap();
        let pids = content(&written);
        let is_alive = |pid: &str| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| !status.contains("State:\tZ"))
        };
        let (program, child) = pids.split_once(' ').unwrap();
        assert!(is_alive(program) && is_alive(child));
        drop(process);
        assert!(!is_alive(program), "{program} outlived its owner");
        while is_alive(child) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_end_of_a_program_is_seen_with_its_status_and_words() {
        let (_folder, mut process) = started("echo no such thing; exit 3");
        process.guard.wait().unwrap();
        assert_eq!(process.ended().unwrap().and_then(|status| status.code()), Some(3));
        assert_eq!(process.last_words(), "no such thing");
    }

    #[test]
    fn what_another_said_into_the_same_log_is_not_its_own() {
        let (folder, mut first) = started("echo first");
        first.guard.wait().unwrap();
        let recipe = Recipe::new("sh", Path::new("/bin/sh")).argument("-c").argument("echo second");
        let mut second = Process::start(&recipe, folder.path()).unwrap();
        second.guard.wait().unwrap();
        assert_eq!(second.words(), "second\n");
        assert_eq!(first.words(), "first\nsecond\n");
    }

    #[test]
    fn killing_twice_is_harmless() {
        let (_folder, mut process) = started("exec sleep 1000");
        process.kill().unwrap();
        process.kill().unwrap();
    }
}
