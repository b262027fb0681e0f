//! The results in "Cassandra Query Plans" and "Reversed Comparators" (2011): Cassandra 0.8.1 and 0.8.6 on a laptop,
//! measured inside the server.
//!
//! The numbers are the 80th percentiles of their tables, in milliseconds. They are shown beside new results for the
//! shape of the curves, not as a goal: that machine had a spinning disk and is fourteen years old.

use super::cases::{CASES, Case};

/// One line for each case in the order of `CASES`; within it the rows, narrow ones first.
const P80_MS: [[f64; 7]; 18] = [
    [0.362, 0.9146, 1.321, 1.311, 1.483, 2.957, 18.72],
    [0.2846, 0.7078, 0.962, 0.901, 0.9138, 2.72, 17.67],
    [0.3134, 0.9052, 1.772, 1.802, 1.978, 2.832, 18.59],
    [0.119, 0.4008, 1.596, 3.445, 27.63, 28.47, 43.55],
    [0.115, 0.3536, 1.854, 3.664, 26.77, 28.04, 44.26],
    [0.117, 0.4356, 1.808, 3.682, 27.23, 38.43, 53.88],
    [0.113, 0.3508, 1.451, 3.071, 40.08, 54.41, 68.56],
    [0.113, 0.349, 1.695, 3.404, 39.52, 53.92, 68.46],
    [0.1156, 0.3628, 1.656, 3.272, 37.52, 52.91, 68.67],
    [0.1934, 0.1918, 0.185, 0.1936, 0.1936, 0.1948, 0.1952],
    [0.142, 0.3498, 0.3676, 0.376, 0.4, 0.495, 1.418],
    [0.1412, 0.338, 0.6488, 0.651, 0.6726, 0.7636, 1.706],
    [0.1028, 0.3626, 0.4068, 0.4138, 0.3828, 0.5048, 1.47],
    [0.143, 0.3406, 0.634, 0.5694, 0.4942, 0.4468, 1.372],
    [0.1512, 0.5082, 0.368, 0.32, 0.2362, 0.476, 1.432],
    [0.1526, 0.3532, 0.374, 0.3868, 0.4094, 0.496, 1.401],
    [0.1496, 0.3504, 0.328, 0.291, 0.2038, 0.4308, 1.421],
    [0.1508, 0.157, 0.1506, 0.1558, 0.1498, 0.1592, 0.1602],
];

/// The 80th percentile of a case in its article, in microseconds, for the row at index `row` in `ROWS`.
pub(super) fn p80_us(case: &Case, row: usize) -> Option<f64> {
    let at = CASES.iter().position(|other| other.test == case.test && other.id == case.id)?;
    P80_MS.get(at)?.get(row).map(|ms| ms * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_stand_at_their_cases() {
        let of = |test: &str, id: &str, row| {
            let case = CASES.iter().find(|case| case.test.name() == test && case.id == id).unwrap();
            p80_us(case, row).unwrap().round()
        };
        assert_eq!(of("names", "start", 0), 362.0);
        assert_eq!(of("names", "any-of-100", 6), 68_670.0);
        assert_eq!(of("start", "none", 6), 195.0);
        assert_eq!(of("recent", "by-count-ascending", 6), 1_421.0);
        assert_eq!(of("recent", "by-count-reversed", 6), 160.0);
    }
}
