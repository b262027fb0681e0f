//! What a SELECT reads: its kind, bounds, order, filter and limits.

use super::step::{Step, counted};
use crate::plan::select::{Forecast, ReadKind};
use helenus_engine::read::{Partitions, ReadCommand};
use helenus_model::filter::ClusteringFilter;
use helenus_model::index::IndexLookup;
use helenus_model::types::quote_identifier;

/// The lines that precede the sources.
pub(crate) fn read_steps(forecast: &Forecast<'_>) -> Vec<Step> {
    let table = forecast.table;
    let about = match forecast.kind {
        ReadKind::Nothing => "no row can match; nothing is read",
        ReadKind::Virtual => "rows are made when asked for; nothing stored is read",
        ReadKind::Point => "one row by its primary key",
        ReadKind::Names => "rows by their primary keys",
        ReadKind::Slice => "rows between two bounds",
        ReadKind::Partition => "whole partitions",
        ReadKind::TokenRange => "all partitions of a range of tokens",
        ReadKind::RangeScan => "every partition of the table",
        ReadKind::Index => "rows that an index leads to",
    };
    let mut steps = vec![Step::new(
        "read",
        kind_word(forecast.kind),
        format!("{}.{}: {about}", table.keyspace, table.name),
    )];
    let Some(command) = &forecast.command else { return steps };
    for search in &forecast.indexes {
        let several = if forecast.indexes.len() > 1 { "if it has the fewest: " } else { "" };
        let detail = match &search.lookup {
            IndexLookup::Equal(_) => "entries of one value, in the order of rows; rows are read by key",
            IndexLookup::Between(..) => {
                "entries of a range of values, gathered and sorted; rows are read by key"
            }
        };
        let index = &search.shape.index;
        let target = format!("{} ({})", quote_identifier(&index.name), index.target());
        steps.push(Step::new("index", target, format!("{several}{detail}")));
    }
    steps.push(partitions(forecast, command));
    if !table.clustering.is_empty() {
        steps.push(rows(forecast, command));
        steps.push(order(command));
    }
    if !forecast.where_text.filters.is_empty() {
        let detail = "tested on each row after it was read";
        steps.push(Step::new("filter", forecast.where_text.filters.clone(), detail));
    }
    if forecast.is_aggregate {
        steps.push(Step::new("aggregate", "one row", "every matching row is read and folded into it"));
    }
    if forecast.is_sorted {
        let detail = "ORDER BY with IN: the rows of all partitions are kept and sorted";
        steps.push(Step::new("sort", "in memory", detail));
    }
    if let Some(column) = forecast.nearest {
        let detail = "every row is measured; the nearest are kept and sorted";
        steps.push(Step::new("nearest", quote_identifier(column), detail));
    }
    steps.extend(limits(forecast));
    steps
}

fn kind_word(kind: ReadKind) -> &'static str {
    match kind {
        ReadKind::Nothing => "nothing",
        ReadKind::Virtual => "virtual table",
        ReadKind::Point => "point",
        ReadKind::Names => "names",
        ReadKind::Slice => "slice",
        ReadKind::Partition => "partition",
        ReadKind::TokenRange => "token range",
        ReadKind::RangeScan => "range scan",
        ReadKind::Index => "index",
    }
}

fn partitions(forecast: &Forecast<'_>, command: &ReadCommand) -> Step {
    let words = &forecast.where_text.partitions;
    match &command.partitions {
        Partitions::Keys(keys) => {
            let detail = match keys.as_slice() {
                [key] => format!("1 partition, token {}", key.hash.token.0),
                keys => format!("{} partitions, one after the other", keys.len()),
            };
            Step::new("partition", words.clone(), detail)
        }
        Partitions::Range(_) if words.is_empty() => {
            Step::new("partition", "all", "in the order of their tokens")
        }
        Partitions::Range(_) => Step::new("partition", words.clone(), "in the order of their tokens"),
    }
}

fn rows(forecast: &Forecast<'_>, command: &ReadCommand) -> Step {
    let bounds = &forecast.where_text.rows;
    let target = if bounds.is_empty() { "all" } else { bounds };
    let mut detail = match &*command.filter {
        _ if bounds.is_empty() => "no bound".to_owned(),
        ClusteringFilter::Names(names) => counted(names.len() as u64, "name"),
        ClusteringFilter::Slices(slices) => counted(slices.len() as u64, "slice"),
    };
    if forecast.is_distinct {
        detail.push_str(", no more than the first row of a partition");
    }
    if command.statics {
        detail.push_str(", and the static row");
    }
    Step::new("rows", target, detail)
}

fn order(command: &ReadCommand) -> Step {
    let one = |column: &helenus_model::schema::Column| {
        let word = if column.reversed == command.reversed { "ASC" } else { "DESC" };
        format!("{} {word}", quote_identifier(&column.name))
    };
    let columns: Vec<String> = command.table.clustering.iter().map(one).collect();
    let detail = if command.reversed { "reversed: from the last row to the first" } else { "as stored" };
    Step::new("order", columns.join(", "), detail)
}

fn limits(forecast: &Forecast<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    if forecast.per_partition != u64::MAX {
        let target = counted(forecast.per_partition, "row");
        steps.push(Step::new("limit", target, "of each partition"));
    }
    if forecast.limit != u64::MAX {
        let whole = forecast.is_aggregate || forecast.is_sorted;
        let detail = if whole { "of the answer; it shortens no reading" } else { "reading stops there" };
        steps.push(Step::new("limit", counted(forecast.limit, "row"), detail));
    }
    steps
}
