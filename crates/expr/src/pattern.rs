//! Patterns of `matches` as RE2 reads them, compiled by the `regex` crate in linear time. Where the two
//! read a pattern differently it is rewritten: classes such as `\d` are ASCII, `&&` in a class is two
//! characters, a brace that repeats nothing is a brace. What RE2 refuses is refused.

use std::iter::Peekable;
use std::str::Chars;

use regex::bytes::{Regex, RegexBuilder};

/// How often a part may be repeated.
const MOST_REPEATS: u32 = 1000;
/// How deep groups may stand in each other.
const DEEPEST: u32 = 1000;
/// How much memory a compiled pattern may take.
const LARGEST: usize = 4 << 20;

/// The classes that have a name within brackets, as `[:alpha:]`.
const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

const BAD_CLASS: &str = "invalid character class range";

/// A compiled pattern.
pub(crate) fn compile(text: &str) -> Result<Regex, String> {
    let wrong = |why: &str| format!("error parsing regexp: {why}: `{text}`");
    let rewritten = rewrite(text).map_err(wrong)?;
    RegexBuilder::new(&rewritten)
        .nest_limit(DEEPEST)
        .size_limit(LARGEST)
        .build()
        .map_err(|error| wrong(last_line(&error.to_string())))
}

/// The parser draws the pattern above what is wrong with it; some of that RE2 says in other words.
fn last_line(message: &str) -> &str {
    let line = message.lines().last().unwrap_or_default();
    match line.strip_prefix("error: ").unwrap_or(line) {
        "unclosed group" => "missing closing )",
        "unopened group" => "unexpected )",
        "unclosed capture group name" => "invalid named capture",
        other => other,
    }
}

/// What stands before the next character, for the operators that repeat it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Something,
    Repeat,
}

struct Rewriter<'a> {
    input: Peekable<Chars<'a>>,
    output: String,
}

fn rewrite(text: &str) -> Result<String, &'static str> {
    let output = String::with_capacity(text.len());
    let mut rewriter = Rewriter { input: text.chars().peekable(), output };
    rewriter.pattern()?;
    Ok(rewriter.output)
}

