//! Encodes big-endian integers whose length is stored elsewhere (Cassandra's `SizedInts`).

#![deny(clippy::indexing_slicing)]

/// The number of bytes that `value` needs with its sign bit, 1 to 8.
pub(crate) fn signed_size(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    (72 - magnitude.leading_zeros() as usize) / 8
}

/// Appends the `size` lowest bytes of `value`.
pub(crate) fn write_signed(value: i64, size: usize, out: &mut Vec<u8>) {
    write_unsigned(value as u64, size, out);
}

/// Decodes all of `bytes`, at most 8, as a signed integer.
pub(crate) fn read_signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    let value = read_unsigned(bytes);
    if unused == 64 { 0 } else { (value << unused) as i64 >> unused }
}

/// Appends the `size` lowest bytes of `value`.
pub(crate) fn write_unsigned(value: u64, size: usize, out: &mut Vec<u8>) {
    for i in (0..size.min(8)).rev() {
        out.push((value >> (8 * i)) as u8);
    }
}

/// Decodes all of `bytes`, at most 8, as an unsigned integer.
pub(crate) fn read_unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_survives_in_its_size_and_not_in_one_less() {
        for bit in 0..63 {
            for value in [1i64 << bit, (1 << bit) - 1, -(1 << bit), !(1 << bit)] {
                let size = signed_size(value);
                let mut bytes = Vec::new();
                write_signed(value, size, &mut bytes);
                assert_eq!((bytes.len(), read_signed(&bytes)), (size, value));
                if size > 1 {
                    assert_ne!(read_signed(bytes.get(1..).unwrap()), value);
                }
            }
        }
        assert_eq!((signed_size(0), signed_size(127), signed_size(128), signed_size(-128)), (1, 1, 2, 1));
        assert_eq!((signed_size(i64::MAX), signed_size(i64::MIN)), (8, 8));
    }
}
