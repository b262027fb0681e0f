//! Random tables: which columns, which types, which options.

use crate::random::Random;
use crate::values::{Pool, long_texts, many_ints, pools};
use std::sync::Arc;

/// What a column stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Key,
    Clustering { desc: bool },
    Static,
    Regular,
}

/// The type of a column, not frozen where it has parts.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Simple(Arc<Pool>),
    Set(Arc<Pool>),
    List(Arc<Pool>),
    Map(Arc<Pool>, Arc<Pool>),
    /// Type `u`, whose fields are `f0`, `f1`.
    Fields(Vec<Arc<Pool>>),
    Counter,
}

impl Type {
    fn cql(&self) -> String {
        match self {
            Type::Simple(of) => of.cql.clone(),
            Type::Set(of) => format!("set<{}>", of.cql),
            Type::List(of) => format!("list<{}>", of.cql),
            Type::Map(key, value) => format!("map<{}, {}>", key.cql, value.cql),
            Type::Fields(_) => "u".into(),
            Type::Counter => "counter".into(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) ty: Type,
}

impl Column {
    /// The values of a column that is not in parts.
    pub(crate) fn pool(&self) -> &Pool {
        match &self.ty {
            Type::Simple(pool) => pool,
            other => unreachable!("{other:?} is not simple"),
        }
    }
}

/// An index on a column.
#[derive(Clone, Debug)]
pub(crate) struct IndexOn {
    pub(crate) name: String,
    /// The column, and how it stands in the statement: `v`, `keys(m)`.
    pub(crate) column: usize,
    pub(crate) target: String,
    pub(crate) is_attached: bool,
}

/// A table. Its columns are named by their place in `columns`: keys first, then clusterings, then the others.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<IndexOn>,
    pub(crate) options: String,
    /// Seconds; 0: none.
    pub(crate) default_ttl_s: u32,
}

impl Table {
    /// The columns of a place, by number.
    pub(crate) fn of(&self, fits: impl Fn(Place) -> bool) -> Vec<usize> {
        (0..self.columns.len()).filter(|index| fits(self.columns[*index].place)).collect()
    }

    pub(crate) fn keys(&self) -> Vec<usize> {
        self.of(|place| place == Place::Key)
    }

    pub(crate) fn clusterings(&self) -> Vec<usize> {
        self.of(|place| matches!(place, Place::Clustering { .. }))
    }

    pub(crate) fn statics(&self) -> Vec<usize> {
        self.of(|place| place == Place::Static)
    }

    pub(crate) fn is_counter(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.ty, Type::Counter))
    }

    /// The statements that make it.
    pub(crate) fn create(&self) -> Vec<String> {
        let columns: Vec<String> = (0..self.columns.len()).map(|column| self.definition(column)).collect();
        let names =
            |of: Vec<usize>| of.iter().map(|index| self.columns[*index].name.clone()).collect::<Vec<_>>();
        let clustering = names(self.clusterings());
        let key = format!("({})", names(self.keys()).join(", "));
        let primary = [vec![key], clustering].concat().join(", ");
        let order: Vec<String> = self
            .clusterings()
            .iter()
            .map(|index| {
                let column = &self.columns[*index];
                let desc = column.place == Place::Clustering { desc: true };
                format!("{} {}", column.name, if desc { "DESC" } else { "ASC" })
            })
            .collect();
        let order = if order.is_empty() {
            String::new()
        } else {
            format!("CLUSTERING ORDER BY ({}) AND ", order.join(", "))
        };
        let ttl = self.default_ttl_s;
        let mut statements = vec![format!(
            "CREATE TABLE {} ({}, PRIMARY KEY ({primary})) WITH {order}default_time_to_live = {ttl}{}",
            self.name,
            columns.join(", "),
            self.options
        )];
        statements.extend(self.indexes.iter().map(|index| self.index_statement(index)));
        statements
    }

    /// A column as CREATE and ALTER name it.
    pub(crate) fn definition(&self, column: usize) -> String {
        let column = &self.columns[column];
        let place = if column.place == Place::Static { " static" } else { "" };
        format!("{} {}{place}", column.name, column.ty.cql())
    }

    pub(crate) fn index_statement(&self, index: &IndexOn) -> String {
        let (custom, using) =
            if index.is_attached { ("CUSTOM ", " USING 'StorageAttachedIndex'") } else { ("", "") };
        format!("CREATE {custom}INDEX {} ON {} ({}){using}", index.name, self.name, index.target)
    }
}

/// How a run of operations is timed, which decides what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Every write has the server's timestamp: compactions purge at once, conditions and counters are allowed.
    Server,
    /// Writes have timestamps of a few, so that many are equal and come out of order.
    Client,
}

/// The type that tables may have a column of.
pub(crate) const CREATE_TYPE: &str = "CREATE TYPE u (f0 int, f1 text)";

const COMPACTION: &[&str] = &[
    "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'N'}",
    "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T2', 'target_sstable_size': '1MiB'}",
    "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4'}",
    "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2'}",
    "{'class': 'SizeTieredCompactionStrategy'}",
    "{'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '1'}",
    "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': '1', 'min_threshold': '2'}",
];

