//! SELECT with everything that may stand in it.

use super::Draw;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};
use super::terms::{Written, clustering, in_list, partition};
use crate::script::Bound;

/// A SELECT.
pub fn select(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    out.put("SELECT ");
    selectors(draw, table, out);
    out.put(&format!(" FROM {}", table.name));
    let by_partition = draw.chance(65);
    let mut restricted = false;
    if by_partition {
        restricted = partition(draw, table, out);
        if restricted && draw.chance(60) {
            clustering(draw, table, false, out);
        }
    } else if draw.chance(35) {
        token(draw, table, out);
        restricted = true;
    }
    let mut filters = false;
    while draw.chance(if by_partition { 12 } else { 35 }) {
        out.put(if restricted { " AND " } else { " WHERE " });
        restricted = true;
        filters = true;
        filter(draw, table, out);
    }
    if draw.chance(4) {
        group_by(draw, table, out);
    }
    if !table.clustering.is_empty() && draw.chance(20) {
        order_by(draw, table, out);
    }
    if draw.chance(10) {
        out.put(&format!(" PER PARTITION LIMIT {}", draw.between(1, 4)));
    }
    if draw.chance(20) {
        if out.marks && draw.chance(40) {
            let limit = draw.between(0, 5) as u8;
            out.bound.push(Bound::Value(Some(vec![0, 0, 0, limit])));
            out.put(" LIMIT ?");
        } else {
            out.put(&format!(" LIMIT {}", draw.below(6)));
        }
    }
    if if filters { draw.chance(75) } else { draw.chance(15) } {
        out.put(" ALLOW FILTERING");
    }
}

/// Functions of one argument.
const CALLS: &[&str] = &[
    "abs",
    "round",
    "collection_count",
    "collection_min",
    "collection_max",
    "collection_sum",
    "collection_avg",
    "map_keys",
    "map_values",
    "mask_default",
    "mask_null",
    "to_date",
    "to_timestamp",
    "to_unix_timestamp",
];

/// Types that values are cast to.
const CASTS: &[&str] =
    &["text", "int", "bigint", "tinyint", "varint", "ascii", "timestamp", "date", "decimal"];

pub(super) fn names(columns: &[GeneratedColumn]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

fn selectors(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let all = table.all();
    match draw.below(20) {
        0..=8 => out.put("*"),
        9 => {
            out.put("DISTINCT ");
            let mut columns = names(&table.partition);
            columns.extend(names(&table.statics).into_iter().filter(|_| draw.chance(60)));
            out.put(&columns.join(", "));
        }
        10 => out.put("count(*)"),
        11 => out.put("JSON *"),
        _ => {
            for at in 0..draw.between(1, 4) {
                out.put(if at > 0 { ", " } else { "" });
                let column = *draw.one(&all);
                let text = selector(draw, table, column);
                out.put(&text);
                if draw.chance(8) {
                    out.put(&format!(" AS x{at}"));
                }
            }
        }
    }
}

fn selector(draw: &mut Draw, table: &GeneratedTable, column: &GeneratedColumn) -> String {
    let name = &column.name;
    match (draw.below(18), &column.kind) {
        (0, _) => format!("{}({name})", draw.word(&["min", "max", "count", "sum", "avg"])),
        (1, _) if table.timestamps => format!("{}({name})", draw.word(&["writetime", "maxwritetime"])),
        (2, _) => format!("token({})", names(&table.partition).join(", ")),
        (3, _) => format!("CAST({name} AS {})", draw.word(CASTS)),
        (4, _) if table.expires => format!("to_json({name})"),
        (4, _) => format!("{}({name})", draw.word(&["toJson", "to_json", "ttl"])),
        (14, _) => format!("{}({name})", draw.word(CALLS)),
        (15, _) => format!(
            "{name} {} {}",
            draw.word(&["+", "-", "*", "/", "%"]),
            draw.one(&["1", "2", "-3", name.as_str()])
        ),
        (16, _) => format!("{}(-{name})", draw.word(&["", "abs"])),
        (5, Kind::Simple(simple)) => format!("{simple}_as_blob({name})"),
        (0..=7, Kind::Map(key, _, _) | Kind::Set(key, _)) => format!("{name}[{}]", key.literal(draw)),
        (0..=7, Kind::Udt(_, fields, _)) => format!("{name}.{}", draw.one(fields).0),
        _ => name.clone(),
    }
}

pub(super) fn token(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let columns = names(&table.partition).join(", ");
    let operator = draw.word(&["<", "<=", ">", ">=", "="]);
    out.put(&format!(" WHERE token({columns}) {operator} "));
    if draw.chance(50) {
        let number: i64 = *draw.one(&[0, i64::MIN, i64::MAX, 1 << 62, -(1 << 62)]);
        return out.put(&number.to_string());
    }
    out.put("token(");
    for (at, column) in table.partition.iter().enumerate() {
        out.put(if at > 0 { ", " } else { "" });
        out.value(draw, &column.kind, 1);
    }
    out.put(")");
}

pub(super) fn filter(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let all = table.all();
    let values = table.values();
    let column = if values.is_empty() || draw.chance(35) { *draw.one(&all) } else { *draw.one(&values) };
    let name = &column.name;
    match &column.kind {
        Kind::List(element, _) | Kind::Set(element, _) if draw.chance(60) => {
            out.put(&format!("{name} CONTAINS "));
            out.value(draw, element, 2);
        }
        Kind::Map(key, value, _) if draw.chance(75) => match draw.below(3) {
            0 => {
                out.put(&format!("{name} CONTAINS KEY "));
                out.value(draw, key, 2);
            }
            1 => {
                out.put(&format!("{name} CONTAINS "));
                out.value(draw, value, 2);
            }
            _ => {
                out.put(&format!("{name}["));
                out.value(draw, key, 2);
                out.put("] = ");
                out.value(draw, value, 2);
            }
        },
        _ if draw.chance(8) => in_list(draw, column, out),
        _ if draw.chance(3) => out.put(&format!("{name} {} 'a%'", draw.word(&["LIKE", "NOT LIKE"]))),
        _ => {
            out.put(&format!("{name} {} ", draw.word(&["=", "=", "=", "<", "<=", ">", ">=", "!="])));
            out.value(draw, &column.kind, 2);
        }
    }
}

pub(super) fn group_by(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let mut columns = names(&table.partition);
    columns.extend(names(&table.clustering));
    columns.truncate(draw.between(1, columns.len()));
    out.put(&format!(" GROUP BY {}", columns.join(", ")));
}

pub(super) fn order_by(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let count = draw.between(1, table.clustering.len());
    let orders: Vec<String> = table.clustering[..count]
        .iter()
        .map(|column| format!("{} {}", column.name, draw.word(&["ASC", "DESC"])))
        .collect();
    out.put(&format!(" ORDER BY {}", orders.join(", ")));
}
