//! What follows an operand: fields, methods, elements, slices.

use super::Parser;
use crate::ast::{Expr, Member, Node};
use crate::error::{Error, Span};
use crate::lex::{TokenKind, is_word};
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn postfix(&mut self, operand: Node) -> Result<Node, Error> {
        let mut node = operand;
        loop {
            let is_optional = self.current.is_operator("?.");
            if is_optional || self.current.is_operator(".") {
                self.next()?;
                if !(is_optional && self.current.is_bracket('[')) {
                    node = self.field(node, is_optional)?;
                    continue;
                }
            }
            if !self.current.is_bracket('[') {
                return Ok(node);
            }
            node = self.element(node, is_optional)?;
        }
    }

    /// Behind the point.
    fn field(&mut self, base: Node, is_optional: bool) -> Result<Node, Error> {
        let token = self.next()?;
        let name = match token.kind {
            TokenKind::Name(name) => name,
            TokenKind::Operator(word) if is_word(&word) => word,
            _ => return Err(Error::compile(token.span, "expected name")),
        };
        let span = token.span;
        let property = Box::new(self.node(Expr::Literal(Value::text(&name)), span)?);
        let (base, is_chain) = match base.expr {
            Expr::Chain(inside) => (*inside, true),
            _ => (base, false),
        };
        let is_method = self.current.is_bracket('(');
        let span = base.span.to(span);
        let member = Member { base: Box::new(base), property, is_optional, is_method };
        let mut node = self.node(Expr::Member(member), span)?;
        if is_method {
            let arguments = self.arguments(Vec::new())?;
            node = self.node(Expr::Call { callee: Box::new(node), arguments }, span)?;
        }
        if is_chain || is_optional { self.chain(node, span) } else { Ok(node) }
    }

    /// In brackets: an index, a key or a slice.
    fn element(&mut self, base: Node, is_optional: bool) -> Result<Node, Error> {
        let start = base.span;
        self.expect_bracket('[')?;
        let is_open = self.current.is_operator(":");
        let from = if is_open { None } else { Some(Box::new(self.expression(0)?)) };
        if self.current.is_operator(":") {
            self.next()?;
            let is_open = self.current.is_bracket(']');
            let to = if is_open { None } else { Some(Box::new(self.expression(0)?)) };
            let end = self.expect_bracket(']')?.span;
            return self.node(Expr::Slice { base: Box::new(base), from, to }, start.to(end));
        }
        let Some(property) = from else { return Err(self.unexpected()) };
        let end = self.expect_bracket(']')?.span;
        let member = Member { base: Box::new(base), property, is_optional, is_method: false };
        let node = self.node(Expr::Member(member), start.to(end))?;
        if is_optional { self.chain(node, start.to(end)) } else { Ok(node) }
    }

    fn chain(&mut self, node: Node, span: Span) -> Result<Node, Error> {
        self.node(Expr::Chain(Box::new(node)), span)
    }
}
