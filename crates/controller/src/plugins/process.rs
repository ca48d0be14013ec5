//! One process of a plugin: how it is started, spoken to and ended. It gets nothing of ours but what
//! its configuration lists: no environment, no descriptors, a folder of its own, and limits.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gradus_goplugin::{Address, HANDSHAKE_LIMIT, PluginKind, parse_handshake};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::config::PluginEntry;
use super::lines;
use super::output::{Lines, Unprinted};
use super::pace::{self, Pace};
use super::wire::{Wire, WireEvent};

/// How long a plugin may take from its start to its first line, as with Argo Rollouts.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take from there until it can be called.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The most data of a plugin, in bytes, where the system does not leave the controller less.
const DATA_LIMIT: u64 = 1 << 30;
/// How long a plugin that kept a call waiting may take to say that it is there.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// How long a plugin that was asked to end may take.
const QUIT_LIMIT: Duration = Duration::from_secs(2);
/// Calls that wait to be sent.
const CALLS_LIMIT: usize = 64;
/// How the words about a call begin that took too long.
pub(super) const NO_ANSWER: &str = "no answer";
/// What a plugin that does not read may leave unsent, in bytes.
const UNSENT_LIMIT: usize = 64 << 20;

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallFailure {
    /// It was not heard, not answered, or refused by the plugin's side of the protocol.
    Transport(String),
    /// The plugin itself says so.
    Said(String),
}

/// A plugin that runs. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Running {
    orders: mpsc::Sender<Order>,
    /// What it was given and must not be logged when it prints it.
    pub(super) unprinted: Unprinted,
}

#[derive(Debug)]
enum Order {
    Call(Call),
    Stop(oneshot::Sender<()>),
}

#[derive(Debug)]
struct Call {
    method: String,
    argument: Value,
    limit: Duration,
    reply: oneshot::Sender<Result<Value, CallFailure>>,
}

impl Running {
    /// Is its process there?
    pub fn is_there(&self) -> bool {
        !self.orders.is_closed()
    }

