//! Statistics of tables: `tablestats`, `getsstables`, `toppartitions`.

use super::layout::{Columns, bytes_text, decimals, java_double, memory_size};
use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Spread, TableMetrics, TableSelection, TopPartitionLine,
};
use serde_json::{Map, Value, json};
use std::io::{Write, stdout};

/// Options of `tablestats`.
pub struct Wanted<'a> {
    /// Names of keyspaces, or of tables as `KEYSPACE.TABLE`. Empty: all tables.
    pub names: Vec<&'a str>,
    /// Whether `names` are excluded instead of included.
    pub ignore: bool,
    /// Whether sizes are printed with units.
    pub human: bool,
    /// Whether to show that SSTables lie where they belong: there is one data directory.
    pub locations: bool,
    /// The metric by which tables are sorted, across keyspaces.
    pub sort: Option<&'a str>,
    /// The maximum number of tables when sorted.
    pub top: usize,
}

/// `tablestats` (`TableStats.java`, `TableStatsHolder.java`, `TableStatsPrinter.java`).
///
/// # Errors
/// No server answers; keyspaces and tables that do not exist.
pub fn tablestats(server: &Server, wanted: &Wanted<'_>) -> Result<()> {
    let AdminAnswer::Tables(all) =
        server.request(&AdminRequest::Tables { which: TableSelection::default() })?
    else {
        return unexpected();
    };
    check_names(&all, &wanted.names)?;
    let is_named = |table: &TableMetrics| {
        let full = format!("{}.{}", table.keyspace, table.table);
        wanted.names.iter().any(|name| *name == table.keyspace || *name == full)
    };
    let is_shown = |table: &&TableMetrics| wanted.names.is_empty() || is_named(table) != wanted.ignore;
    let mut shown: Vec<&TableMetrics> = all.iter().filter(is_shown).collect();
    if server.json {
        return server.print_json(&as_json(&all, &shown, wanted));
    }
    let mut out = stdout().lock();
    match wanted.sort {
        Some(key) => {
            sort(&mut shown, key)?;
            let total = shown.len();
            let top = if wanted.top > 0 {
                format!(" (showing top {} by {key})", wanted.top.min(total))
            } else {
                String::new()
            };
            writeln!(out, "Total number of tables: {total}{top}\n----------------")?;
            shown.truncate(if wanted.top > 0 { wanted.top } else { total });
            for table in shown {
                print_table(&mut out, table, (&format!("{}.{}", table.keyspace, table.table), "\t"), wanted)?;
            }
            writeln!(out, "----------------")?;
        }
        None if shown.is_empty() => {}
        None => {
            writeln!(out, "Total number of tables: {}\n----------------", shown.len())?;
            let mut keyspaces: Vec<&str> = shown.iter().map(|table| table.keyspace.as_str()).collect();
            keyspaces.dedup();
            for keyspace in keyspaces {
                print_keyspace(&mut out, &of_keyspace(&all, keyspace))?;
                for table in shown.iter().filter(|table| table.keyspace == keyspace) {
                    print_table(&mut out, table, (&table.table, "\t\t"), wanted)?;
                }
                writeln!(out, "----------------")?;
            }
        }
    }
    Ok(())
}

fn check_names(all: &[TableMetrics], names: &[&str]) -> Result<()> {
    for name in names {
        let (keyspace, table) =
            name.split_once('.').map_or((*name, None), |(keyspace, table)| (keyspace, Some(table)));
        let mut of_keyspace = all.iter().filter(|known| known.keyspace == keyspace).peekable();
        if of_keyspace.peek().is_none() {
            bail!("Unknown keyspace: {keyspace}");
        }
        if let Some(table) = table.filter(|table| !of_keyspace.any(|known| known.table == *table)) {
            bail!("Unknown tables: [{table}] in keyspace: {keyspace}");
        }
    }
    Ok(())
}

/// The totals of a keyspace.
struct OfKeyspace<'a> {
    name: &'a str,
    reads: u64,
    read_ms: Option<f64>,
    writes: u64,
    write_ms: Option<f64>,
    flushes_pending: u64,
}

