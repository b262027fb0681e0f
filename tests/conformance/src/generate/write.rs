//! INSERT, UPDATE, DELETE, BATCH.

use super::Draw;
use super::condition::condition;
use super::json::insert_json;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};
use super::terms::{Written, clustering, in_list, partition};

/// Timestamps are drawn below this, so that they tie at times.
const TIMESTAMPS: usize = 60;

/// A write of any kind but a batch.
pub fn write(draw: &mut Draw, table: &GeneratedTable, stamped: bool, out: &mut Written) {
    match draw.below(10) {
        // What a counter counts after a deletion is not defined.
        _ if table.counters => update(draw, table, stamped, out),
        0..=4 => insert(draw, table, stamped, out),
        5..=7 => update(draw, table, stamped, out),
        _ => delete(draw, table, stamped, out),
    }
}

/// A batch of a few.
pub fn batch(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let counter = if table.counters == draw.chance(97) { "BEGIN COUNTER BATCH" } else { "BEGIN BATCH" };
    out.put(draw.word(&[counter, counter, "BEGIN UNLOGGED BATCH"]));
    let stamped = table.timestamps && draw.chance(50);
    if stamped {
        using(draw, true, out);
    }
    for _ in 0..draw.between(1, 4) {
        out.put(" ");
        write(draw, table, !stamped, out);
        out.put(";");
    }
    out.put(" APPLY BATCH");
}

fn using(draw: &mut Draw, stamped: bool, out: &mut Written) {
    if stamped {
        out.put(&format!(" USING TIMESTAMP {}", draw.between(1, TIMESTAMPS)));
    }
}

/// ` USING TTL ..`, at times, of tables whose writes say no timestamps.
fn expiring(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    if table.expires && draw.chance(25) {
        let ttl = draw.word(&["100000", "86400", "0", "null", "-1", "630720001"]);
        out.put(&format!(" USING TTL {ttl}"));
    }
}

fn insert(draw: &mut Draw, table: &GeneratedTable, stamped: bool, out: &mut Written) {
    let mut columns: Vec<&GeneratedColumn> = table.partition.iter().collect();
    let only_static = !table.statics.is_empty() && draw.chance(10);
    if !only_static {
        columns.extend(&table.clustering);
        columns.extend(table.regulars.iter().filter(|_| draw.chance(60)));
    }
    columns.extend(table.statics.iter().filter(|_| draw.chance(40)));
    if draw.chance(2) {
        columns.remove(draw.below(columns.len()));
    }
    if draw.chance(8) {
        insert_json(draw, table, &columns, out);
        return using(draw, table.timestamps && stamped, out);
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    out.put(&format!("INSERT INTO {} ({}) VALUES (", table.name, names.join(", ")));
    let keys = table.partition.len() + table.clustering.len();
    for (at, column) in columns.iter().enumerate() {
        out.put(if at > 0 { ", " } else { "" });
        out.value(draw, &column.kind, if at < keys { 1 } else { 8 });
    }
    out.put(")");
    if table.conditions && draw.chance(15) {
        out.put(" IF NOT EXISTS");
    }
    expiring(draw, table, out);
    using(draw, table.timestamps && stamped, out);
}

fn update(draw: &mut Draw, table: &GeneratedTable, stamped: bool, out: &mut Written) {
    out.put(&format!("UPDATE {}", table.name));
    expiring(draw, table, out);
    using(draw, table.timestamps && stamped, out);
    out.put(" SET ");
    let values = if draw.chance(80) { table.regulars.iter().collect() } else { table.values() };
    if values.is_empty() {
        out.put("nothing = 1");
    }
    let mut taken = draw.some(&values, 30);
    if draw.chance(2) {
        taken.extend(draw.some(&values, 10));
    }
    for (at, column) in taken.iter().enumerate() {
        out.put(if at > 0 { ", " } else { "" });
        assign(draw, column, out);
    }
    partition(draw, table, out);
    let only_static = taken.iter().all(|column| table.statics.iter().any(|other| other.name == column.name));
    if !only_static || draw.chance(10) {
        let whole = draw.chance(90);
        clustering(draw, table, whole, out);
    }
    if table.conditions && draw.chance(20) {
        condition(draw, table, out);
    }
}

/// `v = ..`, `v = v + ..`, `v[..] = ..`, `v.f = ..`.
fn assign(draw: &mut Draw, column: &GeneratedColumn, out: &mut Written) {
    let GeneratedColumn { name, kind } = column;
    if *kind == Kind::Simple("counter") && draw.chance(97) {
        let number = kind.literal(draw);
        let sign = draw.word(&["+", "-"]);
        return out.put(&match draw.below(2) {
            0 => format!("{name} = {name} {sign} {number}"),
            _ => format!("{name} {sign}= {number}"),
        });
    }
    if !kind.is_multi_cell() && draw.chance(97) || draw.chance(30) {
        out.put(&format!("{name} = "));
        return out.value(draw, kind, 10);
    }
    let operator = |draw: &mut Draw| draw.word(&["+", "+", "-"]);
    match kind {
        Kind::List(element, _) if draw.chance(15) => {
            out.put(&format!("{name}[{}] = ", draw.below(3)));
            out.value(draw, element, 15);
        }
        Kind::List(..) if draw.chance(25) => {
            let literal = kind.literal(draw);
            out.put(&format!("{name} = {literal} + {name}"));
        }
        Kind::Map(key, value, false) if draw.chance(50) => {
            out.put(&format!("{name}["));
            out.value(draw, key, 1);
            out.put("] = ");
            out.value(draw, value, 15);
        }
        Kind::Map(key, _, _) if draw.chance(40) => {
            let keys = Kind::Set(key.clone(), false).literal(draw);
            out.put(&format!("{name} = {name} - {keys}"));
        }
        Kind::Udt(_, fields, _) => {
            let (field, kind) = draw.one(fields);
            out.put(&format!("{name}.{field} = "));
            out.value(draw, kind, 15);
        }
        _ => {
            let literal = kind.literal(draw);
            if draw.chance(30) {
                out.put(&format!("{name} {}= {literal}", operator(draw)));
            } else {
                out.put(&format!("{name} = {name} {} {literal}", operator(draw)));
            }
        }
    }
}

fn delete(draw: &mut Draw, table: &GeneratedTable, stamped: bool, out: &mut Written) {
    out.put("DELETE");
    let values = table.values();
    let cells = !values.is_empty() && draw.chance(45);
    if cells {
        for (at, column) in draw.some(&values, 20).iter().enumerate() {
            out.put(if at > 0 { ", " } else { " " });
            out.put(&column.name);
            match &column.kind {
                Kind::Map(key, _, _) | Kind::Set(key, _) if draw.chance(60) => {
                    out.put("[");
                    out.value(draw, key, 1);
                    out.put("]");
                }
                Kind::List(..) if draw.chance(30) => out.put(&format!("[{}]", draw.below(3))),
                Kind::Udt(_, fields, false) if draw.chance(60) => {
                    let field = &draw.one(fields).0;
                    out.put(&format!(".{field}"));
                }
                _ => {}
            }
        }
    }
    out.put(&format!(" FROM {}", table.name));
    using(draw, table.timestamps && stamped, out);
    if partition(draw, table, out) && draw.chance(85) {
        let whole = cells && draw.chance(90);
        clustering(draw, table, whole, out);
    }
    if draw.chance(1) && !table.regulars.is_empty() {
        out.put(" AND ");
        in_list(draw, draw.clone().one(&table.regulars), out);
    }
    if table.conditions && draw.chance(15) {
        condition(draw, table, out);
    }
}
