//! Variable-length integers of SSTables and durations: the number of leading one bits in the first byte is the number
//! of bytes that follow it; the remaining bits are the value, big endian.
//!
//! Signed values are mapped to unsigned ones by zigzag. Layout: Cassandra's `VIntCoding`; a value of more than 56 bits
//! takes nine bytes, the first of them 0xFF.

/// Maximum bytes of one value.
pub const VINT_LENGTH_MAX: usize = 9;

/// Appends `value` to `out`, in one to nine bytes.
#[inline]
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        write_unsigned_long(value, out);
    }
}

fn write_unsigned_long(value: u64, out: &mut Vec<u8>) {
    let length = unsigned_length(value);
    if length == VINT_LENGTH_MAX {
        out.push(0xFF);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    // length - 1 leading ones, then the value in the 7 * length bits that are left.
    let header = !(0xFF_u8 >> (length - 1));
    let mut bytes = value.to_be_bytes();
    bytes[8 - length] |= header;
    out.extend_from_slice(&bytes[8 - length..]);
}

/// Appends `value` in zigzag form.
#[inline]
pub fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_unsigned(zigzag(value), out);
}

/// Reads a value from the front of `bytes`. Returns it with the number of bytes read; `None` if `bytes` is too short.
#[inline]
pub fn read_unsigned(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    read_unsigned_long(first, bytes)
}

fn read_unsigned_long(first: u8, bytes: &[u8]) -> Option<(u64, usize)> {
    let extra = first.leading_ones() as usize;
    let rest = bytes.get(1..1 + extra)?;
    // With eight extra bytes the first byte holds no bits of the value.
    let mut value = u64::from(first) & (0xFF_u64 >> extra);
    for byte in rest {
        value = value << 8 | u64::from(*byte);
    }
    Some((value, 1 + extra))
}

/// Reads a zigzag value from the front of `bytes`. Returns it with the number of bytes read; `None` if `bytes` is too
/// short.
#[inline]
pub fn read_signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let (value, length) = read_unsigned(bytes)?;
    Some((unzigzag(value), length))
}

/// Number of bytes of [`write_unsigned`] for `value`: one for each seven bits begun, nine at most.
#[inline]
pub fn unsigned_length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7).min(VINT_LENGTH_MAX)
}

/// Number of bytes of [`write_signed`] for `value`.
#[inline]
pub fn signed_length(value: i64) -> usize {
    unsigned_length(zigzag(value))
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges() -> impl Iterator<Item = u64> {
        (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1]
        })
    }

    #[test]
    fn every_length_survives_the_way_back() {
        for value in edges().chain([u64::MAX]) {
            let mut out = Vec::new();
            write_unsigned(value, &mut out);
            assert_eq!(out.len(), unsigned_length(value), "{value}");
            assert_eq!(read_unsigned(&out), Some((value, out.len())));
            assert_eq!(read_unsigned(&out[..out.len() - 1]), None);
            let signed = value as i64;
            out.clear();
            write_signed(signed, &mut out);
            assert_eq!(out.len(), signed_length(signed));
            assert_eq!(read_signed(&out), Some((signed, out.len())));
        }
    }

    #[test]
    fn the_bytes_are_cassandras() {
        let written = |value: u64| {
            let mut out = Vec::new();
            write_unsigned(value, &mut out);
            out
        };
        assert_eq!(written(127), [0x7F]);
        assert_eq!(written(128), [0x80, 0x80]);
        assert_eq!(written(256), [0x81, 0x00]);
        assert_eq!(written(1 << 14), [0xC0, 0x40, 0x00]);
        assert_eq!(written(u64::MAX), [0xFF; 9]);
    }
}
