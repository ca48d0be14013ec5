//! How are labels and annotations kept in eight bytes each?

use serde_json::Value;
use siphasher::sip::SipHasher13;

use crate::frame::TextMap;

/// What a pair of key and value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
}

/// Whose pair it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// The object's own.
    Object,
    /// Of the pods a ReplicaSet makes.
    Template,
}

/// One u64 for a key and its value: equal pairs give equal digests. The upper half is the key's, so
/// that a key is found whatever its value; the lowest bit says whose it is.
pub(super) fn digest(bearer: Bearer, pair: Pair, key: &str, value: &str) -> u64 {
    let of_key = of_key(pair, key);
    let low = mixed(of_key, value) & 0xffff_fffe;
    of_key & UPPER | low | u64::from(bearer == Bearer::Template)
}

/// Is a digest of this bearer?
pub(super) fn is_of(bearer: Bearer, digest: u64) -> bool {
    (digest & 1 == 1) == (bearer == Bearer::Template)
}

/// Is a digest one of this key? The key is digested once for all that are asked about.
pub(super) fn is_key(pair: Pair, key: &str) -> impl Fn(u64) -> bool + use<> {
    let upper = of_key(pair, key) & UPPER;
    move |digest| digest & UPPER == upper
}

const UPPER: u64 = !0xffff_ffff;

fn of_key(pair: Pair, key: &str) -> u64 {
    let seed = match pair {
        Pair::Label => 1,
        Pair::Annotation => 2,
    };
    mixed(seed, key)
}

/// A text mixed into what came before it: every bit depends on every byte.
fn mixed(seed: u64, text: &str) -> u64 {
    SipHasher13::new_with_keys(seed, 0).hash(text.as_bytes())
}

/// The digests of an object's own labels and annotations.
pub(super) fn digests(labels: &TextMap, annotations: &TextMap) -> impl Iterator<Item = u64> {
    let of = |pair: Pair| {
        move |(key, value): (&String, &String)| digest(Bearer::Object, pair, key, value)
    };
    labels.iter().map(of(Pair::Label)).chain(annotations.iter().map(of(Pair::Annotation)))
}

/// The digests of the labels and annotations of a pod template.
pub(super) fn template_digests(metadata: &Value) -> impl Iterator<Item = u64> {
    let of = |pair: Pair, field: &str| {
        let pairs = metadata[field].as_object().into_iter().flatten();
        let texts = pairs.filter_map(|(key, value)| Some((key, value.as_str()?)));
        texts.map(move |(key, value)| digest(Bearer::Template, pair, key, value))
    };
    of(Pair::Label, "labels").chain(of(Pair::Annotation, "annotations"))
}

/// Sorted, each once.
pub(super) fn sorted(mut digests: Vec<u64>) -> Box<[u64]> {
    digests.sort_unstable();
    digests.dedup();
    digests.into_boxed_slice()
}

/// A digest as JSON: text, because JSON has no numbers of 128 bits.
pub(super) mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(digest: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{digest:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Stored(#[serde(with = "hexadecimal")] u128);

    #[test]
    fn a_digest_survives_json() {
        for digest in [0, 7, u128::MAX] {
            let json = serde_json::to_value(Stored(digest)).unwrap();
            assert_eq!(serde_json::from_value::<Stored>(json).unwrap(), Stored(digest));
        }
    }

    #[test]
    fn pairs_are_found_and_not_confused() {
        let texts = TextMap::from([("a".to_owned(), "bc".to_owned())]);
        let all: Vec<u64> = digests(&texts, &TextMap::new()).collect();
        let has = |bearer, pair, key, value| all.contains(&digest(bearer, pair, key, value));
        assert!(has(Bearer::Object, Pair::Label, "a", "bc"));
        assert!(!has(Bearer::Template, Pair::Label, "a", "bc"));
        assert!(!has(Bearer::Object, Pair::Annotation, "a", "bc"));
        assert!(!has(Bearer::Object, Pair::Label, "ab", "c"));
        assert!(!has(Bearer::Object, Pair::Label, "a", "b"));
        let has_key = |pair, key| all.iter().copied().any(is_key(pair, key));
        assert!(has_key(Pair::Label, "a"));
        assert!(!has_key(Pair::Label, "ab"));
        assert!(!has_key(Pair::Annotation, "a"));
        assert!(all.iter().all(|digest| is_of(Bearer::Object, *digest)));
    }
}
