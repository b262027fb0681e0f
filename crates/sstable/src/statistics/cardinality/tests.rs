//! Tests of the estimator: its error, its format, and all sizes that other programs may use.

use super::*;
use std::path::Path;

fn of(range: std::ops::Range<u64>) -> Cardinality {
    counted(SIZES, range)
}

fn counted(sizes: Sizes, range: std::ops::Range<u64>) -> Cardinality {
    let mut counted = Cardinality { sizes, ..Cardinality::default() };
    range.for_each(|key| counted.add(&key.to_be_bytes()));
    counted
}

fn bytes(counted: &Cardinality) -> Vec<u8> {
    let mut out = Vec::new();
    counted.write(&mut out);
    out
}

fn read(bytes: &[u8]) -> Result<Cardinality> {
    Cardinality::read(&mut Input::new(bytes, 0, Path::new("t")))
}

#[test]
fn the_estimate_is_near_at_every_size() {
    for n in [0_u64, 1, 10, 1000, 6000, 7000, 20_000, 40_000, 100_000, 1_000_000] {
        let estimate = of(0..n).estimate() as f64;
        assert!((estimate - n as f64).abs() <= n as f64 * 0.04, "{n}: {estimate}");
    }
}

#[test]
fn both_forms_come_back_from_their_bytes() {
    for n in [0, 5, 3000, 50_000] {
        let counted = of(0..n);
        let out = bytes(&counted);
        let read = read(&out).unwrap();
        assert_eq!(read.estimate(), counted.estimate());
        assert_eq!(bytes(&read), out);
    }
}

#[test]
fn merged_estimators_count_common_keys_once() {
    for (a, b) in [(of(0..2000), of(1000..3000)), (of(0..50_000), of(0..100)), (of(0..100), of(50..30_000))] {
        let mut merged = a.clone();
        merged.merge(&b);
        let mut other = b.clone();
        other.merge(&a);
        assert_eq!(merged.estimate(), other.estimate());
        assert!(merged.estimate() >= a.estimate().max(b.estimate()) * 99 / 100);
        assert!(merged.estimate() <= a.estimate() + b.estimate());
    }
}

/// Whether an estimate of n keys is near n: within five standard errors of 1.04 / sqrt(2^p), and two keys.
fn is_near(estimate: u64, n: u64, p: u32) -> bool {
    let error = 5.0 * 1.04 / 2_f64.powi(p as i32).sqrt();
    (estimate as f64 - n as f64).abs() <= n as f64 * error + 2.0
}

#[test]
fn estimators_of_every_size_are_read_written_back_and_merged() {
    let seed = std::env::var("HELENUS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11_u64);
    let mut state = seed;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    for case in 0..150 {
        let mut one = || {
            let p = P_MIN + draw(u64::from(19 - P_MIN)) as u32;
            let sp = p + draw(u64::from(26_u32.saturating_sub(p).max(1))) as u32;
            let (from, keys) = (draw(1000), draw(4) * draw(6000) + draw(30));
            (Sizes { p, sp }, from, keys)
        };
        let [(sizes, from, keys), (other_sizes, other_from, other_keys)] = [one(), one()];
        let what =
            format!("seed {seed}, case {case}: {sizes:?} {keys} keys, {other_sizes:?} {other_keys} keys");
        let mut merged = counted(sizes, from..from + keys);
        // Hash prefixes of few bits collide.
        let slack = |sizes: Sizes| sizes.p.min(sizes.sp.saturating_sub(2).max(P_MIN));
        assert!(is_near(merged.estimate(), keys, slack(sizes)), "{what}: {}", merged.estimate());
        let written = bytes(&merged);
        let again = read(&written).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((again.estimate(), bytes(&again)), (merged.estimate(), written), "{what}");
        let other = counted(other_sizes, other_from..other_from + other_keys);
        merged.merge(&other);
        let ends = (from + keys).max(other_from + other_keys);
        let both = (keys + other_keys).min(ends - from.min(other_from));
        let p = slack(sizes).min(slack(other_sizes));
        assert!(is_near(merged.estimate(), both, p), "{what}: {both} keys in both, {}", merged.estimate());
    }
}

#[test]
fn folded_registers_are_those_of_the_smaller_size() {
    for (large, small) in [(14, 13), (13, 4), (18, 10)] {
        let mut folded = counted(Sizes { p: large, sp: 25 }, 0..40_000);
        folded.fold_to(small);
        let mut direct = counted(Sizes { p: small, sp: 25 }, 0..40_000);
        direct.use_registers();
        assert_eq!(folded, direct, "{large} to {small}");
    }
}

#[test]
fn the_form_without_a_version_is_read() {
    let sparse = of(0..100);
    let mut old: Vec<u8> = [13_u32, 25, 1].iter().flat_map(|number| number.to_be_bytes()).collect();
    let mut last = 0;
    for entry in sparse.sparse_entries() {
        let mut difference = Vec::new();
        write_varint(entry.wrapping_sub(last), &mut difference);
        old.extend_from_slice(&(difference.len() as u32).to_be_bytes());
        old.extend_from_slice(&difference);
        last = entry;
    }
    old.extend_from_slice(&0_u32.to_be_bytes());
    let with_length = [&(old.len() as u32).to_be_bytes(), &*old].concat();
    assert_eq!(read(&with_length).unwrap().estimate(), sparse.estimate());
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    for n in [5, 50_000] {
        let whole = bytes(&of(0..n));
        for at in (0..whole.len()).step_by(1 + whole.len() / 300) {
            let _cut = read(&whole[..at]);
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(read) = read(&changed) {
                    let mut merged = of(0..10);
                    merged.merge(&read);
                    let _estimate = merged.estimate();
                }
            }
        }
    }
}
