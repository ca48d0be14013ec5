//! An expression that was read and checked, and can be run many times.

use crate::ast::Node;
use crate::check::check;
use crate::environment::{Environment, Inputs};
use crate::error::Error;
use crate::eval::evaluate;
use crate::parse::parse;
use crate::rewrite::rewrite;
use crate::types::Type;
use crate::value::Value;

/// A longer text is no condition that a person wrote.
pub const LONGEST_SOURCE: usize = 64 * 1024;

/// An expression that was read and checked.
#[derive(Clone, Debug)]
pub struct Program {
    tree: Node,
    environment: Environment,
}

impl Program {
    /// Reads and checks a text. The error's span is the part that cannot work.
    pub fn compile(source: &str, environment: &Environment) -> Result<Program, Error> {
        if source.len() > LONGEST_SOURCE {
            let message = format!("expression is longer than {LONGEST_SOURCE} bytes");
            return Err(Error::compile(crate::Span { start: 0, end: source.len() }, message));
        }
        let mut tree = parse(source, environment)?;
        check(&mut tree, environment, source)?;
        rewrite(&mut tree)?;
        Ok(Program { tree, environment: environment.clone() })
    }

    /// What is known of its value.
    pub fn type_of(&self) -> &Type {
        &self.tree.of
    }

    /// Its value for these variables.
    pub fn run(&self, inputs: &Inputs) -> Result<Value, Error> {
        evaluate(&self.tree, &self.environment, inputs)
    }
}
