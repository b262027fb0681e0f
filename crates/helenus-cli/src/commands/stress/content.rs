//! Computes the content of rows from their numbers, both for workloads that write and for workloads that check.
//!
//! Single rows have the sizes of "CQL benchmarking" (2011): keys of 7 bytes and five binary values of 34 bytes. Wide
//! rows have those of "Cassandra Query Plans" (2011): names of 10 bytes and values of 25. Their bytes are those that
//! `tests/texts/wide_rows.py` writes, which can therefore check what `load` wrote.

/// Bytes of a single row's key.
pub(crate) const KEY: usize = 7;
/// Bytes of a single row's values, each.
pub(crate) const VALUE: usize = 34;
/// Number of columns of a single row besides the key.
pub(crate) const COLUMNS: usize = 5;
/// Bytes of a wide row's column name.
pub(crate) const NAME: usize = 10;
/// Bytes of a wide row's value.
pub(crate) const WIDE_VALUE: usize = 25;

/// A bijection that leaves no pattern (the finisher of splitmix64), for values and for random rows.
pub(crate) fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Maps a mixed number to a number below `bound`.
pub(crate) fn below(mixed: u64, bound: u64) -> u64 {
    ((u128::from(mixed) * u128::from(bound)) >> 64) as u64
}

/// The key of a single row.
pub(crate) fn key(row: u64) -> [u8; KEY] {
    let [_, key @ ..] = row.to_be_bytes();
    key
}

/// A value of a single row.
pub(crate) fn value(row: u64, column: usize) -> [u8; VALUE] {
    let mut word = mix(row * COLUMNS as u64 + column as u64);
    let mut bytes = [0; VALUE];
    for chunk in bytes.chunks_mut(8) {
        let from = word.to_le_bytes();
        chunk.copy_from_slice(from.get(..chunk.len()).unwrap_or_default());
        word = word.wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(29);
    }
    bytes
}

/// The name of the column `row` of a wide row: its number.
pub(crate) fn name(row: u64) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    put_decimal(&mut bytes, row);
    bytes
}

/// The value of the column `row` of a wide row: the width of the partition and a scrambled number.
pub(crate) fn wide_value(width: u64, row: u64) -> [u8; WIDE_VALUE] {
    const DIGITS_17: u128 = 100_000_000_000_000_000;
    let mut bytes = [b':'; WIDE_VALUE];
    let (head, tail) = bytes.split_at_mut(8);
    put_decimal(&mut head[..7], width);
    put_decimal(tail, (u128::from(row) * 2_654_435_761 % DIGITS_17) as u64);
    bytes
}

/// Fills `place` with the last decimal digits of a number.
fn put_decimal(place: &mut [u8], mut number: u64) {
    const PAIRS: &[u8; 200] = &pairs();
    let mut chunks = place.rchunks_exact_mut(2);
    for pair in &mut chunks {
        let at = (number % 100) as usize * 2;
        number /= 100;
        pair.copy_from_slice(&PAIRS[at..at + 2]);
    }
    if let [digit] = chunks.into_remainder() {
        *digit = b'0' + (number % 10) as u8;
    }
}

/// The digits of 00 to 99.
const fn pairs() -> [u8; 200] {
    let mut digits = [0; 200];
    let mut number = 0;
    while number < 100 {
        digits[number * 2] = b'0' + (number / 10) as u8;
        digits[number * 2 + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_rows_are_those_of_the_python_program() {
        assert_eq!(&name(42), b"0000000042");
        for (width, row) in [(100, 0), (1_000_000, 999_999), (10_000_000, 9_999_999)] {
            let expected = format!("{width:07}:{:017}", u128::from(row) * 2_654_435_761 % 10_u128.pow(17));
            let expected = &expected.as_bytes()[expected.len() - WIDE_VALUE..];
            assert_eq!(wide_value(width, row), expected);
        }
    }

    #[test]
    fn values_differ_by_row_and_column() {
        let all: std::collections::HashSet<_> =
            (0..100).flat_map(|row| (0..COLUMNS).map(move |column| value(row, column))).collect();
        assert_eq!(all.len(), 500);
        assert_eq!(key(0x01_0203), [0, 0, 0, 0, 1, 2, 3]);
    }
}