    /// Calls a method, and waits for the answer as long as the limit says.
    pub async fn call(
        &self,
        method: &str,
        argument: Value,
        limit: Duration,
    ) -> Result<Value, CallFailure> {
        let (reply, answer) = oneshot::channel();
        let call = Call { method: method.to_owned(), argument, limit, reply };
        let gone = || CallFailure::Transport("connection is shut down".to_owned());
        self.orders.send(Order::Call(call)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Asks the plugin to end, and waits until it has.
    pub async fn stop(self) {
        let (done, ended) = oneshot::channel();
        if self.orders.send(Order::Stop(done)).await.is_ok() {
            ended.await.ok();
        }
    }
}

/// Starts a plugin: it can be called when this returns. The words of errors are Argo Rollouts'.
pub(super) async fn start(
    kind: PluginKind,
    entry: &PluginEntry,
    program: &Path,
) -> Result<Running, String> {
    let name = &entry.name;
    let unprinted = Unprinted::default();
    let connecting = connect(kind, entry, program, &unprinted);
    let connecting = timeout(HANDSHAKE_PATIENCE, connecting).await;
    let late = || Err("timeout while waiting for plugin to start".to_owned());
    let process = connecting.unwrap_or_else(|_| late());
    let process = process.map_err(|why| format!("unable to get plugin client ({name}): {why}"))?;
    let began = Instant::now();
    let (orders, inbox) = mpsc::channel(CALLS_LIMIT);
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(process.drive(inbox, ready));
    let left = START_LIMIT.saturating_sub(began.elapsed());
    let dispensed = timeout(left, is_ready).await;
    let dispensed = dispensed.map_err(|_| "no answer in time".to_owned());
    let dispensed = dispensed.and_then(|ready| ready.unwrap_or(Err("unexpected EOF".to_owned())));
    dispensed.map_err(|why| format!("unable to dispense plugin ({name}): {why}"))?;
    let running = Running { orders, unprinted };
    let left = START_LIMIT.saturating_sub(began.elapsed());
    match running.call("InitPlugin", Value::Null, left).await {
        Ok(_) => Ok(running),
        Err(CallFailure::Said(why)) => {
            running.stop().await;
            Err(format!("unable to initialize plugin via rpc ({name}): {why}"))
        }
        Err(CallFailure::Transport(why)) => {
            running.stop().await;
            Err(format!(
                "unable to initialize plugin via rpc ({name}): InitPlugin rpc call error: {why}"
            ))
        }
    }
}

/// A process with a connection to it.
struct Process {
    name: String,
    child: Child,
    /// Kept as long as the process is.
    _folder: Folder,
    wire: Wire,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    unsent: Vec<u8>,
    printed: Lines,
    pending: Vec<Pending>,
    /// When an answer to our own question whether it is there must have come.
    ping: Option<(u64, Instant)>,
}

struct Pending {
    call: u64,
    until: Instant,
    limit: Duration,
    reply: oneshot::Sender<Result<Value, CallFailure>>,
}

async fn connect(
    kind: PluginKind,
    entry: &PluginEntry,
    program: &Path,
    unprinted: &Unprinted,
) -> Result<Process, String> {
    let printed = || Lines::of(&entry.name, unprinted.clone());
    let folder = Folder::new()?;
    let mut child = spawn(kind, entry, program, &folder.0).await?;
    restrict(&child);
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(mut stdout), Some(stderr)) = pipes else {
        return Err("the process has no pipes".to_owned());
    };
    tokio::spawn(forward(printed(), stderr));
    let first = first_line(&mut stdout).await;
    let Some(line) = first.map_err(|error| error.to_string())? else {
        let ended = timeout(Duration::from_secs(1), child.wait()).await;
        let how = match ended {
            Ok(Ok(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        return Err(format!("plugin exited before we could connect{how}"));
    };
    type Ends = (Wire, Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);
    let (wire, reader, writer): Ends = match lines::greeting(&line, kind) {
        Some(greeting) => {
            greeting?;
            (Wire::lines(), Box::new(stdout), Box::new(stdin))
        }
        None => {
            let address = parse_handshake(&line).map_err(|error| error.to_string())?;
            tokio::spawn(forward(printed(), stdout));
            let failed = |error: io::Error| format!("the plugin's socket: {error}");
            match address {
                Address::Unix(path) => {
                    let path = folder.0.join(path);
                    let (reader, writer) =
                        UnixStream::connect(path).await.map_err(failed)?.into_split();
                    (Wire::go(kind), Box::new(reader), Box::new(writer))
                }
                Address::Tcp(address) => {
                    let (reader, writer) =
                        TcpStream::connect(address).await.map_err(failed)?.into_split();
                    (Wire::go(kind), Box::new(reader), Box::new(writer))
                }
            }
        }
    };
    Ok(Process {
        name: entry.name.clone(),
        child,
        _folder: folder,
        wire,
        reader,
        writer,
        unsent: Vec::new(),
        printed: printed(),
        pending: Vec::new(),
        ping: None,
    })
}

async fn spawn(
    kind: PluginKind,
    entry: &PluginEntry,
    program: &Path,
    folder: &Path,
) -> Result<Child, String> {
    let mut tries = 0;
    loop {
        let mut command = Command::new(program);
        command.args(&entry.args).env_clear().envs(environment(kind, entry, folder));
        command.current_dir(folder).kill_on_drop(true).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            // A child of ours that is just being made may still hold the file open for writing.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 50 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(format!("fork/exec {}: {error}", program.display())),
            Ok(child) => return Ok(child),
        }
    }
}

/// What go-plugin needs, what our own protocol needs, and what the configuration lists.
fn environment(kind: PluginKind, entry: &PluginEntry, folder: &Path) -> Vec<(OsString, OsString)> {
    let (cookie, value) = kind.cookie();
    let mut all: Vec<(OsString, OsString)> = [
        (cookie, value),
        ("PLUGIN_MIN_PORT", "10000"),
        ("PLUGIN_MAX_PORT", "25000"),
        ("PLUGIN_PROTOCOL_VERSIONS", "1"),
        ("GRADUS_PLUGIN_VERSIONS", "1"),
        ("GRADUS_PLUGIN_KIND", lines::name_of(kind)),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    all.push(("TMPDIR".into(), folder.into()));
    all.push(("HOME".into(), folder.into()));
    for (name, value) in &entry.env {
        let value = value.as_ref().map(OsString::from).or_else(|| std::env::var_os(name));
        all.extend(value.map(|value| (name.into(), value)));
    }
    all
}

/// Memory, files and their size are limited where the system can do so.
fn restrict(child: &Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let limits = [
            (Resource::Data, data_limit()),
            (Resource::Fsize, 256 << 20),
            (Resource::Nofile, 1024),
            (Resource::Core, 0),
        ];
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        for (resource, limit) in limits {
            let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
            if let Err(error) = prlimit(id, resource, limit) {
                tracing::warn!(error = error.to_string(), "a plugin runs without a limit");
            }
        }
    }
}

/// How much data a plugin may have. Half of what the container may use: where a container has more
/// than it may, the kernel ends all of its processes, the controller among them.
pub(super) fn data_limit() -> u64 {
    let said = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    part_of_container(&said)
}

fn part_of_container(limit: &str) -> u64 {
    // Where there is no limit, it reads `max`.
    let half = limit.trim().parse::<u64>().map_or(u64::MAX, |limit| limit / 2);
    half.min(DATA_LIMIT)
}

/// The first line, without its end; `None` where there is none. Nothing after it is read.
async fn first_line(stdout: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        match stdout.read_u8().await {
            Ok(b'\n') => break,
            Ok(byte) if line.len() < HANDSHAKE_LIMIT => line.push(byte),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && line.is_empty() => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Logs what comes out of a pipe, to its end.
async fn forward(mut lines: Lines, mut pipe: impl AsyncRead + Unpin) {
    let mut buffer = vec![0; 16 << 10];
    let mut pace = Pace::new(pace::PRINTED);
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        lines.feed(&buffer[..count]);
        pace.took(count);
        match pace.pause() {
            Some(end) => sleep_until(end).await,
            None => tokio::task::yield_now().await, // Others take their turn.
        }
    }
    lines.end();
}

impl Process {
    /// Carries calls to the plugin and answers back until either side ends.
    async fn drive(
        mut self,
        mut inbox: mpsc::Receiver<Order>,
        ready: oneshot::Sender<Result<(), String>>,
    ) {
        let mut ready = Some(ready);
        let mut buffer = vec![0; 64 << 10];
        let mut pace = Pace::new(pace::ANSWERED);
        let mut stopped = None;
        let why = loop {
            self.unsent.extend(self.wire.take_output());
            if self.unsent.len() > UNSENT_LIMIT {
                break "it does not read what it is sent".to_owned();
            }
            for event in self.wire.take_events() {
                self.happened(event, &mut ready);
            }
            let (until, pause) = (self.next_deadline(), pace.pause());
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Call(call)) => self.begin(call),
                    Some(Order::Stop(done)) => {
                        stopped = Some(done);
                        break String::new();
                    }
                    None => break String::new(),
                },
                () = sleep_until(pause.unwrap_or(until)), if pause.is_some() => {}
                read = self.reader.read(&mut buffer), if pause.is_none() => match read {
                    Ok(0) => break "it has closed the connection".to_owned(),
                    Ok(count) => {
                        pace.took(count);
                        if let Err(error) = self.wire.feed(&buffer[..count]) {
                            break error;
                        }
                        tokio::task::yield_now().await;
                    }
                    Err(error) => break error.to_string(),
                },
                sent = self.writer.write(&self.unsent), if !self.unsent.is_empty() => match sent {
                    Ok(count) => drop(self.unsent.drain(..count)),
                    Err(error) => break error.to_string(),
                },
                () = sleep_until(until) => if !self.expire() {
                    break "it does not answer".to_owned();
                },
            }
        };
        if let Some(ready) = ready.take() {
            ready.send(Err(why.clone())).ok();
        }
        if !why.is_empty() {
            tracing::warn!(plugin = self.name, error = why, "plugin ended");
        }
        inbox.close();
        self.give_up(&why);
        self.end(why.is_empty()).await;
        drop(self); // With its folder, before anybody hears that it has ended.
        if let Some(done) = stopped {
            done.send(()).ok();
        }
    }

    fn begin(&mut self, call: Call) {
        let Call { method, argument, limit, reply } = call;
        match self.wire.call(&method, &argument) {
            Ok(call) => {
                let until = Instant::now() + limit;
                self.pending.push(Pending { call, until, limit, reply });
            }
            Err(error) => drop(reply.send(Err(CallFailure::Transport(error)))),
        }
    }

    fn happened(
        &mut self,
        event: WireEvent,
        ready: &mut Option<oneshot::Sender<Result<(), String>>>,
    ) {
        match event {
            WireEvent::Ready => {
                if let Some(ready) = ready.take() {
                    ready.send(Ok(())).ok();
                }
            }
            WireEvent::Printed(bytes) => self.printed.feed(&bytes),
            WireEvent::Closed => {}
            WireEvent::Answered { call, outcome } => {
                if self.ping.is_some_and(|(asked, _)| asked == call) {
                    self.ping = None;
                    return;
                }
                match self.pending.iter().position(|pending| pending.call == call) {
                    Some(at) => drop(self.pending.swap_remove(at).reply.send(outcome)),
                    None => tracing::warn!(plugin = self.name, "plugin answered too late"),
                }
            }
        }
    }

    fn next_deadline(&self) -> Instant {
        let calls = self.pending.iter().map(|pending| pending.until);
        let all = calls.chain(self.ping.map(|(_, until)| until));
        all.min().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }

    /// Ends calls that took too long. One that does keeps no other waiting as long as the plugin says
    /// that it is there; false if it does not.
    fn expire(&mut self) -> bool {
        let now = Instant::now();
        if self.ping.is_some_and(|(_, until)| until <= now) {
            return false;
        }
        let (late, rest) =
            std::mem::take(&mut self.pending).into_iter().partition(|one| one.until <= now);
        self.pending = rest;
        let late: Vec<Pending> = late;
        for pending in late {
            let text = format!("{NO_ANSWER} within {} s", pending.limit.as_secs());
            pending.reply.send(Err(CallFailure::Transport(text))).ok();
            if self.ping.is_none() {
                self.ping = Some((self.wire.ping(), now + PING_LIMIT));
            }
        }
        true
    }

    /// Ends all calls: those who wait hear why.
    fn give_up(&mut self, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        for pending in std::mem::take(&mut self.pending) {
            let failure = CallFailure::Transport(format!("unexpected EOF{why}"));
            pending.reply.send(Err(failure)).ok();
        }
    }

    /// Ends the process: it is asked where it may still listen, and killed if it does not end.
    async fn end(&mut self, is_asked: bool) {
        self.wire.end();
        if is_asked {
            self.wire.quit();
            let bytes = self.wire.take_output();
            let asking = async {
                self.writer.write_all(&bytes).await.ok();
                self.writer.shutdown().await.ok();
                // A pipe is closed by nothing else.
                self.writer = Box::new(tokio::io::sink());
                self.child.wait().await.ok();
            };
            timeout(QUIT_LIMIT, asking).await.ok();
        }
        kill_group(&self.child);
        if let Err(error) = self.child.kill().await {
            tracing::warn!(plugin = self.name, error = error.to_string(), "plugin not killed");
        }
        self.printed.end();
    }
}

/// Kills what the plugin has started, too.
fn kill_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        kill_process_group(id, Signal::KILL).ok();
    }
}

/// A folder of one process, private and gone with it. Its path is short: sockets need that.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        use std::os::unix::fs::DirBuilderExt as _;
        let base = std::env::temp_dir();
        for _ in 0..100 {
            let bytes = crate::random::bytes(6).map_err(|error| error.message)?;
            let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = base.join(format!("gradus-{name}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Err(format!("{}: no free name for a folder", base.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            let path = self.0.display().to_string();
            tracing::warn!(path, error = error.to_string(), "a plugin's folder is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_has_at_most_half_of_what_the_container_may_use() {
        let cases = [
            ("", 1 << 30),
            ("max\n", 1 << 30),
            ("536870912\n", 256 << 20),
            ("8589934592", 1 << 30),
        ];
        for (limit, expected) in cases {
            assert_eq!(part_of_container(limit), expected, "{limit:?}");
        }
    }
}
