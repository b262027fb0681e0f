//! Time zones by name, as timestamp constants may end with them: `CET`, `America/New_York`, `Pacific Standard Time`.
//!
//! `zones.dat` is what JDK 17 knows (tests/fixtures/java/WriteZones.java makes it): the IANA database with Java's own
//! names for zones, which no crate has, in 134 KiB. All numbers are zigzag, seven bits a byte, low ones first:
//!
//! - the number of names; each: bytes shared with the name before, bytes that follow, these, and its zone's number
//! - the number of zones; each: the offset at first; the number of transitions, each the seconds since the one before and the
//!   offset after it; the number of yearly rules, each month, day (negative: from the month's end), weekday (1 is Monday, 0
//!   none) on or after that day (on or before it, from the end), seconds of the day, what makes these UTC, offset after it.
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
    /// Where its offsets begin in the table.
    start: usize,
}

struct Index {
    zones: HashMap<String, Zone>,
}

/// A reader of numbers. The table is our own: at its end there are zeros.
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
    /// The zone of a name; letters count as they are written.
    pub(super) fn named(name: &str) -> Option<Zone> {
        index().zones.get(name).copied()
    }

    /// The offset of a time of the zone's own clocks, in seconds since 1970 as if they showed UTC. Of a time that they skip or show
    /// twice, it is the offset before (`ZonedDateTime.ofLocal`).
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
        // A year begins with what the last rule of the year before has left.
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

/// When a rule takes effect in a year, and the offset after it.
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
