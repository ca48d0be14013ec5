//! Does an object match a label selector or a field selector?

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::admit::{label_value, qualified_name};

/// Why a selector cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text is not a label selector.
    #[error("unable to parse requirement: {0}")]
    Label(String),
    /// The text is not a field selector.
    #[error("invalid selector: '{0}'; can't understand '{1}'")]
    Field(String, String),
    /// `matchExpressions` has an operator that does not exist.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
}

/// A label selector; empty, it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Equals(String),
    NotEquals(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads the text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        if parser.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(parser.requirement()?);
            match parser.next() {
                Token::End => break,
                Token::Comma if !matches!(parser.peek(), Token::End) => {}
                Token::Comma => {
                    return Err(found(&Token::End, "identifier after ','"));
                }
                other => return Err(found(&other, "',' or 'end of string'")),
            }
        }
        for requirement in &requirements {
            requirement.check()?;
        }
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements })
    }

    /// Reads the object form: `matchLabels` and `matchExpressions`.
    pub fn from_json(selector: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement { key: key.clone(), test: Test::Equals(value) });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            let values = || {
                let values = expression["values"].as_array().into_iter().flatten();
                let mut values: Vec<String> =
                    values.filter_map(Value::as_str).map(str::to_owned).collect();
                values.sort();
                values
            };
            let test = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Test::In(values()),
                "NotIn" => Test::NotIn(values()),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                other => return Err(SelectorError::Operator(other.to_owned())),
            };
            requirements.push(Requirement { key, test });
        }
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements })
    }

    /// True if nothing is required, so that every object matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if these labels meet every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|one| one.test.accepts(labels.get(&one.key)))
    }
}

impl Requirement {
    /// No object can have a label that may not be.
    fn check(&self) -> Result<(), SelectorError> {
        let Self { key, test } = self;
        if let Some(why) = qualified_name(key).first() {
            return Err(SelectorError::Label(format!("<nil>: Invalid value: {key:?}: {why}")));
        }
        let values = match test {
            Test::Equals(value) | Test::NotEquals(value) => std::slice::from_ref(value),
            Test::In(values) | Test::NotIn(values) => values,
            Test::Exists | Test::DoesNotExist | Test::Greater(_) | Test::Less(_) => &[],
        };
        for (at, value) in values.iter().enumerate() {
            if let Some(why) = label_value(value).first() {
                let problem = format!("values[{at}][{key}]: Invalid value: {value:?}: {why}");
                return Err(SelectorError::Label(problem));
            }
        }
        Ok(())
    }
}

impl Test {
    fn accepts(&self, label: Option<&String>) -> bool {
        let number = || label.and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::Equals(value) => label == Some(value),
            Self::NotEquals(value) => label != Some(value),
            Self::In(values) => label.is_some_and(|label| values.contains(label)),
            Self::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Self::Exists => label.is_some(),
            Self::DoesNotExist => label.is_none(),
            Self::Greater(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Requirement { key, test }) in self.requirements.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::Equals(value) => write!(f, "{key}={value}"),
                Test::NotEquals(value) => write!(f, "{key}!={value}"),
                Test::In(values) => write!(f, "{key} in ({})", values.join(",")),
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
                Test::Exists => write!(f, "{key}"),
                Test::DoesNotExist => write!(f, "!{key}"),
                Test::Greater(bound) => write!(f, "{key}>{bound}"),
                Test::Less(bound) => write!(f, "{key}<{bound}"),
            }?;
        }
        Ok(())
    }
}

/// A field selector: `metadata.name=x,status.phase!=Running`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<(String, bool, String)>,
}

impl FieldSelector {
    /// Reads the text form; `\`, `,` and `=` in a value are escaped by `\`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let malformed = || SelectorError::Field(text.to_owned(), part.to_owned());
            let (field, equal, value) = split_operator(part).ok_or_else(malformed)?;
            terms.push((field.to_owned(), equal, unescape(value).ok_or_else(malformed)?));
        }
        Ok(Self { terms })
    }

    /// True if nothing is required.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The fields it asks for, so that the server can refuse those it does not support.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(field, _, _)| field.as_str())
    }

    /// The value `field` must have, if the selector says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        let found = self.terms.iter().find(|(name, equal, _)| name == field && *equal);
        found.map(|(_, _, value)| value.as_str())
    }

    /// True if every term holds; `value_of` gives a field's text, "" where it is absent.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.terms.iter().all(|(field, equal, value)| (value_of(field) == *value) == *equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (field, equal, value)) in self.terms.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            let operator = if *equal { "=" } else { "!=" };
            write!(f, "{comma}{field}{operator}{value}")?;
        }
        Ok(())
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_operator(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.find(['=', '!'])?;
    let (field, rest) = part.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

fn unescape(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(characters.next().filter(|next| matches!(next, '\\' | ',' | '='))?),
            '=' => return None,
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    Word(String),
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Token::Not {
            self.next();
            let key = self.key()?;
            return Ok(Requirement { key, test: Test::DoesNotExist });
        }
        let key = self.key()?;
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let test = match self.next() {
            Token::Equals => Test::Equals(self.value()?),
            Token::NotEquals => Test::NotEquals(self.value()?),
            Token::Greater => Test::Greater(self.number()?),
            Token::Less => Test::Less(self.number()?),
            Token::Word(word) if word == "in" => Test::In(self.values()?),
            Token::Word(word) if word == "notin" => Test::NotIn(self.values()?),
            other => return Err(found(&other, "in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement { key, test })
    }

    fn key(&mut self) -> Result<String, SelectorError> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(found(&other, "!, identifier, or 'end of string'")),
        }
    }

    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            other => Err(found(&other, "identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let text = self.value()?;
        text.parse().map_err(|_| {
            SelectorError::Label(format!(
                "values[0][]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must \
                 be an integer"
            ))
        })
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(found(&other, "'('")),
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value_in_list()?);
            match self.next() {
                Token::Comma => {}
                Token::Close => break,
                other => return Err(found(&other, "',', ')' or identifier")),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }

    fn value_in_list(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::Comma | Token::Close => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            other => Err(found(&other, "',', ')' or identifier")),
        }
    }

    fn peek(&self) -> Token {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token {
        self.rest = self.rest.trim_start();
        let (token, length) = match self.rest.as_bytes() {
            [] => (Token::End, 0),
            [b'!', b'=', ..] => (Token::NotEquals, 2),
            [b'=', b'=', ..] => (Token::Equals, 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'!', ..] => (Token::Not, 1),
            [b',', ..] => (Token::Comma, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b'>', ..] => (Token::Greater, 1),
            [b'<', ..] => (Token::Less, 1),
            _ => {
                let is_symbol = |c: char| matches!(c, '=' | '!' | ',' | '(' | ')' | '<' | '>');
                let end = self.rest.find(|c: char| is_symbol(c) || c.is_whitespace());
                let length = end.unwrap_or(self.rest.len());
                (Token::Word(self.rest[..length].to_owned()), length)
            }
        };
        self.rest = &self.rest[length..];
        token
    }
}

fn found(token: &Token, expected: &str) -> SelectorError {
    let text = match token {
        Token::End => "",
        Token::Comma => ",",
        Token::Open => "(",
        Token::Close => ")",
        Token::Not => "!",
        Token::Equals => "=",
        Token::NotEquals => "!=",
        Token::Greater => ">",
        Token::Less => "<",
        Token::Word(word) => word,
    };
    SelectorError::Label(format!("found '{text}', expected: {expected}"))
}
