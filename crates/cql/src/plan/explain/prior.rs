//! What a write reads before it writes: rows for conditions and list operations, and counters.

use super::step::{Step, counted};
use super::writing::key_text;
use crate::plan::modify::ReadSet;

/// Partitions that get a line of their own.
const PARTITIONS_SHOWN_MAX: usize = 24;

/// The lines of a write that reads rows first. If `is_conditional`, the rows decide whether it writes.
pub(crate) fn prior_steps(word: &'static str, wanted: &ReadSet, is_conditional: bool) -> Vec<Step> {
    let detail =
        if is_conditional { "if the rows read first allow it" } else { "computed from the rows read first" };
    let mut steps = vec![Step::new("write", word, detail)];
    let lock = "locked from the read to the write, against other writes that read first";
    steps.push(Step::new("lock", counted(wanted.partitions().count() as u64, "partition"), lock));
    for partition in wanted.partitions().take(PARTITIONS_SHOWN_MAX) {
        let table = &partition.table;
        let rows = match (partition.first_row, partition.rows.len() as u64) {
            (true, _) => "its first row".to_owned(),
            (false, rows) => counted(rows, "row"),
        };
        let statics = if partition.statics { ", and the static row" } else { "" };
        let detail = format!("{}.{}: {rows}{statics}", table.keyspace, table.name);
        steps.push(Step::new("read first", key_text(table, &partition.key), detail));
    }
    steps
}

/// The line of a write to counters.
pub(crate) fn counter_step() -> Step {
    Step::new("read first", "counters", "read and written under the lock of its partition; the sum is logged")
}

/// Whether the conditions were met.
pub(crate) fn verdict_step(applied: bool) -> Step {
    let (target, detail) = match applied {
        true => ("applied", "the conditions were met"),
        false => ("not applied", "nothing was written"),
    };
    Step::new("condition", target, detail)
}
