//! How are bytes cut into words of eight, for digests that take them eight at a time?

/// Bytes as words and a rest.
pub(crate) struct Words<'b> {
    /// Eight bytes each, in order.
    pub whole: &'b [[u8; 8]],
    /// What is left over, the first byte lowest, and zeros.
    pub rest: u64,
    /// How many bytes are left over: fewer than eight.
    pub rest_len: usize,
}

/// Cuts bytes into words.
#[inline]
pub(crate) fn words(bytes: &[u8]) -> Words<'_> {
    let (whole, rest) = bytes.as_chunks();
    Words { whole, rest: rest_word(bytes, rest), rest_len: rest.len() }
}

/// The rest as a word. Read in as few pieces as it takes, even if they overlap.
#[inline]
fn rest_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 0;
    }
    if let Some(last) = bytes.last_chunk() {
        return u64::from_le_bytes(*last) >> (64 - 8 * rest.len());
    }
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (rest.len() - 4));
    }
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[test]
fn no_byte_is_lost_or_moved() {
    let bytes: Vec<u8> = (1..=40).collect();
    for length in 0..bytes.len() {
        let bytes = &bytes[..length];
        let Words { whole, rest, rest_len } = words(bytes);
        let rest = rest.to_le_bytes();
        assert_eq!([whole.as_flattened(), &rest[..rest_len]].concat(), bytes);
        assert!(rest[rest_len..].iter().all(|byte| *byte == 0));
    }
}
