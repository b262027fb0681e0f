//! How long the back-fill of a move takes: the schedule of its ranges, in the order in which they are sent, and what bounds it.

use helenus_cql::{bytes_text, counted};

/// Parts of the ring into which a table is cut. They are sent one by one, and a part that is done is not sent again.
pub const RANGES: u32 = 256;
/// Rows a second that a node of the target is assumed to take, and so those of a range that is sent: every node with a copy
/// takes all its rows. Three nodes that share two cores with the source took 50,000
/// rows of 45 bytes a second, each in three copies (`docs/measurements`).
pub const NODE_ROWS_PER_SECOND: u64 = 50_000;
/// Rows a second that the source can read and send with two threads: 1.2 us of processor time each.
pub const SOURCE_ROWS_PER_SECOND: u64 = 1_600_000;
/// Bytes a second of a network of 1 Gbit/s.
const GIGABIT: u64 = 118_000_000;

/// The ranges in the order in which they are sent: neighbours on the ring, which have the same nodes, are far apart in it, so
/// that ranges that are sent at the same time have different nodes.
pub fn order_of_ranges(count: u32) -> impl Iterator<Item = u32> {
    let bits = count.next_power_of_two().trailing_zeros();
    (0..count.next_power_of_two())
        .map(move |number| number.reverse_bits().checked_shr(u32::BITS - bits).unwrap_or(0))
        .filter(move |number| *number < count)
}

/// What an estimate is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of all tables.
    pub rows: u64,
    /// Their bytes, not compressed.
    pub bytes: u64,
    /// Rows of the largest partition.
    pub largest: u64,
    /// Nodes of the target.
    pub nodes: u64,
    /// Copies of a row there.
    pub copies: u64,
    /// Ranges that are sent at the same time.
    pub at_once: u64,
    /// Rows a second at most, as the user wants it; 0 for no limit.
    pub limit: u64,
    /// Bytes of the log that are kept for the changes made meanwhile.
    pub log_bytes: u64,
}

impl Sizes {
    /// Rows a second that the target's nodes take, and the ranges that are sent at a time.
    fn bounds(&self) -> (u64, u64) {
        let copies = self.copies.clamp(1, self.nodes.max(1));
        (self.nodes.max(1) * NODE_ROWS_PER_SECOND / copies, self.at_once.max(1) * NODE_ROWS_PER_SECOND)
    }

    /// Rows a second of all ranges together, and what bounds them.
    pub fn rate(&self) -> (u64, &'static str) {
        let (by_nodes, by_ranges) = self.bounds();
        let bounds = [
            (self.limit, "--rows-per-second"),
            (by_nodes, "the target's nodes"),
            (by_ranges, "the ranges that are sent at a time; --ranges sets how many"),
            (SOURCE_ROWS_PER_SECOND, "two cores of this machine"),
        ];
        bounds.into_iter().filter(|(rate, _)| *rate > 0).min_by_key(|(rate, _)| *rate).unwrap_or_default()
    }

    /// The estimate with its arithmetic, a line each.
    pub fn in_words(&self) -> Vec<String> {
        let (rate, bound) = self.rate();
        let (alone, at_once) = (NODE_ROWS_PER_SECOND as f64, usize::try_from(self.at_once).unwrap_or(1));
        // All ranges have the same number of rows but the one with the largest partition, which may be the last.
        let mean = self.rows.saturating_sub(self.largest) as f64 / f64::from(RANGES);
        let mut ranges = vec![mean; RANGES as usize];
        if let Some(last) = ranges.last_mut() {
            *last += self.largest as f64;
        }
        let seconds = schedule(&ranges, at_once, rate as f64, alone);
        let without = self.rows as f64 / rate.max(1) as f64;
        let mut words = vec![
            format!("back-fill: {} / {rate} rows a second = {}", counted(self.rows, "row"), time(without)),
            self.rate_in_words(bound),
        ];
        if seconds > 1.05 * without {
            words.push(format!(
                "the largest partition, about {}, is sent by itself in the end if it comes last: {}",
                counted(self.largest, "row"),
                time(seconds)
            ));
        }
        words.push(format!(
            "network: about {} to send, {} by 1 Gbit/s; the nodes send as much to each other for each further copy",
            bytes_text(self.bytes),
            time(self.bytes as f64 / GIGABIT as f64)
        ));
        let kept = bytes_text(self.log_bytes);
        let a_second = bytes_text((self.log_bytes as f64 / seconds.max(1.0)) as u64);
        words.push(format!(
            "changes made meanwhile wait in the log, up to cdc_total_space = {kept}, that is {a_second} a second; a table \
             that falls behind by more is sent anew"
        ));
        words.push("then the changes are followed for as long as wanted".to_owned());
        words
    }