fn of_keyspace<'a>(all: &[TableMetrics], name: &'a str) -> OfKeyspace<'a> {
    let tables = || all.iter().filter(|table| table.keyspace == name && !table.is_index);
    // Means over all requests since the start, whereas a table's latencies are recent ones (`StatsKeyspace.java`).
    let sum = |of: fn(&TableMetrics) -> (u64, f64)| -> (u64, Option<f64>) {
        let count = tables().map(|table| of(table).0).sum::<u64>();
        let us: f64 = tables().map(|table| of(table).1).sum();
        (count, (count > 0).then(|| us / count as f64 / 1000.0))
    };
    let (reads, read_ms) = sum(|table| (table.reads.count, table.read_us_total));
    let (writes, write_ms) = sum(|table| (table.writes.count, table.write_us_total));
    let flushes_pending = tables().map(|table| table.flushes_pending).sum();
    OfKeyspace { name, reads, read_ms, writes, write_ms, flushes_pending }
}

fn print_keyspace(out: &mut dyn Write, keyspace: &OfKeyspace<'_>) -> Result<()> {
    writeln!(out, "Keyspace: {}", keyspace.name)?;
    writeln!(out, "\tRead Count: {}", keyspace.reads)?;
    writeln!(out, "\tRead Latency: {} ms", java_double(keyspace.read_ms))?;
    writeln!(out, "\tWrite Count: {}", keyspace.writes)?;
    writeln!(out, "\tWrite Latency: {} ms", java_double(keyspace.write_ms))?;
    writeln!(out, "\tPending Flushes: {}", keyspace.flushes_pending)?;
    Ok(())
}

/// A metric of a table: its name in text, its name in JSON, its value in text, its value in JSON.
type Figure = (&'static str, &'static str, String, Value);

/// All metrics of a table in nodetool's order. Errors of the Bloom filter are not counted and shown as `NaN`. The
/// number of rows in memtables is shown as their number of cells.
fn figures(table: &TableMetrics, human: bool) -> Vec<Figure> {
    let number =
        |text: &'static str, name: &'static str, value: u64| (text, name, value.to_string(), json!(value));
    let size = |text: &'static str, name: &'static str, value: u64| {
        let shown = bytes_text(value, human);
        (text, name, shown.clone(), json!(shown))
    };
    let fixed = |text: &'static str, name: &'static str, value: Option<f64>, places: usize| {
        let shown = decimals(value, places);
        (text, name, shown.clone(), json!(shown))
    };
    let latency = |text: &'static str, name: &'static str, spread: &Spread| {
        let shown = decimals(spread.mean.filter(|mean| *mean > 0.0).map(|us| us / 1000.0), 3);
        (text, name, format!("{shown} ms"), json!(shown))
    };
    let mut figures = vec![
        number("SSTable count", "sstable_count", table.sstables),
        number("Old SSTable count", "old_sstable_count", table.sstables_old),
        (
            "Max SSTable size",
            "max_sstable_size",
            memory_size(table.sstable_bytes_max),
            json!(table.sstable_bytes_max),
        ),
    ];
    figures.extend(levels(table, human));
    let ratio = table.compression_ratio.or(Some(-1.0));
    let [repaired, pending, unrepaired] = table.repaired_bytes;
    let all = (repaired + pending + unrepaired).max(1) as f64;
    let percent = java_double(Some((repaired as f64 / all * 10_000.0).round() / 100.0));
    let bytes =
        |text: &'static str, name: &'static str, value: u64| (text, name, memory_size(value), json!(value));
    // A filter file has eight bytes before its bits, one file for each SSTable. The rest of the memory is chunk offsets
    // and indexes.
    let filters = table.filter_bytes.saturating_sub(8 * table.sstables);
    let per_write =
        if table.writes.count > 0 { table.reads.count as f64 / table.writes.count as f64 } else { 0.0 };
    figures.extend([
        size("Space used (live)", "space_used_live", table.disk_bytes),
        size("Space used (total)", "space_used_total", table.disk_bytes),
        size("Space used by snapshots (total)", "space_used_by_snapshots_total", table.snapshot_bytes),
        size(
            "Off heap memory used (total)",
            "off_heap_memory_used_total",
            table.memtable_bytes + table.index_memory_bytes,
        ),
        ("SSTable Compression Ratio", "sstable_compression_ratio", decimals(ratio, 5), json!(ratio)),
        number("Number of partitions (estimate)", "number_of_partitions_estimate", table.partitions),
        number("Memtable cell count", "memtable_cell_count", table.memtable_rows),
        size("Memtable data size", "memtable_data_size", table.memtable_bytes),
        size("Memtable off heap memory used", "memtable_off_heap_memory_used", table.memtable_bytes),
        number("Memtable switch count", "memtable_switch_count", table.flushes),
        number("Speculative retries", "speculative_retries", 0),
        number("Local read count", "local_read_count", table.reads.count),
        latency("Local read latency", "local_read_latency_ms", &table.reads),
        number("Local write count", "local_write_count", table.writes.count),
        latency("Local write latency", "local_write_latency_ms", &table.writes),
        fixed("Local read/write ratio", "local_read_write_ratio", Some(per_write), 5),
        number("Pending flushes", "pending_flushes", table.flushes_pending),
        ("Percent repaired", "percent_repaired", percent.clone(), json!(percent.parse::<f64>().ok())),
        bytes("Bytes repaired", "bytes_repaired", repaired),
        bytes("Bytes unrepaired", "bytes_unrepaired", unrepaired),
        bytes("Bytes pending repair", "bytes_pending_repair", pending),
        ("Bloom filter false positives", "bloom_filter_false_positives", "NaN".to_owned(), Value::Null),
        ("Bloom filter false ratio", "bloom_filter_false_ratio", "NaN".to_owned(), Value::Null),
        size("Bloom filter space used", "bloom_filter_space_used", table.filter_bytes),
        size("Bloom filter off heap memory used", "bloom_filter_off_heap_memory_used", filters),
        size("Index summary off heap memory used", "index_summary_off_heap_memory_used", 0),
        size(
            "Compression metadata off heap memory used",
            "compression_metadata_off_heap_memory_used",
            table.index_memory_bytes.saturating_sub(filters),
        ),
    ]);
    let partitions = &table.partition_bytes;
    figures.extend([
        number(
            "Compacted partition minimum bytes",
            "compacted_partition_minimum_bytes",
            partitions.min as u64,
        ),
        number(
            "Compacted partition maximum bytes",
            "compacted_partition_maximum_bytes",
            partitions.max as u64,
        ),
        number(
            "Compacted partition mean bytes",
            "compacted_partition_mean_bytes",
            partitions.mean.unwrap_or(0.0).ceil() as u64,
        ),
    ]);
    figures.extend(per_slice(table));
    figures.push(fixed("Droppable tombstone ratio", "droppable_tombstone_ratio", Some(table.droppable), 5));
    figures
}

