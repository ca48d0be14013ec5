//! Which parts of a Rust file are code, and which are words in it?

/// A Rust file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Relative to the repository, with `/`.
    pub path: String,
    pub text: String,
    /// The text with comments and the content of strings blanked out, line by line the same.
    pub code: String,
    /// The content of each string literal, with the line it begins in.
    pub strings: Vec<(usize, String)>,
}

impl Source {
    pub fn new(path: &str, text: String) -> Self {
        let mut reader = Reader { rest: &text, line: 1, code: String::new(), strings: Vec::new() };
        while !reader.rest.is_empty() {
            reader.step();
        }
        let Reader { code, strings, .. } = reader;
        Self { path: path.to_owned(), code, strings, text }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    strings: Vec<(usize, String)>,
}

impl Reader<'_> {
    /// Takes one comment, string or character of code.
    fn step(&mut self) {
        let word = self.code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if let Some((head, hashes)) = raw_string(self.rest).filter(|_| !word) {
            let end = format!("\"{}", "#".repeat(hashes));
            self.string(head, self.rest[head..].find(&end).map(|at| head + at), end.len());
        } else if self.rest.starts_with('"') {
            self.string(1, closing_quote(self.rest), 1);
        } else if let Some(length) = character(self.rest) {
            self.blank(length);
        } else {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let Some(first) = self.rest.chars().next() else { return };
        self.line += usize::from(first == '\n');
        self.code.push(first);
        self.rest = &self.rest[first.len_utf8()..];
    }

    fn blank(&mut self, length: usize) {
        let (words, rest) = self.rest.split_at(length);
        self.line += words.matches('\n').count();
        self.code.extend(words.chars().map(|one| if one == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }

    /// A string whose content runs from `start` to `end`, with a closing mark of this length.
    fn string(&mut self, start: usize, end: Option<usize>, mark: usize) {
        let stop = end.unwrap_or(self.rest.len());
        self.strings.push((self.line, self.rest[start..stop].to_owned()));
        self.blank((stop + mark).min(self.rest.len()));
    }
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']).map(|found| at + found) {
        at = next + 2;
        match text.get(next..at) {
            Some("/*") => depth += 1,
            Some("*/") if depth == 1 => return at,
            Some("*/") => depth -= 1,
            _ => at = next + 1,
        }
    }
    text.len()
}

/// For `r"`, `r#"`, `br##"`: the length of that opening, and the number of hashes.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let bare = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = bare.len() - bare.trim_start_matches('#').len();
    let content = bare[hashes..].strip_prefix('"')?;
    Some((text.len() - content.len(), hashes))
}

/// Where the string that begins here ends.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, one) in text.char_indices().skip(1) {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The length of a character literal; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    if let Some(escape) = rest.strip_prefix('\\') {
        let skipped = escape.chars().next().map_or(0, char::len_utf8);
        return escape[skipped..].find('\'').map(|at| 2 + skipped + at + 1);
    }
    let first = rest.chars().next()?;
    rest[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_words() {
        let cases = [
            ("a line comment", "a // todo!()\nb", "a           \nb"),
            ("nested comments", "a /* x /* y */ z */ b", "a                   b"),
            ("a string", r#"f("{")"#, "f(   )"),
            ("an escaped quote", r#"f("\"{")"#, "f(     )"),
            ("a raw string", r###"f(r#"{"}"#)"###, "f(        )"),
            ("a character", "'{' '\\'' 'x", "         'x"),
            ("a lifetime", "fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("an identifier that ends in r", "for\"x\"", "for   "),
        ];
        for (what, text, expected) in cases {
            assert_eq!(Source::new("x.rs", text.to_owned()).code, expected, "{what}");
        }
    }

    #[test]
    fn strings_are_found_with_their_lines() {
        let text = "let a = \"one\";\n// \"no\"\nlet b = r\"two\";\n";
        let strings = Source::new("x.rs", text.to_owned()).strings;
        assert_eq!(strings, [(1, "one".to_owned()), (3, "two".to_owned())]);
    }
}