    /// How the rate is computed.
    fn rate_in_words(&self, bound: &str) -> String {
        let (by_nodes, by_ranges) = self.bounds();
        let limit = match self.limit {
            0 => String::new(),
            limit => format!("{limit} by --rows-per-second; "),
        };
        format!(
            "bound by {bound}: {limit}{} * {NODE_ROWS_PER_SECOND} / {} = {by_nodes}; {} at a time * {NODE_ROWS_PER_SECOND} = {by_ranges}; two \
             cores here {SOURCE_ROWS_PER_SECOND}. {NODE_ROWS_PER_SECOND} rows a second for a node are assumed; helenus move \
             status shows what is reached",
            counted(self.nodes, "node"),
            match self.copies {
                1 => "1 copy".to_owned(),
                copies => format!("{copies} copies"),
            },
            counted(self.at_once, "range"),
        )
    }
}

/// Seconds until the last range is sent. `ranges` are the rows of each, in the order in which they get their turns. At most
/// `at_once` are under way; they share `rate` rows a second, and one alone reaches `alone`.
pub fn schedule(ranges: &[f64], at_once: usize, rate: f64, alone: f64) -> f64 {
    let mut waiting = ranges.iter().copied();
    let mut under_way: Vec<f64> = waiting.by_ref().take(at_once.max(1)).collect();
    let mut seconds = 0.0;
    while !under_way.is_empty() {
        let share = alone.min(rate / under_way.len() as f64);
        let least = under_way.iter().copied().fold(f64::INFINITY, f64::min);
        seconds += least / share;
        under_way.iter_mut().for_each(|rows| *rows -= least);
        under_way.retain(|rows| *rows > 0.5);
        let free = at_once.max(1) - under_way.len();
        under_way.extend(waiting.by_ref().take(free));
    }
    seconds
}

/// A time with the unit that fits.
pub fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_ring_are_far_apart_in_the_order() {
        let mut order: Vec<u32> = order_of_ranges(RANGES).collect();
        assert!(order.chunks(4).all(|four| {
            let mut four = four.to_vec();
            four.sort_unstable();
            four.windows(2).all(|two| two[1] - two[0] == RANGES / 4)
        }));
        order.sort_unstable();
        assert_eq!(order, Vec::from_iter(0..RANGES));
        for count in [0, 1, 3, 100] {
            let mut order: Vec<u32> = order_of_ranges(count).collect();
            order.sort_unstable();
            assert_eq!(order, Vec::from_iter(0..count));
        }
    }

    #[test]
    fn the_schedule_is_bound_by_its_rate_and_by_its_longest_range() {
        assert_eq!(schedule(&[], 4, 100.0, 100.0), 0.0);
        assert_eq!(schedule(&[100.0; 8], 4, 100.0, 100.0), 8.0);
        // A range alone does not reach the rate.
        assert_eq!(schedule(&[100.0; 8], 4, 100.0, 10.0), 20.0);
        // The last range is long: 4 s together, then alone.
        assert_eq!(schedule(&[100.0, 100.0, 100.0, 1_000.0], 4, 400.0, 100.0), 10.0);
    }

    #[test]
    fn the_words_name_the_bound() {
        let sizes = Sizes {
            rows: 1_000_000_000,
            bytes: 250_000_000_000,
            largest: 100,
            nodes: 6,
            copies: 3,
            at_once: 4,
            limit: 0,
            log_bytes: 4 << 30,
        };
        assert_eq!(sizes.rate(), (100_000, "the target's nodes"));
        let words = sizes.in_words();
        assert_eq!(words[0], "back-fill: 1000000000 rows / 100000 rows a second = 2.8 h");
        assert!(!words.iter().any(|line| line.contains("largest")), "{words:?}");
        assert_eq!(Sizes { limit: 7, ..sizes }.rate(), (7, "--rows-per-second"));
        assert!(Sizes { nodes: 100, ..sizes }.rate().1.contains("--ranges"));
        let skewed = Sizes { largest: 700_000_000, ..sizes }.in_words();
        assert!(
            skewed.iter().any(|line| line.contains("largest partition, about 700000000 rows")),
            "{skewed:?}"
        );
        assert!(Sizes { rows: 0, bytes: 0, largest: 0, nodes: 0, ..sizes }.in_words().len() > 2);
    }
}
