//! Calls: of functions that go over a list, of other functions of the language, and of functions of
//! the environment, which hide those of the language that have the same name.

use super::Parser;
use crate::ast::{Expr, Loop, LoopKind, Node};
use crate::builtins;
use crate::error::{Error, Span};

impl Parser<'_> {
    /// A call by name; `first` is what stood before a `|`.
    pub(super) fn call(
        &mut self,
        name: String,
        span: Span,
        first: Option<Node>,
        may_be_hidden: bool,
    ) -> Result<Node, Error> {
        let is_hidden = may_be_hidden && self.environment.has(&name);
        if let Some(kind) = LoopKind::of(&name).filter(|_| !is_hidden) {
            return self.over_list(kind, span, first);
        }
        let before: Vec<Node> = first.into_iter().collect();
        if let Some(builtin) = builtins::find(&name).filter(|_| !is_hidden) {
            let arguments = self.arguments(before)?;
            return self.node(Expr::Builtin { builtin, arguments }, span);
        }
        let callee = Box::new(self.node(Expr::Name(name), span)?);
        let arguments = self.arguments(before)?;
        self.node(Expr::Call { callee, arguments }, span)
    }

    /// The arguments in brackets, behind those that are there already.
    pub(super) fn arguments(&mut self, before: Vec<Node>) -> Result<Vec<Node>, Error> {
        let mut arguments = before;
        let given = arguments.len();
        self.expect_bracket('(')?;
        while !self.current.is_bracket(')') {
            if arguments.len() > given {
                self.expect_operator(",")?;
                if self.current.is_bracket(')') {
                    break;
                }
            }
            arguments.push(self.expression(0)?);
        }
        self.expect_bracket(')')?;
        Ok(arguments)
    }

    fn over_list(
        &mut self,
        kind: LoopKind,
        span: Span,
        first: Option<Node>,
    ) -> Result<Node, Error> {
        self.expect_bracket('(')?;
        let is_piped = first.is_some();
        let list = match first {
            Some(list) => list,
            None if self.current.is_bracket(')') => return Err(self.too_few(kind, is_piped)),
            None => self.expression(0)?,
        };
        let mut body = None;
        if !self.current.is_bracket(')') {
            if !is_piped {
                self.expect_operator(",")?;
            }
            body = Some(self.predicate()?);
        }
        if body.is_none() && kind.needs_body() {
            return Err(self.too_few(kind, is_piped));
        }
        let mut extra = None;
        if kind.takes_extra() && body.is_some() && self.current.is_operator(",") {
            self.next()?;
            extra = Some(self.expression(0)?);
        }
        // A comma may end the arguments.
        if self.current.is_operator(",") {
            self.next()?;
        }
        self.expect_bracket(')')?;
        let round = Loop { kind, list, body, extra, then: None, enough: None, must_find: false };
        self.node(Expr::Loop(Box::new(round)), span)
    }

    fn too_few(&self, kind: LoopKind, is_piped: bool) -> Error {
        let expected = usize::from(!is_piped) + 1 + usize::from(kind.takes_extra());
        self.error(format!("expected at least {expected} arguments"))
    }

    /// What is computed for each element, with or without braces.
    fn predicate(&mut self) -> Result<Node, Error> {
        let has_braces = self.current.is_bracket('{');
        if has_braces {
            self.next()?;
        }
        self.predicates += 1;
        let body = if has_braces { self.sequence()? } else { self.expression(0)? };
        self.predicates -= 1;
        if !has_braces && self.current.is_operator(";") {
            return Err(self.error("wrap predicate with brackets { and }"));
        }
        if has_braces {
            self.expect_bracket('}')?;
        }
        Ok(body)
    }
}
