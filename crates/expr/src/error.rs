//! What can be wrong with an expression, and which part of its text is to blame.

use std::fmt;

/// A part of the source text, in bytes; `end` is behind the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

/// When an error shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The text cannot work with this environment, whatever the values are.
    Compile,
    /// The text cannot work with these values.
    Run,
    /// A limit was reached: steps, memory or nesting.
    Limit,
}

/// Why there is no program, or no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// When it shows.
    pub phase: Phase,
    /// The part of the text that is to blame.
    pub span: Span,
    /// What is wrong, in the words of the Go original where users know them.
    pub message: String,
}

/// What a function found wrong, before it is known which part of the text called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) phase: Phase,
    pub(crate) message: String,
}

impl Span {
    /// From the start of one part to the end of another.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Error {
    pub(crate) fn compile(span: Span, message: impl Into<String>) -> Self {
        Error { phase: Phase::Compile, span, message: message.into() }
    }
}

impl Fault {
    pub(crate) fn run(message: impl Into<String>) -> Self {
        Fault { phase: Phase::Run, message: message.into() }
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Fault { phase: Phase::Limit, message: message.into() }
    }

    pub(crate) fn at(self, span: Span) -> Error {
        Error { phase: self.phase, span, message: self.message }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Fault::run(message)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
