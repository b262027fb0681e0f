//! Rounds `float` and `double` values as cqlsh does: C's `%.*g`, with more digits for numbers of moderate size.

/// The number of digits. `None`: as many as are needed to read the same number back.
pub type Digits = Option<usize>;

/// The text of a number. `shortest` returns Java's text, which reads back as the same number.
pub fn number(value: f64, digits: Digits, shortest: impl FnOnce() -> String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let Some(digits) = digits else { return shortest() };
    general(value, significant(value, digits))
}

/// The number of significant digits by cqlsh's rule: unless `%g` would use the scientific form, the digits before the
/// point do not count.
fn significant(value: f64, digits: usize) -> usize {
    if value.abs() <= f64::EPSILON {
        return digits;
    }
    // Truncates towards zero, as Python's int().
    let exponent = value.abs().log10().trunc() as i64;
    if exponent >= -4 && exponent < digits as i64 {
        usize::try_from(digits as i64 + exponent + 1).unwrap_or(digits)
    } else {
        digits
    }
}

/// Formats as `%.{digits}g`.
fn general(value: f64, digits: usize) -> String {
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i64 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(digits as i64 - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_cqlsh_rounds_them() {
        // Printed by cqlsh 6.2.2's format_floating_point_type with a precision of 5.
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1.1234567, "1.12346"),
            (12345.678901, "12345.6789"),
            (123456.789, "1.2346e+05"),
            (0.0001234567, "0.000123"),
            (0.00001234567, "1.2e-05"),
            (-2.5, "-2.5"),
            (1e300, "1e+300"),
            (99999.999999, "100000"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value, Some(5), String::new), expected, "{value}");
        }
        assert_eq!(number(f64::NAN, Some(5), String::new), "NaN");
        assert_eq!(number(f64::NEG_INFINITY, None, String::new), "-Infinity");
    }
}
