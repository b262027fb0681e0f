//! Fast decimal digits: formatting numbers with `format!` would take most of the time of a dump.

/// `00` to `99`.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[number * 2] = b'0' + (number / 10) as u8;
        pairs[number * 2 + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// A number below 100 as two digits.
pub(super) fn pair(number: u32) -> [u8; 2] {
    let at = (number % 100) as usize * 2;
    [PAIRS[at], PAIRS[at + 1]]
}

/// Appends ASCII digits and separators.
pub(super) fn push(digits: &[u8], out: &mut String) {
    out.push_str(std::str::from_utf8(digits).unwrap_or_default());
}

/// Appends a number.
pub fn write_integer(value: i64, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Appends a number, padded with zeros to `width` digits.
pub(super) fn write_padded(value: u64, width: usize, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    for _ in digits.len()..width {
        out.push('0');
    }
    out.push_str(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_that_formatting_writes() {
        let mut numbers = vec![0_i64, i64::MIN, i64::MAX];
        let mut power = 1_i64;
        for _ in 0..18 {
            power *= 10;
            numbers.extend([power - 1, power, power + 1, -power, power * 3 / 7]);
        }
        numbers.extend(0..1100);
        for number in numbers {
            let mut out = String::new();
            write_integer(number, &mut out);
            assert_eq!(out, number.to_string());
            for width in [0, 1, 2, 3, 9, 20] {
                let mut out = String::new();
                write_padded(number.unsigned_abs(), width, &mut out);
                assert_eq!(out, format!("{:0width$}", number.unsigned_abs()));
            }
        }
    }
}
