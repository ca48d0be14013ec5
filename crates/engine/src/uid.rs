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
        let hex = format!("{:032x}", self.0);
        let (a, rest) = hex.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

fn parse_uuid(text: &str) -> Option<u128> {
    if text.len() != 36 {
        return None;
    }
    let mut value = 0u128;
    for (at, byte) in text.bytes().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u128::from(digit);
    }
    Some(value)
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
    fn other_texts_are_told_apart() {
        assert_ne!(Uid::parse("a"), Uid::parse("b"));
        assert_eq!(Uid::parse("a"), Uid::parse("a"));
    }
}
