//! From text to tokens.

use std::fmt;

use crate::error::{Error, Span};

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Name(String),
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
    Operator(String),
    Bracket(char),
    End,
}

/// Names that are operators.
const WORDS: [&str; 11] = [
    "not",
    "in",
    "or",
    "and",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "let",
    "if",
    "else",
];

impl Token {
    pub(crate) fn is_operator(&self, text: &str) -> bool {
        matches!(&self.kind, TokenKind::Operator(operator) if operator == text)
    }

    pub(crate) fn is_bracket(&self, bracket: char) -> bool {
        self.kind == TokenKind::Bracket(bracket)
    }

    pub(crate) fn operator(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Operator(operator) => Some(operator),
            _ => None,
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TokenKind::Name(text) => write!(f, "Identifier({text:?})"),
            TokenKind::Number(text) => write!(f, "Number({text:?})"),
            TokenKind::Text(text) => write!(f, "String({text:?})"),
            TokenKind::Bytes(bytes) => write!(f, "Bytes({:?})", String::from_utf8_lossy(bytes)),
            TokenKind::Operator(text) => write!(f, "Operator({text:?})"),
            TokenKind::Bracket(bracket) => write!(f, "Bracket(\"{bracket}\")"),
            TokenKind::End => f.write_str("EOF"),
        }
    }
}

