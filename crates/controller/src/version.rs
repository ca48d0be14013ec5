//! resourceVersions that are no numbers. Kubernetes' own are; a server of another make may send any text.
//!
//! Everywhere else a version is a number. A text gets one here, in order of arrival, and is sent as the
//! text again. So it can be compared, waited for and written with a precondition as any other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers from here on stand for texts; no counter of a store comes so far.
const FIRST: u64 = 1 << 63;

/// So many texts are remembered. A write with the version of an older one is refused as outdated, and
/// the object is read anew.
const LIMIT: usize = 65_536;

static TEXTS: Mutex<Texts> = Mutex::new(Texts::new());

/// The number of a version, new ones after all before; 0 where there is none.
pub fn number(text: &str) -> u64 {
    if text.is_empty() {
        return 0;
    }
    match text.parse() {
        Ok(number) if number < FIRST => number,
        _ => TEXTS.lock().unwrap_or_else(PoisonError::into_inner).number(text),
    }
}

/// A version as the server writes it.
pub fn text(number: u64) -> String {
    if number < FIRST {
        return number.to_string();
    }
    let texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.by_number.get(&number).map_or_else(|| number.to_string(), |text| text.to_string())
}

/// Is a version that arrives now newer than one that arrived before? Where both are numbers of the
/// server, or both are texts, they are compared. Otherwise what comes later is newer.
pub fn is_newer(arriving: u64, known: u64) -> bool {
    let is_comparable = (arriving < FIRST) == (known < FIRST);
    !is_comparable || known < arriving
}

/// The texts that were seen, and their numbers.
struct Texts {
    by_text: BTreeMap<Arc<str>, u64>,
    by_number: BTreeMap<u64, Arc<str>>,
    next: u64,
}

impl Texts {
    const fn new() -> Self {
        Texts { by_text: BTreeMap::new(), by_number: BTreeMap::new(), next: FIRST }
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let (number, text) = (self.next, Arc::<str>::from(text));
        self.next += 1;
        self.by_text.insert(Arc::clone(&text), number);
        self.by_number.insert(number, text);
        if self.by_number.len() > LIMIT
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_text.remove(&oldest);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_texts_count_up_as_they_arrive() {
        for (version, expected) in [("", 0), ("0", 0), ("7", 7), ("9223372036854775807", FIRST - 1)]
        {
            assert_eq!(number(version), expected, "{version:?}");
        }
        let arrived = ["x9", "x1", "9223372036854775808", "-3", "1.5"].map(number);
        assert!(arrived.is_sorted() && arrived[0] >= FIRST, "{arrived:?}");
        assert_eq!(number("x1"), arrived[1], "the same text is the same version");
        assert_eq!(text(arrived[0]), "x9");
        assert_eq!(text(7), "7");
    }

    #[test]
    fn what_cannot_be_compared_is_newer_when_it_comes_later() {
        let (one, two) = (number("opaque-1"), number("opaque-2"));
        let cases = [
            ("numbers", 8, 7, true),
            ("the same number", 7, 7, false),
            ("an older number", 6, 7, false),
            ("texts", two, one, true),
            ("the same text", one, one, false),
            ("a text after a number", one, 7, true),
            ("a number after a text", 7, two, true),
        ];
        for (what, arriving, known, expected) in cases {
            assert_eq!(is_newer(arriving, known), expected, "{what}");
        }
    }

    #[test]
    fn only_so_many_texts_are_remembered() {
        let mut texts = Texts::new();
        let first = texts.number("first");
        for number in 0..LIMIT {
            texts.number(&number.to_string());
        }
        assert_eq!((texts.by_text.len(), texts.by_number.len()), (LIMIT, LIMIT));
        assert_ne!(texts.number("first"), first, "it is new again, and newer than all");
    }
}
