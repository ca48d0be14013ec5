//! How is the binary started, read and ended?

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than anything takes here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a finished program left behind.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the binary to its end.
pub fn gradus(arguments: &[&str]) -> Finished {
    finish(command(arguments))
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The binary with these arguments, as if in no cluster.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(arguments).env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBECONFIG");
    // Where the Lease of the controllers is: every cluster has this namespace.
    command.env("POD_NAMESPACE", "default");
    command
}

/// A program that runs. Dropping it kills it.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Everything read so far.
    pub seen: Vec<String>,
}

impl Running {
    /// Starts the command; its standard output and error are read together.
    pub fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (sender, lines) = channel();
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream).lines();
                lines.map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
            });
        }
        Running { child, lines, seen: Vec::new() }
    }

    /// Reads on until a line contains the text, and returns that line.
    pub fn until(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line.clone()),
                Err(_) => panic!("{text:?} never came; this did:\n{}", self.seen.join("\n")),
            }
            if let Some(line) = self.seen.last().filter(|line| line.contains(text)) {
                return line.clone();
            }
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, as `TERM` or `INT`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Reads the rest and returns how it ended.
    pub fn end(&mut self) -> ExitStatus {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        self.child.wait().unwrap()
    }

    /// Lines that contain the text.
    pub fn count(&self, text: &str) -> usize {
        self.seen.iter().filter(|line| line.contains(text)).count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A port that nobody listens on, and that no other test and no outgoing connection is given.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below the ports that systems give away by themselves.
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// What opens /debug/world of the controllers that tests start.
pub const DEBUG_TOKEN: &str = "debug-token-of-tests";

/// The flags that switch /debug/world on, with the token in a file.
pub fn debug_world() -> [String; 2] {
    // Written once: controllers that tests start at the same time read it.
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("gradus-debug-token-{}", std::process::id()));
        std::fs::write(&path, DEBUG_TOKEN).unwrap();
        path
    });
    let path = &*PATH;
    ["--debug-world".to_owned(), format!("--debug-world-token-file={}", path.display())]
}

/// The answer to a GET of a loopback port: status and body.
pub fn get(port: u16, path: &str) -> std::io::Result<(u16, String)> {
    ask(port, "GET", path, "")
}

/// The answer to a request to a loopback port: status and body.
pub fn ask(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")?;
    if path.starts_with("/debug/") {
        write!(stream, "Authorization: Bearer {DEBUG_TOKEN}\r\n")?;
    }
    write!(stream, "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Ok((status, body.to_owned()))
}

/// A kubeconfig for a server without any secrets.
pub fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
         users: [{{name: test, user: {{}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test, namespace: default}}}}]\n"
    )
}