/// The tokens of a text; an error stands where the text stops making sense, so that what is wrong
/// before it is reported first.
pub(crate) fn tokens(source: &str) -> Vec<Result<Token, Error>> {
    let mut lexer = Lexer { source, at: 0 };
    let mut found = Vec::new();
    loop {
        let next = lexer.next();
        let is_last = !matches!(&next, Ok(token) if token.kind != TokenKind::End);
        found.push(next);
        if is_last {
            return found;
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn accept(&mut self, letters: &str) -> bool {
        let fits = self.peek().is_some_and(|letter| letters.contains(letter));
        if fits {
            self.bump();
        }
        fits
    }

    fn accept_run(&mut self, letters: &str) {
        while self.accept(letters) {}
    }

    fn error(&self, message: impl Into<String>) -> Error {
        let end = self.at.max(1).min(self.source.len());
        let last = self.source[..end].chars().next_back();
        let start = end - last.map_or(0, char::len_utf8);
        Error::compile(Span { start, end }, message)
    }

    fn next(&mut self) -> Result<Token, Error> {
        self.skip()?;
        let start = self.at;
        let Some(letter) = self.bump() else {
            let last = self.source.chars().next_back().map_or(0, char::len_utf8);
            let span = Span { start: start - last, end: start };
            return Ok(Token { kind: TokenKind::End, span });
        };
        let kind = match letter {
            '\'' | '"' => TokenKind::Text(self.quoted_text(letter)?),
            '`' => TokenKind::Text(self.raw_text()?),
            'b' | 'B' if matches!(self.peek(), Some('\'' | '"')) => {
                let quote = self.bump().unwrap_or('"');
                TokenKind::Bytes(self.quoted(quote, Escapes::Bytes)?)
            }
            '0'..='9' => self.number(start)?,
            '.' if matches!(self.peek(), Some('0'..='9')) => self.number_behind_point(start)?,
            '(' | '[' | '{' | ')' | ']' | '}' => TokenKind::Bracket(letter),
            letter if is_name(letter) => self.name(start),
            _ => self.operator(letter, start)?,
        };
        Ok(Token { kind, span: Span { start, end: self.at } })
    }

    /// Spaces and comments.
    fn skip(&mut self) -> Result<(), Error> {
        loop {
            let rest = &self.source[self.at..];
            if rest.starts_with(char::is_whitespace) {
                self.bump();
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    self.at = self.source.len();
                    return Err(self.error("unclosed comment"));
                };
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn operator(&mut self, letter: char, start: usize) -> Result<TokenKind, Error> {
        let followers = match letter {
            '?' => ".?",
            '#' => "#",
            '|' => "|",
            ':' => ":",
            '.' => ".",
            '&' | '!' | '=' | '*' | '<' | '>' => "&=*",
            ',' | ';' | '%' | '+' | '-' | '^' | '/' => "",
            other => {
                let code = u32::from(other);
                return Err(self.error(format!("unrecognized character: U+{code:04X} '{other}'")));
            }
        };
        self.accept(followers);
        Ok(TokenKind::Operator(self.source[start..self.at].to_owned()))
    }

    fn name(&mut self, start: usize) -> TokenKind {
        while self.peek().is_some_and(is_name) {
            self.bump();
        }
        let word = self.source[start..self.at].to_owned();
        let is_field = self.source[..start].ends_with('#');
        if WORDS.contains(&word.as_str()) && !is_field {
            TokenKind::Operator(word)
        } else {
            TokenKind::Name(word)
        }
    }

    fn number(&mut self, start: usize) -> Result<TokenKind, Error> {
        self.at = start;
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.rest_of_number(start, digits)
    }

    fn number_behind_point(&mut self, start: usize) -> Result<TokenKind, Error> {
        self.rest_of_number(start, "0123456789_")
    }

    fn rest_of_number(&mut self, start: usize, digits: &str) -> Result<TokenKind, Error> {
        self.accept_run(digits);
        let rest = &self.source[self.at..];
        // 1..2 is a range.
        if rest.starts_with("..") {
            return Ok(TokenKind::Number(self.source[start..self.at].to_owned()));
        }
        if self.accept(".") {
            self.accept_run(digits);
        }
        if self.accept("eE") {
            self.accept("+-");
            self.accept_run(digits);
        }
        if self.peek().is_some_and(is_name) {
            self.bump();
            let word = &self.source[start..self.at];
            return Err(self.error(format!("bad number syntax: {word:?}")));
        }
        Ok(TokenKind::Number(self.source[start..self.at].to_owned()))
    }

    /// A backtick inside is written twice.
    fn raw_text(&mut self) -> Result<String, Error> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(self.error("literal not terminated")),
                Some('`') if self.peek() == Some('`') => {
                    self.bump();
                    text.push('`');
                }
                Some('`') => return Ok(text),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn quoted_text(&mut self, quote: char) -> Result<String, Error> {
        let bytes = self.quoted(quote, Escapes::Text)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn quoted(&mut self, quote: char, escapes: Escapes) -> Result<Vec<u8>, Error> {
        let mut found = Vec::new();
        loop {
            match self.bump() {
                None | Some('\n') => return Err(self.error("literal not terminated")),
                Some('\\') => self.escape(quote, escapes, &mut found)?,
                Some(letter) if letter == quote => return Ok(found),
                Some(letter) => found.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
    }

    fn escape(&mut self, quote: char, of: Escapes, found: &mut Vec<u8>) -> Result<(), Error> {
        let letter = self.bump();
        let code = match letter {
            Some('a') => 7,
            Some('b') => 8,
            Some('f') => 12,
            Some('n') => 10,
            Some('r') => 13,
            Some('t') => 9,
            Some('v') => 11,
            Some('\\') => 92,
            Some(letter) if letter == quote => u32::from(letter),
            Some('0'..='7') => {
                self.at -= 1;
                self.digits(8, 3)?
            }
            Some('x') => self.digits(16, 2)?,
            Some('u') if of == Escapes::Text && self.peek() == Some('{') => {
                self.bump();
                let end = self.source[self.at..].find('}').unwrap_or(0);
                if !(1..=6).contains(&end) {
                    return Err(self.error("invalid char escape"));
                }
                let code = self.digits(16, end)?;
                self.bump();
                code
            }
            Some('u') if of == Escapes::Text => self.digits(16, 4)?,
            Some('U') if of == Escapes::Text => self.digits(16, 8)?,
            _ => return Err(self.error("invalid char escape")),
        };
        let invalid = || self.error("unable to unescape string");
        if of == Escapes::Bytes {
            found.push(u8::try_from(code).map_err(|_| invalid())?);
        } else {
            let letter = char::from_u32(code).ok_or_else(invalid)?;
            found.extend(letter.encode_utf8(&mut [0; 4]).bytes());
        }
        Ok(())
    }

    fn digits(&mut self, base: u32, count: usize) -> Result<u32, Error> {
        let mut code = 0_u32;
        for _ in 0..count {
            let digit = self.peek().and_then(|letter| letter.to_digit(base));
            let Some(digit) = digit else { return Err(self.error("invalid char escape")) };
            self.bump();
            code = code.wrapping_mul(base).wrapping_add(digit);
        }
        Ok(code)
    }
}

/// What a backslash may stand before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Text,
    Bytes,
}

fn is_name(letter: char) -> bool {
    letter == '_' || letter == '$' || letter.is_alphabetic() || letter.is_numeric()
}

/// Can it be the name of a field, as `not` can?
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|letter: char| is_name(letter) && !letter.is_numeric())
        && text.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        let words = tokens(source).into_iter().map(|token| match token {
            Ok(token) => token.to_string(),
            Err(error) => format!("{} at {}", error.message, error.span),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_text_is_cut_where_the_original_cuts_it() {
        let cases = [
            ("a.b", "Identifier(\"a\") Operator(\".\") Identifier(\"b\") EOF"),
            ("1..4", "Number(\"1\") Operator(\"..\") Number(\"4\") EOF"),
            (".5", "Number(\".5\") EOF"),
            ("#acc", "Operator(\"#\") Identifier(\"acc\") EOF"),
            ("a?.b", "Identifier(\"a\") Operator(\"?.\") Identifier(\"b\") EOF"),
            ("a<>b", "Identifier(\"a\") Operator(\"<\") Operator(\">\") Identifier(\"b\") EOF"),
            ("'\\u00e9' // x", "String(\"é\") EOF"),
            ("`a``b`", "String(\"a`b\") EOF"),
            ("1x", "bad number syntax: \"1x\" at 1..2"),
            ("'a", "literal not terminated at 1..2"),
            ("a @", "Identifier(\"a\") unrecognized character: U+0040 '@' at 2..3"),
            ("/* x", "unclosed comment at 3..4"),
        ];
        for (source, expected) in cases {
            assert_eq!(read(source), expected, "{source}");
        }
    }
}
