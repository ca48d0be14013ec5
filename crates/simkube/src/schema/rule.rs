//! `x-kubernetes-validations`: a small part of CEL, enough for immutability and comparisons.
//!
//! Understood: `self`, `oldSelf`, field access, indexing, literals, lists, `has()`, `size()`, `in`,
//! comparisons, `!`, `&&`, `||`, `? :`. A rule with anything else is refused when the definition is
//! installed, so that no rule is ever silently skipped.

use serde_json::Value;

/// One compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// The reason of the cause it produces.
    pub reason: &'static str,
    condition: Expression,
    message: String,
    text: String,
    is_transition: bool,
}

impl Rule {
    /// Compiles an entry of `x-kubernetes-validations`, or says what is not understood.
    pub fn compile(entry: &Value) -> Result<Self, String> {
        let text = entry["rule"].as_str().unwrap_or_default().trim().to_owned();
        for field in ["messageExpression", "fieldPath", "optionalOldSelf"] {
            if entry.get(field).is_some() {
                return Err(format!("{field} of rule {text:?} is not supported"));
            }
        }
        let reason = match entry["reason"].as_str() {
            None | Some("FieldValueInvalid") => "FieldValueInvalid",
            Some("FieldValueForbidden") => "FieldValueForbidden",
            Some("FieldValueRequired") => "FieldValueRequired",
            Some("FieldValueDuplicate") => "FieldValueDuplicate",
            Some(other) => return Err(format!("reason {other:?} of rule {text:?} is unknown")),
        };
        let tokens = tokens(&text)?;
        let is_transition = tokens.iter().any(|token| *token == Token::Name("oldSelf".into()));
        let mut parser = Parser { tokens, at: 0, text: &text };
        let condition = parser.ternary()?;
        parser.expect(&Token::End)?;
        let message = match entry["message"].as_str() {
            Some(message) => message.to_owned(),
            None => format!("failed rule: {text}"),
        };
        Ok(Self { reason, condition, message, text, is_transition })
    }

    /// The message if the rule does not hold. A transition rule is asked only in an update.
    pub fn broken(&self, value: &Value, old: Option<&Value>) -> Option<String> {
        if self.is_transition && old.is_none() {
            return None;
        }
        match self.condition.evaluate(value, old.unwrap_or(&Value::Null)) {
            Ok(Value::Bool(true)) => None,
            Ok(_) => Some(self.message.clone()),
            Err(error) => Some(format!("{error} evaluating rule: {}", self.text)),
        }
    }
}

#[derive(Debug)]
enum Expression {
    Itself,
    Old,
    Literal(Value),
    List(Vec<Expression>),
    Field(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Has(Box<Expression>, String),
    Size(Box<Expression>),
    Not(Box<Expression>),
    Both(Box<Expression>, Box<Expression>),
    Either(Box<Expression>, Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Expression {
    fn evaluate(&self, value: &Value, old: &Value) -> Result<Value, String> {
        let truth = |one: &Expression| match one.evaluate(value, old)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(format!("no such overload: expected a boolean, got {other}")),
        };
        Ok(match self {
            Self::Itself => value.clone(),
            Self::Old => old.clone(),
            Self::Literal(literal) => literal.clone(),
            Self::List(items) => {
                let items: Result<_, _> =
                    items.iter().map(|one| one.evaluate(value, old)).collect();
                Value::Array(items?)
            }
            Self::Field(of, name) => {
                let of = of.evaluate(value, old)?;
                of.get(name).cloned().ok_or_else(|| format!("no such key: {name}"))?
            }
            Self::Index(of, at) => index(&of.evaluate(value, old)?, &at.evaluate(value, old)?)?,
            Self::Has(of, name) => Value::Bool(of.evaluate(value, old)?.get(name).is_some()),
            Self::Size(of) => Value::from(size(&of.evaluate(value, old)?)?),
            Self::Not(one) => Value::Bool(!truth(one)?),
            Self::Both(left, right) => Value::Bool(truth(left)? && truth(right)?),
            Self::Either(left, right) => Value::Bool(truth(left)? || truth(right)?),
            Self::Choose(condition, yes, no) => {
                if truth(condition)? {
                    yes.evaluate(value, old)?
                } else {
                    no.evaluate(value, old)?
                }
            }
            Self::Compare(comparison, left, right) => Value::Bool(compare(
                *comparison,
                &left.evaluate(value, old)?,
                &right.evaluate(value, old)?,
            )?),
        })
    }
}

fn index(of: &Value, at: &Value) -> Result<Value, String> {
    let found = match at {
        Value::String(key) => of.get(key),
        at => at.as_u64().and_then(|at| of.get(usize::try_from(at).ok()?)),
    };
    found.cloned().ok_or_else(|| format!("no such key: {at}"))
}

fn size(of: &Value) -> Result<usize, String> {
    match of {
        Value::String(text) => Ok(text.chars().count()),
        Value::Array(items) => Ok(items.len()),
        Value::Object(fields) => Ok(fields.len()),
        other => Err(format!("no such overload: size({other})")),
    }
}

fn compare(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, String> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if comparison == Comparison::In {
        return match right {
            Value::Array(items) => Ok(items.contains(left)),
            Value::Object(fields) => {
                Ok(left.as_str().is_some_and(|name| fields.contains_key(name)))
            }
            other => Err(format!("no such overload: in {other}")),
        };
    }
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    };
    match (comparison, order) {
        (Comparison::Equal, _) => Ok(order.map_or(left == right, |order| order == Equal)),
        (Comparison::NotEqual, _) => Ok(order.map_or(left != right, |order| order != Equal)),
        (_, None) => Err(format!("no such overload: comparison of {left} and {right}")),
        (Comparison::Less, Some(order)) => Ok(order == Less),
        (Comparison::LessOrEqual, Some(order)) => Ok(order != Greater),
        (Comparison::Greater, Some(order)) => Ok(order == Greater),
        (Comparison::GreaterOrEqual, Some(order)) => Ok(order != Less),
        (Comparison::In, Some(_)) => Ok(false),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Literal(Value),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 18] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ".", ",", "?", ":", "-",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or_else(|| unsupported(text, rest))?;
            let inside = &rest[1..=end];
            if inside.contains('\\') {
                return Err(unsupported(text, rest));
            }
            tokens.push(Token::Literal(Value::from(inside)));
            end + 2
        } else if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_digit() || c == '.';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let number = serde_json::from_str(&rest[..length]);
            tokens.push(Token::Literal(number.map_err(|_| unsupported(text, rest))?));
            length
        } else if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            tokens.push(match &rest[..length] {
                "true" => Token::Literal(Value::Bool(true)),
                "false" => Token::Literal(Value::Bool(false)),
                "null" => Token::Literal(Value::Null),
                name => Token::Name(name.to_owned()),
            });
            length
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or_else(|| unsupported(text, rest))?;
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = rest[length..].trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn unsupported(text: &str, at: &str) -> String {
    format!("rule {text:?} is not supported here, from {at:?} on")
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    text: &'a str,
}

