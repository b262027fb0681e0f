//! What the target of a move would not take, found before anything is made there, with the statement or the setting that helps.
//!
//! Called by `plan`. What concerns one table leaves that table out, what concerns a keyspace all its tables, and the others go; what concerns
//! the cluster, or is wrong in the order, is a problem of the whole move.

use crate::error::MoveError;
use crate::forms;
use crate::messages::{MoveOrder, PlanReport};
use crate::target::SETTLE;
use crate::threads::Threads;
use crate::type_parts::any_part;
use crate::versions::major_minor;
use helenus_cluster::{Cluster, Replication, Topology};
use helenus_cql::LocalBackend;
use helenus_cql::syntax::split_statements;
use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_engine::{Database, Error};
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowView;
use helenus_model::schema::{Keyspace, Table};
use helenus_model::types::{CqlType, quote_identifier};
use helenus_model::unfiltered::Unfiltered;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The last second of an expiry that nodes before 5.0 store, and those of `storage_compatibility_mode` other than NONE
/// (`Cell.MAX_DELETION_TIME_2038_LEGACY_CAP`).
const LAST_EXPIRY_S: i64 = i32::MAX as i64 - 1;
/// The largest message that a node takes by default, bytes: as large as a mutation (`DatabaseDescriptor`).
const MESSAGE_BYTES: u64 = 16 << 20;
/// The first version that has masks, vectors and storage-attached indexes.
const SINCE: (u32, u32) = (5, 0);
/// The classes of replication that keyspaces of users have.
const CLASSES: [&str; 3] = ["NetworkTopologyStrategy", "SimpleStrategy", "EverywhereStrategy"];
/// Partitions of a table that are looked at for undeclared columns.
const PARTITIONS: u64 = 100_000;

/// Finds what hinders single tables, by their names.
///
/// # Errors
/// The target's schema cannot be read; a table here cannot be read.
pub(crate) async fn of_tables(
    cluster: &Cluster,
    database: &Arc<Database>,
    tables: &[Arc<Table>],
    limits: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Vec<String>>, MoveError> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let threads = Threads::new(database.host());
    for table in tables {
        let name = format!("{}.{}", table.keyspace, table.name);
        let flags = forms::flags(cluster, (&table.keyspace, &table.name)).await?;
        let mut reasons = Vec::new();
        let hides = match &flags {
            Some(flags) => Table { flags: flags.clone(), ..Table::clone(table) }.is_static_compact(),
            None => table.is_static_compact(),
        };
        if table.is_super() {
            reasons.push(format!(
                "a super column family: Cassandra has none any more, and CQL no name for its column. Make a table of CQL here (CREATE \
                 TABLE {name}_flat (key .., column1 .., column2 .., value .., PRIMARY KEY (key, column1, column2))), copy the rows with \
                 COPY {name} TO and COPY {name}_flat FROM in helenus shell, and DROP TABLE {name} before the cut"
            ));
        } else if table.is_static_compact() && hides {
            let (of_thread, of) = (Arc::clone(database), Arc::clone(table));
            if threads.run(move || Ok(has_undeclared(&of_thread, &of)?)).await? {
                reasons.push(undeclared_words(database, table, flags.is_some()));
            }
        }
        if flags.is_none() && table.is_compact() && is_off(limits, "compact_tables_enabled") {
            reasons.push(
                "WITH COMPACT STORAGE, which the target does not allow: set compact_tables_enabled: true in cassandra.yaml at its nodes, \
                 or ALTER TABLE .. DROP COMPACT STORAGE here"
                    .to_owned(),
            );
        }
        if flags.is_none() && !table.masks.is_empty() && is_off(limits, "dynamic_data_masking_enabled") {
            reasons.push(
                "columns have masks, and the target does not allow them: set dynamic_data_masking_enabled: true in cassandra.yaml at its \
                 nodes, or ALTER TABLE .. ALTER .. DROP MASKED here"
                    .to_owned(),
            );
        }
        reasons.extend(expiry_words(cluster, database, table, limits));
        reasons.extend(newer_words(table, &cluster.topology().oldest_release()));
        if !reasons.is_empty() {
            found.insert(name, reasons);
        }
    }
    Ok(found)
}