const COMPRESSION: &[&str] = &[
    "{'enabled': 'false'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '16'}",
    "{'class': 'SnappyCompressor', 'chunk_length_in_kb': '8'}",
    "{'class': 'DeflateCompressor', 'chunk_length_in_kb': '32'}",
    "{'class': 'ZstdCompressor', 'chunk_length_in_kb': '4', 'min_compress_ratio': '1.1'}",
];

const GRANULARITY: &[&str] = &["", "1KiB", "2KiB", "16KiB"];

/// A strategy of compaction and a compression, as WITH names them.
pub(crate) fn options(random: &mut Random) -> String {
    format!("compaction = {} AND compression = {}", random.pick(COMPACTION), random.pick(COMPRESSION))
}

/// A random table.
pub(crate) fn table(random: &mut Random, number: usize, timing: Timing) -> Table {
    let pools: Vec<Arc<Pool>> = pools().into_iter().map(Arc::new).collect();
    let any = |random: &mut Random| pools[random.below(pools.len())].clone();
    // The usual types are asked more than their share.
    let usual =
        |random: &mut Random| if random.chance(50) { pools[random.below(2)].clone() } else { any(random) };
    let mut columns = Vec::new();
    let mut add = |name: String, place, ty| columns.push(Column { name, place, ty });
    for index in 0..*random.pick(&[1, 1, 1, 2]) {
        add(format!("k{index}"), Place::Key, Type::Simple(usual(random)));
    }
    let clusterings = *random.pick(&[0, 1, 1, 2, 2, 3]);
    let is_wide = clusterings > 0 && random.chance(35);
    for index in 0..clusterings {
        let pool = if is_wide && index == 0 { Arc::new(many_ints(80)) } else { usual(random) };
        add(format!("c{index}"), Place::Clustering { desc: random.chance(45) }, Type::Simple(pool));
    }
    let is_counter = timing == Timing::Server && random.chance(20);
    let ty = |random: &mut Random| match random.below(100) {
        _ if is_counter => Type::Counter,
        0..60 => Type::Simple(usual(random)),
        60..70 => Type::Set(any(random)),
        70..80 => Type::List(usual(random)),
        80..91 => Type::Map(any(random), usual(random)),
        _ => Type::Fields(vec![pools[0].clone(), pools[1].clone()]),
    };
    if clusterings > 0 && random.chance(60) {
        for index in 0..1 + random.below(2) {
            add(format!("s{index}"), Place::Static, ty(random));
        }
    }
    for index in 0..random.below(5) + usize::from(is_counter) {
        let long = is_wide && index == 0 && !is_counter;
        add(
            format!("v{index}"),
            Place::Regular,
            if long { Type::Simple(Arc::new(long_texts())) } else { ty(random) },
        );
    }
    let granularity = *random.pick(GRANULARITY);
    let extensions = if granularity.is_empty() {
        String::new()
    } else {
        format!(" AND extensions = {{'helenus.row_index_granularity': '{granularity}'}}")
    };
    let options = format!(
        " AND {} AND bloom_filter_fp_chance = {} AND gc_grace_seconds = {}{extensions}",
        options(random),
        random.pick(&["0.01", "0.3", "1.0"]),
        random.pick(&["0", "864000"]),
    );
    let default_ttl_s = if !is_counter && random.chance(8) { 40 } else { 0 };
    let mut table =
        Table { name: format!("t{number}"), columns, indexes: Vec::new(), options, default_ttl_s };
    if !is_counter {
        table.indexes = indexes(random, &table);
    }
    table
}

fn indexes(random: &mut Random, table: &Table) -> Vec<IndexOn> {
    let mut found = Vec::new();
    for (column, of) in table.columns.iter().enumerate() {
        if !random.chance(if of.place == Place::Regular { 25 } else { 8 }) || of.place == Place::Key {
            continue;
        }
        let pools: &[&Arc<Pool>] = match &of.ty {
            Type::Simple(pool) | Type::Set(pool) | Type::List(pool) => &[pool],
            Type::Map(keys, values) => &[keys, values],
            Type::Fields(_) | Type::Counter => continue,
        };
        // Types that Cassandra's storage-attached indexes do not take.
        let is_taken = |pool: &&Arc<Pool>| pool.cql != "blob" && !pool.cql.starts_with("frozen");
        let is_attached = random.chance(50) && pools.iter().all(is_taken);
        let target = match &of.ty {
            Type::Simple(pool) if pool.cql.starts_with("frozen<list") => format!("full({})", of.name),
            Type::Simple(_) => of.name.clone(),
            Type::Set(_) | Type::List(_) => format!("values({})", of.name),
            Type::Map(..) => format!("{}({})", random.pick(&["keys", "values", "entries"]), of.name),
            Type::Fields(_) | Type::Counter => continue,
        };
        found.push(IndexOn { name: format!("i_{}_{}", table.name, of.name), column, target, is_attached });
    }
    found
}