impl Parser<'_> {
    fn ternary(&mut self) -> Result<Expression, String> {
        let condition = self.either()?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.ternary()?;
        self.expect(&Token::Symbol(":"))?;
        let no = self.ternary()?;
        Ok(Expression::Choose(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn either(&mut self) -> Result<Expression, String> {
        let mut left = self.both()?;
        while self.take("||") {
            left = Expression::Either(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, String> {
        let mut left = self.comparison()?;
        while self.take("&&") {
            left = Expression::Both(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let left = self.unary()?;
        let comparison = match &self.tokens[self.at] {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::NotEqual,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            _ => return Ok(left),
        };
        self.at += 1;
        Ok(Expression::Compare(comparison, Box::new(left), Box::new(self.unary()?)))
    }

    fn unary(&mut self) -> Result<Expression, String> {
        if self.take("!") {
            return Ok(Expression::Not(Box::new(self.unary()?)));
        }
        if self.take("-") {
            return match self.unary()? {
                Expression::Literal(Value::Number(number)) => {
                    let negative = match number.as_i64() {
                        Some(number) => Value::from(-number),
                        None => Value::from(-number.as_f64().unwrap_or_default()),
                    };
                    Ok(Expression::Literal(negative))
                }
                _ => Err(self.refuse()),
            };
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Expression, String> {
        let mut of = self.primary()?;
        loop {
            if self.take(".") {
                let name = self.name()?;
                if self.take("(") {
                    self.expect(&Token::Symbol(")"))?;
                    if name != "size" {
                        return Err(self.refuse());
                    }
                    of = Expression::Size(Box::new(of));
                } else {
                    of = Expression::Field(Box::new(of), name);
                }
            } else if self.take("[") {
                let at = self.ternary()?;
                self.expect(&Token::Symbol("]"))?;
                of = Expression::Index(Box::new(of), Box::new(at));
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, String> {
        let token = self.tokens[self.at].clone();
        self.at += 1;
        match token {
            Token::Literal(value) => Ok(Expression::Literal(value)),
            Token::Name(name) if name == "self" => Ok(Expression::Itself),
            Token::Name(name) if name == "oldSelf" => Ok(Expression::Old),
            Token::Name(name) if name == "has" => match self.in_parentheses()? {
                Expression::Field(of, name) => Ok(Expression::Has(of, name)),
                _ => Err(self.refuse()),
            },
            Token::Name(name) if name == "size" => {
                Ok(Expression::Size(Box::new(self.in_parentheses()?)))
            }
            Token::Symbol("(") => {
                self.at -= 1;
                self.in_parentheses()
            }
            Token::Symbol("[") => self.list(),
            _ => {
                self.at -= 1;
                Err(self.refuse())
            }
        }
    }

    fn list(&mut self) -> Result<Expression, String> {
        let mut items = Vec::new();
        while !self.take("]") {
            items.push(self.ternary()?);
            if !self.take(",") {
                self.expect(&Token::Symbol("]"))?;
                break;
            }
        }
        Ok(Expression::List(items))
    }

    fn in_parentheses(&mut self) -> Result<Expression, String> {
        self.expect(&Token::Symbol("("))?;
        let inside = self.ternary()?;
        self.expect(&Token::Symbol(")"))?;
        Ok(inside)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens[self.at].clone() {
            Token::Name(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.refuse()),
        }
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let is_next = self.tokens[self.at] == Token::Symbol(symbol);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    fn expect(&mut self, token: &Token) -> Result<(), String> {
        if self.tokens[self.at] != *token {
            return Err(self.refuse());
        }
        if *token != Token::End {
            self.at += 1;
        }
        Ok(())
    }

    fn refuse(&self) -> String {
        let at = match &self.tokens[self.at] {
            Token::Name(name) => name.clone(),
            Token::Literal(value) => value.to_string(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::End => "its end".into(),
        };
        unsupported(self.text, &at)
    }
}
