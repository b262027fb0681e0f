//! ALTER TABLE: columns come and go.

use super::Draw;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};

/// The statement, and the table as it is afterwards.
pub fn alter(draw: &mut Draw, table: &mut GeneratedTable) -> String {
    let head = format!("ALTER TABLE {}", table.name);
    if table.regulars.is_empty() || draw.chance(60) {
        let column = added(draw, table);
        let text = format!("{head} ADD {} {}", column.name, column.kind);
        table.regulars.push(column);
        return text;
    }
    let column = table.regulars.remove(draw.below(table.regulars.len()));
    let text = format!("{head} DROP {}", column.name);
    // Its cells would come back where clients say the timestamps: what is hidden then depends on flushes.
    if !table.timestamps {
        table.dropped.push(column);
    }
    text
}

fn added(draw: &mut Draw, table: &mut GeneratedTable) -> GeneratedColumn {
    if !table.dropped.is_empty() && draw.chance(50) {
        return table.dropped.remove(draw.below(table.dropped.len()));
    }
    table.added += 1;
    let kind = if table.counters { Kind::Simple("counter") } else { Kind::of_value(draw, &[]) };
    GeneratedColumn { name: format!("w{}", table.added), kind }
}