fn levels(table: &TableMetrics, human: bool) -> Vec<Figure> {
    if table.levels.is_empty() {
        return Vec::new();
    }
    let most = |level: usize| if level == 0 { 4 } else { 10_u64.pow(u32::try_from(level).unwrap_or(1)) };
    let count = |(level, (count, _)): (usize, &(u64, u64))| {
        if *count > most(level) { format!("{count}/{}", most(level)) } else { count.to_string() }
    };
    let counts: Vec<String> = table.levels.iter().enumerate().map(count).collect();
    let bytes: Vec<String> = table.levels.iter().map(|(_, bytes)| bytes_text(*bytes, human)).collect();
    let list = |of: &[String]| format!("[{}]", of.join(", "));
    vec![
        ("SSTables in each level", "sstables_in_each_level", list(&counts), json!(counts)),
        ("SSTable bytes in each level", "sstable_bytes_in_each_level", list(&bytes), json!(bytes)),
    ]
}

fn per_slice(table: &TableMetrics) -> [Figure; 4] {
    let mean = |spread: &Spread| java_double(spread.mean.filter(|_| spread.count > 0));
    let (rows, tombstones) = (&table.rows, &table.tombstones);
    [
        (
            "Average live cells per slice (last five minutes)",
            "average_live_cells_per_slice_last_five_minutes",
            mean(rows),
            json!(mean(rows)),
        ),
        (
            "Maximum live cells per slice (last five minutes)",
            "maximum_live_cells_per_slice_last_five_minutes",
            (rows.max as u64).to_string(),
            json!(rows.max as u64),
        ),
        (
            "Average tombstones per slice (last five minutes)",
            "average_tombstones_per_slice_last_five_minutes",
            mean(tombstones),
            json!(mean(tombstones)),
        ),
        (
            "Maximum tombstones per slice (last five minutes)",
            "maximum_tombstones_per_slice_last_five_minutes",
            (tombstones.max as u64).to_string(),
            json!(tombstones.max as u64),
        ),
    ]
}