/// What of a table a target of this version does not know.
fn newer_words(table: &Table, release: &str) -> Vec<String> {
    if major_minor(release) >= SINCE {
        return Vec::new();
    }
    let name = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    let is_vector = |ty: &CqlType| matches!(ty, CqlType::Vector { .. });
    let unknown = format!("which the target's version {release} does not have: upgrade it to 5.0");
    let mut found = Vec::new();
    for column in table.masks.keys() {
        found.push(format!(
            "column {column} has a mask, {unknown}, or ALTER TABLE {name} ALTER {} DROP MASKED here",
            quote_identifier(column)
        ));
    }
    for column in table.columns().filter(|column| any_part(&column.ty, &is_vector)) {
        found.push(format!("column {} is of vectors ({}), {unknown}", column.name, column.ty));
    }
    for index in table.indexes.values().filter(|index| index.is_sai()) {
        found.push(format!(
            "the index {} is a storage-attached one, {unknown}, or DROP INDEX {}.{} here",
            index.name,
            quote_identifier(&table.keyspace),
            quote_identifier(&index.name)
        ));
    }
    found
}

fn is_off(limits: &BTreeMap<String, String>, name: &str) -> bool {
    limits.get(name).is_some_and(|value| value == "false")
}

fn expiry_words(
    cluster: &Cluster,
    database: &Database,
    table: &Table,
    limits: &BTreeMap<String, String>,
) -> Option<String> {
    let ttl_s = i64::from(table.options.default_time_to_live_s);
    if ttl_s == 0 || database.now_s() + ttl_s <= LAST_EXPIRY_S {
        return None;
    }
    let way = late_expiries(&cluster.topology().oldest_release(), limits)?;
    Some(format!(
        "rows expire after {ttl_s} s (default_time_to_live), which is after 19 Jan 2038, and the target refuses such a TTL: {way}, or \
         ALTER TABLE here WITH a smaller default_time_to_live, if no row was written with the present one"
    ))
}

/// What lets a target of this version and these settings store an expiry after `LAST_EXPIRY_S`; `None` if it does.
fn late_expiries(release: &str, limits: &BTreeMap<String, String>) -> Option<&'static str> {
    let mode = limits.get("storage_compatibility_mode").map(String::as_str);
    match (major_minor(release) < (5, 0), mode) {
        (true, _) => Some("its version stores none; upgrade it to 5.0"),
        (false, Some("NONE") | None) => None,
        (false, Some(_)) => Some(
            "set storage_compatibility_mode: NONE in cassandra.yaml at its nodes, as after an upgrade that is done",
        ),
    }
}

/// A note for tables with TTLs, of statements or of an earlier default, that may end after what the target stores. `ttls_s`: the greatest
/// of each table. A node refuses such a TTL, or cuts it short by its `expiration_date_overflow_policy` (`ExpirationDateOverflowHandling`).
pub(crate) fn ttl_note(report: &PlanReport, ttls_s: &BTreeMap<String, u64>, now_s: i64) -> Option<String> {
    let way = late_expiries(&report.version, &report.limits)?;
    let is_late = |ttl_s: u64| now_s.saturating_add_unsigned(ttl_s) > LAST_EXPIRY_S;
    let late = ttls_s.iter().filter(|(_, ttl_s)| is_late(**ttl_s));
    let tables: Vec<String> = late.map(|(table, ttl_s)| format!("{table} ({ttl_s} s)")).collect();
    (!tables.is_empty()).then(|| {
        format!(
            "{}: rows have TTLs that may end after 19 Jan 2038. The target refuses such a row, and its table stops at it, unless \
             -Dcassandra.expiration_date_overflow_policy=CAP is set there: then it ends on that day, and verify lists it. {way}, or write \
             such rows here with a smaller TTL",
            tables.join(", ")
        )
    })
}

