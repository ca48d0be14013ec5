//! Where do encoded bytes go? Into a running hash, or into a buffer.

use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Takes bytes as they are made, so that nothing is kept that is only hashed.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// FNV-1a with 32 bits: the hash in the names of ReplicaSets.
pub(super) struct Fnv32(pub(super) u32);

impl Default for Fnv32 {
    fn default() -> Self {
        Fnv32(0x811c_9dc5)
    }
}

impl Sink for Fnv32 {
    fn put(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

/// 128 bits that nobody else has to compute: wide enough that equal digests mean equal bytes.
#[derive(Default)]
pub(super) struct Wide(SipHasher13);

impl Wide {
    /// The digest of everything that was put in.
    pub(super) fn finish(self) -> u128 {
        self.0.finish128().as_u128()
    }
}

impl Sink for Wide {
    fn put(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_fnv_1a() {
        let hash = |text: &str| {
            let mut hash = Fnv32::default();
            hash.put(text.as_bytes());
            hash.0
        };
        assert_eq!(hash(""), 0x811c_9dc5);
        assert_eq!(hash("a"), 0xe40c_292c);
        assert_eq!(hash("foobar"), 0xbf9c_f968);
    }

    fn wide(parts: &[&[u8]]) -> u128 {
        let mut digest = Wide::default();
        for part in parts {
            digest.put(part);
        }
        digest.finish()
    }

    #[test]
    fn a_wide_digest_is_of_the_bytes_however_they_are_put_in() {
        let text = b"sixteen bytes in, and then some that fill no word";
        let whole = wide(&[text]);
        for first in 0..text.len() {
            for second in first..text.len() {
                let parts = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(wide(&parts), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn other_bytes_have_another_wide_digest() {
        let text = b"abcdefghijklmnopqrstuvwxyz".to_vec();
        let mut all = vec![wide(&[&text]), wide(&[]), wide(&[&[0]]), wide(&[&[0; 8]])];
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut other = text.clone();
                other[at] ^= 1 << bit;
                all.push(wide(&[&other]));
                other[(at + 8) % text.len()] ^= 1 << bit;
                all.push(wide(&[&other]));
            }
            all.push(wide(&[&text[..at]]));
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        // The empty text is there twice; of a pair of places eight apart each is reached once.
        assert_eq!(all.len(), count - 1);
    }
}
