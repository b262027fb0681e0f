//! What may be declared can be done: each option of a table that CREATE and ALTER take, at its ends and drawn in between,
//! is tried by writing, flushing, compacting, reading, verifying, exporting and a restart. What they refuse is not
//! tried. `OPTIONS_DRAWN=1000 OPTIONS_SEED=5` draws more.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::{LocalBackend, LocalOptions};

use helenus_engine::{Database, DatabaseOptions, Exports};
use helenus_host::{Host, memory};
use helenus_model::schema::Table;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::{OpenOptions, SsTable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{rows_of, run_on, try_run_on};

/// Each option with values at its ends, beyond them, and in between.
const VALUES: &[(&str, &[&str])] = &[
    (
        "bloom_filter_fp_chance",
        &["0.0000671", "0.0000672", "0.01", "0.392", "0.393", "0.999999", "1.0", "0", "NaN", "1e-300"],
    ),
    ("crc_check_chance", &["0.0", "1.0", "0.5", "1.1", "NaN"]),
    ("default_time_to_live", &["0", "630720000", "630720001", "86400"]),
    ("gc_grace_seconds", &["0", "2147483647", "864000"]),
    ("min_index_interval", &["1", "128", "2048", "2147483647"]),
    ("max_index_interval", &["128", "2147483647"]),
    ("memtable_flush_period_in_ms", &["0", "1", "2147483647"]),
    ("additional_write_policy", &["'NEVER'", "'ALWAYS'", "'99.9p'", "'2147483647ms'"]),
    ("speculative_retry", &["'NEVER'", "'50ms'"]),
    ("memtable", &["'default'", "'skiplist'", "'trie'"]),
    ("read_repair", &["'NONE'", "'BLOCKING'"]),
    ("cdc", &["true", "false"]),
    ("allow_auto_snapshot", &["false"]),
    ("incremental_backups", &["false"]),
    ("comment", &["''", "'x'"]),
    (
        "caching",
        &[
            "{'keys': 'NONE', 'rows_per_partition': '2147483646'}",
            "{'keys': 'ALL', 'rows_per_partition': 'ALL'}",
        ],
    ),
    (
        "extensions",
        &[
            "{'helenus.row_index_granularity': '1KiB'}",
            "{'helenus.row_index_granularity': '16MiB'}",
            "{'helenus.row_index_granularity': '16777216'}",
            "{'helenus.row_index_granularity': '1023'}",
            "{'other': '0x00ff'}",
        ],
    ),
];

/// Compressors with their own options.
const COMPRESSORS: &[&str] = &[
    "'class': 'LZ4Compressor'",
    "'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': '17'",
    "'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': '1'",
    "'class': 'SnappyCompressor'",
    "'class': 'DeflateCompressor'",
    "'class': 'NoopCompressor'",
    "'class': 'ZstdCompressor'",
    "'class': 'ZstdCompressor', 'compression_level': '22'",
    "'class': 'ZstdCompressor', 'compression_level': '-131072'",
    "'class': 'org.apache.cassandra.io.compress.ZstdCompressor', 'compression_level': '0'",
];

const RATIOS: &[&str] = &["0", "1", "1.1", "1e300", "Infinity", "NaN", "-0.0", "-1", "0.5"];

const STRATEGIES: &[&str] = &[
    "'class': 'SizeTieredCompactionStrategy'",
    "'class': 'SizeTieredCompactionStrategy', 'min_sstable_size': '0', 'bucket_low': '0', 'bucket_high': '1e300', 'min_threshold': '2', 'max_threshold': '2147483647'",
    "'class': 'SizeTieredCompactionStrategy', 'min_sstable_size': '9223372036854775807', 'bucket_low': '0.99', 'bucket_high': '1.0', 'min_threshold': '2'",
    "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '1', 'fanout_size': '1'",
    "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '2147483647', 'fanout_size': '2147483647'",
    "'class': 'LeveledCompactionStrategy', 'single_sstable_uplevel': 'false'",
    "'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '1', 'compaction_window_unit': 'MINUTES'",
    "'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '2147483647', 'compaction_window_unit': 'DAYS', 'timestamp_resolution': 'NANOSECONDS', 'expired_sstable_check_frequency_seconds': '9223372036854775807'",
    "'class': 'TimeWindowCompactionStrategy', 'timestamp_resolution': 'SECONDS', 'expired_sstable_check_frequency_seconds': '0'",
    "'class': 'UnifiedCompactionStrategy'",
    "'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L2147483647', 'base_shard_count': '2147483647'",
    "'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T2,N,L2', 'base_shard_count': '1', 'target_sstable_size': '1MiB', 'min_sstable_size': '0B'",
    "'class': 'UnifiedCompactionStrategy', 'target_sstable_size': '8191PiB', 'sstable_growth': '1', 'max_sstables_to_compact': '-2147483648'",
    "'class': 'UnifiedCompactionStrategy', 'sstable_growth': '0.333', 'overlap_inclusion_method': 'NONE', 'max_sstables_to_compact': '1'",
    "'class': 'SizeTieredCompactionStrategy', 'enabled': 'false', 'tombstone_threshold': '0', 'tombstone_compaction_interval': '1', 'unchecked_tombstone_compaction': 'true'",
    "'class': 'SizeTieredCompactionStrategy', 'tombstone_threshold': 'NaN', 'tombstone_compaction_interval': '9223372036854775807', 'only_purge_repaired_tombstones': 'true'",
    "'class': 'SizeTieredCompactionStrategy', 'provide_overlapping_tombstones': 'CELL', 'log_all': 'true'",
];

struct Drawn(u64);

impl Drawn {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len())]
    }

    /// Values of some options together.
    fn options(&mut self) -> String {
        let mut options = Vec::new();
        for (name, values) in VALUES {
            if self.below(4) == 0 {
                options.push(format!("{name} = {}", self.of(values)));
            }
        }
        if self.below(2) == 0 {
            let kib = 1_u64 << self.below(19);
            let (class, ratio) = (self.of(COMPRESSORS), self.of(RATIOS));
            options.push(format!(
                "compression = {{{class}, 'chunk_length_in_kb': '{kib}', 'min_compress_ratio': '{ratio}'}}"
            ));
        }
        if self.below(2) == 0 {
            options.push(format!("compaction = {{{}}}", self.of(STRATEGIES)));
        }
        if options.is_empty() { "comment = 'none'".to_owned() } else { options.join(" AND ") }
    }
}

