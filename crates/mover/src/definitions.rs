//! The definitions of tables beyond their columns, on both sides: options and indexes. Masks are in `masks`.
//!
//! `carry` makes them equal, and `schema` those of tables that are at the target before the move.
//!
//! Source: `system_schema.tables` and `system_schema.indexes` (`SchemaKeyspace`); options by version as in `schema`.

use crate::attempts::ask;
use crate::forms;
use crate::masks::{self, Masks};
use crate::versions::{is_known, major_minor};
use helenus_cluster::{Cluster, ClusterError};
use helenus_cql::LocalBackend;
use helenus_model::schema::{Index, IndexKind, Keyspace, Table, TableOptions};
use helenus_model::types::{Elements, quote_identifier};
use helenus_wire::native::{Consistency, Value};
use std::collections::BTreeMap;

/// Parts of a definition, each with its text: an option by its name, `index NAME`, `mask COLUMN`. Among those that the target has taken, an
/// index without text is one that the target is to be asked for again (`TableState::ask_for_indexes`).
pub(crate) type Items = BTreeMap<String, String>;

/// The item that is the keyspace's, in the definition of each of its tables.
const DURABLE_WRITES: &str = "durable_writes";

/// Begin of the name of an item that is an index.
const INDEX: &str = "index ";

fn index_item(name: &str) -> String {
    format!("{INDEX}{name}")
}

/// Whether an item is an index.
pub(crate) fn is_index(item: &str) -> bool {
    item.starts_with(INDEX)
}

fn mask_item(column: &str) -> String {
    format!("mask {column}")
}

/// A difference of definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The item that differs.
    pub(crate) item: String,
    /// In words.
    pub(crate) text: String,
    /// The statements that end it; none if only an operator can say which side is right.
    pub(crate) statements: Vec<String>,
    /// Whether clients would see it after a cut: an index that statements need, rows that expire. Other differences do not refuse a cut.
    pub(crate) is_seen: bool,
    /// Whether no rollback could bring back what is written there after a cut.
    pub(crate) is_one_way: bool,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
enum OptionValue {
    Text(String),
    Int(i32),
    Real(f64),
    Flag(bool),
    Map(BTreeMap<String, String>),
}

/// An option: its name in `system_schema.tables` and in CQL, its value here.
type Named = (&'static str, OptionValue);

/// The options of a table, but `cdc`, which is left out there, and `extensions`, which have no meaning for a node.
fn own_options(options: &TableOptions) -> [Named; 17] {
    [
        ("additional_write_policy", OptionValue::Text(options.additional_write_policy.clone())),
        ("allow_auto_snapshot", OptionValue::Flag(options.allow_auto_snapshot)),
        ("bloom_filter_fp_chance", OptionValue::Real(options.bloom_filter_fp_chance)),
        ("caching", OptionValue::Map(options.caching.clone())),
        ("comment", OptionValue::Text(options.comment.clone())),
        ("compaction", OptionValue::Map(options.compaction.clone())),
        ("compression", OptionValue::Map(options.compression.clone())),
        ("crc_check_chance", OptionValue::Real(options.crc_check_chance)),
        ("default_time_to_live", OptionValue::Int(options.default_time_to_live_s)),
        ("gc_grace_seconds", OptionValue::Int(options.gc_grace_seconds)),
        ("incremental_backups", OptionValue::Flag(options.incremental_backups)),
        ("max_index_interval", OptionValue::Int(options.max_index_interval)),
        ("memtable", OptionValue::Text(options.memtable.clone().unwrap_or_else(|| "default".to_owned()))),
        ("memtable_flush_period_in_ms", OptionValue::Int(options.memtable_flush_period_in_ms)),
        ("min_index_interval", OptionValue::Int(options.min_index_interval)),
        ("read_repair", OptionValue::Text(options.read_repair.clone())),
        ("speculative_retry", OptionValue::Text(options.speculative_retry.clone())),
    ]
}

impl OptionValue {
    /// The value in a cell of the target, which has the type of the one here.
    fn there(&self, cell: &[u8]) -> Option<OptionValue> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(match self {
            OptionValue::Text(_) => OptionValue::Text(text(cell)),
            OptionValue::Int(_) => OptionValue::Int(i32::from_be_bytes(*cell.first_chunk()?)),
            OptionValue::Real(_) => OptionValue::Real(f64::from_be_bytes(*cell.first_chunk()?)),
            OptionValue::Flag(_) => OptionValue::Flag(*cell.first()? != 0),
            OptionValue::Map(_) => OptionValue::Map(text_map(cell)),
        })
    }

    fn shown(&self) -> String {
        match self {
            OptionValue::Text(text) => format!("'{text}'"),
            OptionValue::Int(number) => number.to_string(),
            OptionValue::Real(number) => number.to_string(),
            OptionValue::Flag(flag) => flag.to_string(),
            OptionValue::Map(map) => {
                let pairs: Vec<String> =
                    map.iter().map(|(key, value)| format!("'{key}': '{value}'")).collect();
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }
}

fn text_map(cell: &[u8]) -> BTreeMap<String, String> {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let (mut map, mut elements) = (BTreeMap::new(), Elements::of_map(cell));
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        map.insert(text(key), text(value));
    }
    map
}

/// The kind of ordinary indexes.
const COMPOSITES: &str = "COMPOSITES";

/// An index at the target: its kind and its options, the target among them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TargetIndex {
    kind: String,
    options: BTreeMap<String, String>,
}

