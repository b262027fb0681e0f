//! What is known of a table's failed compactions: how long the table, or some of its SSTables, are left alone.
//!
//! A failure that has to do with the inputs (damage, a row that cannot be written, a panic) leaves these SSTables out, and
//! the table's other compactions go on. Any other failure (a full disk) pauses the whole table. Both last ten seconds at
//! first, and twice as long after each further failure, up to an hour. They end early when a compaction succeeds, when
//! somebody requests one, and when the space that was wanted is free. `compaction::failing` decides which it is.

use helenus_sstable::names::Descriptor;
use std::collections::BTreeMap;

/// The first pause.
const PAUSE_MIN_NS: u64 = 10_000_000_000;
/// The longest pause.
const PAUSE_MAX_NS: u64 = 3600 * 1_000_000_000;

/// The failed compactions of one table.
#[derive(Default)]
pub(crate) struct CompactionFailures {
    /// Whether somebody was told that the table is not compacted, and for want of space; `None` after a success.
    told: Option<bool>,
    /// The pause of the whole table.
    table: Option<Pause>,
    /// Bytes of free space at which that pause ends.
    room_wanted: Option<u64>,
    /// The set of SSTables of which no plan had room. The pause ends when the set changes: new ones may be small.
    no_room_at: Option<u64>,
    /// The bytes for which the table was told to wait.
    told_bytes: u64,
    /// SSTables that are left out; `None` until the next start, because they are damaged.
    inputs: BTreeMap<Descriptor, Option<Pause>>,
}

/// A pause after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    failures: u32,
    /// The monotonic time at which it ends.
    end_ns: u64,
}

/// An SSTable that is not compacted because a compaction of it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) descriptor: Descriptor,
    /// Nanoseconds until it is tried again; `None` for the next start.
    pub(crate) again_ns: Option<u64>,
}

impl Pause {
    fn after(before: Option<Pause>, now_ns: u64) -> Pause {
        let failures = before.map_or(0, |pause| pause.failures);
        let pause_ns = PAUSE_MIN_NS.checked_shl(failures.min(20)).unwrap_or(PAUSE_MAX_NS).min(PAUSE_MAX_NS);
        Pause { failures: failures.saturating_add(1), end_ns: now_ns.saturating_add(pause_ns) }
    }

    fn left_ns(self, now_ns: u64) -> u64 {
        self.end_ns.saturating_sub(now_ns)
    }
}

impl CompactionFailures {
    /// Pauses the table. The pause ends early when `room_wanted` bytes are free. Returns whether this is to be told: there
    /// was no failure of this kind since the last success.
    pub(crate) fn pause(&mut self, now_ns: u64, room_wanted: Option<u64>) -> bool {
        let is_new = self.told.replace(room_wanted.is_some()) != Some(room_wanted.is_some());
        self.table = Some(Pause::after(self.table, now_ns));
        (self.room_wanted, self.no_room_at, self.told_bytes) = (room_wanted, None, 0);
        is_new
    }

    /// The same for a table whose set of SSTables, with this revision, has no compaction for which there is space.
    pub(crate) fn wait_for_space(&mut self, now_ns: u64, wanted: u64, revision: u64) -> bool {
        let is_new = self.pause(now_ns, Some(wanted));
        self.no_room_at = Some(revision);
        self.told_bytes = wanted;
        is_new
    }

    /// Leaves SSTables out for a while. Returns whether one of them had not failed before.
    pub(crate) fn leave_out(&mut self, inputs: &[Descriptor], now_ns: u64) -> bool {
        let mut is_new = false;
        for input in inputs {
            let before = self.inputs.get(input).copied();
            is_new |= before.is_none();
            if before != Some(None) {
                self.inputs.insert(*input, Some(Pause::after(before.flatten(), now_ns)));
            }
        }
        is_new
    }

    /// Leaves a damaged SSTable out until the next start. Returns whether it was not known.
    pub(crate) fn damaged_one(&mut self, input: Descriptor) -> bool {
        self.inputs.insert(input, None) != Some(None)
    }

    /// A compaction has succeeded that could write so many bytes: ends the pause of the table, and forgets SSTables that are
    /// not there any more. Returns whether this is to be told: not if it is smaller than the one that waits for space.
    pub(crate) fn succeeded(&mut self, bytes: u64, is_there: impl Fn(&Descriptor) -> bool) -> bool {
        self.inputs.retain(|descriptor, _| is_there(descriptor));
        (self.table, self.room_wanted) = (None, None);
        bytes >= self.told_bytes && self.told.take().is_some()
    }

    /// Ends all pauses. Damaged SSTables stay out.
    pub(crate) fn try_again(&mut self) {
        self.table = None;
        self.room_wanted = None;
        self.inputs.retain(|_, pause| pause.is_none());
    }

