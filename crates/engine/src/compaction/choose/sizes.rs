//! Parses numbers in options like Cassandra (`FBUtilities.parseHumanReadable`, `parsePercent`).

/// Prefixes from 10^-30 to 10^30; the blank stands for no prefix.
const PREFIXES: &str = "qryzafpnum KMGTPEZYRQ";

/// Parses a number of bytes: a decimal number, optionally a binary exponent (`1.5*2^20B`) and a prefix (K, M, ..., Ki,
/// Mi, ...), and the mandatory unit B. `None` if Cassandra rejects it.
pub fn parse_size(text: &str) -> Option<f64> {
    let text = text.strip_suffix('B')?;
    let digits = number_length(text)?;
    let (number, mut rest) = text.split_at(digits);
    let mut value: f64 = match number {
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        number => number.parse().ok()?,
    };
    if !number.contains(['e', 'E'])
        && let Some(power) = rest.strip_prefix("*2^")
    {
        let signed = usize::from(power.starts_with(['+', '-']));
        let end = power[signed..].find(|c: char| !c.is_ascii_digit()).map_or(power.len(), |at| at + signed);
        value *= 2f64.powi(power[..end].parse().ok()?);
        rest = &power[end..];
    }
    rest = rest.trim_start();
    if let Some(prefix) = rest.chars().next()
        && let Some(index) = PREFIXES.find(prefix)
    {
        let step = index as i32 - PREFIXES.find(' ')? as i32;
        rest = &rest[prefix.len_utf8()..];
        value *= match rest.strip_prefix('i') {
            Some(after) => {
                rest = after;
                2f64.powi(step * 10)
            }
            None => 1000f64.powi(step),
        };
    }
    rest.is_empty().then_some(value)
}

/// The length of the number at the start: `NaN`, `Infinity` or digits with fraction and exponent.
fn number_length(text: &str) -> Option<usize> {
    if text.starts_with("NaN") {
        return Some(3);
    }
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(text.starts_with(['+', '-']));
    if text[at..].starts_with("Infinity") {
        return Some(at + "Infinity".len());
    }
    if digits(at) == 0 {
        return None;
    }
    at += digits(at);
    if bytes.get(at) == Some(&b'.') && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if digits(at + 1 + signed) > 0 {
            at += 1 + signed + digits(at + 1 + signed);
        }
    }
    Some(at)
}

/// Parses a part of one: `0.1` and `10%` are the same. `None` if it is not a number.
pub fn parse_percent(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_cassandra_reads_them() {
        for (text, bytes) in [
            ("1GiB", 1073741824.0),
            ("100MiB", 104857600.0),
            ("0MiB", 0.0),
            ("1.5 KiB", 1536.0),
            ("1e3B", 1000.0),
            ("2KB", 2000.0),
            ("3*2^4B", 48.0),
            ("7B", 7.0),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "1", "B", "1GiBx", "1 iB", "GiB", "1Gi", "x1B", "1.5.2B"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(
            (parse_percent("10%"), parse_percent(" 0.333 "), parse_percent("x")),
            (Some(0.1), Some(0.333), None)
        );
    }
}
