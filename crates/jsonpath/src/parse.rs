//! How a template is read.

use serde_json::{Number, Value};

use crate::{Filter, PathError, Slice, Step};

pub(super) fn template(text: &str) -> Result<Vec<Step>, PathError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('{') {
        if !before.is_empty() {
            pieces.push(Step::Text(before.to_owned()));
        }
        let mut reader = Reader { rest: inside };
        pieces.push(Step::List(reader.steps()?));
        rest = reader.rest;
    }
    if !rest.is_empty() {
        pieces.push(Step::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// The steps of a path that stands without braces.
fn path(text: &str) -> Result<Vec<Step>, PathError> {
    let closed = format!("{text}}}");
    Reader { rest: &closed }.steps()
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// The steps up to the closing brace, and over it.
    fn steps(&mut self) -> Result<Vec<Step>, PathError> {
        let mut steps = Vec::new();
        loop {
            let rest = self.rest;
            if let Some(rest) = rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(steps);
            }
            if let Some(rest) = rest.strip_prefix("[?(") {
                self.rest = rest;
                steps.push(Step::Filter(self.filter()?));
                continue;
            }
            if let Some(rest) = rest.strip_prefix("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return Err(syntax("invalid multiple recursive descent"));
                }
                self.rest = rest;
                steps.push(Step::Recursive);
                if rest.starts_with(is_name) {
                    steps.push(self.field());
                }
                continue;
            }
            let Some(letter) = rest.chars().next().filter(|letter| !is_end_of_line(*letter)) else {
                return Err(syntax("unclosed action"));
            };
            let behind = &rest[letter.len_utf8()..];
            match letter {
                ' ' | '@' | '$' => self.rest = behind,
                '[' => {
                    self.rest = behind;
                    steps.extend(self.array()?);
                }
                '"' | '\'' => steps.push(Step::Text(self.quoted(letter)?)),
                '.' => {
                    self.rest = behind;
                    steps.push(self.field());
                }
                '+' | '-' => steps.push(self.number()?),
                digit if digit.is_numeric() => steps.push(self.number()?),
                letter if is_name(letter) => steps.push(self.word()),
                other => {
                    let code = u32::from(other);
                    let message =
                        format!("unrecognized character in action: U+{code:04X} '{other}'");
                    return Err(PathError::Syntax(message));
                }
            }
        }
    }

    /// Up to what ends a word; a backslash takes the meaning from what follows it.
    fn field(&mut self) -> Step {
        let mut letters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, letter)) = letters.next() {
            if letter == '\\' {
                letters.next();
            } else if is_terminator(letter) {
                end = at;
                break;
            }
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) }
    }

    fn word(&mut self) -> Step {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "true" => Step::Literal(Value::Bool(true)),
            "false" => Step::Literal(Value::Bool(false)),
            other => Step::Word(other.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Step, PathError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let is_digit = |letter: char| letter == '.' || letter.is_numeric();
        let digits = self.rest[sign..].find(|letter| !is_digit(letter));
        let end = digits.map_or(self.rest.len(), |digits| sign + digits);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let integer = text.parse::<i64>().ok().map(Number::from);
        let number = integer.or_else(|| Number::from_f64(text.parse().ok()?));
        let wrong = || PathError::Syntax(format!("cannot parse number {text}"));
        number.map(|number| Step::Literal(Value::Number(number))).ok_or_else(wrong)
    }

    /// A text in quotes, with the escapes of Go.
    fn quoted(&mut self, quote: char) -> Result<String, PathError> {
        let inside = &self.rest[1..];
        let end = closing(inside, quote).ok_or_else(|| syntax("unterminated quoted string"))?;
        self.rest = &inside[end + 1..];
        let text = &inside[..end];
        unescaped(text, quote).ok_or_else(|| {
            PathError::Syntax(format!("unquote string {quote}{text}{quote} error invalid syntax"))
        })
    }

    /// An index, a slice, a field in quotes or several of them, behind the bracket.
    fn array(&mut self) -> Result<Vec<Step>, PathError> {
        let end = self.rest.find([']', '\n']);
        let end = end.filter(|end| self.rest[*end..].starts_with(']'));
        let end = end.ok_or_else(|| syntax("unterminated array"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 1 {
            let each = parts.into_iter().map(|part| path(&format!("[{}]", part.trim_matches(' '))));
            return Ok(vec![Step::Union(each.collect::<Result<_, _>>()?)]);
        }
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(name) = quoted.filter(|name| !name.contains('\'')) {
            return path(&format!(".{name}"));
        }
        slice(if text == "*" { ":" } else { text }).map(|slice| vec![Step::Slice(slice)])
    }

    /// Up to the bracket that closes it; of quotes the first pair is stepped over.
    fn filter(&mut self) -> Result<Filter, PathError> {
        let mut quote = None;
        let mut is_closed = false;
        let mut previous = ' ';
        let mut end = None;
        for (at, letter) in self.rest.char_indices() {
            match letter {
                '\n' => break,
                '"' | '\'' if quote.is_none() => quote = Some(letter),
                '"' | '\'' if previous != '\\' && quote == Some(letter) => is_closed = true,
                ')' if quote.is_some() == is_closed => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
            previous = letter;
        }
        let end = end.ok_or_else(|| syntax("unterminated filter"))?;
        let (text, rest) = self.rest.split_at(end);
        let rest = rest[1..].strip_prefix(']').ok_or_else(|| syntax("unclosed array expect ]"))?;
        self.rest = rest;
        let is_sign = |letter: char| "!<>=".contains(letter);
        let parts = text.find(is_sign).filter(|start| *start > 0).and_then(|start| {
            let (left, behind) = text.split_at(start);
            let length = behind.find(|letter| !is_sign(letter))?;
            let (operator, right) = behind.split_at(length);
            Some((left, operator, right))
        });
        match parts {
            None => Ok(Filter { left: path(text)?, compared: None }),
            Some((left, operator, right)) => {
                let compared = Some((operator.to_owned(), path(right)?));
                Ok(Filter { left: path(left)?, compared })
            }
        }
    }
}

/// `from:to:every`, each of which may be left out.
fn slice(text: &str) -> Result<Slice, PathError> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |part: &&str| {
        part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(is_number) {
        return Err(PathError::Syntax(format!("invalid array index {text}")));
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => part
            .parse::<i64>()
            .map(Some)
            .map_err(|_| PathError::Syntax(format!("array index {part} is not a number"))),
    };
    let from = number(0)?;
    if parts.len() == 1 {
        let to = Some(from.unwrap_or(0).saturating_add(1));
        return Ok(Slice { from, to, is_index: true, every: None });
    }
    Ok(Slice { from, to: number(1)?, is_index: false, every: number(2)? })
}

/// Where a quote stands that no backslash stands before.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '\n' => return None,
            letter if letter == quote && previous != '\\' => return Some(at),
            _ => previous = letter,
        }
    }
    None
}

fn unescaped(text: &str, quote: char) -> Option<String> {
    let mut found = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            found.push(letter);
            continue;
        }
        let code = |digits: usize, letters: &mut std::str::Chars<'_>| {
            let digits: String = letters.by_ref().take(digits).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        };
        found.push(match letters.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            'x' => code(2, &mut letters)?,
            'u' => code(4, &mut letters)?,
            'U' => code(8, &mut letters)?,
            other if other == quote => other,
            _ => return None,
        });
    }
    Some(found)
}

fn is_name(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn is_end_of_line(letter: char) -> bool {
    letter == '\r' || letter == '\n'
}

fn is_terminator(letter: char) -> bool {
    " \t\r\n.,[]$@{}".contains(letter)
}

fn syntax(message: &str) -> PathError {
    PathError::Syntax(message.to_owned())
}
