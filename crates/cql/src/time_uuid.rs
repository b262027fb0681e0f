//! Time UUIDs: version 1 of RFC 9562, as returned by `now()`.

use parking_lot::Mutex;

/// 100 ns units from the start of the Gregorian calendar, where time UUIDs begin, to 1970.
const GREGORIAN_TO_UNIX: i64 = 0x01B2_1DD2_1381_4000;
/// If the wall clock goes back by less than this, `now()` continues in order.
const STEP_US_MAX: i64 = 1_000_000;
/// The variant in the clock sequence, and the bit of a node that is not a network card's address.
const VARIANT_AND_MULTICAST: u64 = 0x8000_0100_0000_0000;

/// The time UUID for microseconds since 1970, with this clock sequence and node.
pub(crate) fn time_uuid(unix_us: i64, node: u64) -> [u8; 16] {
    let ticks = (unix_us.saturating_mul(10).saturating_add(GREGORIAN_TO_UNIX)) as u64;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((ticks >> 48) as u16 & 0x0FFF | 0x1000).to_be_bytes());
    bytes[8..].copy_from_slice(&node.to_be_bytes());
    bytes
}

/// Clock sequence and node from random bytes, with RFC 9562's mark for nodes that are not network cards.
pub(crate) fn random_node(random: [u8; 8]) -> u64 {
    u64::from_be_bytes(random) & 0x3FFF_FFFF_FFFF_FFFF | VARIANT_AND_MULTICAST
}

/// Makes unique time UUIDs from the wall clock. They are in order while corrections of the clock are less than
/// `STEP_US_MAX`. If it is set back further, they follow it with a new clock sequence and node.
pub(crate) struct WallUuids(Mutex<Series>);

struct Series {
    last_us: i64,
    node: u64,
}

impl WallUuids {
    pub(crate) fn new(node: u64) -> WallUuids {
        WallUuids(Mutex::new(Series { last_us: i64::MIN, node }))
    }

    /// The next UUID at this wall time, microseconds since 1970. `new_node` draws a node if the clock was set back.
    pub(crate) fn next(&self, wall_us: i64, new_node: &dyn Fn() -> u64) -> [u8; 16] {
        let mut series = self.0.lock();
        let next_us = series.last_us.saturating_add(1);
        if wall_us >= next_us.saturating_sub(STEP_US_MAX) {
            series.last_us = wall_us.max(next_us);
        } else {
            *series = Series { last_us: wall_us, node: new_node() };
        }
        time_uuid(series.last_us, series.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::HashSet;

    fn micros(uuid: [u8; 16]) -> i64 {
        let (ticks, _) = uuid::Uuid::from_bytes(uuid).get_timestamp().unwrap().to_gregorian();
        (ticks as i64 - GREGORIAN_TO_UNIX) / 10
    }

    #[test]
    fn uuids_follow_the_wall_clock_and_are_never_the_same() {
        let nodes = Cell::new(0);
        let new_node = || {
            nodes.set(nodes.get() + 1);
            random_node(u64::to_be_bytes(nodes.get()))
        };
        let uuids = WallUuids::new(new_node());
        let mut made = HashSet::new();
        let (now, year) = (1_800_000_000_000_000_i64, 31_536_000_000_000_i64);
        let walk = [0, 0, 0, -1, -400_000, 5, 80 * year, 80 * year, 3, 3, 4, -year, 0, -50 * year, 1, 1];
        for moved in walk {
            let uuid = uuids.next(now + moved, &new_node);
            let ahead = micros(uuid) - (now + moved);
            assert!((0..=STEP_US_MAX).contains(&ahead), "{ahead} after {moved}");
            assert!(made.insert(uuid), "twice at {moved}");
        }
        assert_eq!(nodes.get(), 4, "a new one where the clock was set back");
    }
}
