//! Chooses the tables to flush, by what the log and the memory of the memtables need. Pure: figures in, a choice out.
//!
//! Called by the flusher. A choice is made among candidates, each with the reasons that speak for it; no reason hides
//! another one for good. Where the log and the memory both need a flush, they take turns: a table that keeps the oldest
//! segment may have next to nothing in memory, and the largest table may keep no old segment.

use helenus_model::schema::TableId;

/// Number of log segments beyond which the tables that keep the oldest segment are flushed, so that a replay stays
/// short.
pub(super) const SEGMENTS_MAX: usize = 32;
/// Number of log segments beyond which tables with little in memory are flushed if they alone keep the oldest segment.
/// Otherwise a few rows would let the log grow to `SEGMENTS_MAX` segments, each of them a new file.
const SEGMENTS_BEHIND_LITTLE_MAX: usize = 8;
/// Size of memtables in bytes that together cost next to nothing to flush.
const LITTLE_BYTES: usize = 1 << 20;
/// The most tables with little in memory that are flushed in one step.
const TOGETHER_MAX: usize = 32;

/// What the database needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pressure {
    /// Segments of the log, the active one included.
    pub(super) segments: usize,
    /// Bytes of all memtables, those included that only reads still hold.
    pub(super) memory_in_use: usize,
    /// The most that they may have. Tables whose flush fails count in neither.
    pub(super) memory_limit: usize,
    /// Whether the flush of a table fails.
    pub(super) has_stuck: bool,
}

impl Pressure {
    /// Whether there may be anything to choose. Otherwise the tables need not be looked at.
    pub(super) fn is_any(self) -> bool {
        self.has_stuck
            || self.segments > SEGMENTS_BEHIND_LITTLE_MAX
            || self.memory_in_use >= self.memory_limit / 2
    }
}

/// A table that may be flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) id: TableId,
    /// Bytes of its memtables.
    pub(super) bytes: usize,
    /// Whether it has something in memory.
    pub(super) is_filled: bool,
    /// Whether it keeps the oldest segment of the log.
    pub(super) keeps_oldest: bool,
    /// Whether its last flush failed.
    pub(super) is_stuck: bool,
    /// Whether it is skipped for a moment, because its last flush failed or changed nothing.
    pub(super) is_paused: bool,
}

/// Why tables are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushReason {
    /// Its last flush failed. Nothing else may call for its flush, and its writes may be refused until it succeeds.
    Failed,
    /// They keep the oldest segment of a log that is too long.
    Log,
    /// Memory is short, and this table has most of it.
    Memory,
}

/// The tables to flush next, and why; `None` if no flush is due. `last` is the reason of the flush before.
pub(super) fn choose(
    pressure: Pressure,
    candidates: &[Candidate],
    last: Option<FlushReason>,
) -> Option<(FlushReason, Vec<TableId>)> {
    let for_log = || keepers(pressure, candidates).map(|tables| (FlushReason::Log, tables));
    let for_memory = || largest(pressure, candidates).map(|table| (FlushReason::Memory, vec![table]));
    if let Some(stuck) = candidates.iter().find(|candidate| candidate.is_stuck && !candidate.is_paused) {
        return Some((FlushReason::Failed, vec![stuck.id]));
    }
    match last {
        // Writes wait for memory, and the log has had its turn.
        Some(FlushReason::Log) if pressure.memory_in_use >= pressure.memory_limit => {
            for_memory().or_else(for_log)
        }
        _ => for_log().or_else(for_memory),
    }
}

/// The tables to flush so that the oldest segment can go: those with little in memory together, else the one with most.
fn keepers(pressure: Pressure, candidates: &[Candidate]) -> Option<Vec<TableId>> {
    if pressure.segments <= SEGMENTS_BEHIND_LITTLE_MAX {
        return None;
    }
    let mut keepers: Vec<&Candidate> = candidates.iter().filter(|c| c.keeps_oldest && !c.is_paused).collect();
    let are_little = keepers.iter().map(|c| c.bytes).sum::<usize>() <= LITTLE_BYTES;
    if keepers.is_empty() || !(are_little || pressure.segments > SEGMENTS_MAX) {
        return None;
    }
    keepers.sort_by_key(|candidate| candidate.bytes);
    let mut bytes = 0;
    let little = keepers.iter().take(TOGETHER_MAX).take_while(|candidate| {
        bytes += candidate.bytes;
        bytes <= LITTLE_BYTES
    });
    let little: Vec<TableId> = little.map(|candidate| candidate.id).collect();
    if !little.is_empty() {
        return Some(little);
    }
    keepers.last().map(|candidate| vec![candidate.id])
}