impl TargetIndex {
    fn of(index: &Index) -> TargetIndex {
        let kind = match index.kind {
            IndexKind::Custom => "CUSTOM",
            // Those of kind KEYS are made as ordinary ones (`forms::as_made`).
            IndexKind::Keys | IndexKind::Composites => COMPOSITES,
        };
        TargetIndex { kind: kind.to_owned(), options: index.options.clone() }
    }
}

/// A table at the target.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetTable {
    /// Its identity.
    pub(crate) id: String,
    /// Cells of its options.
    options: BTreeMap<String, Vec<u8>>,
    indexes: BTreeMap<String, TargetIndex>,
    /// That of its keyspace, if the target shows it.
    durable_writes: Option<bool>,
}

/// The definitions of a keyspace's tables at the target, by table. `only`: of this table alone.
///
/// # Errors
/// They cannot be read.
pub(crate) async fn there(
    cluster: &Cluster,
    (keyspace, only): (&str, Option<&str>),
) -> Result<BTreeMap<String, TargetTable>, ClusterError> {
    let version = major_minor(&cluster.topology().oldest_release());
    let names = own_options(&TableOptions::default()).map(|(name, _)| name);
    let known: Vec<&str> = names.into_iter().filter(|name| is_known(name, version)).collect();
    let text = format!(
        "SELECT table_name, id, {} FROM system_schema.tables WHERE keyspace_name = ?{}",
        known.join(", "),
        of_one(only)
    );
    let of_keyspace: Vec<Value<'_>> =
        [Some(keyspace), only].into_iter().flatten().map(|name| Value::Bytes(name.as_bytes())).collect();
    let answer = ask(cluster, &text, &of_keyspace, Consistency::One).await?;
    let durable_writes = durable_writes(cluster, keyspace).await?;
    let mut tables: BTreeMap<String, TargetTable> = BTreeMap::new();
    for row in answer.rows()?.iter() {
        let row = row?;
        let mut cells = row.cells();
        let mut text = || String::from_utf8_lossy(cells.next().flatten().unwrap_or_default()).into_owned();
        let name = text();
        let id = cells.next().flatten().unwrap_or_default();
        let id = id.iter().fold(String::new(), |all, byte| all + &format!("{byte:02x}"));
        let options = known.iter().zip(cells);
        let options = options.filter_map(|(name, cell)| Some(((*name).to_owned(), cell?.to_vec())));
        let table = TargetTable { id, options: options.collect(), indexes: BTreeMap::new(), durable_writes };
        tables.insert(name, table);
    }
    let text = format!(
        "SELECT table_name, index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = ?{}",
        of_one(only)
    );
    let answer = ask(cluster, &text, &of_keyspace, Consistency::One).await?;
    for row in answer.rows()?.iter() {
        let row = row?;
        let cells: Vec<&[u8]> = row.cells().map(Option::unwrap_or_default).collect();
        let [table, name, kind, options] = cells[..] else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(table) = tables.get_mut(&text(table)) {
            let kind = text(kind);
            let kind = if kind == "KEYS" { COMPOSITES.to_owned() } else { kind };
            let index = TargetIndex { kind, options: text_map(options) };
            table.indexes.insert(text(name), index);
        }
    }
    Ok(tables)
}

/// Whether a keyspace of the target writes to the commit log.
async fn durable_writes(cluster: &Cluster, keyspace: &str) -> Result<Option<bool>, ClusterError> {
    let text = "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let answer = ask(cluster, text, &[Value::Bytes(keyspace.as_bytes())], Consistency::One).await?;
    let row = answer.rows()?.iter().next().transpose()?;
    Ok(row.and_then(|row| Some(*row.cells().next()??.first()? != 0)))
}

/// The condition that reads one table of a keyspace; its value follows the keyspace.
pub(crate) fn of_one(table: Option<&str>) -> &'static str {
    if table.is_some() { " AND table_name = ?" } else { "" }
}

/// A table here, the one of its name there, and their masks.
pub(crate) struct Both<'d> {
    pub(crate) keyspace: &'d Keyspace,
    pub(crate) table: &'d Table,
    pub(crate) there: &'d TargetTable,
    pub(crate) masks: &'d Masks,
    /// What the move has made or found equal there: an index that is gone here since is dropped there.
    pub(crate) carried: &'d Items,
}

