//! How is a template read?

use serde_json::Value;
use thiserror::Error;

use super::{Comparison, Piece, Segment};

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A brace, bracket or quote is never closed.
    #[error("jsonpath {0:?}: expected {1} after it")]
    Unclosed(String, char),
    /// Neither a field, an index, a wildcard nor a filter.
    #[error("jsonpath: {0:?} is neither a field, an index, * nor a filter")]
    Segment(String),
    /// A filter of another form.
    #[error("jsonpath: filter {0:?}: expected ?(@.field==\"value\")")]
    Filter(String),
    /// A `range` without its `end`, or the other way round.
    #[error("jsonpath: every {{range …}} needs one {{end}}")]
    Range,
}

/// The comparisons, longer signs first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

pub(super) fn template(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let bare = format!("{{{text}}}");
    let text = if text.contains('{') { text } else { &bare };
    let mut rest = text;
    // The pieces of every range that is open, the outermost first.
    let mut open: Vec<(Vec<Segment>, Vec<Piece>)> = Vec::new();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (before, after) = rest.split_once('{').unwrap_or((rest, ""));
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        if rest.len() == before.len() {
            break;
        }
        let end = closing(after, '}')?;
        let (inside, next) = (after[..end].trim(), &after[end + 1..]);
        rest = next;
        if let Some(path) = inside.strip_prefix("range ") {
            open.push((self::path(path.trim())?, std::mem::take(&mut pieces)));
        } else if inside == "end" {
            let (path, outer) = open.pop().ok_or(TemplateError::Range)?;
            let body = std::mem::replace(&mut pieces, outer);
            pieces.push(Piece::Range(path, body));
        } else if inside.starts_with(['"', '\'']) {
            pieces.push(Piece::Text(quoted(inside)?));
        } else {
            pieces.push(Piece::Path(path(inside)?));
        }
    }
    if open.is_empty() { Ok(pieces) } else { Err(TemplateError::Range) }
}

/// Where the sign stands that closes what was opened before the text; not in quotes.
fn closing(text: &str, sign: char) -> Result<usize, TemplateError> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == sign => return Ok(at),
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None => {}
        }
    }
    Err(TemplateError::Unclosed(text.to_owned(), sign))
}

fn quoted(text: &str) -> Result<String, TemplateError> {
    let quote = text.chars().next().unwrap_or('"');
    let inside = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let inside = inside.ok_or_else(|| TemplateError::Unclosed(text.to_owned(), quote))?;
    Ok(inside.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""))
}

fn path(text: &str) -> Result<Vec<Segment>, TemplateError> {
    let mut rest = text.trim_start_matches(['$', '@']);
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after, ']')?;
            segments.push(bracket(&after[..end])?);
            rest = &after[end + 1..];
            continue;
        }
        let (is_deep, after) = match rest.strip_prefix("..") {
            Some(after) => (true, after),
            None => (false, rest.strip_prefix('.').unwrap_or(rest)),
        };
        let (name, after) = field(after);
        rest = after;
        match name.as_str() {
            // A lone dot is the object itself.
            "" if rest.is_empty() || rest.starts_with('[') => {}
            "" => return Err(TemplateError::Segment(rest.to_owned())),
            "*" => segments.push(Segment::All),
            _ if is_deep => segments.push(Segment::Deep(name)),
            _ => segments.push(Segment::Field(name)),
        }
    }
    Ok(segments)
}

/// A field's name, in which a backslash takes the meaning from a dot, and what follows it.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn bracket(text: &str) -> Result<Segment, TemplateError> {
    let text = text.trim();
    if let Some(condition) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return filter(condition);
    }
    let parts = parts(text);
    if parts.len() > 1 {
        return parts.into_iter().map(bracket).collect::<Result<_, _>>().map(Segment::Union);
    }
    if text.starts_with(['"', '\'']) {
        return quoted(text).map(Segment::Field);
    }
    if text == "*" {
        return Ok(Segment::All);
    }
    if text.contains(':') {
        return slice(text).ok_or_else(|| TemplateError::Segment(text.to_owned()));
    }
    text.parse().map(Segment::Index).map_err(|_| TemplateError::Segment(text.to_owned()))
}

/// What commas separate; those in quotes do not.
fn parts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Ok(end) = closing(rest, ',') {
        found.push(rest[..end].trim());
        rest = &rest[end + 1..];
    }
    found.push(rest.trim());
    found
}

/// `from:to` or `from:to:every`, each of which may be left out.
fn slice(text: &str) -> Option<Segment> {
    let mut numbers = text.split(':').map(str::trim);
    let number = |part: Option<&str>| match part {
        None | Some("") => Some(None),
        Some(text) => text.parse::<i64>().ok().map(Some),
    };
    let (from, to) = (number(numbers.next())?, number(numbers.next())?);
    let every = usize::try_from(number(numbers.next())?.unwrap_or(1)).ok()?;
    (every > 0 && numbers.next().is_none()).then_some(Segment::Slice(from, to, every))
}

fn filter(text: &str) -> Result<Segment, TemplateError> {
    let refused = || TemplateError::Filter(text.to_owned());
    let found = COMPARISONS.iter().find_map(|(sign, comparison)| {
        let (left, right) = text.split_once(sign)?;
        Some((left.trim(), *comparison, right.trim()))
    });
    let Some((left, comparison, right)) = found else {
        let is_path = text.starts_with("@.") && !text.contains([' ', '!', '&', '|']);
        return if is_path { path(text).map(Segment::Having) } else { Err(refused()) };
    };
    let wanted = if right.starts_with(['"', '\'']) {
        Value::String(quoted(right)?)
    } else {
        serde_json::from_str(right).map_err(|_| refused())?
    };
    Ok(Segment::Filter(path(left)?, comparison, wanted))
}
