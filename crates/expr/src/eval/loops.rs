//! The functions that go over a list.

use std::collections::BTreeMap;

use super::{Evaluator, Order, Scope, arithmetic, sort};
use crate::ast::{Binary, Loop, LoopKind, Node};
use crate::builtins::collections::order;
use crate::builtins::wrong_type;
use crate::error::{Error, Fault, Span};
use crate::types::{ListKind, MapKind};
use crate::value::{IntKind, Key, List, Map, Value};

/// What is gone over.
enum Items {
    List(List),
    Bytes(std::sync::Arc<str>),
    Nothing,
}

impl Items {
    fn of(value: Value) -> Result<Items, Fault> {
        match value {
            Value::List(list) => Ok(Items::List(list)),
            Value::Text(text) => Ok(Items::Bytes(text)),
            Value::Map(map) if map.entries().is_empty() => Ok(Items::Nothing),
            other => {
                let name = other.type_name();
                Err(Fault::run(format!("cannot go over {name}: expected an array")))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Items::List(list) => list.items().len(),
            Items::Bytes(text) => text.len(),
            Items::Nothing => 0,
        }
    }

    fn get(&self, at: usize) -> Value {
        match self {
            Items::List(list) => list.items().get(at).cloned().unwrap_or_default(),
            Items::Bytes(text) => {
                let byte = text.as_bytes().get(at).copied().unwrap_or(0);
                Value::Int(IntKind::Byte, byte.into())
            }
            Items::Nothing => Value::Nil,
        }
    }
}

impl<'p> Evaluator<'p> {
    pub(super) fn over_list(&mut self, round: &'p Loop, span: Span) -> Result<Value, Error> {
        let list = self.value(&round.list)?;
        let items = Items::of(list).map_err(|fault| fault.at(round.list.span))?;
        self.scopes.push(Scope::default());
        let value = self.go_over(round, &items, span);
        self.scopes.pop();
        value
    }

    fn go_over(&mut self, round: &'p Loop, items: &Items, span: Span) -> Result<Value, Error> {
        let place = |fault: Fault| fault.at(span);
        match round.kind {
            LoopKind::All => self.until(round, items, false).map(|found| Value::Bool(!found)),
            LoopKind::None => self.until(round, items, true).map(|found| Value::Bool(!found)),
            LoopKind::Any => self.until(round, items, true).map(Value::Bool),
            LoopKind::One => self.count(round, items).map(|count| Value::Bool(count == 1)),
            LoopKind::Count => self.count(round, items).map(Value::int),
            LoopKind::Find | LoopKind::FindIndex | LoopKind::FindLast | LoopKind::FindLastIndex => {
                self.find(round, items, span)
            }
            LoopKind::Filter | LoopKind::Map => self.collect(round, items, span),
            LoopKind::Sum => self.sum(round, items).map_err(|error| Error { span, ..error }),
            LoopKind::GroupBy => self.group(round, items, span),
            LoopKind::SortBy => {
                let by = match &round.extra {
                    Some(extra) => order(&self.value(extra)?, "sortBy").map_err(place)?,
                    None => Order::Less,
                };
                let mut pairs = Vec::with_capacity(items.len());
                for at in 0..items.len() {
                    pairs.push((self.body(round, items, at)?, items.get(at)));
                }
                self.budget.items(pairs.len()).map_err(place)?;
                let sorted = sort(pairs, by, &mut self.budget).map_err(place)?;
                Value::list(sorted).map_err(place)
            }
            LoopKind::Reduce => self.reduce(round, items, span),
        }
    }

    /// The value of the expression for one element; the element itself where there is none.
    fn body(&mut self, round: &'p Loop, items: &Items, at: usize) -> Result<Value, Error> {
        let item = items.get(at);
        let Some(body) = &round.body else { return Ok(item) };
        self.point_at(item, at);
        self.value(body)
    }

