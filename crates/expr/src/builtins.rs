//! The functions of the language that do not go over a list with an expression: what they take, what
//! they give, what they do.

pub(crate) mod base64;
mod bits;
pub(crate) mod collections;
mod numbers;
mod texts;
mod times;

use crate::error::Fault;
use crate::eval::Budget;
use crate::time::Moment;
use crate::types::Type;
use crate::value::Value;

/// A function of the language.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) check: Check,
    pub(crate) call: fn(&mut Call<'_>) -> Result<Value, Fault>,
}

/// How the types of arguments are checked.
pub(crate) enum Check {
    /// One of these lists of parameters must fit; the function gives this.
    Overloads(&'static [&'static [Type]], Type),
    /// The types decide: what it gives, or what is wrong.
    Types(fn(&[Type]) -> Result<Type, String>),
}

/// One call: its arguments, the time, and what it may still use.
pub(crate) struct Call<'c> {
    pub(crate) arguments: &'c [Value],
    pub(crate) now: &'c Moment,
    pub(crate) budget: &'c mut Budget,
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    let groups = [
        texts::FUNCTIONS,
        numbers::FUNCTIONS,
        bits::FUNCTIONS,
        collections::FUNCTIONS,
        times::FUNCTIONS,
    ];
    groups.into_iter().flatten().find(|builtin| builtin.name == name)
}

impl<'c> Call<'c> {
    /// An argument; the check has counted them, so one that is missing is `nil`.
    pub(crate) fn value(&self, at: usize) -> &'c Value {
        self.arguments.get(at).unwrap_or(&Value::Nil)
    }

    pub(crate) fn text(&self, at: usize) -> Result<&'c str, Fault> {
        match self.value(at) {
            Value::Text(text) => Ok(text),
            other => Err(wrong_type(other, "string")),
        }
    }
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Builtin({})", self.name)
    }
}

/// As Go says that a value is not of the type it was taken for.
pub(crate) fn wrong_type(value: &Value, wanted: &str) -> Fault {
    let found = match value {
        Value::Nil => "nil".to_owned(),
        other => other.type_name(),
    };
    Fault::run(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

/// The type of the only argument, or how many there are instead.
fn only(types: &[Type]) -> Result<&Type, String> {
    match types {
        [one] => Ok(one),
        all => Err(format!("invalid number of arguments (expected 1, got {})", all.len())),
    }
}

/// As the original names a type in an error about an argument.
fn shown(of: &Type) -> String {
    match of {
        Type::Nil => "%!s(<nil>)".to_owned(),
        other => other.to_string(),
    }
}
