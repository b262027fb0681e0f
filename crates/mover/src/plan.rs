//! Says what a move would do: the target, its limits, the schema, what cannot be moved, sizes and time.

use crate::error::MoveError;
use crate::estimate::Sizes;
use crate::messages::{MoveOrder, PlanReport, PlannedTable};
use crate::roles;
use crate::schema::{self, major_minor};
use crate::source::list_columns;
use crate::target::options;
use helenus_cluster::{Cluster, ClusterError};
use helenus_cql::LocalBackend;
use helenus_cql::backend::Backend;
use helenus_engine::{Database, is_system_keyspace};
use helenus_model::schema::Table;
use helenus_wire::native::{Consistency, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A difference of the clocks that is worth a word, milliseconds, and one that is refused.
const CLOCK_MS: (i64, i64) = (1_000, 60_000);
/// Settings of the target that are shown.
const SETTINGS: [&str; 6] = [
    "batch_size_fail_threshold",
    "cdc_enabled",
    "column_value_size_fail_threshold",
    "commitlog_segment_size",
    "items_per_collection_fail_threshold",
    "max_mutation_size",
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
    let topology = cluster.topology();
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
    let names: Vec<_> =
        tables.iter().map(|table| (table.keyspace.to_string(), table.name.to_string())).collect();
    let wanted = schema::statements(&cluster, (&database.schema(), &names), order).await?;
    report.to_make = wanted.to_run;
    report.problems.extend(wanted.problems);
    report.notes.extend(wanted.notes);
    role_words((backend, &cluster), &names, order, &mut report).await?;
    if database.changes().now().is_err() {
        let text = "this server keeps everything in memory and has no log to follow; start it with --data";
        report.problems.push(text.to_owned());
    }
    for table in &tables {
        table_words(table, major_minor(&report.version), &mut report.notes);
    }
    sizes(database, &tables, order, &mut report);
    Ok(report)
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

fn table_words(table: &Table, version: (u32, u32), notes: &mut Vec<String>) {
    let name = format!("{}.{}", table.keyspace, table.name);
    let lists: Vec<&str> = [false, true]
        .into_iter()
        .flat_map(|of| list_columns(table, of))
        .map(|column| &*column.name)
        .collect();
    if !lists.is_empty() {
        let before_5 = if version < (5, 0) { ", or all of a list if one is changed" } else { "" };
        notes.push(format!(
            "{name}: elements of the lists {} keep value, order, timestamp and TTL but get new ids, because no statement can \
             write them; a list that had to be sent again has timestamps a microsecond later{before_5}",
            lists.join(", ")
        ));
    }
    if table.is_counter() {
        notes.push(format!(
            "{name}: counters are made equal by adding what is missing, a row at a time; until the cut nobody else may write them at \
             the target. A request without an answer delays its row until all its replicas answer"
        ));
    }
    if !table.options.cdc {
        notes.push(format!(
            "{name}: the move sets cdc = true here, to follow its changes; abort sets it back"
        ));
    }
    if !table.masks.is_empty() {
        notes.push(format!("{name}: values are sent unmasked; its masks are made at the target"));
    }
}

/// Adds the tables with their sizes, and the time.
fn sizes(database: &Database, tables: &[Arc<Table>], order: &MoveOrder, report: &mut PlanReport) {
    let status = database.status().tables;
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
    let before_us = database.wall_us();
    let text = "SELECT toUnixTimestamp(now()) FROM system.local";
    let answer = cluster.query(text, &[], Consistency::One).await?;
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
