//! `helenus sstable metadata`: prints Statistics.db, with the names of Cassandra's sstablemetadata.

use super::dump::key_types;
use super::find::{Found, find_all};
use crate::commands::progress::{Progress, size};
use anyhow::Result;
use clap::Args;
use helenus_host::{Disk, Host};
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::types::{CqlType, key_text, to_json, write_instant};
use helenus_sstable::header_schema::{UserTypes, table_of_header};
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::statistics::{
    ClusteringBound, EstimatedHistogram, Header, HeaderColumn, Statistics, Stats,
};
use helenus_sstable::table::{compression_of, read_statistics};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus sstable metadata data/shop/orders-*/da-*-Data.db
  helenus sstable metadata --gc-grace-seconds 864000 data
  helenus sstable metadata --json FILE | jq .\"Repaired at\"";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct MetadataOptions {
    /// SSTables, by any of their files, or folders; folders in folders are looked into
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Seconds that tombstones are kept, for the estimate of droppable ones
    #[arg(short, long, value_name = "SECONDS", default_value_t = 0)]
    gc_grace_seconds: i64,
    /// A line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A damaged Statistics.db; at the end, that files were skipped.
pub fn run(host: &Host, options: &MetadataOptions) -> Result<()> {
    let disk = &*host.disk;
    let mut out = std::io::stdout().lock();
    let before_s = host.clock.wall_us() / 1_000_000 - options.gc_grace_seconds;
    let findings = find_all(disk, &options.files)?;
    let progress = Progress::of_items("metadata", findings.sstables.len() as u64, "SSTables");
    let mut progress = progress.unless_output_is_shown();
    for found in &findings.sstables {
        progress.add(1);
        let statistics = read_statistics(disk, &found.folder, found.descriptor)
            .map_err(|error| found.unreadable(disk, error))?;
        let fields = fields(disk, found, &statistics, before_s)?;
        if options.json {
            let line: Map<String, Value> =
                fields.into_iter().map(|field| (field.name.to_owned(), field.value)).collect();
            serde_json::to_writer(&mut out, &line)?;
            writeln!(out)?;
            continue;
        }
        for field in fields {
            print(&mut out, &field)?;
        }
        writeln!(out)?;
    }
    drop(progress);
    findings.tell_refused(options.json, &mut out)?;
    findings.end()
}

/// A value with its name, and a remark for readers.
struct Field {
    name: &'static str,
    value: Value,
    remark: Option<String>,
}

fn field(name: &'static str, value: impl Serialize) -> Field {
    Field { name, value: serde_json::to_value(value).unwrap_or_default(), remark: None }
}

impl Field {
    fn remark(mut self, remark: impl Into<String>) -> Field {
        self.remark = Some(remark.into()).filter(|remark| !remark.is_empty());
        self
    }
}

fn print(out: &mut impl Write, field: &Field) -> Result<()> {
    let text = match &field.value {
        Value::Null => "--".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(points) if points.first().is_some_and(Value::is_array) => {
            writeln!(out, "{}:", field.name)?;
            for point in points {
                let part = |index: usize| point.get(index).cloned().unwrap_or_default().to_string();
                writeln!(out, "  {:>20}  {}", part(0), part(1))?;
            }
            return Ok(());
        }
        Value::Array(values) if values.is_empty() => "--".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default()))
                .collect();
            members.join(", ")
        }
        other => other.to_string(),
    };
    match &field.remark {
        Some(remark) => writeln!(out, "{}: {text} ({remark})", field.name)?,
        None => writeln!(out, "{}: {text}", field.name)?,
    }
    Ok(())
}

fn fields(disk: &dyn Disk, found: &Found, statistics: &Statistics, before_s: i64) -> Result<Vec<Field>> {
    let Statistics { validation, partitions, stats, header } = statistics;
    let data = found.data();
    let table = table_of_header(header, UserTypes::MultiCell, ("keyspace", "table"), &data)?;
    let version = found.descriptor.version;
    let mut fields = vec![
        field("SSTable", &data),
        field("Version", version.to_string()).remark(version.written_by()),
        field("Partitioner", &validation.partitioner),
        field("Bloom Filter FP chance", validation.bloom_filter_fp_chance),
    ];
    fields.extend(times(stats));
    let compression = compression_of(disk, &found.folder, found.descriptor)?;
    fields.push(field("Compressor", compression.as_ref().map(|compression| &compression.class)));
    if let Some(compression) = &compression {
        fields.push(field("Compression ratio", stats.compression_ratio));
        fields.push(
            field("Chunk length", compression.chunk_bytes).remark(size(compression.chunk_bytes.into())),
        );
    }
    let types = key_types(&table);
    let partitioner = Partitioner::of(&validation.partitioner);
    if !stats.first_key.is_empty() {
        for (name, key) in [("First token", &stats.first_key), ("Last token", &stats.last_key)] {
            fields.push(field(name, token(partitioner, key)).remark(key_text(&types, key)));
        }
    }
    let clustering: Vec<&CqlType> = table.clustering.iter().map(|column| &column.ty).collect();
    let range = &stats.clustering_range;
    let covered = (!range.is_empty()).then(|| {
        format!("{} to {}", bound_text(&range.start, &clustering), bound_text(&range.end, &clustering))
    });
    fields.push(field("Covered clusterings", covered));
    fields.extend(content(stats, before_s));
    fields.push(field("Estimated cardinality", partitions.as_ref().map(|counted| counted.estimate())));
    fields.extend(encoding(header));
    fields.push(field("IsTransient", stats.is_transient));
    Ok(fields)
}

