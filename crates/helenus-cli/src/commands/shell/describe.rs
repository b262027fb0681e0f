//! Prints the answers to DESCRIBE in cqlsh's layout.

use super::output::columnize;
use anyhow::Result;
use helenus_model::types::{CqlType, Elements};
use helenus_wire::native::{ColumnSpec, Rows};
use std::fmt::Write as _;

/// Width of the terminal that lists are laid out for.
const WIDTH: usize = 80;

/// The text of an answer. `in_keyspace` states whether the shell has a keyspace in use.
///
/// # Errors
/// Rows that cannot be decoded.
pub fn described(columns: &[ColumnSpec], rows: &Rows<'_>, in_keyspace: bool) -> Result<String> {
    let at = |name: &str| columns.iter().position(|column| &*column.name == name);
    let mut cells: Vec<Vec<Option<&[u8]>>> = Vec::new();
    for row in rows.iter() {
        cells.push(row?.cells().collect());
    }
    let text = |row: &[Option<&[u8]>], at: Option<usize>| {
        let bytes = at.and_then(|at| row.get(at).copied().flatten()).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut out = String::new();
    if let Some(statement) = at("create_statement") {
        for row in &cells {
            _ = write!(out, "\n{}\n", text(row, Some(statement)));
        }
    } else if at("cluster").is_some() {
        for row in &cells {
            _ = writeln!(out, "\nCluster: {}", text(row, at("cluster")));
            _ = writeln!(out, "Partitioner: {}", text(row, at("partitioner")));
            _ = writeln!(out, "Snitch: {}\n", text(row, at("snitch")));
            if let Some(ranges) = at("range_ownership").and_then(|at| row.get(at).copied().flatten()) {
                out.push_str(&ownership(ranges));
            }
        }
    } else {
        let (keyspace, kind, name) = (at("keyspace_name"), at("type"), at("name"));
        let is_of_keyspaces = cells.iter().all(|row| text(row, kind) == "keyspace");
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for row in &cells {
            let of = if is_of_keyspaces { String::new() } else { text(row, keyspace) };
            match groups.last_mut() {
                Some((last, names)) if *last == of => names.push(text(row, name)),
                _ => groups.push((of, vec![text(row, name)])),
            }
        }
        let is_empty = groups.is_empty();
        for (of, names) in groups {
            out.push('\n');
            if !in_keyspace && !is_of_keyspaces {
                _ = writeln!(out, "Keyspace {of}\n---------{}", "-".repeat(of.chars().count()));
            }
            out.push_str(&columnize(&names, WIDTH));
        }
        if !is_empty {
            out.push('\n');
        }
    }
    Ok(out)
}

/// The nodes that own each range, given as a map of the range's end token to lists of text.
fn ownership(bytes: &[u8]) -> String {
    let mut out = String::from("Range ownership:\n");
    let mut elements = Elements::of_map(bytes);
    while let (Some(token), Some(nodes)) = (elements.next(), elements.next()) {
        let token = String::from_utf8_lossy(token.unwrap_or_default()).into_owned();
        let nodes: Vec<String> = Elements::of_list(nodes.unwrap_or_default())
            .map(|node| String::from_utf8_lossy(node.unwrap_or_default()).into_owned())
            .collect();
        _ = writeln!(out, " {token:>39}  [{}]", nodes.join(", "));
    }
    out.push('\n');
    out
}

/// Whether an answer is a description.
pub fn is_description(columns: &[ColumnSpec]) -> bool {
    let has = |name: &str| columns.iter().any(|column| &*column.name == name);
    has("create_statement")
        || has("cluster")
        || has("type") && has("name") && columns.first().is_some_and(is_text)
}

fn is_text(column: &ColumnSpec) -> bool {
    matches!(column.ty, CqlType::Text)
}