fn print_table(
    out: &mut dyn Write,
    table: &TableMetrics,
    (name, indent): (&str, &str),
    wanted: &Wanted<'_>,
) -> Result<()> {
    let kind = if table.is_index { "Table (index)" } else { "Table" };
    writeln!(out, "{indent}{kind}: {name}")?;
    for (text, _, value, _) in figures(table, wanted.human) {
        writeln!(out, "{indent}{text}: {value}")?;
    }
    if wanted.locations {
        writeln!(out, "{indent}SSTables in correct location: true")?;
    }
    writeln!(out)?;
    Ok(())
}

/// The tables as `tablestats -F json` prints them (`TableStatsHolder.convert2Map`).
fn as_json(all: &[TableMetrics], shown: &[&TableMetrics], wanted: &Wanted<'_>) -> Value {
    let mut keyspaces = Map::new();
    for table in shown {
        let figures = figures(table, wanted.human).into_iter();
        let figures = figures.map(|(_, name, _, value)| (name.to_owned(), value));
        let location = ("sstables_in_correct_location".to_owned(), json!(true));
        let figures = figures.chain(wanted.locations.then_some(location));
        let of_keyspace = of_keyspace(all, &table.keyspace);
        let entry = keyspaces.entry(table.keyspace.clone()).or_insert_with(|| {
            json!({
                "read_count": of_keyspace.reads,
                "read_latency": of_keyspace.read_ms,
                "read_latency_ms": of_keyspace.read_ms,
                "write_count": of_keyspace.writes,
                "write_latency_ms": of_keyspace.write_ms,
                "pending_flushes": of_keyspace.flushes_pending,
                "tables": {},
            })
        });
        if let Some(tables) = entry.get_mut("tables").and_then(Value::as_object_mut) {
            tables.insert(table.table.clone(), Value::Object(figures.collect()));
        }
    }
    keyspaces.insert("total_number_of_tables".to_owned(), json!(shown.len()));
    Value::Object(keyspaces)
}

/// Sorts tables by a metric, the greatest value first (`StatsTableComparator`).
fn sort(tables: &mut [&TableMetrics], key: &str) -> Result<()> {
    let key = match key {
        "reads" => "local_read_count",
        "writes" => "local_write_count",
        "read_latency" => "local_read_latency_ms",
        "write_latency" | "local_write_latency" => "local_write_latency_ms",
        other => other,
    };
    if key == "full_name" || key == "table_name" {
        let name = |table: &TableMetrics| match key {
            "table_name" => table.table.clone(),
            _ => format!("{}.{}", table.keyspace, table.table),
        };
        tables.sort_by_key(|table| name(table));
        return Ok(());
    }
    let value = |table: &TableMetrics| {
        let found = figures(table, false).into_iter().find(|(_, name, ..)| *name == key)?.3;
        found.as_f64().or_else(|| found.as_str()?.parse().ok()).or(Some(0.0))
    };
    if tables.first().is_some_and(|table| value(table).is_none()) {
        let none = TableMetrics { levels: vec![(0, 0)], ..TableMetrics::default() };
        let known: Vec<&str> = figures(&none, false).into_iter().map(|(_, name, ..)| name).collect();
        bail!(
            "argument for sort must be one of: full_name, table_name, reads, writes, read_latency, write_latency, {}",
            known.join(", ")
        );
    }
    tables.sort_by(|a, b| value(b).partial_cmp(&value(a)).unwrap_or(std::cmp::Ordering::Equal));
    Ok(())
}

/// `getsstables KEYSPACE TABLE KEY` (`GetSSTables.java`).
///
/// # Errors
/// No server answers; no such table; a malformed key.
pub fn getsstables(server: &Server, of: [&str; 3], (hex, levels): (bool, bool)) -> Result<()> {
    let [keyspace, table, key] = of.map(str::to_owned);
    let AdminAnswer::Files(files) =
        server.request(&AdminRequest::FilesOfKey { keyspace, table, key, hex })?
    else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&files);
    }
    let mut out = stdout().lock();
    for (path, level) in files {
        let level = if levels { format!("{level}: ") } else { String::new() };
        writeln!(out, "{level}{}", path.display())?;
    }
    Ok(())
}