/// The token of a key: a JSON number if it fits into 64 bits, otherwise a string.
fn token(partitioner: Partitioner, key: &[u8]) -> Value {
    let text = partitioner.token_text(key);
    text.map_or(Value::Null, |text| text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)))
}

fn times(stats: &Stats) -> Vec<Field> {
    let deletion = |seconds: i64| match seconds {
        NO_EXPIRY => "no tombstones".to_owned(),
        seconds => instant(seconds),
    };
    vec![
        field("Minimum timestamp", stats.timestamp_us_min).remark(instant_us(stats.timestamp_us_min)),
        field("Maximum timestamp", stats.timestamp_us_max).remark(instant_us(stats.timestamp_us_max)),
        field("SSTable min local deletion time", stats.local_deletion_s_min)
            .remark(deletion(stats.local_deletion_s_min)),
        field("SSTable max local deletion time", stats.local_deletion_s_max)
            .remark(deletion(stats.local_deletion_s_max)),
        field("TTL min", stats.ttl_s_min),
        field("TTL max", stats.ttl_s_max),
    ]
}

fn content(stats: &Stats, before_s: i64) -> Vec<Field> {
    let cells = stats.partition_cells.mean() * stats.partition_cells.count() as f64;
    let droppable = if cells > 0.0 { stats.tombstone_drop_times.sum_until(before_s) / cells } else { 0.0 };
    let intervals: Vec<String> = stats
        .commit_log_intervals
        .iter()
        .map(|(from, to)| format!("{}:{} to {}:{}", from.segment, from.position, to.segment, to.position))
        .collect();
    let repaired =
        if stats.repaired_at_ms == 0 { String::new() } else { instant(stats.repaired_at_ms / 1000) };
    vec![
        field("Estimated droppable tombstones", droppable),
        field("SSTable Level", stats.level),
        field("Repaired at", stats.repaired_at_ms).remark(repaired),
        field("Originating host id", stats.originating_host_id.map(|id| id.to_string())),
        field("Pending repair", stats.pending_repair.map(|id| id.to_string())),
        field("Replay positions covered", intervals),
        field("Partition deletions", stats.has_partition_deletions),
        field("totalColumnsSet", stats.columns_set),
        field("totalRows", stats.rows),
        field("Estimated tombstone drop times", &stats.tombstone_drop_times.points),
        field("Partition Size", buckets(&stats.partition_sizes)),
        field("Column Count", buckets(&stats.partition_cells)),
    ]
}

/// The upper end and the count of each bucket that is not empty.
fn buckets(histogram: &EstimatedHistogram) -> Vec<(u64, u64)> {
    histogram.buckets().filter(|(_, count)| *count > 0).collect()
}

fn encoding(header: &Header) -> Vec<Field> {
    let base = header.encoding;
    let columns = |columns: &[HeaderColumn]| -> Value {
        let of = |column: &HeaderColumn| {
            (String::from_utf8_lossy(&column.name).into_owned(), json!(column.type_name))
        };
        Value::Object(columns.iter().map(of).collect())
    };
    vec![
        field("EncodingStats minTTL", base.ttl_s_min),
        field("EncodingStats minLocalDeletionTime", base.local_deletion_s_min)
            .remark(instant(base.local_deletion_s_min)),
        field("EncodingStats minTimestamp", base.timestamp_us_min).remark(instant_us(base.timestamp_us_min)),
        field("KeyType", &header.key_type),
        field("ClusteringTypes", header.clustering_types.join(", ")),
        field("StaticColumns", columns(&header.statics)),
        field("RegularColumns", columns(&header.regulars)),
    ]
}

fn bound_text(bound: &ClusteringBound, types: &[&CqlType]) -> String {
    use helenus_model::range_tombstone::BoundKind;
    let values: Vec<String> =
        bound.values.iter().zip(types).map(|(value, ty)| to_json(ty, value.as_deref())).collect();
    let inclusive = matches!(bound.kind, BoundKind::InclStart | BoundKind::InclEnd);
    format!("{}({})", if inclusive { "" } else { "without " }, values.join(", "))
}

fn instant(seconds: i64) -> String {
    let mut out = String::new();
    write_instant(seconds, 0, &mut out);
    out
}

fn instant_us(microseconds: i64) -> String {
    if matches!(microseconds, i64::MIN | i64::MAX) {
        return "none".to_owned();
    }
    let mut out = String::new();
    let nanoseconds = microseconds.rem_euclid(1_000_000) as u32 * 1000;
    write_instant(microseconds.div_euclid(1_000_000), nanoseconds, &mut out);
    out
}
