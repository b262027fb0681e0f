//! Text in nodetool's layout: columns, sizes, numbers.

use helenus_model::types::write_instant;
use std::io::{self, Write};

/// A table whose columns are as wide as their widest cell (`TableBuilder`). The last column is padded too.
pub struct Columns {
    between: &'static str,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table without rows, with the text that separates its columns.
    pub fn new(between: &'static str) -> Columns {
        Columns { between, rows: Vec::new() }
    }

    /// Adds a row. It may have fewer cells than other rows.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Prints the table.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let between = if column + 1 < columns { self.between } else { "" };
                write!(out, "{cell:width$}{between}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Bytes with the largest unit that fits and at most two decimals (`FileUtils.stringifyFileSize`).
pub fn file_size(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (size, unit) = units.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1, "bytes"));
    let text = format!("{:.2}", bytes as f64 / size as f64);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Milliseconds since 1970 as `MMM dd, yyyy HH:mm:ss` shows them, in UTC.
pub fn date(ms: i64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut iso = String::new();
    write_instant(ms.div_euclid(1000), 0, &mut iso);
    let part = |range: std::ops::Range<usize>| iso.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    match month {
        Some(month) => format!("{month} {}, {} {}", part(8..10), part(0..4), part(11..19)),
        None => iso,
    }
}

/// Bytes with three decimals and the unit right behind, without a space (`FBUtilities.prettyPrintMemory`).
pub fn memory_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let tens = bytes.max(1).ilog2() / 10;
    match tens.checked_sub(1).and_then(|unit| UNITS.get(unit as usize)) {
        None => format!("{bytes}B"),
        Some(unit) => format!("{:.3}{unit}", bytes as f64 / 2_f64.powi(tens as i32 * 10)),
    }
}

/// Bytes as a plain number, or with a unit if `human`.
pub fn bytes_text(bytes: u64, human: bool) -> String {
    if human { file_size(bytes) } else { bytes.to_string() }
}

/// A double in Java's format: at least one decimal, and `NaN` for `None`.
pub fn java_double(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => {
            let text = value.to_string();
            if text.contains('.') { text } else { text + ".0" }
        }
        _ => "NaN".to_owned(),
    }
}

/// A number with that many decimals; `NaN` for `None`.
pub fn decimals(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        _ => "NaN".to_owned(),
    }
}

/// A time in milliseconds since 1970 in the format of `LocalDateTime`: UTC, without a zone.
pub fn moment(ms: i64) -> String {
    let mut text = String::new();
    write_instant(ms.div_euclid(1000), (ms.rem_euclid(1000) * 1_000_000) as u32, &mut text);
    text.trim_end_matches('Z').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_as_nodetool_prints_them() {
        assert_eq!(
            [0, 16, 5167, 8 << 20, 96 << 20].map(file_size),
            ["0 bytes", "16 bytes", "5.05 KiB", "8 MiB", "96 MiB"]
        );
        assert_eq!([0, 15, 5039, 5167].map(memory_size), ["0B", "15B", "4.921KiB", "5.046KiB"]);
        assert_eq!([None, Some(0.0), Some(1.5)].map(java_double), ["NaN", "0.0", "1.5"]);
        assert_eq!(moment(1_795_329_750_353), "2026-11-22T06:42:30.353");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut columns = Columns::new("  ");
        columns.row(["a", "bbb"]);
        columns.row(["cccc"]);
        let mut out = Vec::new();
        columns.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a     bbb\ncccc     \n");
    }
}
