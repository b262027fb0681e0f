//! Terms and restrictions: what stands on the right of a column.

use helenus_model::types::{CqlType, parse_text};

use super::Draw;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};
use crate::script::Bound;

/// A statement that is being written: its text and the values of its markers.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The text so far.
    pub text: String,
    /// Values of the markers in it.
    pub bound: Vec<Bound>,
    /// Whether values may be given by markers.
    pub marks: bool,
}

impl Written {
    /// Appends text.
    pub fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a value of a type: a literal, a marker, now and then null.
    pub fn value(&mut self, draw: &mut Draw, kind: &Kind, null_percent: usize) {
        if draw.chance(null_percent) {
            if self.marks && draw.chance(50) {
                self.bound.push(if draw.chance(30) { Bound::Unset } else { Bound::Value(None) });
                return self.put("?");
            }
            return self.put("null");
        }
        let literal = kind.literal(draw);
        match bytes(kind, &literal).filter(|_| self.marks && draw.chance(60)) {
            Some(bytes) => {
                self.bound.push(Bound::Value(Some(bytes)));
                self.put("?");
            }
            None => self.put(&literal),
        }
    }
}

/// The bytes of a literal of a type without parameters; others are not bound.
fn bytes(kind: &Kind, literal: &str) -> Option<Vec<u8>> {
    let Kind::Simple(name) = kind else { return None };
    let ty = match *name {
        "int" => CqlType::Int,
        "text" => CqlType::Text,
        "bigint" => CqlType::BigInt,
        "ascii" => CqlType::Ascii,
        "boolean" => CqlType::Boolean,
        "tinyint" => CqlType::TinyInt,
        "smallint" => CqlType::SmallInt,
        "varint" => CqlType::Varint,
        "decimal" => CqlType::Decimal,
        "double" => CqlType::Double,
        "uuid" => CqlType::Uuid,
        "inet" => CqlType::Inet,
        _ => return None,
    };
    let inner = literal.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
    parse_text(&ty, &inner.unwrap_or(literal).replace("''", "'")).ok()
}

/// ` WHERE ..` that names the partition: each column of its key by `=`, now and then by IN; a column is left out at
/// times.
pub fn partition(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) -> bool {
    let mut any = false;
    for column in &table.partition {
        if draw.chance(4) {
            continue;
        }
        out.put(if any { " AND " } else { " WHERE " });
        any = true;
        if draw.chance(12) {
            in_list(draw, column, out);
        } else {
            out.put(&format!("{} = ", column.name));
            out.value(draw, &column.kind, 1);
        }
    }
    any
}

/// `column IN (..)`.
pub fn in_list(draw: &mut Draw, column: &GeneratedColumn, out: &mut Written) {
    out.put(&format!("{} IN (", column.name));
    for at in 0..draw.below(4) {
        out.put(if at > 0 { ", " } else { "" });
        out.value(draw, &column.kind, 1);
    }
    out.put(")");
}

/// Restrictions of clustering columns: a prefix by `=` or IN, then perhaps a range; or several columns at once.
/// `whole`: all of them by `=`.
pub fn clustering(draw: &mut Draw, table: &GeneratedTable, whole: bool, out: &mut Written) {
    if !whole && !table.clustering.is_empty() && draw.chance(12) {
        return several(draw, table, out);
    }
    for column in &table.clustering {
        let shape = if whole { 0 } else { draw.below(10) };
        match shape {
            0..=4 => {
                out.put(&format!(" AND {} = ", column.name));
                out.value(draw, &column.kind, 1);
            }
            5 => {
                out.put(" AND ");
                in_list(draw, column, out);
            }
            6 | 7 => {
                let operator = draw.word(&["<", "<=", ">", ">="]);
                out.put(&format!(" AND {} {operator} ", column.name));
                out.value(draw, &column.kind, 1);
                if draw.chance(40) {
                    let operator = draw.word(&["<", "<=", ">", ">="]);
                    out.put(&format!(" AND {} {operator} ", column.name));
                    out.value(draw, &column.kind, 1);
                }
                if draw.chance(90) {
                    return;
                }
            }
            // The rest is not restricted, or one of it is by mistake.
            _ if draw.chance(90) => return,
            _ => {}
        }
    }
}

/// ` AND (c0, c1) >= (.., ..)`.
fn several(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let count = draw.between(1, table.clustering.len());
    let columns = &table.clustering[..count];
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let tuple = |draw: &mut Draw, out: &mut Written| {
        out.put("(");
        for (at, column) in columns.iter().enumerate() {
            out.put(if at > 0 { ", " } else { "" });
            out.value(draw, &column.kind, 1);
        }
        out.put(")");
    };
    out.put(&format!(" AND ({})", names.join(", ")));
    if draw.chance(25) {
        out.put(" IN (");
        for at in 0..draw.between(1, 3) {
            out.put(if at > 0 { ", " } else { "" });
            tuple(draw, out);
        }
        return out.put(")");
    }
    out.put(&format!(" {} ", draw.word(&["=", "<", "<=", ">", ">="])));
    tuple(draw, out);
    if draw.chance(25) {
        out.put(&format!(" AND ({}) {} ", names.join(", "), draw.word(&["<", "<=", ">", ">="])));
        tuple(draw, out);
    }
}
