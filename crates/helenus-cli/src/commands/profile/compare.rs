//! `helenus profile compare`: prints two profiles side by side, with ratios.

use super::results::{Measured, Profile};
use crate::commands::numbers::figure;
use anyhow::{Result, ensure};
use std::fmt::Write;

/// The comparison. A ratio is the first time divided by the second: above 1, the second is faster.
///
/// # Errors
/// The profiles have no case on the same row in common.
pub(super) fn text(first: &Profile, second: &Profile) -> Result<String> {
    let mut text = format!(
        "A  {}, {} queries a line; {}\nB  {}, {} queries a line; {}\n\
         Microseconds: median, 80th and 95th percentile. A/B: how many times faster B is.\n",
        first.subject,
        first.repeats,
        first.settled.words(),
        second.subject,
        second.repeats,
        second.settled.words()
    );
    let (mut ratios, mut alone) = (Vec::new(), 0);
    for (case, rows) in first.by_case() {
        let pairs: Vec<(&Measured, &Measured)> =
            rows.iter().filter_map(|row| Some((*row, same(second, row)?))).collect();
        alone += rows.len() - pairs.len();
        if pairs.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{}, table {}\n", case.title, case.order.table());
        let _ = writeln!(
            text,
            "{:<18} {:>9} {:>9} {:>7}  {:>9} {:>9} {:>7}  {:>9} {:>9} {:>7}",
            "row", "A 50th", "B 50th", "A/B", "A 80th", "B 80th", "A/B", "A 95th", "B 95th", "A/B"
        );
        for (a, b) in pairs {
            let _ = write!(text, "{:<18}", a.row);
            let (l, r) = (&a.latency_us, &b.latency_us);
            for (at, (a, b)) in [(l.p50, r.p50), (l.p80, r.p80), (l.p95, r.p95)].into_iter().enumerate() {
                let gap = if at == 0 { "" } else { " " };
                let _ = write!(text, "{gap} {:>9} {:>9} {:>7}", figure(a), figure(b), ratio(a, b));
            }
            text.push('\n');
            ratios.extend((r.p80 > 0.0 && l.p80 > 0.0).then(|| l.p80 / r.p80));
        }
    }
    ensure!(!ratios.is_empty(), "the two profiles have no case on the same row");
    let _ = write!(text, "\n{}", summary(&mut ratios));
    let only_second = second.cases.iter().filter(|row| same(first, row).is_none()).count();
    for (count, name) in [(alone, "A"), (only_second, "B")] {
        if count > 0 {
            let _ = writeln!(text, "Lines in {name} alone: {count}.");
        }
    }
    Ok(text)
}

fn same<'p>(profile: &'p Profile, row: &Measured) -> Option<&'p Measured> {
    profile
        .cases
        .iter()
        .find(|other| (&other.test, &other.case, &other.row) == (&row.test, &row.case, &row.row))
}

fn ratio(a: f64, b: f64) -> String {
    if b > 0.0 { format!("{}x", figure(a / b)) } else { "-".into() }
}

/// A summary of all ratios: their geometric mean, and the extremes.
fn summary(ratios: &mut [f64]) -> String {
    ratios.sort_by(f64::total_cmp);
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let [least, .., most] = *ratios else {
        return format!("A/B of the 80th percentile: {}x.\n", figure(mean));
    };
    format!(
        "A/B of the 80th percentile over {} lines: {}x on (geometric) average, from {}x to {}x.\n",
        ratios.len(),
        figure(mean),
        figure(least),
        figure(most)
    )
}

#[cfg(test)]
mod tests {
    use super::super::cases::CASES;
    use super::super::rows::ROWS;
    use super::*;

    fn profile(subject: &str, lines: &[(usize, usize, f64)]) -> Profile {
        let mut profile = Profile::begin(subject.into(), "cql", 0);
        for &(case, row, latency) in lines {
            profile.cases.push(Measured::new(&CASES[case], ROWS[row], 100, vec![latency]));
        }
        profile
    }

    #[test]
    fn lines_of_both_stand_side_by_side_with_their_ratio() {
        let a = profile("slow", &[(0, 0, 300.0), (0, 6, 18_000.0), (9, 0, 190.0)]);
        let b = profile("fast", &[(0, 6, 60.0), (0, 0, 100.0), (1, 0, 5.0)]);
        let text = text(&a, &b).unwrap();
        let line = text.lines().find(|line| line.starts_with("ten-million")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..4], ["18,000", "60.0", "300x"], "{text}");
        assert!(text.contains("over 2 lines: 30.0x on (geometric) average, from 3.00x to 300x"), "{text}");
        assert!(text.contains("Lines in A alone: 1.\nLines in B alone: 1."), "{text}");
        let widths: Vec<usize> = text.lines().filter(|line| line.contains("x  ")).map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn profiles_with_nothing_in_common_are_refused() {
        assert!(text(&profile("a", &[(0, 0, 1.0)]), &profile("b", &[(0, 1, 1.0)])).is_err());
    }
}
