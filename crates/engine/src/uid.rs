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

/// Every frame carries a few uids, so this is read often: one table, and one test at the end.
fn parse_uuid(text: &str) -> Option<u128> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let (mut high, mut low, mut seen) = (0u64, 0u64, 0u8);
    let digits = |part: &[u8], value: &mut u64, seen: &mut u8| {
        for byte in part {
            let digit = DIGITS[usize::from(*byte)];
            *seen |= digit;
            *value = *value << 4 | u64::from(digit);
        }
    };
    for part in [&bytes[..8], &bytes[9..13], &bytes[14..18]] {
        digits(part, &mut high, &mut seen);
    }
    for part in [&bytes[19..23], &bytes[24..]] {
        digits(part, &mut low, &mut seen);
    }
    (seen <= 0xf).then(|| u128::from(high) << 64 | u128::from(low))
}

/// The value of each hexadecimal digit; what is none has a value that no digit has.
const DIGITS: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

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
    fn other_texts_are_told_apart() {
        assert_ne!(Uid::parse("a"), Uid::parse("b"));
        assert_eq!(Uid::parse("a"), Uid::parse("a"));
    }
}