    fn point_at(&mut self, item: Value, at: usize) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.item = item;
            scope.index = i64::try_from(at).unwrap_or(i64::MAX);
        }
    }

    fn holds(&mut self, round: &'p Loop, items: &Items, at: usize) -> Result<bool, Error> {
        match self.body(round, items, at)? {
            Value::Bool(truth) => Ok(truth),
            other => {
                let span = round.body.as_ref().unwrap_or(&round.list).span;
                Err(wrong_type(&other, "bool").at(span))
            }
        }
    }

    /// Is there an element for which the expression is this?
    fn until(&mut self, round: &'p Loop, items: &Items, wanted: bool) -> Result<bool, Error> {
        for at in 0..items.len() {
            if self.holds(round, items, at)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&mut self, round: &'p Loop, items: &Items) -> Result<i64, Error> {
        let mut count = 0;
        for at in 0..items.len() {
            count += i64::from(self.holds(round, items, at)?);
            if round.enough.is_some_and(|enough| count >= enough) {
                break;
            }
        }
        Ok(count)
    }

    fn find(&mut self, round: &'p Loop, items: &Items, span: Span) -> Result<Value, Error> {
        let is_backwards = matches!(round.kind, LoopKind::FindLast | LoopKind::FindLastIndex);
        let is_index = matches!(round.kind, LoopKind::FindIndex | LoopKind::FindLastIndex);
        for step in 0..items.len() {
            let at = if is_backwards { items.len() - 1 - step } else { step };
            if self.holds(round, items, at)? {
                let index = Value::int(i64::try_from(at).unwrap_or(i64::MAX));
                return if is_index { Ok(index) } else { self.picked(round, items, at) };
            }
        }
        if round.must_find {
            return Err(Fault::run("reflect: slice index out of range").at(span));
        }
        Ok(Value::Nil)
    }

    /// What becomes of an element that was picked.
    fn picked(&mut self, round: &'p Loop, items: &Items, at: usize) -> Result<Value, Error> {
        match &round.then {
            None => Ok(items.get(at)),
            Some(then) => {
                self.point_at(items.get(at), at);
                self.value(then)
            }
        }
    }

    fn collect(&mut self, round: &'p Loop, items: &Items, span: Span) -> Result<Value, Error> {
        let mut found = Vec::new();
        for at in 0..items.len() {
            if round.kind == LoopKind::Map {
                found.push(self.body(round, items, at)?);
            } else if self.holds(round, items, at)? {
                found.push(self.picked(round, items, at)?);
            }
        }
        self.budget.items(found.len()).map_err(|fault| fault.at(span))?;
        Value::list(found).map_err(|fault| fault.at(span))
    }

    fn sum(&mut self, round: &'p Loop, items: &Items) -> Result<Value, Error> {
        let mut sum = Value::int(0);
        for at in 0..items.len() {
            let value = self.body(round, items, at)?;
            sum = self.plus(&value, &sum, &round.list)?;
        }
        Ok(sum)
    }

    /// Elements that are written one by one are added from the right, and to nothing.
    pub(super) fn sum_of(&mut self, items: &'p [Node], node: &'p Node) -> Result<Value, Error> {
        let values = self.values(items)?;
        let mut values = values.into_iter().rev();
        let mut sum = values.next().unwrap_or_default();
        for value in values {
            sum = self.plus(&value, &sum, node)?;
        }
        Ok(sum)
    }

    fn plus(&mut self, one: &Value, other: &Value, node: &Node) -> Result<Value, Error> {
        let sum = arithmetic(Binary::Add, one, other).map_err(|fault| fault.at(node.span))?;
        if let Value::Text(text) = &sum {
            self.budget.text(text.len()).map_err(|fault| fault.at(node.span))?;
        }
        Ok(sum)
    }

    fn group(&mut self, round: &'p Loop, items: &Items, span: Span) -> Result<Value, Error> {
        let mut groups: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
        for at in 0..items.len() {
            let key = self.body(round, items, at)?;
            let key = Key::of(&key).map_err(|fault| fault.at(span))?;
            groups.entry(key).or_default().push(items.get(at));
        }
        let grouped = || -> Result<Value, Fault> {
            let mut entries = BTreeMap::new();
            for (key, items) in groups {
                entries.insert(key, Value::List(List::new(ListKind::Any, items)?));
            }
            Map::new(MapKind::Groups, entries).map(Value::Map)
        };
        self.budget.items(items.len()).map_err(|fault| fault.at(span))?;
        grouped().map_err(|fault| fault.at(span))
    }

    fn reduce(&mut self, round: &'p Loop, items: &Items, span: Span) -> Result<Value, Error> {
        let first = match &round.extra {
            Some(extra) => {
                let start = self.value(extra)?;
                self.accumulate(start);
                0
            }
            None if items.len() == 0 => {
                let message = "reduce of empty array with no initial value";
                return Err(Fault::run(message).at(span));
            }
            None => {
                self.accumulate(items.get(0));
                1
            }
        };
        for at in first..items.len() {
            let value = self.body(round, items, at)?;
            self.accumulate(value);
        }
        Ok(self.pointer("acc"))
    }

    fn accumulate(&mut self, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.accumulator = value;
        }
    }
}
