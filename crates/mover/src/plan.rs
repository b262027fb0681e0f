//! Says what a move would do: the target, its limits, the schema, what cannot be moved, sizes and time.

use crate::attempts::Attempts;
use crate::error::MoveError;
use crate::estimate::Sizes;
use crate::messages::{MoveOrder, PlanReport, PlannedTable};
use crate::obstacles;
use crate::problems::texts_for;
use crate::roles;
use crate::schema;
use crate::source::list_columns;
use crate::target::options;
use crate::versions::major_minor;
use helenus_cluster::{Cluster, ClusterError, Node, Topology};
use helenus_cql::LocalBackend;
use helenus_cql::backend::Backend;
use helenus_engine::{Database, is_system_keyspace};
use helenus_model::schema::{IndexKind, Table};
use helenus_wire::native::{Consistency, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A difference of the clocks that is worth a word, milliseconds, and one that is refused.
const CLOCK_MS: (i64, i64) = (1_000, 60_000);
/// How long nodes may take to be connected, and the pause between two looks.
const CONNECTING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// Tables that a note names one by one.
const NAMED: usize = 5;
/// Settings of the target that are shown.
const SETTINGS: [&str; 23] = [
    "alter_table_enabled",
    "batch_size_fail_threshold",
    "cdc_enabled",
    "column_value_size_fail_threshold",
    "columns_per_table_fail_threshold",
    "commitlog_segment_size",
    "compact_tables_enabled",
    "counter_write_request_timeout",
    "drop_truncate_table_enabled",
    "dynamic_data_masking_enabled",
    "fields_per_udt_fail_threshold",
    "items_per_collection_fail_threshold",
    "max_mutation_size",
    "native_transport_max_message_size",
    "native_transport_timeout",
    "secondary_indexes_enabled",
    "secondary_indexes_per_table_fail_threshold",
    "sai_vector_term_size_fail_threshold",
    "storage_compatibility_mode",
    "table_properties_disallowed",
    "tables_fail_threshold",
    "user_timestamps_enabled",
    "vector_dimensions_fail_threshold",
];

/// The tables that an order names.
///
/// # Errors
/// A name that is not there; one text for each.
pub(crate) fn tables(database: &Database, order: &MoveOrder) -> Result<Vec<Arc<Table>>, MoveError> {
    let schema = database.schema();
    let of_users = || schema.keyspaces.values().filter(|keyspace| !is_system_keyspace(&keyspace.name));
    let mut found = Vec::new();
    let mut missing = Vec::new();
    if order.what.is_empty() {
        found.extend(of_users().flat_map(|keyspace| keyspace.tables.values().cloned()));
    }
    for name in &order.what {
        let (keyspace, table) = match name.split_once('.') {
            Some((keyspace, table)) => (keyspace, Some(table)),
            None => (&**name, None),
        };
        let Some(keyspace) = of_users().find(|of| *of.name == *keyspace) else {
            missing.push(format!("there is no keyspace {keyspace}"));
            continue;
        };
        match table.map(|table| keyspace.tables.get(table)) {
            None => found.extend(keyspace.tables.values().cloned()),
            Some(Some(table)) => found.push(Arc::clone(table)),
            Some(None) => missing.push(format!("there is no table {name}")),
        }
    }
    for name in order.replication.keys().filter(|name| !schema.keyspaces.contains_key(&***name)) {
        missing.push(format!("--replication: there is no keyspace {name}"));
    }
    if !missing.is_empty() {
        return Err(MoveError::Refused(missing));
    }
    found.sort_by(|one, other| (&one.keyspace, &one.name).cmp(&(&other.keyspace, &other.name)));
    found.dedup_by_key(|table| table.id);
    if found.is_empty() {
        return Err(MoveError::Refused(vec!["there are no tables of users to move".to_owned()]));
    }
    Ok(found)
}

/// Makes the plan of an order.
///
/// # Errors
/// The target cannot be reached; the order names what is not there.
pub(crate) async fn plan(backend: &Arc<LocalBackend>, order: &MoveOrder) -> Result<PlanReport, MoveError> {
    let database = backend.database();
    let tables = tables(database, order)?;
    let cluster = Cluster::connect(options(order)?).await?;
    let topology = once_connected(&cluster).await;
    let mut report = PlanReport {
        cluster: topology.cluster_name.clone(),
        version: topology.oldest_release(),
        ..PlanReport::default()
    };
    for node in &topology.nodes {
        *report.nodes.entry(node.datacenter.clone()).or_default() += 1;
    }
    if let Some(node) = topology.nodes.iter().find_map(|node| node.connection())
        && node.version() < Version::V4
    {
        report
            .problems
            .push("the target speaks protocol v3, which cannot leave values unset; v4 is needed".to_owned());
    }
    if !topology.partitioner.ends_with("Murmur3Partitioner") {
        report.notes.push(format!(
            "the target's partitioner is {}: requests are not sent to the nodes that hold the rows",
            topology.partitioner
        ));
    }
    report.limits = settings(&cluster).await;
    (report.clock_ahead_ms, _) = clock(&cluster, database).await?;
    clock_words(&mut report);
    report.left_out = obstacles::of_tables(&cluster, database, &tables, &report.limits).await?;
    obstacles::of_cluster(&topology, &tables, order, &mut report);
    let goes = |table: &&Arc<Table>| !report.left_out.contains_key(&full_name(table));
    let mut tables: Vec<Arc<Table>> = tables.iter().filter(goes).cloned().collect();
    let names = schema_words((&cluster, database), &mut tables, order, &mut report).await?;
    guardrail_words(order, &mut report);
    if tables.is_empty() {
        let reasons = report.left_out.iter();
        let lines = reasons.flat_map(|(name, reasons)| reasons.iter().map(move |of| format!("{name}: {of}")));
        report.problems.extend(lines.collect::<Vec<_>>());
    }
    role_words((backend, &cluster), &names, order, &mut report).await?;
    if database.changes().now().is_err() {
        let text = "this server keeps everything in memory and has no log to follow; start it with --data";
        report.problems.push(text.to_owned());
    }
    table_words(&tables, major_minor(&report.version), &mut report.notes);
    let (largest, ttls_s) = sizes(database, &tables, order, &mut report);
    report.notes.extend(obstacles::size_note(&report, &largest));
    report.notes.extend(obstacles::ttl_note(&report, &ttls_s, database.now_s()));
    Ok(report)
}

/// What is made at the target. Tables that it cannot take are left out, with their reasons. Returns the names of those that go.
async fn schema_words(
    (cluster, database): (&Cluster, &Database),
    tables: &mut Vec<Arc<Table>>,
    order: &MoveOrder,
    report: &mut PlanReport,
) -> Result<Vec<(String, String)>, MoveError> {
    let schema = database.schema();
    loop {
        let of_table = |table: &Arc<Table>| (table.keyspace.to_string(), table.name.to_string());
        let names: Vec<_> = tables.iter().map(of_table).collect();
        let wanted = schema::statements(cluster, (&schema, &names), order).await?;
        for problem in &wanted.problems {
            for table in tables.iter().filter(|table| problem.concerns(table)) {
                report.left_out.entry(full_name(table)).or_default().push(problem.reason(table));
            }
        }
        tables.retain(|table| !report.left_out.contains_key(&full_name(table)));
        // Without the others the target is given less.
        if tables.len() == names.len() {
            report.to_make = wanted.to_run;
            report.to_make.extend(wanted.drops);
            report.notes.extend(wanted.notes);
            let only_there = texts_for(&wanted.only_there, tables.iter().map(|table| &**table)).into_iter();
            report.notes.extend(only_there.map(|text| format!("{text}; a cut needs --rollback-within 0")));
            return Ok(names);
        }
    }
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", table.keyspace, table.name)
}

/// Guardrails of the target that a move meets, unless its role is a superuser (`ClientState.isOrdinaryUser`). Without logins there are none.
fn guardrail_words(order: &MoveOrder, report: &mut PlanReport) {
    if order.login.is_none() {
        return;
    }
    let value = |name: &str| report.limits.get(name).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    for (name, what) in [
        ("user_timestamps_enabled", "every write of the move, which has its time"),
        ("drop_truncate_table_enabled", "a TRUNCATE"),
        ("alter_table_enabled", "columns and options that are altered here"),
        ("secondary_indexes_enabled", "indexes"),
    ] {
        if value(name) == "false" {
            found.push(format!("{what} ({name} = false)"));
        }
    }
    let disallowed = value("table_properties_disallowed").trim_matches(['[', ']']);
    if !disallowed.is_empty() {
        found.push(format!("options of tables (table_properties_disallowed = {disallowed})"));
    }
    if !found.is_empty() {
        report.notes.push(format!(
            "the target refuses to roles that are no superusers: {}. The role of --username must be one, or change these settings there while \
             the move runs",
            found.join(", ")
        ));
    }
}

/// The topology, once each node of the local data center is connected or has failed to be: those after the first are connected while others
/// are used already.
pub(crate) async fn once_connected(cluster: &Cluster) -> Arc<Topology> {
    let until = tokio::time::Instant::now() + CONNECTING;
    loop {
        let topology = cluster.topology();
        let is_tried = |node: &&Arc<Node>| node.is_connected() || node.error().is_some();
        let mut local = topology.nodes.iter().filter(|node| node.datacenter == topology.local_dc);
        if local.all(|node| is_tried(&node)) || tokio::time::Instant::now() >= until {
            return topology;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What is done with roles; a word if they stay.
async fn role_words(
    (backend, cluster): (&LocalBackend, &Cluster),
    names: &[(String, String)],
    order: &MoveOrder,
    report: &mut PlanReport,
) -> Result<(), MoveError> {
    if !order.roles {
        if backend.authenticator().is_some() {
            report.notes.push(
                "roles stay here: after a cut clients log in as roles of the target. --roles moves them"
                    .to_owned(),
            );
        }
        return Ok(());
    }
    let wanted = roles::plan(backend, cluster, &names.iter().cloned().collect(), order).await?;
    report.to_make.extend(wanted.shown().map(str::to_owned));
    report.problems.extend(wanted.problems);
    report.notes.extend(wanted.notes);
    report.notes.extend(roles::not_moved(backend)?);
    Ok(())
}

/// What is otherwise at the target, a line for each kind, with the tables that it is about.
fn table_words(tables: &[Arc<Table>], version: (u32, u32), notes: &mut Vec<String>) {
    let of = |wanted: &dyn Fn(&Table) -> bool| -> Option<String> {
        let found: Vec<String> = tables
            .iter()
            .filter(|table| wanted(table))
            .map(|table| format!("{}.{}", table.keyspace, table.name))
            .collect();
        match found.len() {
            0 => None,
            all if all == tables.len() && all > NAMED => Some(format!("all {all} tables")),
            all if all > NAMED => {
                let named = found.get(..NAMED).unwrap_or_default().join(", ");
                Some(format!("{named} and {} more tables", all - NAMED))
            }
            _ => Some(found.join(", ")),
        }
    };
    let has_lists = |table: &Table| [false, true].iter().any(|of| list_columns(table, *of).next().is_some());
    if let Some(names) = of(&has_lists) {
        let before_5 = if version < (5, 0) { ", or all of a list if one is changed" } else { "" };
        notes.push(format!(
            "{names}: elements of lists keep value, order, timestamp and TTL but get new ids, because no statement can write them; a list \
             that had to be sent again has timestamps a microsecond later{before_5}"
        ));
    }
    if let Some(names) = of(&Table::is_counter) {
        notes.push(format!(
            "{names}: counters are made equal by adding what is missing, a row at a time; until the cut nobody else may write them at \
             the target. A request without an answer delays its row until all its replicas answer"
        ));
    }
    if let Some(names) = of(&|table| !table.masks.is_empty()) {
        notes.push(format!("{names}: values are sent unmasked; masks are made at the target"));
    }
    if let Some(names) = of(&|table| table.indexes.values().any(|index| index.kind == IndexKind::Keys)) {
        notes.push(format!(
            "{names}: indexes of kind KEYS, which Cassandra makes no more, are made as ordinary ones"
        ));
    }
    if let Some(names) = of(&|table| !table.options.cdc) {
        notes.push(format!(
            "{names}: the move sets cdc = true here, to follow the changes; abort sets it back"
        ));
    }
}

/// A number of each table, by its name.
type ByTable = BTreeMap<String, u64>;

/// Adds the tables with their sizes, and the time. Returns the bytes of each table's largest partition, and its greatest TTL in seconds.
fn sizes(
    database: &Database,
    tables: &[Arc<Table>],
    order: &MoveOrder,
    report: &mut PlanReport,
) -> (ByTable, ByTable) {
    let status = database.status().tables;
    let (mut largest_of, mut ttls_s) = (BTreeMap::new(), BTreeMap::new());
    let nodes: usize = report.nodes.values().sum();
    let mut all = Sizes {
        rows: 0,
        bytes: 0,
        largest: 0,
        nodes: nodes as u64,
        copies: 1,
        at_once: order.ranges_at_once as u64,
        limit: order.rows_per_second,
        log_bytes: database.changes().kept_limits().bytes,
    };
    for table in tables {
        let found = status
            .iter()
            .find(|of| !of.is_index && *of.keyspace == *table.keyspace && *of.table == *table.name);
        let (rows, bytes) = found
            .map_or((0, 0), |of| (of.rows + of.memtable_rows, of.uncompressed_bytes + of.memtable_bytes));
        let name = format!("{}.{}", table.keyspace, table.name);
        ttls_s.insert(name.clone(), found.map_or(0, |of| of.ttl_s_max));
        largest_of.insert(name, found.map_or(0, |of| of.partition_bytes_max));
        report.tables.push(PlannedTable {
            table: format!("{}.{}", table.keyspace, table.name),
            rows,
            bytes: found.map_or(0, |of| of.disk_bytes + of.memtable_bytes),
        });
        (all.rows, all.bytes) = (all.rows + rows, all.bytes + bytes);
        let largest = found.map_or(0, |of| of.partition_bytes_max) as f64 * rows as f64 / bytes.max(1) as f64;
        all.largest = all.largest.max(largest as u64).min(all.rows);
        all.copies = all.copies.max(schema::copies(&report.nodes, &table.keyspace, order));
    }
    report.estimate = all.in_words();
    (largest_of, ttls_s)
}

fn clock_words(report: &mut PlanReport) {
    let ahead_ms = report.clock_ahead_ms;
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let text = format!("the target's clock is {} ms {side} this server's", ahead_ms.abs());
    if ahead_ms.abs() >= CLOCK_MS.1 {
        report.problems.push(format!(
            "{text}: TTLs would be wrong by as much, and later writes at the target would lose; set the clocks by NTP"
        ));
    } else if ahead_ms.abs() >= CLOCK_MS.0 {
        report.notes.push(format!("{text}: TTLs end that much earlier or later; set the clocks by NTP"));
    }
}

/// Settings of the target; none if it does not show them.
async fn settings(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let answer = cluster.query("SELECT name, value FROM system_views.settings", &[], Consistency::One).await;
    let Ok(answer) = answer else { return found };
    let Ok(rows) = answer.rows() else { return found };
    for row in rows.iter().flatten() {
        let cells: Vec<String> =
            row.cells().map(|cell| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()).collect();
        if let [name, value] = &cells[..]
            && SETTINGS.contains(&&**name)
        {
            found.insert(name.clone(), value.clone());
        }
    }
    found
}

/// Milliseconds by which the target's clock is ahead, and by how much that may be wrong.
pub(crate) async fn clock(cluster: &Cluster, database: &Database) -> Result<(i64, i64), ClusterError> {
    let text = "SELECT toUnixTimestamp(now()) FROM system.local";
    let mut attempts = Attempts::new();
    let (before_us, answer) = loop {
        let before_us = database.wall_us();
        match cluster.query(text, &[], Consistency::One).await {
            Ok(answer) => break (before_us, answer),
            Err(error) => tokio::time::sleep(attempts.after(error)?).await,
        }
    };
    let after_us = database.wall_us();
    let there_ms = answer
        .rows()?
        .iter()
        .flatten()
        .next()
        .and_then(|row| Some(i64::from_be_bytes(*row.cells().next()??.first_chunk()?)))
        .unwrap_or(before_us / 1000);
    Ok((there_ms - (before_us + after_us) / 2000, (after_us - before_us) / 1000))
}
