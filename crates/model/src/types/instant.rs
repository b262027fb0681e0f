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
    let month = date.year * MONTHS_PER_YEAR + i64::from(date.month) - 1 + months;
    let first = CivilDate {
        year: month.div_euclid(MONTHS_PER_YEAR),
        month: month.rem_euclid(MONTHS_PER_YEAR) as u8 + 1,
        day: 1,
    };
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
    let month_of = |millis: i64| {
        let date = CivilDate::from_epoch_day(millis.div_euclid(DAY_MS));
        date.year * MONTHS_PER_YEAR + i64::from(date.month)
    };
    let months = i64::from(duration.months);
    let mut times = (month_of(millis) - month_of(start_ms)) / months;
    let mut base = add_months(start_ms, times * months);
    if length_ms == 0 {
        return Ok(base);
    }
    let floor = |base: i64, times: i64| base.wrapping_add(times.wrapping_mul(length_ms));
    while floor(base, times) > millis {
        times -= 1;
        base = add_months(base, -months);
    }
    Ok(floor(base, times).max(start_ms))
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
}
