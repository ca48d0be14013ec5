//! May we use what is under this licence? Expressions as SPDX writes them.

/// Licences that ask for no more than a notice, or whose copyleft ends at the file.
pub const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "OpenSSL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// True if the expression leaves us a choice we may take.
pub fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest).is_some_and(|allowed| allowed && rest.is_empty())
}

/// `None` where the expression is malformed; every part is read, or the rest would make no sense.
fn either(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = both(words)?;
    while take(words, "OR") {
        allowed |= both(words)?;
    }
    Some(allowed)
}

fn both(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(words)?;
    while take(words, "AND") {
        allowed &= one(words)?;
    }
    Some(allowed)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    if take(words, "(") {
        let allowed = either(words)?;
        return take(words, ")").then_some(allowed);
    }
    let (name, rest) = words.split_first()?;
    *words = rest;
    if take(words, "WITH") {
        // An exception only ever permits more.
        *words = words.split_first()?.1;
    }
    Some(ALLOWED.contains(name))
}

fn take(words: &mut &[&str], expected: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == expected => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let cases = [
        ("one", "MIT", true),
        ("another one", "GPL-3.0", false),
        ("a choice", "GPL-3.0 OR MIT", true),
        ("both needed", "MIT AND GPL-3.0", false),
        ("AND binds closer", "MIT OR GPL-3.0 AND GPL-2.0", true),
        ("brackets", "(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("the old way to say OR", "MIT/Apache-2.0", true),
        ("an exception", "Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("aws-lc", "ISC AND (Apache-2.0 OR ISC) AND OpenSSL", true),
        ("malformed", "(MIT", false),
        ("nothing", "", false),
    ];
    for (what, expression, expected) in cases {
        assert_eq!(is_allowed(expression), expected, "{what}: {expression}");
    }
}
