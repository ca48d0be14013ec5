//! The value of a tree, for given variables, within a budget.

mod access;
mod budget;
mod loops;
mod operators;
mod sort;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Binary, Expr, Member, Node, Unary};
use crate::builtins::{Call, wrong_type};
use crate::environment::{Environment, Inputs};
use crate::error::{Error, Fault};
use crate::time::{self, Moment};
use crate::types::{MapKind, Type};
use crate::value::{IntKind, Key, Map, Value};

pub(crate) use access::element;
pub(crate) use budget::Budget;
pub(crate) use operators::{Order, arithmetic, compare};
pub(crate) use sort::sort;

/// Runs a tree that was checked.
pub(crate) fn evaluate(
    tree: &Node,
    environment: &Environment,
    inputs: &Inputs,
) -> Result<Value, Error> {
    let mut evaluator = Evaluator {
        environment,
        inputs,
        now: inputs.now(),
        variables: Vec::new(),
        scopes: Vec::new(),
        budget: Budget::new(),
    };
    evaluator.value(tree)
}

struct Evaluator<'p> {
    environment: &'p Environment,
    inputs: &'p Inputs,
    now: Moment,
    /// Those of `let`, the innermost last.
    variables: Vec<(&'p str, Value)>,
    /// The functions over lists that are going on, the innermost last.
    scopes: Vec<Scope>,
    budget: Budget,
}

/// What `#`, `#index` and `#acc` are.
#[derive(Default)]
struct Scope {
    item: Value,
    index: i64,
    accumulator: Value,
}