/// Selects the number of reads or of writes of a partition.
type CountOf = fn(&TopPartitionLine) -> u64;

/// `toppartitions [KEYSPACE [TABLE]] [DURATION]`: the partitions requested most since the start, or within the next
/// `duration_ms` milliseconds.
pub fn toppartitions(
    server: &Server,
    which: &TableSelection,
    duration_ms: Option<u64>,
    (most, kinds): (usize, &[&str]),
) -> Result<()> {
    let ask = || match server.request(&AdminRequest::TopPartitions { which: which.clone() })? {
        AdminAnswer::TopPartitions(lines) => Ok(lines),
        _ => unexpected(),
    };
    let before = match duration_ms {
        None => Vec::new(),
        Some(ms) => {
            let before = ask()?;
            std::thread::sleep(std::time::Duration::from_millis(ms));
            before
        }
    };
    let since = |line: &mut TopPartitionLine| {
        let is_it = |other: &&TopPartitionLine| {
            (&other.keyspace, &other.table, &other.key) == (&line.keyspace, &line.table, &line.key)
        };
        let of_kind = before.iter().filter(is_it);
        for earlier in
            of_kind.filter(|other| (other.reads > 0) == (line.reads > 0)).take(1).cloned().collect::<Vec<_>>()
        {
            line.reads = line.reads.saturating_sub(earlier.reads);
            line.writes = line.writes.saturating_sub(earlier.writes);
        }
    };
    let mut lines = ask()?;
    lines.iter_mut().for_each(since);
    if server.json {
        lines.retain(|line| line.reads + line.writes > 0);
        return server.print_json(&lines);
    }
    let mut out = stdout().lock();
    let tops: [(&str, CountOf); 2] = [("reads", |line| line.reads), ("writes", |line| line.writes)];
    let tops = tops.into_iter().filter(|(kind, _)| kinds.contains(kind));
    for (place, (kind, count)) in tops.enumerate() {
        let mut top: Vec<&TopPartitionLine> = lines.iter().filter(|line| count(line) > 0).collect();
        top.sort_by_key(|line| std::cmp::Reverse(count(line)));
        top.truncate(most);
        writeln!(out, "{}Frequency of {kind} by partition:", if place > 0 { "\n" } else { "" })?;
        if top.is_empty() {
            writeln!(out, "   Nothing recorded during sampling period...")?;
            continue;
        }
        let mut columns = Columns::new(" ");
        columns.row(["  ", "Table", "Partition", "Count", "+/-"]);
        for line in top {
            let name = format!("{}.{}", line.keyspace, line.table);
            // The server samples one request in sixteen and counts it as sixteen.
            columns.row(["  ".to_owned(), name, line.key.clone(), count(line).to_string(), "16".to_owned()]);
        }
        columns.print(&mut out)?;
    }
    Ok(())
}

/// `toppartitions --list` and `--stop`: no sampling is scheduled, because partitions are counted all the time.
///
/// # Errors
/// The output is closed.
pub fn scheduled_samplings(server: &Server, which: &TableSelection, stop: bool) -> Result<()> {
    if stop {
        let name = |name: Option<&String>| name.map_or("null", String::as_str).to_owned();
        let (keyspace, table) = (name(which.keyspace.as_ref()), name(which.tables.first()));
        bail!("Unable to stop the non-existent scheduled sampling for keyspace: {keyspace}, table: {table}");
    }
    if server.json {
        return server.print_json(&json!([]));
    }
    writeln!(stdout(), "KEYSPACE TABLE")?;
    Ok(())
}

/// `refreshsizeestimates` (`RefreshSizeEstimates.java`): does nothing, because the estimates are always current.
pub fn refreshsizeestimates(server: &Server) -> Result<()> {
    let AdminAnswer::Node(_) = server.request(&AdminRequest::Node)? else { return unexpected() };
    if server.json {
        return server.print_json(&serde_json::json!({ "refreshed": true }));
    }
    let how = "system.size_estimates and system.table_estimates are computed whenever they are read";
    writeln!(stdout(), "refreshed   {how}")?;
    Ok(())
}
