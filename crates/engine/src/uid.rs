//! How is a Kubernetes uid kept in sixteen bytes?

use serde::{Deserialize, Serialize};

/// A uid. The API server hands out UUIDs; any other text is kept as a digest, which equals itself
/// and nothing else but prints as something the server never issued (a precondition then fails).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "String", into = "String")]
pub struct Uid(u128);

impl Uid {
    /// Parses the text of `metadata.uid`.
    pub fn parse(text: &str) -> Self {
        parse_uuid(text).map_or_else(|| Uid(digest(text)), Uid)
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Uid::parse(&text)
    }
}

impl From<Uid> for String {
    fn from(uid: Uid) -> Self {
        uid.to_string()
    }
}

impl std::fmt::Display for Uid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = *b"00000000-0000-0000-0000-000000000000";
        let mut rest = self.0;
        for place in text.iter_mut().rev().filter(|place| **place != b'-') {
            *place = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
        }
        f.write_str(str::from_utf8(&text).expect("digits are text"))
    }
}

/// Every frame carries a few uids, so this is read often: eight digits at a time.
fn parse_uuid(text: &str) -> Option<u128> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let four = |at: usize| {
        u64::from(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    let eight = |first: usize, second: usize| eight_digits(four(first) << 32 | four(second));
    let high = u64::from(eight(0, 4)?) << 32 | u64::from(eight(9, 14)?);
    let low = u64::from(eight(19, 24)?) << 32 | u64::from(eight(28, 32)?);
    Some(u128::from(high) << 64 | u128::from(low))
}

/// The number that eight lower-case hexadecimal digits say, the first one highest. All bytes are
/// reckoned with at once; no sum here is larger than its byte.
fn eight_digits(text: u64) -> Option<u32> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Letters have a bit that ciphers lack; theirs count from 1, which stands for ten.
    let letters = text >> 6 & EACH;
    let values = (text & (0xf * EACH)) + 9 * letters;
    let again = values + u64::from(b'0') * EACH + u64::from(b'a' - 10 - b'0') * letters;
    let tens = ((values + 6 * EACH) >> 4) & EACH;
    let is_wrong = again != text || tens != letters || values & (0x10 * EACH) != 0;
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (!is_wrong).then_some((fours | fours >> 16) as u32)
}

/// FNV-1a, 128 bits.
fn digest(text: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::Uid;

    #[test]
    fn a_uuid_prints_as_it_was_read() {
        let text = "3f2a1c5e-0001-4abc-8def-00112233445a";
        assert_eq!(Uid::parse(text).to_string(), text);
    }

    #[test]
    fn a_text_that_is_no_uuid_prints_as_another() {
        let cases = [
            ("an upper-case digit", "3F2a1c5e-0001-4abc-8def-00112233445a"),
            ("a letter that is no digit", "3f2a1c5e-0001-4abc-8def-0011223344zz"),
            ("a digit for a dash", "3f2a1c5e000014abc-8def-00112233445a0"),
            ("a sign after the digits", "3f2a1c5e-0001-4abc-8def-0011223344:5"),
            ("a sign before the letters", "3f2a1c5e-0001-4abc-8def-0011223344`5"),
            ("a letter beyond them", "3f2a1c5e-0001-4abc-8def-0011223344o5"),
            ("one too short", "3f2a1c5e-0001-4abc-8def-00112233445"),
        ];
        for (what, text) in cases {
            assert_ne!(Uid::parse(text).to_string(), text, "{what}");
            assert_eq!(Uid::parse(text), Uid::parse(text), "{what}");
        }
    }

    #[test]
    fn each_byte_is_a_digit_or_none() {
        let places = (0..36).filter(|place| ![8, 13, 18, 23].contains(place));
        let texts = places.flat_map(|place| {
            (0..=127u8).map(move |byte| {
                let mut text = *b"3f2a1c5e-0001-4abc-8def-00112233445a";
                text[place] = byte;
                (byte, String::from_utf8(text.to_vec()).unwrap())
            })
        });
        for (byte, text) in texts {
            let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            assert_eq!(Uid::parse(&text).to_string() == text, is_digit, "{text}");
        }
    }

    #[test]
    fn other_texts_are_told_apart() {
        assert_ne!(Uid::parse("a"), Uid::parse("b"));
        assert_eq!(Uid::parse("a"), Uid::parse("a"));
    }
}
