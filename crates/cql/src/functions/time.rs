//! Conversions between time types (`TimeFcts`, `TimeUUID`).

use super::operation::duration_text;
use crate::error::{CqlError, Result};
use crate::scope::CallContext;
use helenus_model::types::{CqlType, Duration, floor_instant, floor_time};

/// The start of the Gregorian calendar and of time UUIDs, in milliseconds since 1970.
const GREGORIAN_MS: i64 = -12_219_292_800_000;
const DAY_MS: i64 = 86_400_000;
/// The smallest and the greatest clock sequence and node, compared as signed bytes.
const MIN_CLOCK_AND_NODE: u64 = 0x8080_8080_8080_8080;
const MAX_CLOCK_AND_NODE: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// The current time as a value of a type: a new time UUID, or the time of the statement.
pub(super) fn now(ty: &CqlType, cx: &CallContext<'_>) -> Vec<u8> {
    let millis = cx.now_us.div_euclid(1000);
    match ty {
        CqlType::TimeUuid => (cx.now_uuid)().to_vec(),
        CqlType::Time => (cx.now_us.rem_euclid(DAY_MS * 1000) * 1000).to_be_bytes().to_vec(),
        ty => from_millis(ty, millis),
    }
}

/// A value's milliseconds since 1970; `None` for other types.
pub(super) fn millis_of(ty: &CqlType, value: &[u8]) -> Option<i64> {
    match ty {
        CqlType::Timestamp | CqlType::BigInt => Some(i64::from_be_bytes(*value.first_chunk()?)),
        CqlType::Date => {
            let days = i64::from(u32::from_be_bytes(*value.first_chunk()?)) - (1 << 31);
            Some(days * DAY_MS)
        }
        CqlType::TimeUuid => {
            let high = u64::from_be_bytes(*value.first_chunk()?);
            // time_low, time_mid, version and time_high
            let ticks = (high >> 32) | ((high >> 16) & 0xFFFF) << 32 | (high & 0x0FFF) << 48;
            Some(ticks as i64 / 10_000 + GREGORIAN_MS)
        }
        _ => None,
    }
}

/// A value from milliseconds since 1970. Days are rounded towards zero, as in Java.
pub(super) fn from_millis(ty: &CqlType, millis: i64) -> Vec<u8> {
    match ty {
        CqlType::Date => {
            // `Duration.toDays` rounds to seconds downwards, and then to days towards zero.
            let days = millis.div_euclid(1000) / (DAY_MS / 1000);
            ((days + (1 << 31)) as u32).to_be_bytes().to_vec()
        }
        _ => millis.to_be_bytes().to_vec(),
    }
}

/// The last multiple of a duration at or before a value, counted from another value or from 1970; `None` if a value is
/// empty (`TimeFcts.FloorFunction`).
///
/// # Errors
/// The duration is finer than the type or negative, or the start is later than the value.
pub(super) fn floor(types: &[CqlType], returns: &CqlType, values: &[&[u8]]) -> Result<Option<Vec<u8>>> {
    let (Some(ty), Some(value)) = (types.first(), values.first()) else { return Ok(None) };
    let Some(duration) = values.get(1).and_then(|bytes| Duration::from_bytes(bytes)) else { return Ok(None) };
    let refused = |text: &str| CqlError::Invalid(text.to_owned());
    if *ty == CqlType::Time {
        let Some(nanos) = value.first_chunk() else { return Ok(None) };
        let floor = floor_time(i64::from_be_bytes(*nanos), duration).map_err(refused)?;
        return Ok(Some(floor.to_be_bytes().to_vec()));
    }
    let start = match (types.get(2), values.get(2)) {
        (Some(ty), Some(start)) => millis_of(ty, start),
        _ => Some(0),
    };
    let (Some(millis), Some(start)) = (millis_of(ty, value), start) else { return Ok(None) };
    if *ty == CqlType::Date && duration.nanoseconds != 0 {
        return Err(CqlError::Invalid(format!(
            "The floor on date values cannot be computed for the {} duration as precision is below 1 day",
            duration_text(duration)
        )));
    }
    if *ty != CqlType::Date && duration.nanoseconds % 1_000_000 != 0 {
        return Err(CqlError::Invalid(format!(
            "The floor cannot be computed for the {} duration as precision is below 1 millisecond",
            duration_text(duration)
        )));
    }
    let floor = floor_instant(millis, duration, start).map_err(refused)?;
    Ok(Some(from_millis(returns, floor)))
}

/// The smallest time UUID of a millisecond.
pub(super) fn min_time_uuid(millis: i64) -> Vec<u8> {
    time_uuid(ticks_of(millis), MIN_CLOCK_AND_NODE)
}

/// The greatest time UUID of a millisecond.
pub(super) fn max_time_uuid(millis: i64) -> Vec<u8> {
    time_uuid(ticks_of(millis.wrapping_add(1)).wrapping_sub(1), MAX_CLOCK_AND_NODE)
}

fn ticks_of(millis: i64) -> i64 {
    millis.wrapping_mul(10_000).wrapping_sub(GREGORIAN_MS * 10_000)
}

fn time_uuid(ticks: i64, low: u64) -> Vec<u8> {
    let ticks = ticks as u64;
    let high = (ticks << 32) | ((ticks >> 16) & 0xFFFF_0000) | 0x1000 | ((ticks >> 48) & 0x0FFF);
    [high.to_be_bytes(), low.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_uuid_gives_back_its_millisecond() {
        for millis in [0, 1, -1, 1_700_000_000_123] {
            for uuid in [min_time_uuid(millis), max_time_uuid(millis)] {
                assert_eq!(millis_of(&CqlType::TimeUuid, &uuid), Some(millis));
                assert!(CqlType::TimeUuid.validate(&uuid).is_ok());
            }
        }
    }

    #[test]
    fn days_are_counted_as_java_does() {
        let day = |millis| u32::from_be_bytes(from_millis(&CqlType::Date, millis).try_into().unwrap());
        assert_eq!(day(0), 1 << 31);
        assert_eq!(day(DAY_MS), (1 << 31) + 1);
        assert_eq!(day(-1), 1 << 31);
        assert_eq!(day(-DAY_MS), (1 << 31) - 1);
    }
}
