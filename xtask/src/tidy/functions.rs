//! How long are functions? Braces are counted in code alone, strings and comments are blank.

use super::{Finding, code::Source};

/// A function one can see at once, its signature included.
const LONGEST_FUNCTION: usize = 70;

/// Every function, tests included.
pub fn length(source: &Source) -> Vec<Finding> {
    let code = source.code.as_str();
    let mut findings = Vec::new();
    for (at, name) in functions(code) {
        let Some(body) = body(&code[at..]) else { continue };
        let lines = code[at..at + body].lines().count();
        if lines > LONGEST_FUNCTION {
            let line = code[..at].matches('\n').count() + 1;
            let text = format!("`{name}` has {lines} lines, expected at most {LONGEST_FUNCTION}");
            findings.push(Finding::new(&source.path, line, text));
        }
    }
    findings
}

/// Where each named function begins. `fn(u32)` is a type and has no name.
fn functions(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let part_of_word = |one: char| one.is_alphanumeric() || one == '_';
    code.match_indices("fn ").filter_map(move |(at, keyword)| {
        let rest = &code[at + keyword.len()..];
        let end = rest.find(|one| !part_of_word(one)).unwrap_or(rest.len());
        let is_keyword = !code[..at].ends_with(part_of_word);
        (is_keyword && end > 0).then(|| (at, &rest[..end]))
    })
}

/// The length up to the end of the body; `None` for a declaration without one.
fn body(code: &str) -> Option<usize> {
    let (mut depth, mut inside) = (0_usize, false);
    for (at, one) in code.char_indices() {
        match one {
            ';' if depth == 0 => return None,
            '{' if depth == 0 => {
                inside = true;
                depth = 1;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if inside && depth == 0 {
            return Some(at + one.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let findings = length(&Source::new("a.rs", text.to_owned()));
        findings.iter().map(ToString::to_string).collect()
    }

    fn function(lines: usize) -> String {
        format!("//! x\n\nfn f(x: [u8; 4]) -> bool {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_has_at_most_70_lines() {
        assert_eq!(found(&function(70)), Vec::<String>::new());
        assert_eq!(found(&function(71)), ["a.rs:3: `f` has 71 lines, expected at most 70"]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        let words = "    let a = \"}\"; // }\n".repeat(80);
        assert_eq!(found(&format!("fn f() {{\n{words}}}\n")).len(), 1);
    }

    #[test]
    fn declarations_and_function_types_have_no_length() {
        let text = format!("trait A {{ fn f(); }}\ntype B = fn (u8);\n{}", "\n".repeat(90));
        assert_eq!(found(&text), Vec::<String>::new());
    }
}
