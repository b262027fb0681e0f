//! Time zones by name, as at the end of timestamp constants: `CET`, `America/New_York`, `Pacific Standard Time`.
//!
//! `zones.dat` has the zones of JDK 17 (written by tests/fixtures/java/WriteZones.java): the IANA database with Java's
//! own zone names, which no crate has, in 134 KiB. All numbers are zigzag, seven bits in a byte, low ones first:
//!
//! - the number of names; for each: the length of the prefix shared with the previous name, the number of further
//!   bytes, these bytes, and the number of its zone
//! - the number of zones; for each: the first offset; the number of transitions, each with the seconds since the
//!   previous one and the offset after it; the number of yearly rules, each with month, day (negative: from the month's
//!   end), weekday (1 is Monday, 0 is none) on or after that day (on or before it if counted from the end), seconds of
//!   the day, seconds to add to get UTC, and the offset after it.
//!
//! Offsets are seconds east of UTC.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::civil::CivilDate;

const SECONDS_PER_DAY: i64 = 86_400;
static TABLE: &[u8] = include_bytes!("zones.dat");

/// A time zone of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// Position of its offsets in the table.
    start: usize,
}

struct Index {
    zones: HashMap<String, Zone>,
}

/// Reads numbers from the table. The table is trusted; after its end numbers are 0.
struct Numbers {
    at: usize,
}

impl Numbers {
    fn next(&mut self) -> i64 {
        let (mut value, mut shift) = (0_u64, 0);
        while let Some(byte) = TABLE.get(self.at) {
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 63 {
                break;
            }
        }
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn count(&mut self) -> usize {
        usize::try_from(self.next()).unwrap_or(0)
    }

    fn skip(&mut self, numbers: usize) {
        for _ in 0..numbers {
            self.next();
        }
    }
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut numbers = Numbers { at: 0 };
        let mut names = Vec::new();
        let mut name = Vec::new();
        for _ in 0..numbers.count() {
            name.truncate(numbers.count());
            let length = numbers.count();
            name.extend_from_slice(TABLE.get(numbers.at..numbers.at + length).unwrap_or_default());
            numbers.at += length;
            names.push((String::from_utf8_lossy(&name).into_owned(), numbers.count()));
        }
        let mut starts = Vec::new();
        for _ in 0..numbers.count() {
            starts.push(numbers.at);
            numbers.next();
            let transitions = numbers.count();
            numbers.skip(transitions * 2);
            let rules = numbers.count();
            numbers.skip(rules * 6);
        }
        let zone = |(name, zone): (String, usize)| Some((name, Zone { start: *starts.get(zone)? }));
        Index { zones: names.into_iter().filter_map(zone).collect() }
    })
}

impl Zone {
    /// The zone with this name, which is case-sensitive.
    pub(super) fn named(name: &str) -> Option<Zone> {
        index().zones.get(name).copied()
    }

    /// The offset at a local time, in seconds since 1970 as if the zone's clocks showed UTC. For a time that the clocks
    /// skip or show twice it is the earlier offset (`ZonedDateTime.ofLocal`).
    pub(super) fn offset_at(self, local_s: i64) -> i64 {
        let mut numbers = Numbers { at: self.start };
        let mut offset = numbers.next();
        let mut at = 0;
        for _ in 0..numbers.count() {
            at += numbers.next();
            let after = numbers.next();
            if local_s < at + offset.max(after) {
                return offset;
            }
            offset = after;
        }
        let year = CivilDate::from_epoch_day(local_s.div_euclid(SECONDS_PER_DAY)).year;
        let rules = numbers.count();
        let each = (0..rules).map(|_| yearly(&mut numbers, year)).collect::<Vec<_>>();
        // A year begins with the offset of the previous year's last rule.
        offset = each.last().map_or(offset, |(_, after)| *after);
        for (at, after) in each {
            if local_s < at + offset.max(after) {
                return offset;
            }
            offset = after;
        }
        offset
    }
}

/// When a rule takes effect in a year (seconds since 1970), and the offset after it.
fn yearly(numbers: &mut Numbers, year: i64) -> (i64, i64) {
    let month = numbers.next() as u8;
    let (day, weekday) = (numbers.next(), numbers.next());
    let (of_day, to_utc, after) = (numbers.next(), numbers.next(), numbers.next());
    let first = CivilDate { year, month, day: 1 };
    let from_end = day < 0;
    let day = if from_end { i64::from(first.month_length()) + 1 + day } else { day };
    let mut epoch_day = first.to_epoch_day().unwrap_or(0) + day - 1;
    if weekday > 0 {
        // 1970-01-01 was a Thursday.
        let found = (epoch_day + 3).rem_euclid(7) + 1;
        epoch_day +=
            if from_end { -(found - weekday).rem_euclid(7) } else { (weekday - found).rem_euclid(7) };
    }
    (epoch_day * SECONDS_PER_DAY + of_day + to_utc, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(index().zones.len(), 1_314);
        let mut starts: Vec<_> = index().zones.values().map(|zone| zone.start).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 325);
        for zone in index().zones.values() {
            for year in [-300_000_000, 0, 1800, 1945, 2024, 2100, 900_000_000] {
                let day = CivilDate { year, month: 7, day: 1 }.to_epoch_day().unwrap();
                assert!(zone.offset_at(day * SECONDS_PER_DAY).abs() < 18 * 3_600);
            }
        }
        assert_eq!(Zone::named("cet"), None);
    }
}