impl<'p> Evaluator<'p> {
    fn value(&mut self, node: &'p Node) -> Result<Value, Error> {
        self.budget.steps(1).map_err(|fault| fault.at(node.span))?;
        match &node.expr {
            Expr::Literal(value) | Expr::Constant(value) => Ok(value.clone()),
            Expr::Name(name) => self.named(name).map_err(|fault| fault.at(node.span)),
            Expr::Unary(operator, operand) => self.unary(*operator, operand),
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right, node),
            Expr::Matches(text, pattern) => {
                let text = self.value(text)?;
                let found = operators::is_match(&text, &pattern.0, &mut self.budget);
                found.map(Value::Bool).map_err(|fault| fault.at(node.span))
            }
            Expr::Chain(_) | Expr::Member(_) | Expr::Call { .. } => {
                Ok(self.link(node)?.unwrap_or_default())
            }
            Expr::Slice { base, from, to } => {
                self.slice(base, from.as_deref(), to.as_deref(), node)
            }
            Expr::Builtin { builtin, arguments } => {
                let arguments = self.values(arguments)?;
                let (now, budget) = (&self.now, &mut self.budget);
                let mut call = Call { arguments: &arguments, now, budget };
                (builtin.call)(&mut call).map_err(|fault| fault.at(node.span))
            }
            Expr::Loop(round) => self.over_list(round, node.span),
            Expr::Sum(items) => self.sum_of(items, node),
            Expr::Pointer(name) => Ok(self.pointer(name)),
            Expr::Let { name, value, body } => {
                let value = self.value(value)?;
                self.variables.push((name, value));
                let value = self.value(body);
                self.variables.pop();
                value
            }
            Expr::Sequence(all) => {
                let mut last = Value::Nil;
                for one in all {
                    last = self.value(one)?;
                }
                Ok(last)
            }
            Expr::Condition { condition, yes, no } => {
                let holds = self.truth(condition)?;
                self.value(if holds { yes } else { no })
            }
            Expr::List(items) => {
                let items = self.values(items)?;
                self.budget.items(items.len()).map_err(|fault| fault.at(node.span))?;
                Value::list(items).map_err(|fault| fault.at(node.span))
            }
            Expr::Map(pairs) => self.map(pairs).map_err(|fault| fault.at(node.span)),
        }
    }

    fn values(&mut self, nodes: &'p [Node]) -> Result<Vec<Value>, Error> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    fn truth(&mut self, node: &'p Node) -> Result<bool, Error> {
        match self.value(node)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(wrong_type(&other, "bool").at(node.span)),
        }
    }

    fn named(&self, name: &str) -> Result<Value, Fault> {
        let variable = self.variables.iter().rev().find(|(known, _)| *known == name);
        if let Some((_, value)) = variable {
            return Ok(value.clone());
        }
        if name == "$env" {
            return self.everything();
        }
        Ok(self.given(name))
    }

    /// A variable or a function of the environment; what is not there is `nil`.
    fn given(&self, name: &str) -> Value {
        let function = || self.environment.functions().get(name).cloned().map(Value::Function);
        let value = self.inputs.values().get(name).cloned();
        value.or_else(function).unwrap_or_default()
    }

    /// `$env`.
    fn everything(&self) -> Result<Value, Fault> {
        let names = self.inputs.values().keys().chain(self.environment.functions().keys());
        let entries: BTreeMap<Key, Value> =
            names.map(|name| (Key::Text(Arc::from(name.as_str())), self.given(name))).collect();
        Map::new(MapKind::Text, entries).map(Value::Map)
    }

    fn pointer(&self, name: &str) -> Value {
        let Some(scope) = self.scopes.last() else { return Value::Nil };
        match name {
            "" => scope.item.clone(),
            "index" => Value::int(scope.index),
            _ => scope.accumulator.clone(),
        }
    }

    fn map(&mut self, pairs: &'p [(Node, Node)]) -> Result<Value, Fault> {
        let mut entries = BTreeMap::new();
        let unplaced = |error: Error| Fault { phase: error.phase, message: error.message };
        for (key, value) in pairs {
            let (key, value) =
                (self.value(key).map_err(unplaced)?, self.value(value).map_err(unplaced)?);
            let Value::Text(key) = key else { return Err(wrong_type(&key, "string")) };
            // Of a key that stands there twice the first value counts.
            entries.entry(Key::Text(key)).or_insert(value);
        }
        self.budget.items(entries.len())?;
        Map::new(MapKind::Text, entries).map(Value::Map)
    }

    fn unary(&mut self, operator: Unary, operand: &'p Node) -> Result<Value, Error> {
        if operator == Unary::Not {
            return Ok(Value::Bool(!self.truth(operand)?));
        }
        let value = self.value(operand)?;
        match (operator, value) {
            (Unary::Minus, Value::Int(IntKind::Byte, number)) => {
                Ok(Value::Int(IntKind::Byte, (-number).rem_euclid(256)))
            }
            (Unary::Minus, Value::Int(kind, number)) => Ok(Value::Int(kind, number.wrapping_neg())),
            (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
            (Unary::Minus, other) => {
                let message = format!("invalid operation: - {}", other.type_name());
                Err(Fault::run(message).at(operand.span))
            }
            (_, value) => Ok(value),
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &'p Node,
        right: &'p Node,
        node: &'p Node,
    ) -> Result<Value, Error> {
        match operator {
            Binary::And if !self.truth(left)? => return Ok(Value::Bool(false)),
            Binary::Or if self.truth(left)? => return Ok(Value::Bool(true)),
            // What stands on the right is the value, whatever it is.
            Binary::And | Binary::Or => return self.value(right),
            Binary::Coalesce => {
                let value = self.value(left)?;
                return if value.is_nil() { self.value(right) } else { Ok(value) };
            }
            _ => {}
        }
        let (one, other) = (self.value(left)?, self.value(right)?);
        if matches!(operator, Binary::Equal | Binary::Unequal) {
            let wanted = match (&left.of, &right.of) {
                (Type::Int, Type::Int) => Some(Type::Int),
                (Type::Text, Type::Text) => Some(Type::Text),
                _ => None,
            };
            // The original trusts the types it found out, even where a value is not of its type.
            if let Some(wanted) = wanted {
                for (value, node) in [(&one, left), (&other, right)] {
                    if value.type_of() != wanted {
                        return Err(wrong_type(value, &wanted.to_string()).at(node.span));
                    }
                }
            }
        }
        operators::binary(operator, &one, &other, &mut self.budget)
            .map_err(|fault| fault.at(node.span))
    }

    /// The value of a part of a chain; nothing where a `?.` found `nil`.
    fn link(&mut self, node: &'p Node) -> Result<Option<Value>, Error> {
        match &node.expr {
            Expr::Chain(inside) => {
                let value = self.link(inside)?.unwrap_or_default();
                Ok(Some(if value.is_nil() { Value::Nil } else { value }))
            }
            Expr::Member(member) => self.member(member, node),
            Expr::Call { callee, arguments } => {
                let arguments = self.values(arguments)?;
                self.call(callee, &arguments, node)
            }
            _ => self.value(node).map(Some),
        }
    }

    fn base(&mut self, member: &'p Member) -> Result<Option<Value>, Error> {
        let base = self.link(&member.base)?;
        Ok(base.filter(|value| !(member.is_optional && value.is_nil())))
    }

    fn member(&mut self, member: &'p Member, node: &'p Node) -> Result<Option<Value>, Error> {
        let Some(base) = self.base(member)? else { return Ok(None) };
        let property = self.value(&member.property)?;
        let is_field = matches!(property, Value::Text(_));
        let span = if is_field { member.property.span } else { node.span };
        element(&base, &property).map(Some).map_err(|fault| fault.at(span))
    }

    fn call(
        &mut self,
        callee: &'p Node,
        arguments: &[Value],
        node: &'p Node,
    ) -> Result<Option<Value>, Error> {
        let called = match &callee.expr {
            Expr::Member(member) => {
                let Some(base) = self.base(member)? else { return Ok(None) };
                let property = self.value(&member.property)?;
                if let Value::Text(name) = &property
                    && let Some(answer) = time::call(&base, name, arguments)
                {
                    return answer.map(Some).map_err(|fault| fault.at(node.span));
                }
                element(&base, &property).map_err(|fault| fault.at(callee.span))?
            }
            _ => self.value(callee)?,
        };
        access::invoke(&called, arguments).map(Some).map_err(|fault| fault.at(node.span))
    }

    fn slice(
        &mut self,
        base: &'p Node,
        from: Option<&'p Node>,
        to: Option<&'p Node>,
        node: &'p Node,
    ) -> Result<Value, Error> {
        let base = self.value(base)?;
        let to = to.map(|to| self.value(to)).transpose()?;
        let from = from.map(|from| self.value(from)).transpose()?;
        access::slice(&base, from.as_ref(), to.as_ref()).map_err(|fault| fault.at(node.span))
    }
}
