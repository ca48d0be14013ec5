//! Base64 as `toBase64` and `fromBase64` have it: the standard letters, with padding.

use crate::value::{List, Value};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The letters that stand for these bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut word = 0_u32;
        for at in 0..3 {
            word = word << 8 | u32::from(three.get(at).copied().unwrap_or(0));
        }
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The letters that stand for a list of bytes.
pub(crate) fn of_list(list: &List) -> String {
    let bytes = list.items().iter().map(|item| match item {
        Value::Int(_, byte) => u8::try_from(*byte).unwrap_or(0),
        _ => 0,
    });
    encode(&bytes.collect::<Vec<u8>>())
}

/// The bytes that these letters stand for, or the place of the first that does not fit.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let letters: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let data = letters.iter().position(|(_, byte)| *byte == b'=').unwrap_or(letters.len());
    let padding = letters.len() - data;
    let is_padded = letters.len().is_multiple_of(4)
        && padding <= 2
        && letters[data..].iter().all(|(_, byte)| *byte == b'=');
    if !is_padded {
        return Err(letters.get(data).map_or(text.len(), |(at, _)| *at));
    }
    let mut bytes = Vec::with_capacity(data);
    let (mut word, mut bits) = (0_u32, 0);
    for (at, letter) in &letters[..data] {
        let value = LETTERS.iter().position(|known| known == letter).ok_or(*at)?;
        word = word << 6 | u32::try_from(value).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits & 255) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bytes_stand_for_each_other() {
        for (bytes, letters) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
            assert_eq!(encode(bytes.as_bytes()), letters);
            assert_eq!(decode(letters), Ok(bytes.as_bytes().to_vec()));
        }
        for wrong in ["Y", "YQ", "YQ=", "Y?==", "====", "YQ==YQ=="] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
