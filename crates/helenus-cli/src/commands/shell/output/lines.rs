//! Rows for programs: JSON with one object a line, and CSV.

use super::super::value::{Style, ValueRules, show};
use helenus_model::types::{write_json, write_json_string};
use helenus_wire::native::{ColumnSpec, Row};

/// Appends a row as a JSON object and a line feed. Values have the form of `SELECT JSON`.
pub fn json_row(columns: &[ColumnSpec], row: &Row<'_>, out: &mut String) {
    out.push('{');
    for (at, (column, cell)) in columns.iter().zip(row.cells()).enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_json_string(&column.name, out);
        out.push_str(": ");
        // The column of SELECT JSON contains JSON already.
        match cell {
            Some(bytes) if &*column.name == "[json]" => out.push_str(&String::from_utf8_lossy(bytes)),
            cell => write_json(&column.ty, cell, out),
        }
    }
    out.push_str("}\n");
}

/// Appends the line of column names.
pub fn csv_header(columns: &[ColumnSpec], out: &mut String) {
    let names: Vec<String> = columns.iter().map(|column| csv_field(&column.name)).collect();
    out.push_str(&names.join(","));
    out.push('\n');
}

/// Appends a row; a null is an empty field.
pub fn csv_row(columns: &[ColumnSpec], row: &Row<'_>, rules: &ValueRules, out: &mut String) {
    for (at, (column, cell)) in columns.iter().zip(row.cells()).enumerate() {
        if at > 0 {
            out.push(',');
        }
        if cell.is_some() {
            out.push_str(&csv_field(&show(&column.ty, cell, Style { rules, in_colour: false }).text));
        }
    }
    out.push('\n');
}

/// A field, quoted if necessary.
fn csv_field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
