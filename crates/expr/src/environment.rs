//! What an expression may name: variables with their types, and functions of the caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::time::Moment;
use crate::types::{Signature, Type};
use crate::value::Value;

/// The names that an expression may use beyond those of the language.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    names: BTreeMap<String, Type>,
    functions: BTreeMap<String, Function>,
    is_open: bool,
}

/// The values of one run.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    values: BTreeMap<String, Value>,
    now: Moment,
}

/// A function of the caller.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    name: String,
    signature: Arc<Signature>,
    call: Box<Body>,
}

/// Values in, a value or the text of an error out.
type Body = dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync;

impl Environment {
    /// Nothing but the language itself; a name that nobody declared is refused.
    pub fn new() -> Self {
        Environment::default()
    }

    /// Names that nobody declared are `nil` instead of being refused.
    pub fn open() -> Self {
        Environment { is_open: true, ..Environment::default() }
    }

    /// A variable of which this much is known.
    pub fn with_type(mut self, name: &str, of: Type) -> Self {
        self.names.insert(name.to_owned(), of);
        self
    }

    /// A variable that will have this value, or one of the same type.
    pub fn with_value(self, name: &str, value: &Value) -> Self {
        self.with_type(name, value.type_of())
    }

    /// A function.
    pub fn with_function(mut self, function: Function) -> Self {
        let of = Type::Function(function.signature());
        self.names.insert(function.name().to_owned(), of);
        self.functions.insert(function.name().to_owned(), function);
        self
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Type> {
        self.names.get(name)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn functions(&self) -> &BTreeMap<String, Function> {
        &self.functions
    }
}

impl Inputs {
    /// No values, at the beginning of 1970.
    pub fn new() -> Self {
        Inputs::default()
    }

    /// With a variable.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// With the moment that `now()` gives: seconds since 1970, and nanoseconds of the next.
    pub fn at(mut self, seconds: i64, nanoseconds: u32) -> Self {
        self.now = Moment::utc(seconds, nanoseconds);
        self
    }

    pub(crate) fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    pub(crate) fn now(&self) -> Moment {
        self.now.clone()
    }
}

impl Function {
    /// A function with as many parameters as are named. Arguments are checked against their types
    /// before the call, at the latest when it happens.
    pub fn new(
        name: &str,
        parameters: impl IntoIterator<Item = Type>,
        result: Type,
        call: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        let parameters = parameters.into_iter().collect();
        let signature = Arc::new(Signature { parameters, is_variadic: false, result });
        Function(Arc::new(Inner { name: name.to_owned(), signature, call: Box::new(call) }))
    }

    /// The same function, whose last parameter stands for any number of arguments.
    pub fn variadic(
        name: &str,
        parameters: impl IntoIterator<Item = Type>,
        result: Type,
        call: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        let parameters = parameters.into_iter().collect();
        let signature = Arc::new(Signature { parameters, is_variadic: true, result });
        Function(Arc::new(Inner { name: name.to_owned(), signature, call: Box::new(call) }))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn signature(&self) -> Arc<Signature> {
        Arc::clone(&self.0.signature)
    }

    pub(crate) fn call(&self, arguments: &[Value]) -> Result<Value, String> {
        (self.0.call)(arguments)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name())
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
