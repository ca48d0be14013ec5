//! The terminal the demo has to itself: raw mode and alternate screen, given back on every way out.

use std::io::{self, IsTerminal};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};

/// A terminal in raw mode with its alternate screen on. Dropping it restores the terminal, and a
/// panic restores it before its message is printed.
pub struct Terminal {
    terminal: DefaultTerminal,
}

impl Terminal {
    /// Is there a terminal that can show the demo, with a keyboard?
    pub fn is_there() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb
    }

    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Terminal { terminal }),
            Err(error) => {
                // It may have got half way.
                ratatui::try_restore().ok();
                Err(error)
            }
        }
    }

    /// Draws what has changed since the last time, all of it in a terminal of another size.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(drop)
    }

    /// The keys pressed since the last time.
    pub fn keys(&mut self) -> io::Result<Vec<KeyEvent>> {
        let mut keys = Vec::new();
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => keys.push(key),
                _ => {}
            }
        }
        Ok(keys)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing restored.
        ratatui::try_restore().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::num::NonZeroU16;

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "GRADUS_TEST_PANICS";

    /// The test starts itself in a terminal of its own, as the process that panics.
    #[test]
    fn a_panic_restores_the_terminal_and_its_message_is_seen() {
        if std::env::var_os(PANICS).is_some() {
            let mut terminal = Terminal::open().unwrap();
            terminal.draw(|frame| frame.render_widget("a picture", frame.area())).unwrap();
            panic!("on purpose");
        }
        let name = "commands::demo::terminal::tests::\
                    a_panic_restores_the_terminal_and_its_message_is_seen";
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(24, 80)).unwrap();
        let command = pty_process::blocking::Command::new(std::env::current_exe().unwrap());
        let command = command.args(["--exact", name, "--nocapture"]);
        let mut child = command.env(PANICS, "1").env("TERM", "xterm").spawn(pts).unwrap();
        let (rows, columns) = (NonZeroU16::new(24).unwrap(), NonZeroU16::new(80).unwrap());
        let mut parser = vt100::Parser::new(rows, columns, 0);
        let (mut chunk, mut was_alternate) = ([0; 4096], false);
        // The other end is gone when the process is: an error on some systems, an end on others.
        while let Ok(count @ 1..) = pty.read(&mut chunk) {
            parser.process(&chunk[..count]);
            let sent = String::from_utf8_lossy(&chunk[..count]).into_owned();
            was_alternate |= sent.contains("\x1b[?1049h");
        }
        assert!(!child.wait().unwrap().success());
        let screen = parser.screen();
        assert!(was_alternate && !screen.alternate_screen(), "{}", screen.contents());
        assert!(!screen.hide_cursor());
        let text = screen.contents();
        assert!(text.contains("on purpose") && !text.contains("a picture"), "{text}");
        let modes = rustix::termios::tcgetattr(&pty).unwrap().local_modes;
        let cooked = rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO;
        assert!(modes.contains(cooked), "{modes:?}");
    }
}
