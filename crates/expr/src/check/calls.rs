//! Are the arguments of a call what the function takes?

use super::Checker;
use crate::ast::{Binary, Expr, Member, Node};
use crate::builtins::{Builtin, Check};
use crate::error::{Error, Span};
use crate::types::{Shape, Signature, Type};
use crate::value::Value;

impl Checker<'_> {
    /// A function of the environment, or a method.
    pub(super) fn call(&mut self, node: &mut Node) -> Result<Type, Error> {
        let span = node.span;
        let Expr::Call { callee, arguments } = &mut node.expr else { return Ok(Type::Unknown) };
        if matches!(&callee.expr, Expr::Name(name) if name == "$env") {
            return Err(Error::compile(span, "map[string]interface {} is not callable"));
        }
        let of = self.visit(callee)?;
        let name = match &callee.expr {
            Expr::Name(name) => name.clone(),
            Expr::Member(Member { property, .. }) => match property.literal() {
                Some(Value::Text(name)) => name.to_string(),
                _ => "function".to_owned(),
            },
            _ => "function".to_owned(),
        };
        match of {
            // Whatever is called is known when it is called.
            of if of.is_unknown() => Ok(Type::Unknown),
            Type::Function(signature) => {
                let types = self.types(arguments)?;
                fit(&name, &signature, arguments, &types, span)
            }
            Type::Nil => {
                let message = format!("{name} is nil; cannot call nil as function");
                Err(Error::compile(span, message))
            }
            other => Err(Error::compile(span, format!("{other} is not callable"))),
        }
    }

    /// A function of the language.
    pub(super) fn builtin(
        &mut self,
        builtin: &'static Builtin,
        arguments: &mut [Node],
        span: Span,
    ) -> Result<Type, Error> {
        if builtin.name == "get" {
            return self.get(arguments, span);
        }
        let types = self.types(arguments)?;
        match &builtin.check {
            Check::Types(check) => {
                let any = |of: Type| if of.is_unknown() { Type::Any } else { of };
                let types: Vec<Type> = types.into_iter().map(any).collect();
                check(&types).map_err(|text| Error::compile(span, text))
            }
            Check::Overloads(overloads, result) => {
                let mut wrong: Option<Error> = None;
                for parameters in *overloads {
                    let parameters = parameters.to_vec();
                    let signature =
                        Signature { parameters, is_variadic: false, result: result.clone() };
                    match fit(builtin.name, &signature, arguments, &types, span) {
                        Ok(of) => return Ok(of),
                        Err(error) => wrong = Some(error),
                    }
                }
                let none =
                    || Error::compile(span, format!("no matching overload for {}", builtin.name));
                Err(wrong.unwrap_or_else(none))
            }
        }
    }

    fn types(&mut self, arguments: &mut [Node]) -> Result<Vec<Type>, Error> {
        arguments.iter_mut().map(|argument| self.visit(argument)).collect()
    }

    fn get(&mut self, arguments: &mut [Node], span: Span) -> Result<Type, Error> {
        let [base, key] = arguments else {
            let count = arguments.len();
            let message = format!("invalid number of arguments (expected 2, got {count})");
            return Err(Error::compile(span, message));
        };
        let (of, by) = (self.visit(base)?, self.visit(key)?);
        if matches!(&base.expr, Expr::Name(name) if name == "$env") {
            return Ok(match key.literal() {
                Some(Value::Text(name)) => self.environment.get(name).cloned().unwrap_or_default(),
                _ => Type::Unknown,
            });
        }
        match &of {
            of if of.is_unknown() => Ok(Type::Unknown),
            Type::List(..) if by.is_integer() || by.is_unknown() => Ok(of.element()),
            Type::List(..) => {
                Err(Error::compile(key.span, format!("non-integer slice index {by}")))
            }
            Type::Map(_) if by.is_unknown() || by.is_assignable_to(&of.key()) => Ok(of.element()),
            Type::Map(_) => {
                let message = format!("cannot use {by} to get an element from {of}");
                Err(Error::compile(key.span, message))
            }
            _ => Err(Error::compile(base.span, format!("type {of} does not support indexing"))),
        }
    }
}

/// Do the arguments, of these types, fit the parameters?
fn fit(
    name: &str,
    signature: &Signature,
    arguments: &mut [Node],
    types: &[Type],
    span: Span,
) -> Result<Type, Error> {
    let wanted = signature.parameters.len();
    let least = if signature.is_variadic { wanted - 1 } else { wanted };
    if arguments.len() < least {
        return Err(Error::compile(span, format!("not enough arguments to call {name}")));
    }
    if arguments.len() > wanted && !signature.is_variadic {
        return Err(Error::compile(span, format!("too many arguments to call {name}")));
    }
    for (at, (argument, of)) in arguments.iter_mut().zip(types).enumerate() {
        let wanted = &signature.parameters[at.min(wanted - 1)];
        if *wanted == Type::Float && of.is_integer() {
            make_float(argument);
            continue;
        }
        if wanted.is_integer() && of.is_integer() {
            continue;
        }
        if *of == Type::Nil && !matches!(wanted.shape(), Shape::Interface | Shape::Pointer) {
            let message = format!("cannot use nil as argument (type {wanted}) to call {name}");
            return Err(Error::compile(argument.span, message));
        }
        if *of != Type::Nil && !of.is_assignable_to(wanted) && !of.is_unknown() {
            let message = format!("cannot use {of} as argument (type {wanted}) to call {name}");
            return Err(Error::compile(argument.span, message));
        }
    }
    Ok(signature.result.clone())
}

/// Integers that are written where a fraction is wanted are fractions.
fn make_float(node: &mut Node) {
    match &mut node.expr {
        Expr::Literal(value) => {
            if let Value::Int(_, number) = value {
                *value = Value::Float(*number as f64);
                node.of = Type::Float;
            }
        }
        Expr::Unary(_, operand) => make_float(operand),
        Expr::Binary(Binary::Add | Binary::Subtract | Binary::Multiply, left, right) => {
            make_float(left);
            make_float(right);
        }
        _ => {}
    }
}
