//! One process of a plugin: how it is started, spoken to and ended. It gets nothing of ours but what
//! its configuration lists: no environment, no descriptors, a folder of its own, and limits.

use std::io;
use std::path::Path;
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
use super::confine::{environment, restrict};
use super::folder::Folder;
use super::lines;
use super::output::{Lines, Unprinted};
use super::pace::{self, Pace};
use super::wire::{Wire, WireEvent};

/// How long a plugin may take from its start to its first line, as with Argo Rollouts.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take from there until it can be called.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a plugin that kept a call waiting may take to say that it is there.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// How long a plugin that was asked to end may take.
const QUIT_LIMIT: Duration = Duration::from_secs(2);
/// Calls that wait to be sent.
const CALLS_LIMIT: usize = 64;
/// How the words about a call begin that took too long.
pub(super) const NO_ANSWER: &str = "no answer";
/// The method that only asks whether the plugin is there; of go-plugin itself, not of an interface.
pub(super) const PING: &str = "Ping";
/// What a plugin that does not read may leave unsent, in bytes.
const UNSENT_LIMIT: usize = 64 << 20;
/// Calls that it may leave without an answer, however late. One with more has lost its way.
const UNANSWERED_LIMIT: usize = 256;

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
    /// Does it read calls from its standard input? Then it ends when that does.
    pub(super) reads_lines: bool,
    /// What it was given and must not be logged when it prints it.
    pub(super) unprinted: Unprinted,
}

#[derive(Debug)]
enum Order {
    Call(Call),
    /// `done` receives whether it ended in time; it is not asked to if it is left.
    Stop {
        is_left: bool,
        done: oneshot::Sender<bool>,
    },
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
        self.end(false).await;
    }

    /// Leaves the plugin as a controller does that dies; has it ended by itself?
    pub async fn leave(self) -> bool {
        self.end(true).await
    }

    async fn end(self, is_left: bool) -> bool {
        let (done, ended) = oneshot::channel();
        let is_heard = self.orders.send(Order::Stop { is_left, done }).await.is_ok();
        is_heard && ended.await.unwrap_or_default()
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
    let reads_lines = matches!(process.wire, Wire::Lines(_));
    let (orders, inbox) = mpsc::channel(CALLS_LIMIT);
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(process.drive(inbox, ready));
    let left = START_LIMIT.saturating_sub(began.elapsed());
    let dispensed = timeout(left, is_ready).await;
    let dispensed = dispensed.map_err(|_| "no answer in time".to_owned());
    let dispensed = dispensed.and_then(|ready| ready.unwrap_or(Err("unexpected EOF".to_owned())));
    dispensed.map_err(|why| format!("unable to dispense plugin ({name}): {why}"))?;
    let running = Running { orders, reads_lines, unprinted };
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
    child: Group,
    /// Kept as long as the process is.
    _folder: Folder,
    wire: Wire,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    unsent: Vec<u8>,
    /// Its standard output and its standard error, where the connection brings them.
    printed: [Lines; 2],
    pending: Vec<Pending>,
    /// When an answer to our own question whether it is there must have come.
    ping: Option<(u64, Instant)>,
    /// Calls whose time is over and which it may still answer.
    unanswered: usize,
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
    let mut child = Group(spawn(kind, entry, program, folder.path()).await?);
    restrict(&child.0);
    let pipes = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
    let (Some(stdin), Some(mut stdout), Some(stderr)) = pipes else {
        return Err("the process has no pipes".to_owned());
    };
    tokio::spawn(forward(printed(), stderr));
    let first = first_line(&mut stdout).await;
    let Some(line) = first.map_err(|error| error.to_string())? else {
        let ended = timeout(Duration::from_secs(1), child.0.wait()).await;
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
                    let path = folder.path().join(path);
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
        printed: [printed(), printed()],
        pending: Vec::new(),
        ping: None,
        unanswered: 0,
    })
}

async fn spawn(
    kind: PluginKind,
    entry: &PluginEntry,
    program: &Path,
    folder: &Path,
) -> Result<Child, String> {
    // What we have opened is closed there by itself, but not what somebody has left open for us.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
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
            if let Some(fault) = self.hear(&mut ready) {
                break fault;
            }
            let (until, pause) = (self.next_deadline(), pace.pause());
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Call(call)) => self.begin(call),
                    Some(Order::Stop { is_left, done }) => {
                        stopped = Some((is_left, done));
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
        let ending = match &stopped {
            Some((true, _)) => Ending::Left,
            _ if why.is_empty() => Ending::Asked,
            _ => Ending::Broken,
        };
        let has_ended = self.end(ending).await;
        drop(self); // With its folder, before anybody hears that it has ended.
        if let Some((_, done)) = stopped {
            done.send(has_ended).ok();
        }
    }

    /// Takes in what has happened; why it cannot go on, if it cannot.
    fn hear(&mut self, ready: &mut Option<oneshot::Sender<Result<(), String>>>) -> Option<String> {
        let events = self.wire.take_events();
        let is_over = events.contains(&WireEvent::Closed);
        for event in events {
            self.happened(event, ready);
        }
        if self.unsent.len() + self.wire.held() > UNSENT_LIMIT {
            return Some("it does not read what it is sent".to_owned());
        }
        if self.unanswered > UNANSWERED_LIMIT {
            let limit = UNANSWERED_LIMIT;
            return Some(format!("it has left more than {limit} calls without an answer"));
        }
        is_over.then(|| "it has ended its part of the connection".to_owned())
    }

    fn begin(&mut self, call: Call) {
        let Call { method, argument, limit, reply } = call;
        let called = match method.as_str() {
            PING => Ok(self.wire.ping()),
            method => self.wire.call(method, &argument),
        };
        match called {
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
            WireEvent::Printed(place, bytes) => self.printed[place as usize].feed(&bytes),
            WireEvent::Closed => {}
            WireEvent::Answered { call, outcome } => {
                if self.ping.is_some_and(|(asked, _)| asked == call) {
                    self.ping = None;
                    return;
                }
                match self.pending.iter().position(|pending| pending.call == call) {
                    Some(at) => drop(self.pending.swap_remove(at).reply.send(outcome)),
                    None => {
                        self.unanswered = self.unanswered.saturating_sub(1);
                        tracing::warn!(plugin = self.name, "plugin answered too late");
                    }
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
        self.unanswered += late.len();
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

    /// Ends the process, and kills it if it does not end: has it ended by itself?
    async fn end(&mut self, ending: Ending) -> bool {
        self.wire.end();
        let mut has_ended = false;
        if ending != Ending::Broken {
            if ending == Ending::Asked {
                self.wire.quit();
            }
            let bytes = self.wire.take_output();
            let asking = async {
                self.writer.write_all(&bytes).await.ok();
                self.writer.shutdown().await.ok();
                // A pipe is closed by nothing else.
                self.writer = Box::new(tokio::io::sink());
                self.child.0.wait().await.ok();
            };
            has_ended = timeout(QUIT_LIMIT, asking).await.is_ok();
        }
        self.child.kill();
        if let Err(error) = self.child.0.kill().await {
            tracing::warn!(plugin = self.name, error = error.to_string(), "plugin not killed");
        }
        self.printed.iter_mut().for_each(Lines::end);
        has_ended
    }
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It is asked to.
    Asked,
    /// Nobody is there any more.
    Left,
    /// It does not do what it should.
    Broken,
}

/// A plugin and what it has started: all of it goes with this.
struct Group(Child);

impl Group {
    fn kill(&self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            kill_process_group(id, Signal::KILL).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
