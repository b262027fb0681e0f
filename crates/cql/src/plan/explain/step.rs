//! The lines of an explanation, and their encoding as rows or JSON.
//!
//! Operation and target of a line are words that programs may rely on (docs/book/explain.md lists them); its detail is
//! for people.

use crate::analysis::selection::result_columns;
use crate::answer::{ResultColumn, ResultColumns, RowsOut};
use crate::budget::room_in_text;
use crate::error::Result;
use helenus_model::types::{CqlType, write_json_string};
use std::fmt::{Display, Write};
use std::sync::Arc;

/// The most lines of an explanation: it is never paged, and cqlsh shows one page of a statement that is not a SELECT.
pub(crate) const STEPS_MAX: usize = 99;
/// The most characters of a target or detail in rows, so that a line fits a terminal.
const ROW_CHARS_MAX: usize = 96;
/// The most characters of a target or detail in JSON.
const JSON_CHARS_MAX: usize = 8192;
/// The most bytes of a line besides its target and its detail.
const LINE_BYTES: usize = 256;
/// The most bytes of a character.
const CHAR_BYTES_MAX: usize = 4;
/// The most bytes of the escape of a byte in JSON.
const ESCAPED_BYTES_MAX: usize = 6;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    operation: &'static str,
    target: String,
    detail: String,
    count: Option<u64>,
    time_us: Option<u64>,
}

impl Step {
    /// A line without numbers.
    pub(crate) fn new(operation: &'static str, target: impl Into<String>, detail: impl Into<String>) -> Step {
        Step { operation, target: target.into(), detail: detail.into(), count: None, time_us: None }
    }

    /// Sets the count.
    pub(crate) fn count(self, count: u64) -> Step {
        Step { count: Some(count), ..self }
    }

    /// Sets the time, in microseconds.
    pub(crate) fn time(self, time_us: u64) -> Step {
        Step { time_us: Some(time_us), ..self }
    }
}

/// The form in which an explanation is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// With counts and times.
    pub(crate) analyzed: bool,
    /// As one JSON text.
    pub(crate) json: bool,
}

impl Form {
    /// The columns of the answer.
    pub(crate) fn columns(self) -> Arc<ResultColumns> {
        let column = |name: &str, ty| ResultColumn {
            keyspace: "system".into(),
            table: "explain".into(),
            name: name.into(),
            ty,
        };
        if self.json {
            return result_columns(vec![column("json", CqlType::Text)], |_| false);
        }
        let mut columns = vec![
            column("step", CqlType::Int),
            column("operation", CqlType::Text),
            column("target", CqlType::Text),
            column("detail", CqlType::Text),
        ];
        if self.analyzed {
            columns.extend([column("count", CqlType::BigInt), column("time_us", CqlType::BigInt)]);
        }
        result_columns(columns, |_| false)
    }

    /// Writes the lines of an explanation.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn write(
        self,
        steps: &[Step],
        columns: &Arc<ResultColumns>,
        out: &mut dyn RowsOut,
    ) -> Result<()> {
        out.columns(columns);
        let steps = steps.iter().take(STEPS_MAX).zip(1_i32..);
        if self.json {
            let mut text = format!("{{\"analyzed\":{},\"steps\":[", self.analyzed);
            for (step, number) in steps {
                let shown = |text: &str| text.len().min(JSON_CHARS_MAX * CHAR_BYTES_MAX) * ESCAPED_BYTES_MAX;
                room_in_text(&mut text, LINE_BYTES + shown(&step.target) + shown(&step.detail))?;
                write_json(step, number, &mut text);
            }
            text.push_str("]}");
            out.make_room(text.len())?;
            out.cell(Some(text.as_bytes()));
            out.end_row();
            return Ok(());
        }
        for (step, number) in steps {
            out.make_room(LINE_BYTES + 2 * ROW_CHARS_MAX * CHAR_BYTES_MAX)?;
            out.cell(Some(&number.to_be_bytes()));
            out.cell(Some(step.operation.as_bytes()));
            out.cell(Some(cut(&step.target, ROW_CHARS_MAX).as_bytes()));
            out.cell(Some(cut(&step.detail, ROW_CHARS_MAX).as_bytes()));
            if self.analyzed {
                for number in [step.count, step.time_us] {
                    out.cell(number.map(u64::to_be_bytes).as_ref().map(|bytes| &bytes[..]));
                }
            }
            out.end_row();
        }
        Ok(())
    }
}

fn write_json(step: &Step, number: i32, out: &mut String) {
    if number > 1 {
        out.push(',');
    }
    let _ = write!(out, "{{\"step\":{number}");
    let texts = [("operation", step.operation), ("target", &step.target), ("detail", &step.detail)];
    for (name, text) in texts {
        let _ = write!(out, ",\"{name}\":");
        write_json_string(&cut(text, JSON_CHARS_MAX), out);
    }
    for (name, number) in [("count", step.count), ("time_us", step.time_us)] {
        if let Some(number) = number {
            let _ = write!(out, ",\"{name}\":{number}");
        }
    }
    out.push('}');
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or(text)),
    }
}

/// A number of bytes in human-readable form.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS.get(unit).copied().unwrap_or_default())
}

/// A number with its noun: `1 partition`, `2 partitions`, `2 copies`, `2 passes`. `noun` is the word for one.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == N::from(1) => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with('s') => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters_and_sizes_read_well() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äöü...");
        let sizes = [0, 1023, 1024, 1536, 5 << 30, u64::MAX].map(bytes_text);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "5.0 GiB", "16777216.0 TiB"]);
        assert_eq!([0, 1, 2].map(|rows: u64| counted(rows, "row")), ["0 rows", "1 row", "2 rows"]);
        assert_eq!([counted(1_usize, "file"), counted(11_i32, "cell")], ["1 file", "11 cells"]);
        assert_eq!(
            [counted(2, "copy"), counted(2, "day"), counted(2, "pass")],
            ["2 copies", "2 days", "2 passes"]
        );
    }

    #[test]
    fn json_has_what_is_known_and_escapes_texts() {
        let mut out = String::new();
        write_json(&Step::new("read", "a \"b\"", "").count(3), 1, &mut out);
        write_json(&Step::new("plan", "", "x").time(5), 2, &mut out);
        assert_eq!(
            out,
            "{\"step\":1,\"operation\":\"read\",\"target\":\"a \\\"b\\\"\",\"detail\":\"\",\"count\":3},\
             {\"step\":2,\"operation\":\"plan\",\"target\":\"\",\"detail\":\"x\",\"time_us\":5}"
        );
    }
}
