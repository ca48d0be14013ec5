//! `gradus demo` on a terminal: a process behind a pseudo-terminal, and the screen it would show.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use rustix::termios::{LocalModes, tcgetattr};

use crate::program::{command, finish, folder};

/// Longer than anything takes here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The demo in a terminal. Dropping it kills it.
struct Demo {
    pty: Arc<Pty>,
    screen: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Demo {
    fn start(folder: &Path, rows: u16, columns: u16) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let program = Command::new(env!("CARGO_BIN_EXE_gradus")).arg("demo").current_dir(folder);
        let child = program.env("TERM", "xterm").env_remove("NO_COLOR").spawn(pts).unwrap();
        let (pty, screen) = (Arc::new(pty), Arc::new(Mutex::new(parser(rows, columns))));
        let (reader, parser) = (pty.clone(), screen.clone());
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // The other end is gone when the process is: an error, or an end.
            while let Ok(count @ 1..) = (&*reader).read(&mut chunk) {
                parser.lock().unwrap().process(&chunk[..count]);
            }
        });
        Demo { pty, screen, child }
    }

    fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, rows: u16, columns: u16) {
        let [nonzero_rows, nonzero_columns] = [rows, columns].map(|n| NonZeroU16::new(n).unwrap());
        self.screen.lock().unwrap().set_size(nonzero_rows, nonzero_columns);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap();
        let (_, columns) = parser.screen().size();
        parser.screen().rows(0, columns.get()).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits for a screen that is as expected.
    fn until(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let began = Instant::now();
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            assert!(began.elapsed() < PATIENCE, "{what} never came:\n{}", lines.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a line that contains all these words.
    fn until_line(&self, words: &[&str]) -> Vec<String> {
        self.until(&format!("{words:?}"), |lines| {
            lines.iter().any(|line| words.iter().all(|word| line.contains(word)))
        })
    }

    fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it never ended:\n{}", self.lines().join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The terminal is as it was before the demo.
    fn assert_restored(&self) {
        let began = Instant::now();
        while self.screen.lock().unwrap().screen().alternate_screen() {
            assert!(began.elapsed() < PATIENCE, "the alternate screen is still on");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!self.screen.lock().unwrap().screen().hide_cursor());
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
        assert_eq!(self.lines().join(""), "", "nothing is left behind");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn parser(rows: u16, columns: u16) -> vt100::Parser {
    let [rows, columns] = [rows, columns].map(|number| NonZeroU16::new(number).unwrap());
    vt100::Parser::new(rows, columns, 0)
}

/// The picture is whole: its first and last line stand where they belong, each rollout once.
fn is_whole(lines: &[String], last: &str) -> bool {
    let titles = ["cart", "checkout", "colors", "payments", "search", "shop"];
    let count = |name: &str| {
        let is_title = |line: &&String| {
            let line = line.trim_start_matches(['▸', ' ']);
            line.split(' ').next() == Some(name)
        };
        lines.iter().filter(is_title).count()
    };
    lines[0].starts_with("gradus demo  6 rollouts")
        && lines[1].contains("KUBECONFIG=")
        && lines.last().is_some_and(|line| line.starts_with(last))
        && titles.iter().all(|name| count(name) == 1)
}

const KEYS: &str = "q quit  ? help  ↑↓ move  ⏎ open  p promote  a abort";

#[test]
fn keys_choose_open_promote_and_abort_and_q_restores_the_terminal() {
    let folder = folder("demo-keys");
    let mut demo = Demo::start(&folder, 20, 60);
    demo.until("the picture", |lines| is_whole(lines, KEYS));
    demo.press("s");
    demo.until_line(&["people: stopped"]);
    demo.press("?");
    demo.until_line(&["running, not ready"]);
    demo.press("?");
    demo.until("the list", |lines| is_whole(lines, KEYS));
    demo.press("\x1b[B");
    demo.until_line(&["▸ checkout"]);
    demo.until_line(&["▸ checkout", "Healthy"]);
    let mut image = command(&["set", "image", "checkout", "*=nginx:1.28"]);
    image.env("KUBECONFIG", folder.join("gradus-demo.kubeconfig"));
    let finished = finish(image);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    demo.until_line(&["▸ checkout", "Paused", "step 1/4"]);
    demo.press("p");
    demo.until_line(&["checkout", "you promote it"]);
    demo.until_line(&["▸ checkout", "Paused", "step 3/4", "weight 60 %"]);
    demo.press("\r");
    demo.until_line(&["⧉ checko", "canary"]);
    demo.press("a");
    demo.until_line(&["⟳ checkout", "Degraded"]);
    demo.press("\x1b[D");
    demo.until_line(&["▸ checkout", "Degraded"]);
    demo.press("q");
    assert_eq!(demo.end().code(), Some(0));
    demo.assert_restored();
    assert!(!folder.join("gradus-demo.kubeconfig").exists());
}

#[test]
fn resizing_and_stray_keys_leave_no_garbage() {
    let mut demo = Demo::start(&folder("demo-resize"), 40, 120);
    demo.until("the picture", |lines| is_whole(lines, KEYS));
    demo.press("sxyz\t\u{1}\u{1a}");
    demo.until_line(&["people: stopped"]);
    for (rows, columns) in [(20, 60), (40, 120), (24, 80), (12, 60), (40, 120)] {
        demo.resize(rows, columns);
        let fits = rows >= 20;
        let drawn = |lines: &[String]| match fits {
            true => is_whole(lines, KEYS),
            false => {
                let last = lines.last().is_some_and(|line| line.starts_with(KEYS));
                lines[0].starts_with("gradus demo") && lines[2].starts_with("▸ cart") && last
            }
        };
        demo.until(&format!("{rows} × {columns}"), drawn);
        // Opened and closed again: what the tree leaves must be gone as well.
        demo.press("\r");
        demo.until_line(&["⟳ cart"]);
        demo.press("\x1b[D");
        demo.until(&format!("{rows} × {columns} again"), drawn);
    }
    demo.press("\u{3}");
    assert_eq!(demo.end().code(), Some(0), "Ctrl-C is a key in raw mode");
    demo.assert_restored();
}

#[test]
fn signals_restore_the_terminal() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut demo = Demo::start(&folder(&format!("demo-signal-{signal}")), 24, 80);
        demo.until("the picture", |lines| is_whole(lines, KEYS));
        let id = demo.child.id().to_string();
        let kill = std::process::Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(kill.unwrap().success());
        assert_eq!(demo.end().code(), Some(0), "{signal}");
        demo.assert_restored();
    }
}
