//! Adds durations to instants, and rounds instants down to multiples of durations; months follow the calendar, in UTC
//! (`Duration.addTo`, `Duration.floorTimestamp`, `Duration.floorTime`).

use super::civil::CivilDate;
use super::duration::Duration;

const DAY_MS: i64 = 86_400_000;
const MILLI_NS: i64 = 1_000_000;
const MONTHS_PER_YEAR: i64 = 12;

/// Adds a duration's parts to milliseconds since 1970. If the resulting month is too short, the day is its last.
pub fn add_duration(millis: i64, months: i32, days: i32, nanoseconds: i64) -> i64 {
    let moved = if months == 0 { millis } else { add_months(millis, i64::from(months)) };
    // If there are months, Cassandra's calendar adds the milliseconds as 32 bits.
    let rest = nanoseconds / MILLI_NS;
    let rest = if months == 0 { rest } else { i64::from(rest as i32) };
    moved.wrapping_add(i64::from(days).wrapping_mul(DAY_MS)).wrapping_add(rest)
}

fn add_months(millis: i64, months: i64) -> i64 {
    let (day, time) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    let date = CivilDate::from_epoch_day(day);
    let first = first_of(date.year * MONTHS_PER_YEAR + i64::from(date.month) - 1 + months);
    let moved = CivilDate { day: date.day.min(first.month_length()), ..first };
    moved.to_epoch_day().map_or(millis, |day| day.wrapping_mul(DAY_MS).wrapping_add(time))
}

/// The last multiple of a duration, counted from `start_ms`, at or before `millis`.
///
/// # Errors
/// In Cassandra's words: the start is later, or the duration is negative.
pub fn floor_instant(millis: i64, duration: Duration, start_ms: i64) -> Result<i64, &'static str> {
    if start_ms > millis {
        return Err("The floor function starting time is greater than the provided time");
    }
    check_positive(duration)?;
    let length_ms =
        i64::from(duration.days).wrapping_mul(DAY_MS).wrapping_add(duration.nanoseconds / MILLI_NS);
    if duration.months == 0 {
        return Ok(match length_ms {
            0 => millis,
            length => millis - millis.wrapping_sub(start_ms).wrapping_rem(length),
        });
    }
    let months = i64::from(duration.months);
    let most = (month_of(millis) - month_of(start_ms)) / months;
    if length_ms == 0 {
        return Ok(add_months(start_ms, most * months));
    }
    Ok(Multiples::new(start_ms, months, length_ms).last_until(millis, most).max(start_ms))
}

/// Months since the year 0.
fn month_of(millis: i64) -> i64 {
    let date = CivilDate::from_epoch_day(millis.div_euclid(DAY_MS));
    date.year * MONTHS_PER_YEAR + i64::from(date.month) - 1
}

/// The multiples of a duration of months and milliseconds, counted from a start.
///
/// Cassandra finds the last one by going back month by month, from the multiple that has as many months as lie between
/// start and instant. A day that a shorter month cuts on that way stays cut in the months before it. Going back takes
/// minutes for instants far from the start, so the multiple is found by bisection here, with the same cuts.
struct Multiples {
    start_ms: i64,
    months: i64,
    length_ms: i64,
}

/// The days of months repeat after this many months: 400 years.
const CALENDAR_MONTHS: i64 = 400 * MONTHS_PER_YEAR;

impl Multiples {
    fn new(start_ms: i64, months: i64, length_ms: i64) -> Multiples {
        Multiples { start_ms, months, length_ms }
    }

