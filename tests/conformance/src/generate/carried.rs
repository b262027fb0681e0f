//! Two SELECTs of one table, the second of which is asked with a paging state of the first: alike in some of their parts.

use super::Draw;
use super::schema::GeneratedTable;
use super::select::{filter, group_by, names, order_by, token};
use super::terms::{Written, clustering, partition};

/// A SELECT that gives states, and one that takes them.
pub fn carried(draw: &mut Draw, table: &GeneratedTable) -> (String, String) {
    let from = Parts::draw(draw, table);
    let mut to = Parts::draw(draw, table);
    // Other partitions, IN and ranges, or the same, perhaps of fewer rows.
    match draw.below(10) {
        0..=2 => {}
        3..=6 => to.filter.clone_from(&from.filter),
        _ => {
            let mut narrower = Written { text: from.filter.clone(), ..Written::default() };
            clustering(draw, table, false, &mut narrower);
            to.filter = narrower.text;
        }
    }
    if draw.chance(40) {
        to.selection.clone_from(&from.selection);
        to.group.clone_from(&from.group);
    }
    (from.text(table), to.text(table))
}

struct Parts {
    selection: String,
    filter: String,
    group: String,
    order: String,
    limits: String,
}

impl Parts {
    fn draw(draw: &mut Draw, table: &GeneratedTable) -> Parts {
        let of = |write: &mut dyn FnMut(&mut Written)| {
            let mut out = Written::default();
            write(&mut out);
            out.text
        };
        let group = if draw.chance(20) { of(&mut |out| group_by(draw, table, out)) } else { String::new() };
        let selection = of(&mut |out| selection(draw, table, !group.is_empty(), out));
        let filter = of(&mut |out| restrictions(draw, table, out));
        let ordered = !table.clustering.is_empty() && filter.contains(" = ") && draw.chance(35);
        let order = if ordered { of(&mut |out| order_by(draw, table, out)) } else { String::new() };
        let mut limits = String::new();
        if draw.chance(20) {
            limits.push_str(&format!(" PER PARTITION LIMIT {}", draw.between(1, 4)));
        }
        if draw.chance(30) {
            limits.push_str(&format!(" LIMIT {}", draw.between(2, 12)));
        }
        Parts { selection, filter, group, order, limits }
    }

    fn text(&self, table: &GeneratedTable) -> String {
        let Parts { selection, filter, group, order, limits } = self;
        format!("SELECT {selection} FROM {}{filter}{group}{order}{limits} ALLOW FILTERING", table.name)
    }
}

fn selection(draw: &mut Draw, table: &GeneratedTable, groups: bool, out: &mut Written) {
    let keys = names(&table.partition).join(", ");
    match draw.below(if groups { 3 } else { 9 }) {
        0 => out.put(&keys),
        1 => out.put(&format!("{keys}, count(*)")),
        2 => out.put("count(*)"),
        3 => {
            let statics = names(&table.statics);
            out.put(&format!("DISTINCT {}", [&[&*keys][..], &statics].concat().join(", ")));
        }
        4 => out.put(&[names(&table.partition), names(&table.clustering)].concat().join(", ")),
        _ => out.put("*"),
    }
}

fn restrictions(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let any = match draw.below(10) {
        0..=5 => {
            let any = partition(draw, table, out);
            if any && draw.chance(30) {
                clustering(draw, table, false, out);
            }
            any
        }
        6 => {
            token(draw, table, out);
            true
        }
        _ => false,
    };
    if draw.chance(20) {
        out.put(if any { " AND " } else { " WHERE " });
        filter(draw, table, out);
    }
}