impl Rewriter<'_> {
    fn pattern(&mut self) -> Result<(), &'static str> {
        let mut before = Before::Nothing;
        while let Some(letter) = self.input.next() {
            before = match letter {
                '\\' => self.escape()?,
                '[' => {
                    self.class()?;
                    Before::Something
                }
                '(' => {
                    self.group()?;
                    Before::Nothing
                }
                '|' => {
                    self.output.push('|');
                    Before::Nothing
                }
                '*' | '+' | '?' => self.repeat(before, letter.into())?,
                '{' => match self.count()? {
                    Some(count) => self.repeat(before, count)?,
                    None => {
                        self.output.push_str(r"\{");
                        Before::Something
                    }
                },
                '}' => {
                    self.output.push_str(r"\}");
                    Before::Something
                }
                other => {
                    self.output.push(other);
                    Before::Something
                }
            };
        }
        Ok(())
    }

    /// A repetition, greedy or not. Two in a row are an error.
    fn repeat(&mut self, before: Before, what: String) -> Result<Before, &'static str> {
        match before {
            Before::Nothing => return Err("missing argument to repetition operator"),
            Before::Repeat => return Err("invalid nested repetition operator"),
            Before::Something => self.output.push_str(&what),
        }
        if self.input.next_if_eq(&'?').is_some() {
            self.output.push('?');
        }
        Ok(Before::Repeat)
    }

    /// `{2}`, `{2,}` or `{2,3}` behind the brace; anything else is no count, and nothing is consumed.
    fn count(&mut self) -> Result<Option<String>, &'static str> {
        let rest: String = self.input.clone().collect();
        let Some((inside, _)) = rest.split_once('}') else { return Ok(None) };
        let (least, most) = match inside.split_once(',') {
            None => (inside, inside),
            Some((least, "")) => (least, least),
            Some(both) => both,
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_zeros = |text: &str| text.len() > 1 && text.starts_with('0');
        if ![least, most].into_iter().all(|text| is_number(text) && !has_zeros(text)) {
            return Ok(None);
        }
        let number = |text: &str| text.parse().ok().filter(|count: &u32| *count <= MOST_REPEATS);
        match (number(least), number(most)) {
            (Some(least), Some(most)) if least <= most => {}
            _ => return Err("invalid repeat count"),
        }
        for _ in 0..=inside.len() {
            self.input.next();
        }
        Ok(Some(format!("{{{inside}}}")))
    }

    /// What opens a group: nothing, a name, or the flags `i`, `m`, `s` and `U`.
    fn group(&mut self) -> Result<(), &'static str> {
        self.output.push('(');
        if self.input.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.output.push('?');
        if matches!(self.input.peek(), Some('P' | '<')) {
            return Ok(()); // The parser knows names.
        }
        for letter in self.input.by_ref() {
            self.output.push(letter);
            match letter {
                ':' | ')' => return Ok(()),
                'i' | 'm' | 's' | 'U' | '-' => {}
                _ => break,
            }
        }
        Err("invalid or unsupported Perl syntax")
    }

    /// What stands behind a backslash outside a class.
    fn escape(&mut self) -> Result<Before, &'static str> {
        match self.input.peek().copied() {
            Some('A' | 'z') => {
                self.output.push('\\');
                self.output.extend(self.input.next());
            }
            Some('b' | 'B') => {
                self.output.push_str(r"(?-u:\");
                self.output.extend(self.input.next());
                self.output.push(')');
            }
            Some('Q') => {
                self.input.next();
                return Ok(self.quoted());
            }
            _ if self.ready_class()? => {}
            _ => {
                let letter = self.letter()?;
                self.push(letter);
            }
        }
        Ok(Before::Something)
    }

    /// The text up to `\E`.
    fn quoted(&mut self) -> Before {
        let mut before = Before::Nothing;
        while let Some(letter) = self.input.next() {
            if letter == '\\' && self.input.next_if_eq(&'E').is_some() {
                break;
            }
            self.push(letter);
            before = Before::Something;
        }
        before
    }

    /// `\d`, `\pL` and the like, behind their backslash; false, and nothing consumed, for anything else.
    fn ready_class(&mut self) -> Result<bool, &'static str> {
        let ready = match self.input.peek() {
            Some('d') => "[0-9]",
            Some('D') => "[^0-9]",
            Some('s') => r"[\t\n\x0C\r ]",
            Some('S') => r"[^\t\n\x0C\r ]",
            Some('w') => "[0-9A-Za-z_]",
            Some('W') => "[^0-9A-Za-z_]",
            Some('p' | 'P') => return self.of_unicode().map(|()| true),
            _ => return Ok(false),
        };
        self.input.next();
        self.output.push_str(ready);
        Ok(true)
    }

    /// `\pL`, `\p{Greek}` or `\p{^Greek}`, and the same with `P`.
    fn of_unicode(&mut self) -> Result<(), &'static str> {
        let mut is_negated = self.input.next() == Some('P');
        let name = match self.input.next().ok_or(BAD_CLASS)? {
            '{' => {
                is_negated ^= self.input.next_if_eq(&'^').is_some();
                let mut name = String::new();
                loop {
                    match self.input.next().ok_or(BAD_CLASS)? {
                        '}' => break name,
                        letter if letter.is_ascii_alphanumeric() || letter == '_' => {
                            name.push(letter);
                        }
                        _ => return Err(BAD_CLASS),
                    }
                }
            }
            letter => letter.to_string(),
        };
        self.output.push_str(if is_negated { r"\P{" } else { r"\p{" });
        self.output.push_str(&name);
        self.output.push('}');
        Ok(())
    }

    /// One character behind a backslash.
    fn letter(&mut self) -> Result<char, &'static str> {
        const WRONG: &str = "invalid escape sequence";
        let letter = self.input.next().ok_or("trailing backslash at end of expression")?;
        Ok(match letter {
            'a' => '\x07',
            'f' => '\x0C',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0B',
            '0'..='7' => return self.octal(letter).ok_or(WRONG),
            'x' => return self.hexadecimal().ok_or(WRONG),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => other,
            _ => return Err(WRONG),
        })
    }

    /// Up to three octal digits. One alone, other than 0, refers to a group, which RE2 does not know.
    fn octal(&mut self, first: char) -> Option<char> {
        let is_octal = |letter: &char| letter.is_digit(8);
        if first != '0' && !self.input.peek().is_some_and(is_octal) {
            return None;
        }
        let mut code = first.to_digit(8)?;
        for _ in 0..2 {
            let Some(digit) = self.input.next_if(is_octal) else { break };
            code = code * 8 + digit.to_digit(8)?;
        }
        char::from_u32(code)
    }

    /// `\x0a` or `\x{10FFFF}`.
    fn hexadecimal(&mut self) -> Option<char> {
        if self.input.next_if_eq(&'{').is_none() {
            let digits = [self.input.next()?.to_digit(16)?, self.input.next()?.to_digit(16)?];
            return char::from_u32(digits[0] * 16 + digits[1]);
        }
        let mut code: Option<u32> = None;
        loop {
            match self.input.next()? {
                '}' => return code.and_then(char::from_u32),
                digit => {
                    let sum = code.unwrap_or(0).checked_mul(16)?;
                    code = Some(sum.checked_add(digit.to_digit(16)?)?);
                }
            }
        }
    }

    /// A class in brackets, behind the opening one.
    fn class(&mut self) -> Result<(), &'static str> {
        self.output.push('[');
        if self.input.next_if_eq(&'^').is_some() {
            self.output.push('^');
        }
        let mut is_first = true;
        loop {
            let next = *self.input.peek().ok_or("missing closing ]")?;
            if next == ']' && !is_first {
                self.input.next();
                self.output.push(']');
                return Ok(());
            }
            is_first = false;
            if !self.named_class()? && !self.class_escape()? {
                self.range()?;
            }
        }
    }

    /// `[:alpha:]` within a class.
    fn named_class(&mut self) -> Result<bool, &'static str> {
        let rest: String = self.input.clone().collect();
        let Some((name, _)) = rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) else {
            return Ok(false);
        };
        if !NAMED_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(BAD_CLASS);
        }
        for _ in 0..name.chars().count() + 4 {
            self.input.next();
        }
        self.output.push_str(&format!("[:{name}:]"));
        Ok(true)
    }

    fn class_escape(&mut self) -> Result<bool, &'static str> {
        let mut ahead = self.input.clone();
        if ahead.next() != Some('\\')
            || !matches!(ahead.next(), Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P'))
        {
            return Ok(false);
        }
        self.input.next();
        self.ready_class()
    }

    /// One character of a class, or the two ends of a range.
    fn range(&mut self) -> Result<(), &'static str> {
        let low = self.class_letter()?;
        self.push(low);
        let mut ahead = self.input.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), Some(']') | None) {
            return Ok(());
        }
        self.input.next();
        let high = self.class_letter()?;
        if high < low {
            return Err(BAD_CLASS);
        }
        self.output.push('-');
        self.push(high);
        Ok(())
    }

    fn class_letter(&mut self) -> Result<char, &'static str> {
        match self.input.next().ok_or("missing closing ]")? {
            '\\' => self.letter(),
            letter => Ok(letter),
        }
    }

    /// A character that stands for itself.
    fn push(&mut self, letter: char) {
        if letter.is_ascii()
            && !letter.is_ascii_alphanumeric()
            && !letter.is_ascii_control()
            && letter != ' '
        {
            if matches!(letter, '<' | '>') {
                self.output.push_str(if letter == '<' { r"\x3C" } else { r"\x3E" });
                return;
            }
            self.output.push('\\');
        }
        self.output.push(letter);
    }
}
