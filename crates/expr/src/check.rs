//! Can the expression work, given the types of what it names? Every part of the tree learns the type
//! of its value.

mod calls;
mod loops;
mod operators;

use crate::ast::{Expr, Member, Node};
use crate::builtins;
use crate::environment::Environment;
use crate::error::Error;
use crate::time;
use crate::types::{ListKind, MapKind, Shape, Signature, Type};
use crate::value::Value;

/// Checks the tree of a text and notes the type of every part.
pub(crate) fn check(tree: &mut Node, environment: &Environment, source: &str) -> Result<(), Error> {
    let (variables, lists) = (Vec::new(), Vec::new());
    let mut checker = Checker { environment, source, variables, lists };
    checker.visit(tree).map(drop)
}

struct Checker<'e> {
    environment: &'e Environment,
    /// The text: an operator is named as it is written there.
    source: &'e str,
    /// Those of `let`, the innermost last.
    variables: Vec<(String, Type)>,
    /// The lists that functions go over, the innermost last.
    lists: Vec<Over>,
}

/// What `#`, `#index` and `#acc` mean.
struct Over {
    list: Type,
    has_index: bool,
    has_accumulator: bool,
}

impl Checker<'_> {
    fn visit(&mut self, node: &mut Node) -> Result<Type, Error> {
        let of = self.type_of(node)?;
        node.of = of.clone();
        Ok(of)
    }

    fn type_of(&mut self, node: &mut Node) -> Result<Type, Error> {
        let span = node.span;
        match &mut node.expr {
            Expr::Literal(value) | Expr::Constant(value) => Ok(value.type_of()),
            Expr::Name(name) => match self.name(name) {
                Some(of) => Ok(of),
                None => Err(Error::compile(span, format!("unknown name {name}"))),
            },
            Expr::Unary(operator, operand) => {
                let of = self.visit(operand)?;
                let written = self.source.get(span.start..operand.span.start).unwrap_or_default();
                operators::unary(*operator, written, &of).map_err(|text| Error::compile(span, text))
            }
            Expr::Binary(operator, left, right) => {
                let (one, other) = (self.visit(left)?, self.visit(right)?);
                let between = left.span.end..right.span.start;
                let written = self.source.get(between).unwrap_or_default();
                let pattern = right.literal();
                operators::binary((*operator, written), &one, &other, pattern)
                    .map_err(|text| Error::compile(span, text))
            }
            Expr::Matches(..) => Ok(Type::Bool),
            Expr::Chain(inside) => self.visit(inside),
            Expr::Member(_) => self.member(node),
            Expr::Slice { base, from, to } => {
                let of = self.visit(base)?;
                if of.is_unknown() {
                    return Ok(Type::Unknown);
                }
                if !matches!(of.shape(), Shape::Text | Shape::List | Shape::Array) {
                    return Err(Error::compile(span, format!("cannot slice {of}")));
                }
                for end in from.iter_mut().chain(to) {
                    self.index(end)?;
                }
                Ok(of)
            }
            Expr::Call { .. } => self.call(node),
            Expr::Builtin { builtin, arguments } => self.builtin(builtin, arguments, span),
            Expr::Loop(round) => self.over_list(round),
            Expr::Pointer(name) => self.pointer(name).map_err(|text| Error::compile(span, text)),
            Expr::Let { .. } => self.variable(node),
            Expr::Sequence(all) | Expr::Sum(all) => {
                let mut last = Type::Unknown;
                for one in all {
                    last = self.visit(one)?;
                }
                Ok(last)
            }
            Expr::Condition { condition, yes, no } => self.condition(condition, yes, no),
            Expr::List(items) => self.list(items),
            Expr::Map(pairs) => {
                for (key, value) in pairs {
                    self.visit(key)?;
                    self.visit(value)?;
                }
                Ok(Type::Map(MapKind::Text))
            }
        }
    }

    /// What a name stands for; nothing if nobody declared it.
    fn name(&self, name: &str) -> Option<Type> {
        let variable = self.variables.iter().rev().find(|(known, _)| known == name);
        if let Some((_, of)) = variable {
            return Some(of.clone());
        }
        if name == "$env" {
            return Some(Type::Unknown);
        }
        if let Some(of) = self.environment.get(name) {
            return Some(of.clone());
        }
        let is_function =
            builtins::find(name).is_some() || crate::ast::LoopKind::of(name).is_some();
        if is_function {
            let signature =
                Signature { parameters: vec![Type::Any], is_variadic: true, result: Type::Any };
            return Some(Type::Function(signature.into()));
        }
        self.environment.is_open().then_some(Type::Unknown)
    }

    fn member(&mut self, node: &mut Node) -> Result<Type, Error> {
        let whole = node.span;
        let Expr::Member(Member { base, property, is_optional, is_method }) = &mut node.expr else {
            return Ok(Type::Unknown);
        };
        // A name that is not there is to blame itself.
        let span = if property.literal().is_some() { property.span } else { whole };
        let refuse = |message: String| Err(Error::compile(span, message));
        let field = property.literal().and_then(|value| match value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        });
        if matches!(&base.expr, Expr::Name(name) if name == "$env") {
            let Some(name) = field else { return Ok(Type::Unknown) };
            let known = self.environment.get(&name).cloned();
            let may_miss = *is_optional || self.environment.is_open();
            return match known.or(may_miss.then_some(Type::Unknown)) {
                Some(of) => Ok(of),
                None => refuse(format!("unknown name {name}")),
            };
        }
        let (of, key) = (self.visit(base)?, self.visit(property)?);
        if of.is_unknown() {
            return Ok(Type::Unknown);
        }
        if let Some(name) = &field {
            if of == Type::Nil {
                return refuse(format!("type nil has no field {name}"));
            }
            if let Some(signature) = time::signature(&of, name) {
                return Ok(Type::Function(signature));
            }
        }
        match (&of, field) {
            (Type::Map(_), _) => {
                if !key.is_assignable_to(&of.key()) && !key.is_unknown() {
                    let message = format!("cannot use {key} to get an element from {of}");
                    return Err(Error::compile(property.span, message));
                }
                Ok(of.element())
            }
            (Type::List(..), _) => {
                if !key.is_integer() && !key.is_unknown() {
                    let message =
                        format!("array elements can only be selected using an integer (got {key})");
                    return Err(Error::compile(property.span, message));
                }
                Ok(of.element())
            }
            (_, Some(name)) if *is_method => refuse(format!("type {of} has no method {name}")),
            (_, Some(name)) => refuse(format!("type {of} has no field {name}")),
            (_, None) => refuse(format!("type {of}[{key}] is undefined")),
        }
    }

    fn index(&mut self, node: &mut Node) -> Result<(), Error> {
        let of = self.visit(node)?;
        if of.is_integer() || of.is_unknown() {
            return Ok(());
        }
        Err(Error::compile(node.span, format!("non-integer slice index {of}")))
    }

    fn variable(&mut self, node: &mut Node) -> Result<Type, Error> {
        let span = node.span;
        let Expr::Let { name, value, body } = &mut node.expr else { return Ok(Type::Unknown) };
        let is_builtin =
            || builtins::find(name).is_some() || crate::ast::LoopKind::of(name).is_some();
        let what = if self.environment.has(name) {
            Some("")
        } else if is_builtin() {
            Some("builtin ")
        } else if self.variables.iter().any(|(known, _)| known == name) {
            Some("variable ")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(Error::compile(span, format!("cannot redeclare {what}{name}")));
        }
        let of = self.visit(value)?;
        self.variables.push((name.clone(), of));
        let of = self.visit(body);
        self.variables.pop();
        of
    }

    fn condition(
        &mut self,
        condition: &mut Node,
        yes: &mut Node,
        no: &mut Node,
    ) -> Result<Type, Error> {
        let of = self.visit(condition)?;
        if of != Type::Bool && !of.is_unknown() {
            let message = format!("non-bool expression (type {of}) used as condition");
            return Err(Error::compile(condition.span, message));
        }
        Ok(match (self.visit(yes)?, self.visit(no)?) {
            (Type::Nil, other) | (other, Type::Nil) => other,
            (one, other) if !one.is_assignable_to(&other) => Type::Unknown,
            (Type::List(kind, one), Type::List(_, other)) => {
                let element = |inside: &Option<Box<Type>>| match inside {
                    Some(inside) => (**inside).clone(),
                    None => kind.element(),
                };
                let (first, second) = (element(&one), element(&other));
                let same = first.is_assignable_to(&second) && second.is_assignable_to(&first);
                if same { Type::List(kind, one) } else { Type::ANYTHING }
            }
            (one, _) => one,
        })
    }

    /// The elements have the type of the last one, if all are of one kind.
    fn list(&mut self, items: &mut [Node]) -> Result<Type, Error> {
        let mut last = Type::Unknown;
        let mut is_mixed = false;
        for (at, item) in items.iter_mut().enumerate() {
            let of = self.visit(item)?;
            is_mixed |= at > 0 && of.shape() != last.shape();
            last = of;
        }
        Ok(if is_mixed { Type::List(ListKind::Any, None) } else { Type::list_of(last) })
    }

    fn pointer(&self, name: &str) -> Result<Type, String> {
        let Some(over) = self.lists.last() else {
            return Err("cannot use pointer accessor outside predicate".to_owned());
        };
        match name {
            "" => Ok(over.list.element()),
            "index" if over.has_index => Ok(Type::Int),
            "acc" if over.has_accumulator => Ok(Type::Unknown),
            other => Err(format!("unknown pointer #{other}")),
        }
    }
}
