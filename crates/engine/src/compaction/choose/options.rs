//! The `compaction` option of a table in the form that strategies use, with Cassandra 5.0.9's names and defaults.
//!
//! Statements check the map before it is stored (cql's DDL). Here, unreadable values count as their defaults, as in
//! `AbstractCompactionStrategy`. Sources: `CompactionParams`, `Controller.fromOptions`,
//! `SizeTieredCompactionStrategyOptions`, `LeveledCompactionStrategy`, `TimeWindowCompactionStrategyOptions`.

use super::overlaps::Inclusion;
use super::sizes::{parse_percent, parse_size};
use super::unified::parse_scaling_parameters;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The compaction options of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionOptions {
    /// Whether the table is compacted automatically. Requested compactions run in any case.
    pub enabled: bool,
    /// Whether only tombstones of repaired SSTables are purged, under Cassandra's rule.
    pub only_purge_repaired: bool,
    /// Options for compactions of one SSTable for its tombstones.
    pub tombstones: TombstoneOptions,
    /// Fewest SSTables of a size-tiered compaction.
    pub min_threshold: usize,
    /// Most SSTables of a size-tiered compaction.
    pub max_threshold: usize,
    /// The strategy.
    pub strategy: Strategy,
}

/// When one SSTable is compacted alone for its tombstones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TombstoneOptions {
    /// The part of its cells that must be purgeable tombstones.
    pub threshold: f64,
    /// Minimum age of the SSTable, seconds.
    pub interval_s: i64,
    /// Whether overlapping SSTables are ignored.
    pub unchecked: bool,
}

/// A strategy and its own options.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Levels by density, output in shards of the ring.
    Unified(UnifiedOptions),
    /// Compacts SSTables of similar size together.
    SizeTiered(SizeTieredOptions),
    /// Levels of small SSTables that do not overlap.
    Leveled(LeveledOptions),
    /// Time windows, each with one SSTable in the end.
    TimeWindow(TimeWindowOptions),
}

/// Options of UnifiedCompactionStrategy.
#[derive(Clone, Debug, PartialEq)]
pub struct UnifiedOptions {
    /// W of each level; the last one is for all higher levels.
    pub scaling: Vec<i32>,
    /// Least size of a shard, bytes; 0 for no limit.
    pub min_sstable_bytes: u64,
    /// Wanted size of an SSTable, bytes.
    pub target_sstable_bytes: u64,
    /// Size of a flushed SSTable, bytes; 0: the observed size.
    pub flush_bytes: u64,
    /// Number of shards on the lower levels.
    pub base_shards: u32,
    /// From 0 (more SSTables as data grows) to 1 (larger ones).
    pub growth: f64,
    /// Most SSTables in a compaction.
    pub sstables_max: usize,
    /// Milliseconds between two checks for fully expired SSTables.
    pub expired_check_ms: i64,
    /// Which overlapping SSTables are included.
    pub inclusion: Inclusion,
}

/// Options of SizeTieredCompactionStrategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeTieredOptions {
    /// Sizes below this count as similar, bytes.
    pub min_sstable_bytes: u64,
    /// A size is similar if it is above this part of the mean,
    pub bucket_low: f64,
    /// and below this multiple of the mean.
    pub bucket_high: f64,
}

/// Options of LeveledCompactionStrategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeveledOptions {
    /// Size of an SSTable, bytes.
    pub sstable_bytes: u64,
    /// The ratio of a level's size to that of the level before.
    pub fanout: u64,
    /// Options for level 0 when it falls behind.
    pub size_tiered: SizeTieredOptions,
}

/// Options of TimeWindowCompactionStrategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeWindowOptions {
    /// Length of a window, seconds.
    pub window_s: i64,
    /// The number of timestamp units in a millisecond is `timestamps.0 / timestamps.1`.
    pub timestamps: (i64, i64),
    /// Milliseconds between two checks for fully expired SSTables.
    pub expired_check_ms: i64,
    /// Whether single SSTables are compacted for their tombstones: only if one of the tombstone options is given.
    pub tombstone_compactions: bool,
    /// Options for the newest window.
    pub size_tiered: SizeTieredOptions,
}

type Map = BTreeMap<String, String>;

const EXPIRED_CHECK_S: i64 = 600;

impl CompactionOptions {
    /// Parses a table's map.
    pub fn of(map: &Map) -> CompactionOptions {
        let class = map.get("class").map_or("", String::as_str);
        let strategy = match class.rsplit('.').next().unwrap_or_default() {
            "SizeTieredCompactionStrategy" => Strategy::SizeTiered(size_tiered(map)),
            "LeveledCompactionStrategy" => Strategy::Leveled(leveled(map)),
            "TimeWindowCompactionStrategy" => Strategy::TimeWindow(time_window(map)),
            _ => Strategy::Unified(unified(map)),
        };
        CompactionOptions {
            enabled: !is(map, "enabled", "false"),
            only_purge_repaired: is(map, "only_purge_repaired_tombstones", "true"),
            tombstones: TombstoneOptions {
                threshold: number(map, "tombstone_threshold", 0.2),
                interval_s: number(map, "tombstone_compaction_interval", 86_400),
                unchecked: is(map, "unchecked_tombstone_compaction", "true"),
            },
            min_threshold: number(map, "min_threshold", 4),
            max_threshold: number(map, "max_threshold", 32),
            strategy,
        }
    }
}

