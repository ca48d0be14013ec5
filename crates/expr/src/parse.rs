//! From tokens to a tree.

mod calls;
mod postfix;

use std::sync::Arc;

use crate::ast::{Binary, Expr, Node, Unary};
use crate::environment::Environment;
use crate::error::{Error, Span};
use crate::lex::{Token, TokenKind, tokens};
use crate::number::parse_float;
use crate::value::Value;

/// More parts than this is no condition that a person wrote; the original has the same limit.
const MOST_PARTS: usize = 10_000;

/// How deep the tree may be: what walks it calls itself so often. A chain of as many `&&` fits.
const MOST_DEEP: u32 = 200;

/// How deep brackets and operators may be nested: reading one level takes several calls.
const MOST_NESTED: u32 = 64;

/// The tree of a text.
pub(crate) fn parse(source: &str, environment: &Environment) -> Result<Node, Error> {
    let mut tokens = tokens(source).into_iter();
    let current = tokens.next().unwrap_or_else(|| Ok(end()))?;
    let mut parser =
        Parser { tokens, current, stashed: None, environment, predicates: 0, parts: 0, depth: 0 };
    let node = parser.sequence()?;
    match parser.current.kind {
        TokenKind::End => Ok(node),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'e> {
    tokens: std::vec::IntoIter<Result<Token, Error>>,
    current: Token,
    stashed: Option<Token>,
    environment: &'e Environment,
    /// How many functions over lists are open: inside them `#` means something.
    predicates: usize,
    parts: usize,
    depth: u32,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<Token, Error> {
        let next = match self.stashed.take() {
            Some(token) => token,
            None => self.tokens.next().unwrap_or_else(|| Ok(end()))?,
        };
        Ok(std::mem::replace(&mut self.current, next))
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::compile(self.current.span, message)
    }

    fn unexpected(&self) -> Error {
        self.error(format!("unexpected token {}", self.current))
    }

    fn expect_operator(&mut self, operator: &str) -> Result<Token, Error> {
        if self.current.is_operator(operator) { self.next() } else { Err(self.unexpected()) }
    }

    fn expect_bracket(&mut self, bracket: char) -> Result<Token, Error> {
        if self.current.is_bracket(bracket) { self.next() } else { Err(self.unexpected()) }
    }

    fn expect_name(&mut self) -> Result<(String, Span), Error> {
        match &self.current.kind {
            TokenKind::Name(_) => match self.next()? {
                Token { kind: TokenKind::Name(name), span } => Ok((name, span)),
                _ => Err(self.unexpected()),
            },
            _ => Err(self.unexpected()),
        }
    }

    fn node(&mut self, expr: Expr, span: Span) -> Result<Node, Error> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(too_many(span));
        }
        let node = Node::new(expr, span);
        if node.depth > MOST_DEEP {
            return Err(too_deep(span));
        }
        Ok(node)
    }

    fn sequence(&mut self) -> Result<Node, Error> {
        let mut nodes = vec![self.expression(0)?];
        while self.current.is_operator(";") {
            self.next()?;
            if self.current.kind == TokenKind::End {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        let span = nodes[0].span;
        match (nodes.pop(), nodes.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                nodes.extend(last);
                self.node(Expr::Sequence(nodes), span)
            }
        }
    }

    /// An expression whose operators bind at least so strongly.
    fn expression(&mut self, strength: u16) -> Result<Node, Error> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            return Err(too_deep(self.current.span));
        }
        let node = match strength {
            0 if self.current.is_operator("let") => self.variable(),
            0 if self.current.is_operator("if") => self.if_else(),
            _ => self.operators(strength),
        };
        self.depth -= 1;
        node
    }

    fn operators(&mut self, strength: u16) -> Result<Node, Error> {
        let mut left = self.primary()?;
        let mut previous = None;
        while self.current.operator().is_some() {
            if strength == 0 && self.current.is_operator("|") {
                self.next()?;
                let (name, span) = self.expect_name()?;
                left = self.call(name, span, Some(left), true)?;
                previous = None;
                continue;
            }
            let is_negated = self.current.is_operator("not");
            if is_negated && !self.negation(strength)? {
                break;
            }
            let found = self.current.operator().and_then(Binary::of);
            let Some((operator, binds)) = found.filter(|(_, binds)| *binds >= strength) else {
                break;
            };
            let token = self.next()?;
            if previous == Some(Binary::Coalesce) && operator != Binary::Coalesce {
                let written = token.operator().unwrap_or_default();
                let message = format!(
                    "Operator ({written}) and coalesce expressions (??) cannot be mixed. \
                     Wrap either by parentheses."
                );
                return Err(Error::compile(token.span, message));
            }
            left = if operator.is_comparison() {
                self.comparison(left, operator, binds)?
            } else {
                self.binary(left, operator, binds)?
            };
            if is_negated {
                let span = left.span;
                left = self.node(Expr::Unary(Unary::Not, Box::new(left)), span)?;
            }
            previous = Some(operator);
        }
        if strength == 0 { self.conditional(left) } else { Ok(left) }
    }

    /// Steps over `not` where an operator follows that it can stand before; otherwise stays there.
    fn negation(&mut self, strength: u16) -> Result<bool, Error> {
        let not = self.next()?;
        let found = self.current.operator().and_then(Binary::of);
        match found.filter(|(operator, _)| operator.can_be_negated()) {
            None => Err(self.unexpected()),
            Some((_, binds)) if binds >= strength => Ok(true),
            Some(_) => {
                self.stashed = Some(std::mem::replace(&mut self.current, not));
                Ok(false)
            }
        }
    }

    fn binary(&mut self, left: Node, operator: Binary, binds: u16) -> Result<Node, Error> {
        // The power alone is grouped from the right.
        let above = if operator == Binary::Power { binds } else { binds + 1 };
        let right = self.expression(above)?;
        let span = left.span.to(right.span);
        self.node(Expr::Binary(operator, Box::new(left), Box::new(right)), span)
    }

    /// `a < b < c` is `a < b && b < c`.
    fn comparison(&mut self, left: Node, first: Binary, binds: u16) -> Result<Node, Error> {
        let (mut left, mut operator) = (left, first);
        let mut before: Option<Node> = None;
        loop {
            let right = self.expression(binds + 1)?;
            let follows = self.current.operator().and_then(Binary::of);
            let follows = follows.filter(|(operator, _)| operator.is_comparison());
            let again = if follows.is_some() { Some(self.copy(&right)?) } else { None };
            let span = left.span.to(right.span);
            let one = self.node(Expr::Binary(operator, Box::new(left), Box::new(right)), span)?;
            let whole = match before {
                None => one,
                Some(before) => {
                    let span = before.span.to(one.span);
                    self.node(Expr::Binary(Binary::And, Box::new(before), Box::new(one)), span)?
                }
            };
            let (Some((follows, _)), Some(again)) = (follows, again) else { return Ok(whole) };
            self.next()?;
            (before, left, operator) = (Some(whole), again, follows);
        }
    }

    /// What stands once in the text and twice in the tree counts twice.
    fn copy(&mut self, node: &Node) -> Result<Node, Error> {
        self.parts += node.size();
        if self.parts > MOST_PARTS { Err(too_many(node.span)) } else { Ok(node.clone()) }
    }

    fn variable(&mut self) -> Result<Node, Error> {
        self.expect_operator("let")?;
        let (name, span) = self.expect_name()?;
        self.expect_operator("=")?;
        let value = Box::new(self.expression(0)?);
        self.expect_operator(";")?;
        let body = Box::new(self.sequence()?);
        self.node(Expr::Let { name, value, body }, span)
    }

    fn if_else(&mut self) -> Result<Node, Error> {
        let start = self.next()?.span;
        let condition = Box::new(self.expression(0)?);
        self.expect_bracket('{')?;
        let yes = Box::new(self.sequence()?);
        self.expect_bracket('}')?;
        self.expect_operator("else")?;
        let no = if self.current.is_operator("if") {
            self.depth += 1;
            if self.depth > MOST_NESTED {
                return Err(too_deep(self.current.span));
            }
            let no = self.if_else()?;
            self.depth -= 1;
            no
        } else {
            self.expect_bracket('{')?;
            let no = self.sequence()?;
            self.expect_bracket('}')?;
            no
        };
        let span = start.to(no.span);
        self.node(Expr::Condition { condition, yes, no: Box::new(no) }, span)
    }

    fn conditional(&mut self, condition: Node) -> Result<Node, Error> {
        let mut node = condition;
        while self.current.is_operator("?") {
            self.next()?;
            let is_short = self.current.is_operator(":");
            let yes = if is_short { self.copy(&node)? } else { self.expression(0)? };
            self.expect_operator(":")?;
            let no = self.expression(0)?;
            let span = node.span.to(no.span);
            let (condition, yes, no) = (Box::new(node), Box::new(yes), Box::new(no));
            node = self.node(Expr::Condition { condition, yes, no }, span)?;
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, Error> {
        let span = self.current.span;
        if let Some((operator, binds)) = self.current.operator().and_then(Unary::of) {
            self.next()?;
            let operand = self.expression(binds)?;
            let span = span.to(operand.span);
            let node = self.node(Expr::Unary(operator, Box::new(operand)), span)?;
            return self.postfix(node);
        }
        if self.current.is_bracket('(') {
            self.next()?;
            let inside = self.sequence()?;
            self.expect_bracket(')')?;
            return self.postfix(inside);
        }
        if self.predicates > 0 && self.current.is_operator("#") {
            self.next()?;
            let mut name = String::new();
            let mut span = span;
            if let TokenKind::Name(_) = &self.current.kind {
                let (word, end) = self.expect_name()?;
                (name, span) = (word, span.to(end));
            }
            let node = self.node(Expr::Pointer(name), span)?;
            return self.postfix(node);
        }
        if self.predicates > 0 && self.current.is_operator(".") {
            let node = self.node(Expr::Pointer(String::new()), span)?;
            return self.postfix(node);
        }
        if self.current.is_operator("::") {
            self.next()?;
            let (name, span) = self.expect_name()?;
            let call = self.call(name, span, None, false)?;
            return self.postfix(call);
        }
        self.secondary()
    }

    fn secondary(&mut self) -> Result<Node, Error> {
        if self.current.is_bracket('[') {
            let list = self.list()?;
            return self.postfix(list);
        }
        if self.current.is_bracket('{') {
            let map = self.map()?;
            return self.postfix(map);
        }
        if matches!(
            self.current.kind,
            TokenKind::Operator(_) | TokenKind::Bracket(_) | TokenKind::End
        ) {
            return Err(self.unexpected());
        }
        let Token { kind, span } = self.next()?;
        let (value, has_fields) = match kind {
            TokenKind::Name(name) => match name.as_str() {
                "true" => (Value::Bool(true), false),
                "false" => (Value::Bool(false), false),
                "nil" => (Value::Nil, false),
                _ if self.current.is_bracket('(') => {
                    let call = self.call(name, span, None, true)?;
                    return self.postfix(call);
                }
                _ => {
                    let name = self.node(Expr::Name(name), span)?;
                    return self.postfix(name);
                }
            },
            TokenKind::Number(text) => (number(&text, span)?, false),
            TokenKind::Text(text) => (Value::Text(Arc::from(text)), true),
            TokenKind::Bytes(bytes) => (Value::bytes(&bytes), true),
            TokenKind::Operator(_) | TokenKind::Bracket(_) | TokenKind::End => {
                return Err(self.unexpected());
            }
        };
        let literal = self.node(Expr::Literal(value), span)?;
        if has_fields { self.postfix(literal) } else { Ok(literal) }
    }

    fn list(&mut self) -> Result<Node, Error> {
        let start = self.expect_bracket('[')?.span;
        let mut items = Vec::new();
        while !self.current.is_bracket(']') {
            if !items.is_empty() {
                self.expect_operator(",")?;
                if self.current.is_bracket(']') {
                    break;
                }
            }
            items.push(self.expression(0)?);
        }
        let end = self.expect_bracket(']')?.span;
        self.node(Expr::List(items), start.to(end))
    }

    fn map(&mut self) -> Result<Node, Error> {
        let start = self.expect_bracket('{')?.span;
        let mut pairs = Vec::new();
        while !self.current.is_bracket('}') {
            if !pairs.is_empty() {
                self.expect_operator(",")?;
                if self.current.is_bracket('}') {
                    break;
                }
            }
            let key = self.key()?;
            self.expect_operator(":")?;
            pairs.push((key, self.expression(0)?));
        }
        let end = self.expect_bracket('}')?.span;
        self.node(Expr::Map(pairs), start.to(end))
    }

    fn key(&mut self) -> Result<Node, Error> {
        let text = match &self.current.kind {
            TokenKind::Name(text) | TokenKind::Number(text) | TokenKind::Text(text) => {
                Value::text(text)
            }
            TokenKind::Bracket('(') => return self.expression(0),
            _ => {
                let token = &self.current;
                return Err(self.error(format!(
                    "a map key must be a quoted string, a number, a identifier, or an expression \
                     enclosed in parentheses (unexpected token {token})"
                )));
            }
        };
        let span = self.next()?.span;
        self.node(Expr::Literal(text), span)
    }
}

fn number(text: &str, span: Span) -> Result<Value, Error> {
    let digits = text.replace('_', "").to_lowercase();
    let in_base = |digits: &str, base: u32, name: &str| {
        let number = i64::from_str_radix(digits, base).ok().filter(|number| *number >= 0);
        let invalid = || {
            let message = format!(
                "invalid {name} literal: strconv.ParseInt: parsing {text:?}: invalid syntax"
            );
            Error::compile(span, message)
        };
        number.map(Value::int).ok_or_else(invalid)
    };
    if let Some(digits) = digits.strip_prefix("0x") {
        return in_base(digits, 16, "hex");
    }
    if digits.contains(['.', 'e']) {
        let message =
            format!("invalid float literal: strconv.ParseFloat: parsing {text:?}: invalid syntax");
        let number = parse_float(&digits).ok_or_else(|| Error::compile(span, message))?;
        return Ok(Value::Float(number));
    }
    if let Some(digits) = digits.strip_prefix("0b") {
        return in_base(digits, 2, "binary");
    }
    if let Some(digits) = digits.strip_prefix("0o") {
        return in_base(digits, 8, "octal");
    }
    in_base(&digits, 10, "integer")
}

fn too_many(span: Span) -> Error {
    Error::compile(span, "compilation failed: expression exceeds maximum allowed nodes")
}

fn too_deep(span: Span) -> Error {
    Error::compile(span, "expression is nested too deep")
}

fn end() -> Token {
    Token { kind: TokenKind::End, span: Span::default() }
}
