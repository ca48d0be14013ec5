//! How is an error said in one line, with all its causes and nothing twice?

use std::error::Error;

/// Longest text kept of an error; a proxy may answer with a whole web page.
const LONGEST: usize = 1_000;

/// The error and its causes, joined by colons.
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    // The client's own layer only says that there is something below it.
    if let (Some(kube::Error::Service(_)), Some(cause)) = (error.downcast_ref(), error.source()) {
        return one_line(cause);
    }
    let mut text = flat(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = flat(&error.to_string());
        // Many libraries print their cause themselves.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// The text with all white space as single spaces, cut to a length fit for a log line.
pub fn flat(text: &str) -> String {
    let mut flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = flat.char_indices().nth(LONGEST) {
        flat.truncate(end);
        flat.push('…');
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot connect")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("tcp failed: {0}")]
    struct Middle(#[source] std::io::Error);

    #[test]
    fn causes_follow_once_and_on_one_line() {
        let error = Outer(Middle(std::io::Error::other("no\n  route")));
        assert_eq!(one_line(&error), "cannot connect: tcp failed: no route");
    }

    #[test]
    fn a_web_page_is_cut() {
        assert_eq!(flat(&"ä ".repeat(4_000)).chars().count(), LONGEST + 1);
    }
}
