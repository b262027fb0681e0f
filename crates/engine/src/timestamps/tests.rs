//! The two clocks on a clock that moves when told.

use super::*;
use std::sync::atomic::AtomicU64;

#[derive(Default)]
struct Told {
    wall_us: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl Told {
    fn at(wall_us: i64) -> Arc<Told> {
        let told = Told::default();
        told.wall_us.store(wall_us, Ordering::Relaxed);
        Arc::new(told)
    }

    fn set(&self, wall_us: i64) {
        self.wall_us.store(wall_us, Ordering::Relaxed);
    }

    fn pass(&self, us: i64) {
        self.wall_us.fetch_add(us, Ordering::Relaxed);
        self.monotonic_ns.fetch_add(us.unsigned_abs() * 1000, Ordering::Relaxed);
    }
}

impl Clock for Told {
    fn wall_us(&self) -> i64 {
        self.wall_us.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }
}

const NOW_US: i64 = 1_800_000_000_000_000;
const HOUR_US: i64 = 3_600_000_000;
const YEAR_US: i64 = 365 * 24 * HOUR_US;

#[test]
fn timestamps_go_on_where_the_clock_goes_back_and_the_time_of_day_follows_it() {
    let clock = Told::at(NOW_US);
    let times = Timestamps::new(clock.clone(), 0);
    assert_eq!(
        times.next().unwrap(),
        ServerTime { timestamp_us: NOW_US, wall_us: NOW_US, now_s: 1_800_000_000 }
    );
    assert_eq!(times.next().unwrap().timestamp_us, NOW_US + 1);
    clock.set(NOW_US - YEAR_US);
    let back = times.next().unwrap();
    assert_eq!((back.timestamp_us, back.now_s), (NOW_US + 2, (NOW_US - YEAR_US) / 1_000_000));
    assert_eq!(times.status().ahead_us(), YEAR_US + 2);
    times.reset().unwrap();
    assert_eq!(times.next().unwrap().timestamp_us, NOW_US - YEAR_US + 1);
}

#[test]
fn a_step_back_of_less_than_a_second_is_waited_out() {
    let clock = Told::at(NOW_US);
    let times = Timestamps::new(clock.clone(), 0);
    assert_eq!(times.now_s(), 1_800_000_000);
    clock.set(NOW_US - 1);
    assert_eq!(times.now_s(), 1_800_000_000);
    clock.set(NOW_US - 1_000_001);
    assert_eq!(times.now_s(), 1_799_999_998);
    for (wall_us, now_s) in [(-1, 0), (0, 0), (i64::MIN, 0), (i64::MAX, TIME_OF_DAY_MAX_S)] {
        clock.set(wall_us);
        assert_eq!(times.now_s(), now_s);
    }
}

#[test]
fn no_timestamp_is_taken_from_a_clock_beyond_what_files_hold() {
    let clock = Told::at(NOW_US);
    let times = Timestamps::new(clock.clone(), NOW_US + 5);
    clock.set((TIME_OF_DAY_MAX_S + 1) * 1_000_000);
    assert!(matches!(times.next(), Err(Error::ClockBeyond { .. })));
    assert!(times.next_of_schema().is_err() && times.reset().is_err() && times.status().is_refused);
    assert_eq!(times.next_always(), NOW_US + 6);
    clock.set(NOW_US + 20);
    assert_eq!(times.next().unwrap().timestamp_us, NOW_US + 20);
    assert!(!times.status().is_refused);
}

#[test]
fn a_bound_refuses_a_clock_that_jumped_until_it_is_right_or_believed() {
    let clock = Told::at(NOW_US);
    let times = Timestamps::new(clock.clone(), 0);
    times.set_ahead_max(Some(24 * HOUR_US.unsigned_abs()));
    for _ in 0..100 {
        times.next().unwrap();
        clock.pass(HOUR_US);
    }
    let right_us = times.wall_us();
    clock.set(right_us + YEAR_US);
    assert!(times.next().is_err() && times.next().is_err());
    clock.pass(2 * HOUR_US);
    assert!(times.next().is_err(), "it may stand for as long as it likes");
    clock.set(right_us + 2 * HOUR_US);
    times.next().unwrap();
    clock.set(right_us + YEAR_US);
    assert!(times.next().is_err());
    times.reset().unwrap();
    assert_eq!(times.next().unwrap().timestamp_us, right_us + YEAR_US + 1);
    clock.set(right_us + 2 * YEAR_US);
    times.set_ahead_max(None);
    times.next().unwrap();
}

#[test]
fn a_change_of_the_schema_has_its_millisecond_to_itself() {
    let times = Timestamps::new(Told::at(NOW_US + 1), 0);
    assert_eq!(times.next_of_schema().unwrap(), NOW_US + 999);
    assert_eq!(times.next().unwrap().timestamp_us, NOW_US + 1000);
    assert_eq!(times.next_of_schema().unwrap(), NOW_US + 1999);
}

#[test]
fn what_removes_for_good_does_not_believe_a_jump_for_an_hour() {
    let clock = Told::at(NOW_US);
    let times = Timestamps::new(clock.clone(), 0);
    clock.set(NOW_US + YEAR_US);
    assert_eq!((times.purge_now_s(), times.now_s()), (NOW_US / 1_000_000, (NOW_US + YEAR_US) / 1_000_000));
    let mut told = Vec::new();
    times.look(&mut |jump| told.push(jump.found_us - jump.expected_us));
    times.look(&mut |jump| told.push(jump.found_us - jump.expected_us));
    assert_eq!(told, [YEAR_US]);
    clock.pass(HOUR_US);
    assert_eq!(times.purge_now_s(), (NOW_US + YEAR_US + HOUR_US) / 1_000_000);
}
