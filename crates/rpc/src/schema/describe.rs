//! Creates definitions from the schema (`ThriftConversion.toThrift`).

use crate::family::{Family, declared_name, is_shown};
use crate::name::Comparator;
use helenus_model::schema::{Column, ColumnKind, IndexKind, Keyspace, TARGET_OPTION, Table};
use helenus_model::types::{CqlType, composite_class_name};
use helenus_wire::thrift::{CfDef, ColumnDef, IndexType, KsDef, Map, Text};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default compaction thresholds (`CompactionParams`).
const MIN_THRESHOLD: i32 = 4;
const MAX_THRESHOLD: i32 = 32;

/// A keyspace with the column families that RPC can use.
pub(super) fn keyspace(keyspace: &Keyspace) -> KsDef<'_> {
    let class = keyspace.replication.get("class").map_or("", String::as_str);
    let options = keyspace.replication.iter().filter(|(name, _)| *name != "class");
    let options = options.map(|(name, value)| (Cow::from(name.as_str()), Cow::from(value.as_str())));
    let tables = keyspace.tables.values().filter(|table| is_shown(table));
    KsDef {
        name: Cow::from(&*keyspace.name),
        strategy_class: Cow::from(class),
        strategy_options: Some(Map(options.collect())),
        replication_factor: None,
        cf_defs: tables.filter_map(family).collect(),
        durable_writes: Some(keyspace.durable_writes),
    }
}

/// The definition of a column family; `None` if the table is not one.
pub(super) fn family(table: &Arc<Table>) -> Option<CfDef<'_>> {
    let family = Family::new(table).ok()?;
    let options = &table.options;
    let (caching, cells) = caching(&options.caching);
    let compaction: Vec<(Text<'_>, Text<'_>)> =
        options.compaction.iter().filter(|(name, _)| *name != "class").map(pair).collect();
    let threshold = |name: &str, default| {
        options.compaction.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    Some(CfDef {
        keyspace: Cow::from(&*table.keyspace),
        name: Cow::from(&*table.name),
        column_type: Some(Cow::from(if family.is_super() { "Super" } else { "Standard" })),
        comparator_type: Some(family.comparator_within(None).class_name().into()),
        subcomparator_type: family.is_super().then(|| family.comparator.class_name().into()),
        comment: Some(Cow::from(options.comment.as_str())),
        read_repair_chance: Some(0.0),
        column_metadata: Some(columns(table, &family)),
        gc_grace_seconds: Some(options.gc_grace_seconds),
        default_validation_class: Some(if family.counts {
            CqlType::Counter.class_name().into()
        } else {
            family.value_type.class_name().into()
        }),
        id: None,
        min_compaction_threshold: Some(threshold("min_threshold", MIN_THRESHOLD)),
        max_compaction_threshold: Some(threshold("max_threshold", MAX_THRESHOLD)),
        key_validation_class: Some(key_class(table).into()),
        key_alias: match &table.partition_key[..] {
            [only] => Some(Cow::from(only.name.as_bytes())),
            _ => None,
        },
        compaction_strategy: Some(Cow::from(options.compaction.get("class").map_or("", String::as_str))),
        compaction_strategy_options: Some(Map(compaction)),
        compression_options: Some(Map(compression(table))),
        bloom_filter_fp_chance: Some(options.bloom_filter_fp_chance),
        caching: Some(Cow::from(caching)),
        dclocal_read_repair_chance: Some(0.0),
        memtable_flush_period_in_ms: Some(options.memtable_flush_period_in_ms),
        default_time_to_live: Some(options.default_time_to_live_s),
        index_interval: None,
        speculative_retry: Some(retry(&options.speculative_retry)),
        triggers: Some(Vec::new()),
        cells_per_row_to_cache: Some(cells),
        min_index_interval: Some(options.min_index_interval),
        max_index_interval: Some(options.max_index_interval),
    })
}

fn pair<'t>((name, value): (&'t String, &'t String)) -> (Text<'t>, Text<'t>) {
    (Cow::from(name.as_str()), Cow::from(value.as_str()))
}

/// The validator of row keys.
pub(super) fn key_class(table: &Table) -> String {
    match &table.partition_key[..] {
        [only] => only.ty.class_name(),
        several => {
            let types: Vec<_> = several.iter().map(|column| (column.ty.clone(), false)).collect();
            composite_class_name(&types)
        }
    }
}

fn columns<'t>(table: &'t Table, family: &Family) -> Vec<ColumnDef<'t>> {
    let kind = if family.is_super() { ColumnKind::Regular } else { ColumnKind::Static };
    let Comparator::Plain(comparator, _) = &family.comparator else { return Vec::new() };
    let columns = table.columns_of(kind).iter().filter(|column| column.id != family.value);
    columns.filter_map(|column| column_def(table, comparator, column)).collect()
}

fn column_def<'t>(table: &'t Table, comparator: &CqlType, column: &'t Column) -> Option<ColumnDef<'t>> {
    let mut indexes = table.indexes.values().filter(|index| index.part().1 == *column.name);
    // A definition can describe only one index of a column.
    let index = indexes.next().filter(|_| indexes.next().is_none());
    let options = index.map(|index| {
        let options = index.options.iter().filter(|(name, _)| *name != TARGET_OPTION);
        options.map(pair).collect::<Vec<_>>()
    });
    Some(ColumnDef {
        name: declared_name(comparator, column)?.into(),
        validation_class: column.ty.class_name().into(),
        index_type: index.map(|index| match index.kind {
            IndexKind::Keys => IndexType::Keys,
            IndexKind::Custom => IndexType::Custom,
            IndexKind::Composites => IndexType::Composites,
        }),
        index_name: index.map(|index| Cow::from(&*index.name)),
        index_options: options.filter(|options| !options.is_empty()).map(Map),
    })
}

fn compression(table: &Table) -> Vec<(Text<'_>, Text<'_>)> {
    let map = &table.options.compression;
    let class = map.get("class").filter(|class| !class.is_empty());
    let Some(class) = class.filter(|_| map.get("enabled").is_none_or(|text| text != "false")) else {
        return Vec::new();
    };
    let mut options = vec![(Cow::from("sstable_compression"), Cow::from(class.as_str()))];
    for (name, value) in map.iter().filter(|(name, _)| *name != "class" && *name != "enabled") {
        let name = if name == "chunk_length_in_kb" { "chunk_length_kb" } else { name };
        options.push((Cow::from(name), Cow::from(value.as_str())));
    }
    options
}

/// The caching option in the old form: which caches are used, and the number of cells of a row.
fn caching(map: &BTreeMap<String, String>) -> (&'static str, Text<'_>) {
    let is = |name: &str, word: &str| map.get(name).is_some_and(|value| value == word);
    let rows = map.get("rows_per_partition").map_or("NONE", String::as_str);
    let text = match (is("keys", "ALL"), rows != "NONE") {
        (true, true) => "ALL",
        (true, false) => "KEYS_ONLY",
        (false, true) => "ROWS_ONLY",
        (false, false) => "NONE",
    };
    (text, Cow::from(if rows == "NONE" { "0" } else { rows }))
}

fn retry(policy: &str) -> Text<'_> {
    match policy.strip_suffix('p') {
        Some(number) => format!("{number}PERCENTILE").into(),
        None => Cow::from(if policy == "NEVER" { "NONE" } else { policy }),
    }
}