    /// Ends the pause of the table, because there is space again. The next failure pauses it as long as the first.
    pub(crate) fn has_room_again(&mut self) {
        self.table = None;
        self.room_wanted = None;
    }

    /// Whether the table is paused at this time, with this revision of its set of SSTables.
    pub(crate) fn is_paused(&self, now_ns: u64, revision: u64) -> bool {
        let is_same_set = self.no_room_at.is_none_or(|no_room_at| no_room_at == revision);
        is_same_set && self.table.is_some_and(|pause| pause.left_ns(now_ns) > 0)
    }

    pub(crate) fn room_wanted(&self) -> Option<u64> {
        self.room_wanted
    }

    pub(crate) fn is_damaged(&self, input: &Descriptor) -> bool {
        self.inputs.get(input) == Some(&None)
    }

    /// The damaged SSTables.
    pub(crate) fn damaged(&self) -> std::collections::BTreeSet<Descriptor> {
        self.inputs.iter().filter(|(_, pause)| pause.is_none()).map(|(descriptor, _)| *descriptor).collect()
    }

    /// The SSTables that are left out at this time.
    pub(crate) fn left_out(&self, now_ns: u64) -> impl Iterator<Item = Descriptor> + '_ {
        self.list_of(now_ns).map(|one| one.descriptor)
    }

    /// The same with the time that is left.
    pub(crate) fn list(&self, now_ns: u64) -> Vec<LeftOut> {
        self.list_of(now_ns).collect()
    }

    fn list_of(&self, now_ns: u64) -> impl Iterator<Item = LeftOut> + '_ {
        let line = move |(descriptor, pause): (&Descriptor, &Option<Pause>)| LeftOut {
            descriptor: *descriptor,
            again_ns: pause.map(|pause| pause.left_ns(now_ns)),
        };
        self.inputs.iter().map(line).filter(|one| one.again_ns != Some(0))
    }

    /// The nanoseconds until something is tried again; `None` if nothing waits.
    pub(crate) fn next_attempt_ns(&self, now_ns: u64) -> Option<u64> {
        // A pause that is over is not waited for: whoever looks at the table meanwhile tries again, or finds nothing to do.
        let pauses = self.table.iter().chain(self.inputs.values().flatten());
        pauses.map(|pause| pause.left_ns(now_ns)).filter(|left_ns| *left_ns > 0).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_sstable::names::SsTableId;

    const SECOND_NS: u64 = 1_000_000_000;

    fn descriptor(number: u32) -> Descriptor {
        Descriptor::new(SsTableId::Sequence(number))
    }

    #[test]
    fn pauses_double_from_ten_seconds_to_an_hour_and_begin_anew_after_a_success() {
        let mut failures = CompactionFailures::default();
        let mut now_ns = 0;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            failures.pause(now_ns, None);
            let pause_ns = failures.next_attempt_ns(now_ns).unwrap();
            assert!(
                failures.is_paused(now_ns + pause_ns - 1, 0) && !failures.is_paused(now_ns + pause_ns, 0)
            );
            now_ns += pause_ns;
            pauses.push(pause_ns / SECOND_NS);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]);
        assert!(failures.succeeded(1, |_| true) && !failures.succeeded(1, |_| true));
        assert!(failures.pause(now_ns, None) && !failures.pause(now_ns, None), "told once");
        assert!(failures.pause(now_ns, Some(5)), "another kind is told");
        assert!(!failures.wait_for_space(now_ns, 100, 7) && failures.is_paused(now_ns, 7));
        assert!(!failures.is_paused(now_ns, 8), "other SSTables may be small");
        assert!(!failures.succeeded(99, |_| true) && failures.succeeded(100, |_| true));
    }

    #[test]
    fn an_sstable_that_fails_is_left_out_alone_and_a_damaged_one_until_the_next_start() {
        let mut failures = CompactionFailures::default();
        assert!(failures.leave_out(&[descriptor(1), descriptor(2)], 0));
        assert!(!failures.is_paused(0, 0), "others of the table are compacted");
        assert_eq!(failures.left_out(0).collect::<Vec<_>>(), [descriptor(1), descriptor(2)]);
        assert_eq!(failures.left_out(10 * SECOND_NS).count(), 0);
        assert!(!failures.leave_out(&[descriptor(2)], 10 * SECOND_NS));
        assert_eq!(failures.left_out(29 * SECOND_NS).collect::<Vec<_>>(), [descriptor(2)]);
        assert!(failures.damaged_one(descriptor(1)) && !failures.damaged_one(descriptor(1)));
        assert!(!failures.leave_out(&[descriptor(1)], 0), "it stays out");
        failures.try_again();
        assert_eq!(failures.left_out(u64::MAX).collect::<Vec<_>>(), [descriptor(1)]);
        failures.succeeded(0, |_| false);
        assert_eq!(failures.left_out(0).count(), 0, "it is not there any more");
    }
}