/// The table to flush so that memory is freed.
fn largest(pressure: Pressure, candidates: &[Candidate]) -> Option<TableId> {
    let Pressure { memory_in_use, memory_limit, .. } = pressure;
    if memory_in_use < memory_limit / 2 {
        return None;
    }
    // Reads still hold memtables that are flushed already, and no flush frees their memory. A flush is due when the
    // others take half of the rest.
    let live = candidates.iter().filter(|candidate| !candidate.is_stuck).map(|c| c.bytes).sum::<usize>();
    let held_by_reads = memory_in_use.saturating_sub(live);
    if live < memory_limit.saturating_sub(held_by_reads) / 2 {
        return None;
    }
    let filled = candidates.iter().filter(|candidate| candidate.is_filled && !candidate.is_paused);
    filled.max_by_key(|candidate| candidate.bytes).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const LIMIT: usize = 100 << 20;
    const MIB: usize = 1 << 20;

    fn id(number: u128) -> TableId {
        TableId(Uuid::from_u128(number))
    }

    /// A table of this number, with these bytes in memory.
    fn table(number: u128, bytes: usize) -> Candidate {
        Candidate {
            id: id(number),
            bytes,
            is_filled: bytes > 0,
            keeps_oldest: false,
            is_stuck: false,
            is_paused: false,
        }
    }

    fn keeper(number: u128, bytes: usize) -> Candidate {
        Candidate { keeps_oldest: true, ..table(number, bytes) }
    }

    fn stuck(candidate: Candidate) -> Candidate {
        Candidate { is_stuck: true, ..candidate }
    }

    fn paused(candidate: Candidate) -> Candidate {
        Candidate { is_paused: true, ..candidate }
    }

    fn chosen(
        (segments, memory_in_use): (usize, usize),
        candidates: &[Candidate],
        last: Option<FlushReason>,
    ) -> Option<(FlushReason, Vec<TableId>)> {
        let has_stuck = candidates.iter().any(|candidate| candidate.is_stuck);
        choose(Pressure { segments, memory_in_use, memory_limit: LIMIT, has_stuck }, candidates, last)
    }

    #[test]
    fn each_need_has_its_choice() {
        use FlushReason::{Failed, Log, Memory};
        type Case<'a> =
            (&'a str, (usize, usize), Vec<Candidate>, Option<FlushReason>, Option<(FlushReason, Vec<u128>)>);
        let full = LIMIT;
        let cases: Vec<Case<'_>> = vec![
            ("nothing is needed", (8, 10 * MIB), vec![keeper(1, MIB), table(2, 9 * MIB)], None, None),
            ("nothing to choose from", (99, full), vec![], None, None),
            ("a few rows keep nine segments", (9, MIB), vec![keeper(1, 10)], None, Some((Log, vec![1]))),
            (
                "an empty table keeps them too: its flush says so",
                (9, 0),
                vec![keeper(1, 0)],
                None,
                Some((Log, vec![1])),
            ),
            ("much keeps nine segments: wait", (9, 30 * MIB), vec![keeper(1, 30 * MIB)], None, None),
            (
                "much keeps 33 segments",
                (33, 30 * MIB),
                vec![keeper(1, 30 * MIB), table(2, 5)],
                None,
                Some((Log, vec![1])),
            ),
            (
                "little ones go together, before a large one",
                (33, 30 * MIB),
                vec![keeper(1, 30 * MIB), keeper(2, 10), keeper(3, 0)],
                None,
                Some((Log, vec![3, 2])),
            ),
            (
                "the idle keeper does not hide the full memory",
                (33, full),
                vec![keeper(1, 0), table(2, full)],
                Some(Log),
                Some((Memory, vec![2])),
            ),
            (
                "the full memory does not hide the idle keeper",
                (33, full),
                vec![keeper(1, 0), table(2, full)],
                Some(Memory),
                Some((Log, vec![1])),
            ),
            (
                "a keeper that cannot be flushed hides nothing",
                (99, full),
                vec![paused(keeper(1, MIB)), table(2, full)],
                None,
                Some((Memory, vec![2])),
            ),
            ("only paused ones", (99, full), vec![paused(keeper(1, full))], None, None),
            (
                "half of memory",
                (2, full / 2),
                vec![table(1, full / 4), table(2, full / 4)],
                None,
                Some((Memory, vec![2])),
            ),
            (
                "reads hold most of it, and the rest is not half full",
                (2, full),
                vec![table(1, MIB)],
                None,
                Some((Memory, vec![1])),
            ),
            ("reads hold much of it", (2, 60 * MIB), vec![table(1, MIB)], None, None),
            (
                "a flush that failed is tried again",
                (2, 0),
                vec![stuck(table(1, 5)), table(2, 9)],
                None,
                Some((Failed, vec![1])),
            ),
            (
                "not at once, and meanwhile the others have their turn",
                (2, full),
                vec![paused(stuck(table(1, full))), table(2, full)],
                Some(Failed),
                Some((Memory, vec![2])),
            ),
            ("only the filled are flushed for memory", (2, full), vec![table(1, 0)], None, None),
        ];
        for (name, needs, candidates, last, expected) in cases {
            let expected =
                expected.map(|(reason, ids)| (reason, ids.into_iter().map(id).collect::<Vec<_>>()));
            assert_eq!(chosen(needs, &candidates, last), expected, "{name}");
        }
    }

    /// As long as a table that may be flushed is what is needed, something is chosen; and the two needs alternate.
    #[test]
    fn no_need_waits_for_another() {
        let mut last = None;
        let mut reasons = Vec::new();
        for _ in 0..6 {
            let (reason, _) = chosen((99, LIMIT), &[keeper(1, 0), table(2, LIMIT)], last).unwrap();
            reasons.push(reason);
            last = Some(reason);
        }
        assert_eq!(reasons.iter().filter(|reason| **reason == FlushReason::Log).count(), 3, "{reasons:?}");
    }

    #[test]
    fn many_little_tables_are_flushed_by_steps() {
        let keepers: Vec<Candidate> = (0..1000).map(|number| keeper(number, 100)).collect();
        let (_, tables) = chosen((33, MIB), &keepers, None).unwrap();
        assert_eq!(tables.len(), TOGETHER_MAX);
    }
}
