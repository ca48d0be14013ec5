//! How are labels and annotations kept in eight bytes each?

use serde_json::Value;

use crate::frame::Texts;

/// What a pair of key and value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
}

/// Stands for every value of a label: no label has this one.
pub(super) const ANY: &str = "\n";

/// Whose pair it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// The object's own.
    Object,
    /// Of the pods a ReplicaSet makes.
    Template,
}

/// One u64 for a key and its value: equal pairs give equal digests.
pub(super) fn digest(bearer: Bearer, pair: Pair, key: &str, value: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let kind = match (bearer, pair) {
        (Bearer::Object, Pair::Label) => b'l',
        (Bearer::Object, Pair::Annotation) => b'a',
        (Bearer::Template, Pair::Label) => b'L',
        (Bearer::Template, Pair::Annotation) => b'A',
    };
    // 0xff is in no UTF-8 text, so ("a", "bc") and ("ab", "c") differ.
    std::iter::once(kind)
        .chain(key.bytes())
        .chain([0xff])
        .chain(value.bytes())
        .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The digests of all labels and annotations of an object, sorted.
pub(super) fn digests(labels: &Texts, annotations: &Texts) -> Box<[u64]> {
    let own = Bearer::Object;
    let keys = labels.keys().map(|key| digest(own, Pair::Label, key, ANY));
    let labels = labels.iter().map(|(key, value)| digest(own, Pair::Label, key, value));
    let annotations =
        annotations.iter().map(|(key, value)| digest(own, Pair::Annotation, key, value));
    sorted(labels.chain(keys).chain(annotations).collect())
}

/// The digests of all labels and annotations of a pod template, sorted.
pub(super) fn template_digests(metadata: &Value) -> Box<[u64]> {
    let of = |pair: Pair, field: &str| {
        let pairs = metadata[field].as_object().into_iter().flatten();
        let texts = pairs.filter_map(|(key, value)| Some((key, value.as_str()?)));
        let all = texts.map(move |(key, value)| digest(Bearer::Template, pair, key, value));
        all.collect::<Vec<u64>>()
    };
    sorted([of(Pair::Label, "labels"), of(Pair::Annotation, "annotations")].concat())
}

fn sorted(mut digests: Vec<u64>) -> Box<[u64]> {
    digests.sort_unstable();
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
    struct Kept(#[serde(with = "hexadecimal")] u128);

    #[test]
    fn a_digest_survives_json() {
        for digest in [0, 7, u128::MAX] {
            let json = serde_json::to_value(Kept(digest)).unwrap();
            assert_eq!(serde_json::from_value::<Kept>(json).unwrap(), Kept(digest));
        }
    }

    #[test]
    fn pairs_are_found_and_not_confused() {
        let texts = Texts::from([("a".to_owned(), "bc".to_owned())]);
        let all = digests(&texts, &Texts::new());
        let has = |bearer, pair, key, value| all.contains(&digest(bearer, pair, key, value));
        assert!(has(Bearer::Object, Pair::Label, "a", "bc"));
        assert!(!has(Bearer::Template, Pair::Label, "a", "bc"));
        assert!(!has(Bearer::Object, Pair::Annotation, "a", "bc"));
        assert!(!has(Bearer::Object, Pair::Label, "ab", "c"));
        assert!(has(Bearer::Object, Pair::Label, "a", ANY));
        assert!(!has(Bearer::Object, Pair::Label, "ab", ANY));
    }
}
