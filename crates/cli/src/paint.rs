//! Is output coloured, and how?

use std::io::IsTerminal;

/// A colour of a terminal, by its SGR code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// As it is.
    None = 0,
    /// Bad.
    Red = 31,
    /// Good.
    Green = 32,
    /// Doubtful, or new.
    Yellow = 33,
    /// On its way.
    Blue = 94,
}

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// Coloured unless a flag, `NO_COLOR` or a dumb terminal says otherwise. As in Argo Rollouts,
    /// a pipe is coloured too: `watch --color` and `less -R` rely on it.
    pub fn unless(no_color: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint { is_on: !no_color && !is_dumb && !is_set("NO_COLOR") }
    }

    /// Never coloured.
    pub const PLAIN: Self = Paint { is_on: false };

    /// Always coloured.
    #[cfg(test)]
    pub const BRIGHT: Self = Paint { is_on: true };

    /// The text in a colour.
    pub fn wrap(self, colour: Colour, text: &str) -> String {
        if self.is_on { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
    }
}

/// Columns of the terminal that standard output is; none where it is no terminal.
pub fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| width.0.into())
}

/// Rows of the terminal that standard output is, or as many as `LINES` says.
pub fn height() -> Option<usize> {
    let told = || std::env::var("LINES").ok().and_then(|rows| rows.parse().ok());
    if !std::io::stdout().is_terminal() {
        return told();
    }
    terminal_size::terminal_size().map(|(_, height)| height.0.into()).or_else(told)
}