    /// The last multiple, from the `most`th backwards, that is not after `millis`. The start itself is the 0th.
    fn last_until(&self, millis: i64, most: i64) -> i64 {
        let cuts = self.cuts(most);
        let at = |times: i64| -> i128 {
            let day = cuts.iter().rev().find(|(from, _)| times <= *from).map_or(31, |(_, day)| *day);
            i128::from(self.base(times, day)) + i128::from(times) * i128::from(self.length_ms)
        };
        // `at` grows with the number of times, because both of its terms do.
        let (mut low, mut high) = (0, most + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if at(middle) <= i128::from(millis) {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Neither is it after `millis`, nor much before the start.
        at(low) as i64
    }

    /// Where, going back from the `most`th multiple, months cut the start's day: the number of the multiple, and the day
    /// from there backwards.
    fn cuts(&self, most: i64) -> Vec<(i64, u8)> {
        let (start, month) =
            (CivilDate::from_epoch_day(self.start_ms.div_euclid(DAY_MS)), month_of(self.start_ms));
        let mut day = start.day;
        let mut cuts = Vec::new();
        let mut times = most;
        // No month is shorter than 28 days, and no month differs from the one of the calendar's last period.
        while day > 28 && times >= 0 && times > most - CALENDAR_MONTHS {
            let length = first_of(month + times * self.months).month_length();
            if length < day {
                day = length;
                cuts.push((times, day));
            }
            times -= 1;
        }
        cuts
    }

    /// The start, moved by the months of a multiple, on its own day or on `day` if that is earlier.
    fn base(&self, times: i64, day: u8) -> i64 {
        let start = CivilDate::from_epoch_day(self.start_ms.div_euclid(DAY_MS));
        let first = first_of(month_of(self.start_ms) + times * self.months);
        let moved = CivilDate { day: start.day.min(day).min(first.month_length()), ..first };
        let time = self.start_ms.rem_euclid(DAY_MS);
        moved.to_epoch_day().map_or(self.start_ms, |day| day.wrapping_mul(DAY_MS).wrapping_add(time))
    }
}

/// The first day of a month, which is counted from the year 0.
fn first_of(month: i64) -> CivilDate {
    CivilDate {
        year: month.div_euclid(MONTHS_PER_YEAR),
        month: month.rem_euclid(MONTHS_PER_YEAR) as u8 + 1,
        day: 1,
    }
}

/// The last multiple of a duration at or before a time of day, in nanoseconds.
///
/// # Errors
/// In Cassandra's words: the duration is negative or longer than a day.
pub fn floor_time(nanos: i64, duration: Duration) -> Result<i64, &'static str> {
    check_positive(duration)?;
    if duration.months != 0 || duration.days != 0 || duration.nanoseconds > DAY_MS * MILLI_NS {
        return Err("For time values, the floor can only be computed for durations smaller that a day");
    }
    Ok(match duration.nanoseconds {
        0 => nanos,
        length => nanos - nanos % length,
    })
}

fn check_positive(duration: Duration) -> Result<(), &'static str> {
    if duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0 {
        return Err("Negative durations are not supported by the floor function");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn duration(text: &str) -> Duration {
        Duration::parse(text).unwrap()
    }

    /// 2020-01-31T12:00:00Z
    const LATE_JANUARY: i64 = 1_580_472_000_000;

    #[test]
    fn a_month_later_is_the_last_day_of_a_shorter_month() {
        assert_eq!(add_duration(LATE_JANUARY, 1, 0, 0), LATE_JANUARY + 29 * DAY_MS);
        assert_eq!(add_duration(LATE_JANUARY, -2, 1, MILLI_NS), LATE_JANUARY - 61 * DAY_MS + 1);
    }

    #[test]
    fn floors_count_from_the_start() {
        assert_eq!(
            floor_instant(LATE_JANUARY, duration("1mo"), 0),
            Ok(LATE_JANUARY - 30 * DAY_MS - DAY_MS / 2)
        );
        assert_eq!(floor_instant(LATE_JANUARY, duration("1d"), 0), Ok(LATE_JANUARY - DAY_MS / 2));
        assert_eq!(floor_instant(7, duration("2ms"), 2), Ok(6));
        assert!(floor_instant(1, duration("1d"), 2).is_err());
        assert_eq!(floor_time(3_700 * 1_000_000_000, duration("1h")), Ok(3_600 * 1_000_000_000));
        assert!(floor_time(0, duration("1d1h")).is_err());
    }

    /// The loop of `Duration.floorTimestamp`, with the calendar's months.
    fn floor_by_going_back(millis: i64, (months, length_ms): (i64, i64), start_ms: i64) -> i64 {
        let mut times = (month_of(millis) - month_of(start_ms)) / months;
        let mut base = add_months(start_ms, times * months);
        let floor = |base: i64, times: i64| i128::from(base) + i128::from(times) * i128::from(length_ms);
        while floor(base, times) > i128::from(millis) {
            times -= 1;
            base = add_months(base, -months);
        }
        (floor(base, times) as i64).max(start_ms)
    }

    proptest! {
        #[test]
        fn a_floor_is_the_one_that_going_back_multiple_by_multiple_finds(
            start_day in -40_000_i64..40_000,
            // The last days of months are drawn often: shorter months cut them.
            last_of_month: bool,
            distance_days in 0_i64..400_000,
            time_ms in 0..DAY_MS,
            months in prop_oneof![1_i32..60, Just(48), Just(1), Just(12)],
            days in 0_i32..400,
            nanoseconds in prop_oneof![Just(0_i64), 0_i64..90_000_000_000_000],
        ) {
            let date = CivilDate::from_epoch_day(start_day);
            let day = if last_of_month { date.month_length() } else { date.day };
            let start_ms = CivilDate { day, ..date }.to_epoch_day().unwrap() * DAY_MS + time_ms;
            let millis = start_ms + distance_days * DAY_MS + time_ms / 2;
            let length_ms = i64::from(days) * DAY_MS + nanoseconds / MILLI_NS;
            let floor = floor_instant(millis, Duration { months, days, nanoseconds }, start_ms);
            let found = floor_by_going_back(millis, (months.into(), length_ms), start_ms);
            if length_ms > 0 {
                prop_assert_eq!(floor, Ok(found));
            } else {
                prop_assert!(floor.is_ok());
            }
        }

        /// The loop would take minutes.
        #[test]
        fn floors_of_far_instants_are_found_at_once(
            millis: i64, start_ms: i64, months in 1_i32.., days in 0_i32.., nanoseconds in 0_i64..,
        ) {
            for (months, days) in [(months, days), (1, days % 40), (1, 0), (i32::MAX, i32::MAX)] {
                let (early, late) = (millis.min(start_ms), millis.max(start_ms));
                for (start_ms, millis) in [(early, late), (i64::MIN, i64::MAX), (i64::MIN, early), (0, i64::MAX)] {
                    let floor = floor_instant(millis, Duration { months, days, nanoseconds }, start_ms).unwrap();
                    prop_assert!(start_ms <= floor, "{} {}", start_ms, floor);
                }
            }
        }
    }
}