/// Every value of every option alone, and the products of those that meet in one writer.
fn systematic() -> Vec<String> {
    let alone =
        VALUES.iter().flat_map(|(name, values)| values.iter().map(move |value| format!("{name} = {value}")));
    let mut all: Vec<String> = alone.collect();
    all.extend(STRATEGIES.iter().map(|strategy| format!("compaction = {{{strategy}}}")));
    all.extend(COMPRESSORS.iter().map(|compressor| format!("compression = {{{compressor}}}")));
    all.push("compression = {'enabled': 'false'}".into());
    all.push("compression = {}".into());
    for kib in ["1", "2", "262144", "262145", "524288", "1048576", "2097151", "2147483647", "3", "0", "-1"] {
        let classes =
            ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"];
        let of = |class| format!("compression = {{'class': '{class}', 'chunk_length_in_kb': '{kib}'}}");
        all.extend(classes.iter().map(of));
    }
    for ratio in RATIOS {
        all.push(format!("compression = {{'class': 'LZ4Compressor', 'min_compress_ratio': '{ratio}'}}"));
    }
    all
}

struct Server {
    host: Host,
    database: Arc<Database>,
    backend: Arc<LocalBackend>,
}

impl Server {
    fn open(host: Host) -> Server {
        let (database, _) = Database::open(host.clone(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database.clone(), LocalOptions::default());
        Server { host, database, backend }
    }

    fn table(&self, name: &str) -> Arc<Table> {
        self.database.schema().table("ks", name).unwrap().clone()
    }

    fn rows(&self, name: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        let mut rows = rows_of(&self.backend, &format!("SELECT k, c, s, v FROM ks.{name}"));
        rows.sort();
        rows
    }

    fn write(&self, name: &str, from: u32) {
        for c in from..from + 12 {
            let v = "x".repeat(c as usize * 40);
            let (k, backend) = (c % 3, &self.backend);
            run_on(backend, &format!("INSERT INTO ks.{name} (k, c, s, v) VALUES ({k}, {c}, 's{c}', '{v}')"));
        }
        run_on(&self.backend, &format!("DELETE FROM ks.{name} WHERE k = 0 AND c = {from}"));
    }

    /// Writes, flushes and compacts a table, and compares its rows after each step.
    fn try_all(&self, name: &str, options: &str) {
        let table = self.table(name);
        for from in [0, 6] {
            self.write(name, from);
            let before = self.rows(name);
            assert!(before.len() >= 11, "{options}");
            let flushed = self.database.flush(table.id).unwrap_or_else(|error| panic!("{options}: {error}"));
            assert_eq!(flushed, 1, "{options}");
            assert_eq!(self.rows(name), before, "{options}, flushed");
        }
        let before = self.rows(name);
        let compacted = self.database.compact(vec![table.id]).wait();
        compacted.unwrap_or_else(|error| panic!("{options}: {error}"));
        assert_eq!(self.rows(name), before, "{options}, compacted");
        let exported = Exports::of(&self.database).link(std::slice::from_ref(&table)).unwrap();
        self.verify(&exported.folder.join("ks").join(name), &table, options);
    }

    /// Verifies the SSTables of a folder.
    fn verify(&self, folder: &Path, table: &Arc<Table>, options: &str) {
        let disk = &self.host.disk;
        let files: Vec<PathBuf> = disk.list(folder).unwrap();
        let names = files.iter().filter_map(|path| Descriptor::parse(path.file_name()?.to_str()?));
        let found: Vec<Descriptor> = names
            .filter(|(_, component)| *component == Component::Data.name())
            .map(|(found, _)| found)
            .collect();
        assert!(!found.is_empty(), "{options}");
        for descriptor in found {
            let open = OpenOptions { schema: table.clone(), buffers: BufferPool::new(1 << 20) };
            let sstable = SsTable::open(&**disk, folder, descriptor, open).unwrap();
            let verified = sstable.verify(&**disk, folder);
            verified.unwrap_or_else(|error| panic!("{options}: {error}"));
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn what_create_and_alter_take_is_written_read_verified_exported_and_there_after_a_restart() {
    let seed = number("OPTIONS_SEED", 49);
    println!("seed {seed}");
    let mut drawn = Drawn(seed);
    let mut cases = systematic();
    cases.extend((0..number("OPTIONS_DRAWN", 40)).map(|_| drawn.options()));
    let server = Server::open(memory::host());
    run_on(
        &server.backend,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    let columns = "k int, c int, s text static, v text, PRIMARY KEY (k, c)";
    let (mut taken, mut refused) = (Vec::new(), 0);
    for (at, options) in cases.iter().enumerate() {
        let (name, altered) = (format!("t{at}"), format!("a{at}"));
        let created =
            try_run_on(&server.backend, &format!("CREATE TABLE ks.{name} ({columns}) WITH {options}"));
        run_on(&server.backend, &format!("CREATE TABLE ks.{altered} ({columns})"));
        let changed = try_run_on(&server.backend, &format!("ALTER TABLE ks.{altered} WITH {options}"));
        assert_eq!(created.is_ok(), changed.is_ok(), "{options}: {created:?}, {changed:?}");
        match created {
            Ok(()) => {
                server.try_all(&name, options);
                // What differs is how the options came to the table; one of the two is enough for most.
                if at % 8 == 0 {
                    server.try_all(&altered, options);
                }
                taken.push((name, options));
            }
            Err(error) => {
                assert!(!error.to_string().contains("internal"), "{options}: {error}");
                refused += 1;
            }
        }
        run_on(&server.backend, &format!("DROP TABLE ks.{altered}"));
    }
    println!("{} taken, {refused} refused", taken.len());
    assert!(taken.len() > 80 && refused > 20, "{} taken, {refused} refused", taken.len());
    let before: Vec<_> = taken.iter().map(|(name, _)| server.rows(name)).collect();
    server.database.close().unwrap();
    let Server { host, .. } = server;
    let server = Server::open(host);
    for ((name, options), before) in taken.iter().zip(before) {
        assert_eq!(server.rows(name), before, "{options}, after a restart");
        server.write(name, 30);
        server.database.flush(server.table(name).id).unwrap_or_else(|error| panic!("{options}: {error}"));
    }
}

#[test]
fn a_chunk_length_that_the_writer_has_not_is_refused_with_the_writers_own_number() {
    let server = Server::open(memory::host());
    run_on(
        &server.backend,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    let with = "WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 524288}";
    let expected = "chunk_length_in_kb must be less than or equal to 262144 (got 524288)";
    let refused = try_run_on(&server.backend, &format!("CREATE TABLE ks.t (k int PRIMARY KEY) {with}"));
    assert_eq!(refused.unwrap_err().to_string(), expected);
    run_on(&server.backend, "CREATE TABLE ks.t (k int PRIMARY KEY)");
    let refused = try_run_on(&server.backend, &format!("ALTER TABLE ks.t {with}"));
    assert_eq!(refused.unwrap_err().to_string(), expected);
}