/// How the definition of a table differs at the target.
pub(crate) fn differences(both: &Both<'_>) -> Vec<Difference> {
    let (table, there) = (&forms::as_made(both.table), both.there);
    let (options, indexes) = LocalBackend::table_parts(both.keyspace, table);
    let name = format!("{}.{}", table.keyspace, table.name);
    let quoted = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    let mut found: Vec<Difference> = of_keyspace(both).into_iter().collect();
    for (option, here) in own_options(&table.options) {
        let Some(of_target) = there.options.get(option).and_then(|cell| here.there(cell)) else { continue };
        if of_target == here {
            continue;
        }
        let setting = options.iter().find(|text| text.split(' ').next() == Some(option));
        found.push(Difference {
            item: option.to_owned(),
            text: format!(
                "{name}: {option} is {} here and {} at the target",
                here.shown(),
                of_target.shown()
            ),
            statements: setting.map(|text| format!("ALTER TABLE {quoted} WITH {text}")).into_iter().collect(),
            is_seen: option == "default_time_to_live",
            is_one_way: false,
        });
    }
    let drop_index = |index: &str| {
        format!("DROP INDEX IF EXISTS {}.{}", quote_identifier(&table.keyspace), quote_identifier(index))
    };
    for (index, definition) in &table.indexes {
        let create = indexes.get(&**index).cloned();
        let wanted = TargetIndex::of(definition);
        match there.indexes.get(&**index) {
            None => found.push(Difference {
                item: index_item(index),
                text: format!("{name}: the target has no index {index}"),
                statements: create.into_iter().collect(),
                is_seen: true,
                is_one_way: false,
            }),
            Some(of_target) if *of_target != wanted => {
                // One that an operator has made there meanwhile stays: its text is not known to be ours.
                let carried = both.carried.get(&index_item(index));
                let is_carried = carried.is_some_and(|text| !text.is_empty());
                let statements = create.filter(|_| is_carried).map(|create| vec![drop_index(index), create]);
                found.push(Difference {
                    item: index_item(index),
                    text: format!(
                        "{name}: the index {index} is {} {} here and {} {} at the target; DROP INDEX there, and helenus move resume makes it anew",
                        wanted.kind,
                        OptionValue::Map(wanted.options.clone()).shown(),
                        of_target.kind,
                        OptionValue::Map(of_target.options.clone()).shown()
                    ),
                    statements: statements.unwrap_or_default(),
                    is_seen: true,
                    is_one_way: false,
                });
            }
            Some(_) => {}
        }
    }
    for index in there.indexes.keys().filter(|index| !table.indexes.contains_key(&***index)) {
        let item = index_item(index);
        let is_carried = both.carried.contains_key(&item);
        found.push(Difference {
            item,
            text: format!("{name}: only the target has an index {index}"),
            statements: if is_carried { vec![drop_index(index)] } else { Vec::new() },
            is_seen: false,
            is_one_way: false,
        });
    }
    found.extend(masks::wanted(table, both.masks).into_iter().map(|wanted| Difference {
        item: mask_item(&wanted.column),
        text: wanted.text,
        statements: vec![wanted.statement],
        is_seen: true,
        is_one_way: false,
    }));
    found
}

/// How the keyspace of a table differs at the target, but by its replication.
fn of_keyspace(both: &Both<'_>) -> Option<Difference> {
    let (name, here) = (&both.keyspace.name, both.keyspace.durable_writes);
    let there = both.there.durable_writes.filter(|there| *there != here)?;
    Some(Difference {
        item: DURABLE_WRITES.to_owned(),
        text: format!("keyspace {name}: {DURABLE_WRITES} is {here} here and {there} at the target"),
        statements: vec![format!("ALTER KEYSPACE {} WITH {DURABLE_WRITES} = {here}", quote_identifier(name))],
        is_seen: false,
        is_one_way: false,
    })
}

/// What `carry` makes equal, item by item.
pub(crate) fn items(keyspace: &Keyspace, table: &Table) -> Items {
    let (options, indexes) = LocalBackend::table_parts(keyspace, table);
    let name = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
    let options = options.into_iter().map(|text| (name(&text), text)).filter(|(name, _)| name != "cdc");
    let indexes = indexes.into_iter().map(|(index, text)| (index_item(&index), text));
    let masks = table.masks.iter().map(|(column, mask)| (mask_item(column), mask.to_string()));
    let of_keyspace = (DURABLE_WRITES.to_owned(), keyspace.durable_writes.to_string());
    options.chain(indexes).chain(masks).chain([of_keyspace]).collect()
}

/// The items without which a definition has no such part, of a table that the move has made and that is there now: what is dropped here
/// afterwards is dropped there.
pub(crate) fn made(keyspace: &Keyspace, table: &Table, there: &TargetTable) -> Items {
    let is_made = |item: &String| match item.strip_prefix(INDEX) {
        Some(index) => there.indexes.contains_key(index),
        None => item.starts_with("mask "),
    };
    items(keyspace, table).into_iter().filter(|(item, _)| is_made(item)).collect()
}
