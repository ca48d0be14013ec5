//! The functions that go over a list: what the expression for each element may be, and what they
//! give.

use super::{Checker, Over};
use crate::ast::{Loop, LoopKind};
use crate::error::Error;
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn over_list(&mut self, round: &mut Loop) -> Result<Type, Error> {
        let kind = round.kind;
        let list = self.visit(&mut round.list)?;
        if !list.is_list() && !list.is_unknown() {
            let message = format!("builtin {} takes only array (got {list})", kind.name());
            return Err(Error::compile(round.list.span, message));
        }
        let body = self.body(round, &list)?;
        if let Some(extra) = &mut round.extra {
            let of = self.visit(extra)?;
            if kind == LoopKind::SortBy && of != Type::Text && !of.is_unknown() {
                let message = format!("sortBy order argument must be a string (got {of})");
                return Err(Error::compile(extra.span, message));
            }
        }
        let element = || if list.is_unknown() { Type::Unknown } else { list.element() };
        Ok(match kind {
            LoopKind::All | LoopKind::None | LoopKind::Any | LoopKind::One => Type::Bool,
            LoopKind::Filter if list.is_unknown() => Type::ANYTHING,
            LoopKind::Filter => Type::list_of(element()),
            LoopKind::Map => Type::list_of(body.unwrap_or_default()),
            LoopKind::Count | LoopKind::FindIndex | LoopKind::FindLastIndex => Type::Int,
            LoopKind::Sum => match body {
                // What is known of the elements of a list that it gives is forgotten.
                Some(Type::List(kind, _)) => Type::List(kind, None),
                Some(Type::Unknown) => Type::Any,
                Some(other) => other,
                None => element(),
            },
            LoopKind::Find | LoopKind::FindLast => element(),
            LoopKind::GroupBy => Type::Map(crate::types::MapKind::Groups),
            LoopKind::SortBy => list,
            LoopKind::Reduce => body.unwrap_or_default(),
        })
    }

    fn body(&mut self, round: &mut Loop, list: &Type) -> Result<Option<Type>, Error> {
        let kind = round.kind;
        let Some(body) = &mut round.body else { return Ok(None) };
        self.lists.push(Over {
            list: list.clone(),
            has_index: matches!(kind, LoopKind::Map | LoopKind::Reduce),
            has_accumulator: kind == LoopKind::Reduce,
        });
        let of = self.visit(body);
        self.lists.pop();
        let of = of?;
        if of == Type::Nil {
            let message = "predicate should has one input and one output param";
            return Err(Error::compile(body.span, message));
        }
        let wants_truth = matches!(
            kind,
            LoopKind::All
                | LoopKind::None
                | LoopKind::Any
                | LoopKind::One
                | LoopKind::Filter
                | LoopKind::Count
                | LoopKind::Find
                | LoopKind::FindLast
                | LoopKind::FindIndex
                | LoopKind::FindLastIndex
        );
        if wants_truth && of != Type::Bool && !of.is_unknown() {
            let message = format!("predicate should return boolean (got {of})");
            return Err(Error::compile(body.span, message));
        }
        Ok(Some(of))
    }
}
