//! Numbers and lengths as gob writes them.

use super::GobError;

/// Up to 127 in one byte; else the count of bytes, negated, and the bytes, the highest first.
pub(super) fn put_uint(out: &mut Vec<u8>, number: u64) {
    if number <= 0x7f {
        out.push(number as u8);
        return;
    }
    let bytes = number.to_be_bytes();
    let skipped = (number.leading_zeros() / 8) as usize;
    let count = (bytes.len() - skipped) as u8;
    out.push(count.wrapping_neg());
    out.extend_from_slice(&bytes[skipped..]);
}

/// The sign is the lowest bit.
pub(super) fn put_int(out: &mut Vec<u8>, number: i64) {
    let bits = if number < 0 { (!number as u64) << 1 | 1 } else { (number as u64) << 1 };
    put_uint(out, bits);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Cursor { rest }
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], GobError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(GobError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn uint(&mut self) -> Result<u64, GobError> {
        let first = self.take(1)?[0];
        if first <= 0x7f {
            return Ok(u64::from(first));
        }
        let count = usize::from(first.wrapping_neg());
        if count > 8 {
            return Err(GobError::Number);
        }
        Ok(self.take(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub fn int(&mut self) -> Result<i64, GobError> {
        let bits = self.uint()?;
        let half = (bits >> 1) as i64;
        Ok(if bits & 1 == 1 { !half } else { half })
    }

    /// A count of things that take at least one byte each.
    pub fn count(&mut self) -> Result<usize, GobError> {
        let count = usize::try_from(self.uint()?).map_err(|_| GobError::Number)?;
        if count > self.rest.len() { Err(GobError::Short) } else { Ok(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_as_go_does() {
        let cases: [(i64, &[u8]); 8] = [
            (0, &[0]),
            (1, &[2]),
            (-1, &[1]),
            (63, &[0x7e]),
            (64, &[0xff, 0x80]),
            (-64, &[0x7f]),
            (370, &[0xfe, 0x02, 0xe4]),
            (i64::MIN, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ];
        for (number, bytes) in cases {
            let mut out = Vec::new();
            put_int(&mut out, number);
            assert_eq!(out, bytes, "{number}");
            assert_eq!(Cursor::new(bytes).int(), Ok(number));
        }
        assert_eq!(Cursor::new(&[0xf0, 1]).uint(), Err(GobError::Number), "16 bytes");
        assert_eq!(Cursor::new(&[0xfe, 1]).uint(), Err(GobError::Short));
    }
}