/// The way for a table with undeclared columns: the form that DROP COMPACT STORAGE leaves.
fn undeclared_words(database: &Database, table: &Arc<Table>, is_there: bool) -> String {
    let what = "it has columns that it does not declare, as the old RPC interface writes them, and statements cannot write those into a \
                table WITH COMPACT STORAGE";
    let name = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    if is_there {
        return format!("{what}: ALTER TABLE {name} DROP COMPACT STORAGE at the target shows them as rows");
    }
    let mut opened = Table::clone(&forms::opened(table));
    opened.options.cdc = false;
    let schema = database.schema();
    let create = schema.keyspaces.get(&*table.keyspace).and_then(|keyspace| {
        let mut alone = Keyspace::clone(keyspace);
        alone.tables.clear();
        opened.indexes.clear();
        alone.tables.insert(opened.name.clone(), Arc::new(opened));
        let text = LocalBackend::schema_text(&[&alone]);
        let create = split_statements(&text).into_iter().find(|text| text.starts_with("CREATE TABLE"));
        create.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    format!(
        "{what}. Make it at the target in the form that DROP COMPACT STORAGE leaves, where they are rows: {}",
        create.unwrap_or_default()
    )
}

/// Whether a table has live rows that it hides from statements, among its first partitions.
fn has_undeclared(database: &Database, table: &Arc<Table>) -> Result<bool, Error> {
    let mut look = Look { now_s: database.now_s(), partitions: 0, has_row: false };
    match database.scan_unfiltered(table, &KeyRange::all(), &mut look) {
        Ok(()) | Err(Error::Cancelled) => Ok(look.has_row),
        Err(error) => Err(error),
    }
}

struct Look {
    now_s: i64,
    partitions: u64,
    has_row: bool,
}

impl UnfilteredSink for Look {
    fn partition(
        &mut self,
        _key: &[u8],
        _deletion: DeletionTime,
        _static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.partitions += 1;
        if self.partitions > PARTITIONS { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        match element {
            Unfiltered::Row(row) if row.row.cells.iter().any(|cell| cell.is_live(self.now_s)) => {
                self.has_row = true;
                Err(Error::Cancelled)
            }
            _ => Ok(()),
        }
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// Finds what hinders the whole move, as nodes without a connection, or a keyspace, as its replication.
pub(crate) fn of_cluster(
    topology: &Topology,
    tables: &[Arc<Table>],
    order: &MoveOrder,
    report: &mut PlanReport,
) {
    let local = topology.nodes.iter().filter(|node| node.datacenter == topology.local_dc);
    for node in local.filter(|node| !node.is_connected()) {
        let counters = tables.iter().filter(|table| table.is_counter()).count();
        let why = node.error().map_or_else(String::new, |error| format!(" ({error})"));
        let text = format!("the target's node {} is not reached{why}", node.address);
        match counters {
            0 => report.notes.push(format!(
                "{text}: what is written meanwhile is hinted to it, and TRUNCATE waits for it; start it, or take it out (nodetool \
                 removenode)"
            )),
            _ => report.problems.push(format!(
                "{text}, and counters in doubt are read from all copies: start it, or take it out (nodetool removenode)"
            )),
        }
    }
    if tables.iter().any(|table| table.is_counter()) {
        report.problems.extend(counter_words(&report.limits));
    }
    let mut keyspaces: Vec<&str> = tables.iter().map(|table| &*table.keyspace).collect();
    keyspaces.sort_unstable();
    keyspaces.dedup();
    for name in keyspaces {
        let (replication, way) = match (topology.keyspaces.get(name), order.replication.get(name)) {
            (Some(there), _) => (there.clone(), format!("ALTER KEYSPACE {name} there")),
            (None, Some(map)) => match of_map(map, &report.nodes) {
                Ok(replication) => (replication, format!("give another --replication {name}=..")),
                Err(reason) => {
                    report.problems.push(format!("--replication {name}: {reason}"));
                    continue;
                }
            },
            (None, None) => continue,
        };
        let mut of_keyspace = PlanReport::default();
        replication_words(&report.nodes, (name, &replication, &way), (&topology.local_dc, &mut of_keyspace));
        report.notes.extend(of_keyspace.notes);
        if !topology.keyspaces.contains_key(name) {
            // What the order says is wrong.
            report.problems.extend(of_keyspace.problems);
            continue;
        }
        let of_tables = tables.iter().filter(|table| *table.keyspace == *name);
        for table in of_tables.filter(|_| !of_keyspace.problems.is_empty()) {
            let reasons = report.left_out.entry(format!("{name}.{}", table.name)).or_default();
            reasons.extend(of_keyspace.problems.iter().cloned());
        }
    }
}

/// Additions without an answer are waited for as long as nodes may run them by default.
fn counter_words(limits: &BTreeMap<String, String>) -> Option<String> {
    let names = ["counter_write_request_timeout", "native_transport_timeout"];
    let times: Option<Vec<u64>> = names.iter().map(|name| milliseconds_of(limits.get(*name)?)).collect();
    let sum = times?.iter().sum::<u64>();
    (sum > SETTLE.as_millis() as u64).then_some(format!(
        "counters: {} and {} are {} s together there, and the move waits {} s for an addition without an answer: set them to their \
         defaults, 5s and 12s, at the nodes while it runs",
        names[0],
        names[1],
        sum.div_ceil(1000),
        SETTLE.as_secs()
    ))
}

/// A time such as `5s` or `12000ms`, milliseconds.
fn milliseconds_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "ms" | "" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

fn replication_words(
    nodes: &BTreeMap<String, usize>,
    (name, replication, way): (&str, &Replication, &str),
    (local_dc, report): (&str, &mut PlanReport),
) {
    let known: Vec<&str> = nodes.keys().map(String::as_str).collect();
    let mut copies = |of: &str, copies: usize, there: usize| {
        let text = format!("keyspace {name} has {copies} copies in {of}, which has {there} nodes");
        if copies / 2 + 1 > there {
            report.problems.push(format!("{text}: no write reaches a majority; {way}"));
        } else if copies > there {
            report.notes.push(format!(
                "{text}: {} of them may be down before writes fail; {way}, or add nodes",
                there - (copies / 2 + 1)
            ));
        }
    };
    match replication {
        Replication::Anywhere => {}
        Replication::Simple(factor) => copies("the cluster", *factor, nodes.values().sum()),
        Replication::ByDatacenter(factors) => {
            for (center, factor) in factors.iter().filter(|(center, _)| nodes.contains_key(*center)) {
                copies(center, *factor, nodes.get(center).copied().unwrap_or_default());
            }
            for center in factors.keys().filter(|center| !nodes.contains_key(*center)) {
                report.problems.push(format!(
                    "keyspace {name} is for the data center {center}, and the target has {}; {way}",
                    known.join(", ")
                ));
            }
            if factors.get(local_dc).is_none_or(|factor| *factor == 0) {
                report.problems.push(format!(
                    "keyspace {name} has no copy in {local_dc}, where the move writes: {way}, or give another --local-dc"
                ));
            }
        }
    }
}

/// The replication of a map as CQL writes it, of a class that Cassandra has. `nodes`: the data centers, each of which gets the factor
/// `replication_factor` of NetworkTopologyStrategy, unless it has its own (`NetworkTopologyStrategy.prepareOptions`).
pub(crate) fn of_map(text: &str, nodes: &BTreeMap<String, usize>) -> Result<Replication, String> {
    let wrong = || format!("{text} is not a map such as {{'class': 'NetworkTopologyStrategy', 'dc1': 3}}");
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let word = |part: &str| part.trim().trim_matches('\'').to_owned();
    let mut options = BTreeMap::new();
    for pair in inner.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.rsplit_once(':').ok_or_else(wrong)?;
        options.insert(word(name), word(value));
    }
    let class = options.get("class").cloned().unwrap_or_default();
    if !CLASSES.contains(&class.rsplit('.').next().unwrap_or_default()) {
        return Err(format!("the class {class:?} is not known; {} is the usual one", CLASSES[0]));
    }
    if class.ends_with(CLASSES[0])
        && let Some(factor) = options.remove("replication_factor")
    {
        for center in nodes.keys() {
            options.entry(center.clone()).or_insert_with(|| factor.clone());
        }
    }
    Ok(Replication::parse(&options))
}

/// Notes for tables whose rows may be larger than a message of the target.
pub(crate) fn size_note(report: &PlanReport, partitions: &BTreeMap<String, u64>) -> Option<String> {
    let limit = report.limits.get("native_transport_max_message_size");
    let limit_bytes = limit.and_then(|text| bytes_of(text)).unwrap_or(MESSAGE_BYTES);
    let large: Vec<&str> =
        partitions.iter().filter(|(_, bytes)| **bytes > limit_bytes).map(|(name, _)| name.as_str()).collect();
    let text = format!(
        "{}: partitions are larger than a message that the target takes ({limit_bytes} bytes). Rows go in parts; a single value above \
         that cannot, and stops its table with the row's key: raise native_transport_max_message_size and commitlog_segment_size there",
        large.join(", ")
    );
    (!large.is_empty()).then_some(text)
}

/// A size such as `16MiB` or `16777216`, bytes.
fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{Column, ColumnKind, ColumnMask, Index, IndexKind, SAI_CLASS, TableId};
    use helenus_model::types::UserType;

    #[test]
    fn replications_that_cannot_be_are_problems_and_those_without_reserve_are_notes() {
        let nodes = BTreeMap::from([("dc1".to_owned(), 3), ("dc2".to_owned(), 2)]);
        // Map, problems, notes.
        let cases = [
            ("{'class': 'NetworkTopologyStrategy', 'dc1': 3}", 0, 0),
            ("{'class': 'NetworkTopologyStrategy', 'dc1': '3', 'dc2': '2'}", 0, 0),
            ("{'class': 'NetworkTopologyStrategy', 'dc1': 5}", 0, 1),
            ("{'class': 'NetworkTopologyStrategy', 'dc1': 6}", 1, 0),
            ("{'class': 'NetworkTopologyStrategy', 'nowhere': 1, 'dc1': 1}", 1, 0),
            ("{'class': 'NetworkTopologyStrategy', 'dc2': 2}", 1, 0),
            ("{'class': 'NetworkTopologyStrategy', 'nowhere': 1}", 2, 0),
            ("{'class': 'NetworkTopologyStrategy', 'replication_factor': 2}", 0, 0),
            ("{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}", 0, 1),
            ("{'class': 'NetworkTopologyStrategy', 'replication_factor': 3, 'dc2': 1}", 0, 0),
            ("{'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': 5}", 0, 0),
            ("{'class': 'SimpleStrategy', 'replication_factor': 8}", 0, 1),
            ("{'class': 'SimpleStrategy', 'replication_factor': 11}", 1, 0),
        ];
        for (map, problems, notes) in cases {
            let mut report = PlanReport::default();
            let replication = of_map(map, &nodes).unwrap();
            replication_words(&nodes, ("ks", &replication, "do it"), ("dc1", &mut report));
            let found = (report.problems.len(), report.notes.len());
            assert_eq!(found, (problems, notes), "{map}: {:?} {:?}", report.problems, report.notes);
        }
        for wrong in ["", "{'class': 'Nope'}", "{'dc1': 3}", "{class}"] {
            assert!(of_map(wrong, &nodes).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ttl_that_ends_after_what_the_target_stores_is_told_with_its_table() {
        const NOW_S: i64 = 1_795_000_000;
        let ttls = BTreeMap::from([("ks.a".to_owned(), 300_000_000), ("ks.b".to_owned(), 600_000_000)]);
        for (version, mode, is_told) in [
            ("4.1.4", None, true),
            ("5.0.9", Some("CASSANDRA_4"), true),
            ("5.0.9", Some("NONE"), false),
            ("5.0.9", None, false),
        ] {
            let limits = mode.map(|mode| ("storage_compatibility_mode".to_owned(), mode.to_owned()));
            let limits = limits.into_iter().collect();
            let report = PlanReport { version: version.to_owned(), limits, ..PlanReport::default() };
            let note = ttl_note(&report, &ttls, NOW_S);
            assert_eq!(note.is_some(), is_told, "{version} {mode:?}");
            let is_right = |note: String| note.contains("ks.b (600000000 s)") && !note.contains("ks.a");
            assert!(note.is_none_or(is_right));
        }
    }

    #[test]
    fn what_came_with_version_5_is_found_at_any_depth_for_a_target_before_it_alone() {
        let vector = || CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 3 };
        let udt = |ty| {
            let fields = vec![("f".into(), ty)];
            CqlType::Udt(Arc::new(UserType { keyspace: "ks".into(), name: "u".into(), fields, frozen: true }))
        };
        let vectors = [
            vector(),
            CqlType::List { element: Arc::new(vector()), frozen: false },
            CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(vector()), frozen: true },
            CqlType::Tuple([CqlType::Int, vector()].into()),
            udt(CqlType::Set { element: Arc::new(vector()), frozen: true }),
        ];
        for (ty, is_one) in vectors.into_iter().map(|ty| (ty, true)).chain([(udt(CqlType::Int), false)]) {
            let columns = [
                Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
                Column::new("v", ColumnKind::Regular, ty),
            ];
            let mut table = Table::new(("ks", "t"), TableId(Default::default()), columns);
            for release in ["3.11.10", "4.1.4", "5.0-rc1", "5.0.9", "6.0"] {
                let found = newer_words(&table, release);
                assert_eq!(
                    found.len(),
                    usize::from(is_one && !release.starts_with(['5', '6'])),
                    "{release}: {found:?}"
                );
            }
            let mask = ColumnMask {
                keyspace: "system".into(),
                function: "mask_default".into(),
                arguments: Vec::new(),
            };
            table.masks = [("k".into(), mask)].into();
            for (kind, class) in [(IndexKind::Custom, SAI_CLASS), (IndexKind::Composites, "")] {
                let options = [("class_name".to_owned(), class.to_owned())].into();
                let index = Index { name: "i".into(), id: TableId(Default::default()), kind, options };
                table.indexes.insert("i".into(), Arc::new(index));
                let found = newer_words(&table, "4.1.4");
                assert_eq!(
                    found.len(),
                    usize::from(is_one) + 1 + usize::from(!class.is_empty()),
                    "{found:?}"
                );
                assert!(
                    found.iter().all(|reason| reason.contains("4.1.4") && reason.contains("5.0")),
                    "{found:?}"
                );
                assert!(newer_words(&table, "5.0.9").is_empty());
            }
        }
    }

    #[test]
    fn counters_ask_for_the_time_outs_that_the_move_waits_for() {
        let limits = |counter: &str, transport: &str| {
            let pairs = [("counter_write_request_timeout", counter), ("native_transport_timeout", transport)];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
        };
        assert!(counter_words(&limits("5s", "12s")).is_none());
        assert!(counter_words(&limits("5000ms", "12000ms")).is_none());
        assert!(counter_words(&BTreeMap::new()).is_none());
        assert!(counter_words(&limits("5001ms", "12s")).unwrap().contains("18 s together"));
        assert!(counter_words(&limits("1s", "1m")).is_some());
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(bytes_of("16MiB"), Some(16 << 20));
        assert_eq!(bytes_of("16777216"), Some(16 << 20));
        assert_eq!(bytes_of("1KiB"), Some(1024));
        assert_eq!(bytes_of("much"), None);
    }
}
