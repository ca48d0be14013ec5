//! How are labels and annotations kept in eight bytes each?

/// One u64 for a key and its value: equal pairs give equal digests.
pub fn pair_digest(key: &str, value: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    // 0xff is in no UTF-8 text, so ("a", "bc") and ("ab", "c") differ.
    key.bytes()
        .chain([0xff])
        .chain(value.bytes())
        .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The digests of a map, sorted, for `has_pair`.
pub fn pair_digests<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Box<[u64]> {
    let mut digests: Vec<u64> = pairs.map(|(key, value)| pair_digest(key, value)).collect();
    digests.sort_unstable();
    digests.into_boxed_slice()
}

/// Is the pair among the digests?
pub fn has_pair(digests: &[u64], key: &str, value: &str) -> bool {
    digests.binary_search(&pair_digest(key, value)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_and_not_confused() {
        let texts = std::collections::BTreeMap::from([
            ("a".to_owned(), "bc".to_owned()),
            ("x".to_owned(), String::new()),
        ]);
        let digests = pair_digests(texts.iter());
        assert!(has_pair(&digests, "a", "bc"));
        assert!(has_pair(&digests, "x", ""));
        assert!(!has_pair(&digests, "ab", "c"));
    }
}