fn is(map: &Map, name: &str, word: &str) -> bool {
    map.get(name).is_some_and(|text| text.eq_ignore_ascii_case(word))
}

fn number<T: FromStr>(map: &Map, name: &str, default: T) -> T {
    map.get(name).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

fn bytes(map: &Map, name: &str, default: u64) -> u64 {
    map.get(name).and_then(|text| parse_size(text)).map_or(default, |bytes| bytes as u64)
}

fn unified(map: &Map) -> UnifiedOptions {
    let scaling = map.get("scaling_parameters").and_then(|text| parse_scaling_parameters(text).ok());
    let inclusion = match map.get("overlap_inclusion_method").map(|text| text.to_uppercase()).as_deref() {
        Some("NONE") => Inclusion::None,
        Some("SINGLE") => Inclusion::Single,
        _ => Inclusion::Transitive,
    };
    UnifiedOptions {
        scaling: scaling.unwrap_or_else(|| vec![2]),
        min_sstable_bytes: bytes(map, "min_sstable_size", 100 << 20),
        target_sstable_bytes: bytes(map, "target_sstable_size", 1 << 30).max(1 << 20),
        flush_bytes: bytes(map, "flush_size_override", 0),
        base_shards: number(map, "base_shard_count", 4).max(1),
        growth: map.get("sstable_growth").and_then(|text| parse_percent(text)).unwrap_or(0.333),
        sstables_max: match number(map, "max_sstables_to_compact", 0_i32) {
            max if max > 0 => max as usize,
            _ => i32::MAX as usize,
        },
        expired_check_ms: expired_check_ms(map),
        inclusion,
    }
}

fn expired_check_ms(map: &Map) -> i64 {
    number(map, "expired_sstable_check_frequency_seconds", EXPIRED_CHECK_S).saturating_mul(1000)
}

fn size_tiered(map: &Map) -> SizeTieredOptions {
    SizeTieredOptions {
        min_sstable_bytes: number(map, "min_sstable_size", 50 << 20),
        bucket_low: number(map, "bucket_low", 0.5),
        bucket_high: number(map, "bucket_high", 1.5),
    }
}

fn leveled(map: &Map) -> LeveledOptions {
    LeveledOptions {
        sstable_bytes: number(map, "sstable_size_in_mb", 160_u64) << 20,
        fanout: number(map, "fanout_size", 10),
        size_tiered: size_tiered(map),
    }
}

fn time_window(map: &Map) -> TimeWindowOptions {
    let unit_s = match map.get("compaction_window_unit").map(String::as_str) {
        Some("MINUTES") => 60,
        Some("HOURS") => 3600,
        _ => 86_400,
    };
    let timestamps = match map.get("timestamp_resolution").map(String::as_str) {
        Some("SECONDS") => (1, 1000),
        Some("MILLISECONDS") => (1, 1),
        Some("NANOSECONDS") => (1_000_000, 1),
        _ => (1000, 1),
    };
    let given = ["unchecked_tombstone_compaction", "tombstone_compaction_interval", "tombstone_threshold"];
    TimeWindowOptions {
        window_s: number(map, "compaction_window_size", 1_i64).max(1).saturating_mul(unit_s),
        timestamps,
        expired_check_ms: expired_check_ms(map),
        tombstone_compactions: given.iter().filter_map(|name| map.get(*name)).any(|text| text != "false"),
        size_tiered: size_tiered(map),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::TableOptions;

    fn of(pairs: &[(&str, &str)]) -> CompactionOptions {
        CompactionOptions::of(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn a_new_table_has_the_options_of_cassandra_latest() {
        let options = CompactionOptions::of(&TableOptions::default().compaction);
        let Strategy::Unified(unified) = &options.strategy else { panic!("{options:?}") };
        assert_eq!((unified.scaling.as_slice(), unified.sstables_max), (&[2][..], 64));
        assert_eq!((unified.min_sstable_bytes, unified.target_sstable_bytes), (100 << 20, 1 << 30));
        assert_eq!((unified.growth, unified.base_shards), (0.3333333333333333, 4));
        assert!(options.enabled && !options.only_purge_repaired);
        assert_eq!(
            options.tombstones,
            TombstoneOptions { threshold: 0.2, interval_s: 86_400, unchecked: false }
        );
    }

    #[test]
    fn options_left_out_have_cassandras_defaults() {
        let Strategy::Unified(unified) = of(&[("class", "UnifiedCompactionStrategy")]).strategy else {
            panic!()
        };
        assert_eq!((unified.growth, unified.sstables_max), (0.333, i32::MAX as usize));
        let package = "org.apache.cassandra.db.compaction.";
        let Strategy::Leveled(leveled) =
            of(&[("class", &format!("{package}LeveledCompactionStrategy"))]).strategy
        else {
            panic!()
        };
        assert_eq!((leveled.sstable_bytes, leveled.fanout), (160 << 20, 10));
        let windows = [
            ("class", "TimeWindowCompactionStrategy"),
            ("compaction_window_unit", "HOURS"),
            ("compaction_window_size", "6"),
            ("tombstone_threshold", "0.5"),
        ];
        let Strategy::TimeWindow(window) = of(&windows).strategy else { panic!() };
        assert_eq!((window.window_s, window.tombstone_compactions), (6 * 3600, true));
        let Strategy::TimeWindow(window) = of(&windows[..1]).strategy else { panic!() };
        assert_eq!((window.window_s, window.tombstone_compactions), (86_400, false));
        assert!(!of(&[("enabled", "FALSE")]).enabled);
    }
}
