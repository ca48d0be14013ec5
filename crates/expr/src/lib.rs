//! The expression language of expr-lang 1.17, as the conditions of an analysis use it. It knows
//! nothing of Gradus, does no I/O and reads no clock: `now` is given with each run.
//!
//! A text becomes tokens (`lex`), a tree (`parse`), a tree with types (`check`), a shorter tree
//! (`rewrite`) and, for given variables, a value (`eval`). Numbers, equality and texts are those of
//! Go, because users read and write the conditions of a program written in Go.
//!
//! ```
//! use gradus_expr::{Environment, Inputs, Program, Value};
//!
//! let result = Value::floats([0.99, 0.97]);
//! let environment = Environment::new().with_value("result", &result);
//! let program = Program::compile("all(result, # >= 0.95)", &environment)?;
//! assert_eq!(program.run(&Inputs::new().with("result", result))?, Value::Bool(true));
//! # Ok::<(), gradus_expr::Error>(())
//! ```

mod ast;
mod builtins;
mod check;
mod environment;
mod error;
mod eval;
mod lex;
mod number;
mod parse;
mod pattern;
mod program;
mod rewrite;
mod time;
mod types;
mod value;

pub use environment::{Environment, Function, Inputs};
pub use error::{Error, Phase, Span};
pub use number::{parse_float, parse_int, truncated};
pub use program::Program;
pub use time::duration_text;
pub use types::{ListKind, MapKind, Signature, Type};
pub use value::{IntKind, Key, List, Map, Value};
