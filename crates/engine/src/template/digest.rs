//! Where do encoded bytes go? Into a running FNV-1a hash, or into a buffer.

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

/// FNV-1a with 128 bits: wide enough that equal digests mean equal input.
pub(super) struct Fnv128(pub(super) u128);

impl Default for Fnv128 {
    fn default() -> Self {
        Fnv128(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Sink for Fnv128 {
    fn put(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
}

#[test]
fn the_hashes_are_the_published_fnv_1a() {
    let narrow = |text: &str| {
        let mut hash = Fnv32::default();
        hash.put(text.as_bytes());
        hash.0
    };
    assert_eq!(narrow(""), 0x811c_9dc5);
    assert_eq!(narrow("a"), 0xe40c_292c);
    assert_eq!(narrow("foobar"), 0xbf9c_f968);
    let mut wide = Fnv128::default();
    wide.put(b"a");
    assert_eq!(wide.0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
}
