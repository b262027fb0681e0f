//! What follows from a failed compaction: what is left alone and for how long, and what administrators are told.
//!
//! The cause decides. An SSTable in which the compaction found damage is left out until the next start. If the cause lies
//! in the inputs but nobody knows in which, all of them are left out for a while, and the table's other compactions go on. A
//! full disk, or a disk that refuses writes, pauses all compactions of the table. Each is told once, when it begins, and not
//! at every attempt (`table::compaction_failures` has the pauses).

use super::background::Compactions;
use super::space::Space;
use crate::error::{DiskTrouble, Error};
use crate::journal::Event;
use crate::table::{Storage, TableStore};
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use std::sync::atomic::Ordering;

/// What a failure is blamed on.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    /// One SSTable, which is damaged.
    Damaged(Descriptor),
    /// These inputs.
    Inputs(Vec<Descriptor>),
    /// The disk, the memory, or the system.
    Surroundings,
}

/// A compaction that failed.
pub(super) struct Failed<'a> {
    pub(super) store: &'a TableStore,
    /// The SSTables that it was to replace; none if it had not begun.
    pub(super) inputs: Vec<Descriptor>,
    /// Bytes that it was to write; 0 if it had not begun.
    pub(super) bytes: u64,
    /// Whether somebody has requested it. Who asked is told, so it pauses nothing but damaged SSTables and inputs.
    pub(super) is_requested: bool,
    /// The revision of the table's set of SSTables in which it was chosen. Of a set that came since nothing is known.
    pub(super) revision: u64,
}

/// A table whose compactions do not all run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionTrouble {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// The last failure.
    pub reason: String,
    /// Bytes of free space that its compactions wait for, if they do.
    pub wanted_bytes: Option<u64>,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Data.db of the SSTables that are left out, because a compaction of them failed.
    pub left_out: Vec<String>,
    /// Seconds until the next attempt; `None` if there is none before the next start.
    pub again_in_s: Option<u64>,
}

impl CompactionTrouble {
    /// The table's trouble, if it has any.
    pub(super) fn of(storage: &Storage, store: &TableStore, now_ns: u64) -> Option<CompactionTrouble> {
        let left_out = store.compaction.left_out(now_ns);
        let again_ns = store.compaction.next_attempt_ns(now_ns);
        if left_out.is_empty() && again_ns.is_none() {
            return None;
        }
        let table = store.table();
        Some(CompactionTrouble {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
            reason: store.troubles.now().compaction.unwrap_or_default(),
            wanted_bytes: store.compaction.room_wanted(),
            free_bytes: Space::free(storage, store.folder()),
            left_out: left_out.iter().map(|one| one.descriptor.file_name(Component::Data)).collect(),
            again_in_s: again_ns.map(|ns| ns.div_ceil(1_000_000_000)),
        })
    }
}

/// Notes that a compaction has failed, or could not begin.
pub(super) fn note_failed(compactions: &Compactions, failed: &Failed<'_>, error: &Error) {
    let Failed { store, inputs, bytes, is_requested, revision } = failed;
    let has_begun = !inputs.is_empty();
    if *is_requested && !has_begun && matches!(error, Error::NoSpaceToCompact { .. }) {
        return;
    }
    *compactions.failure.lock() = Some(error.to_string());
    if matches!(error, Error::Closed) {
        return;
    }
    let storage = &compactions.storage;
    let now_ns = storage.host.clock.monotonic_ns();
    let table = store.table();
    store.troubles.compacted(Some(error.to_string()));
    if let Error::NoSpaceToCompact { wanted, free, kept } = *error
        && !has_begun
    {
        let is_new =
            store.compaction.with_failures(|failures| failures.wait_for_space(now_ns, wanted, *revision));
        if is_new {
            storage.journal.note(&Event::CompactionWaits { table: &table, wanted, free, kept });
        }
        return;
    }
    storage.work.compaction_failures.fetch_add(1, Ordering::Relaxed);
    let is_full =
        error.disk_trouble() == Some(DiskTrouble::Full) || matches!(error, Error::NoSpaceToCompact { .. });
    let (is_new, left_out) = match blame(error, inputs) {
        Blame::Damaged(id) => (store.compaction.with_failures(|failures| failures.damaged_one(id)), vec![id]),
        Blame::Inputs(ids) => {
            (store.compaction.with_failures(|failures| failures.leave_out(&ids, now_ns)), ids)
        }
        Blame::Surroundings if *is_requested => (true, Vec::new()),
        Blame::Surroundings => {
            // What the compaction had written is free again, and was not enough: so much more must be free.
            let free = Space::free(storage, store.folder());
            let is_known = free != u64::MAX;
            let room_wanted = (is_full && is_known).then(|| free.saturating_add(*bytes).saturating_add(1));
            (store.compaction.with_failures(|failures| failures.pause(now_ns, room_wanted)), Vec::new())
        }
    };
    if is_new {
        let names: Vec<String> = left_out.iter().map(|id| id.file_name(Component::Data)).collect();
        storage.journal.note(&Event::CompactionFailed { table: Some(&table), error, left_out: &names });
    }
}

/// Notes that a compaction has succeeded, which could write so many bytes.
pub(super) fn note_succeeded(compactions: &Compactions, store: &TableStore, bytes: u64) {
    *compactions.failure.lock() = None;
    let view = store.view();
    let there: std::collections::HashSet<_> =
        view.sstables.iter().map(|sstable| *sstable.descriptor()).collect();
    let was_paused =
        store.compaction.with_failures(|failures| failures.succeeded(bytes, |id| there.contains(id)));
    store.troubles.compacted(None);
    if was_paused {
        compactions.storage.journal.note(&Event::CompactionGoesOn { table: &store.table() });
    }
}

/// Ends the pause of a table that waits for space, if there is space now.
pub(super) fn look_for_space(compactions: &Compactions, store: &TableStore) {
    if let Some(wanted) = store.compaction.room_wanted()
        && compactions.space.shortage(&compactions.storage, store.folder(), wanted).is_none()
    {
        store.compaction.with_failures(|failures| failures.has_room_again());
    }
}

fn blame(error: &Error, inputs: &[Descriptor]) -> Blame {
    let named = error.place().and_then(|(file, _)| Descriptor::parse(file.file_name()?.to_str()?));
    let named = named.map(|(descriptor, _)| descriptor).filter(|descriptor| inputs.contains(descriptor));
    let is_damage = matches!(error, Error::Table(helenus_sstable::Error::Corrupt { .. }));
    match (named, error) {
        (Some(input), _) if is_damage => Blame::Damaged(input),
        (Some(input), _) => Blame::Inputs(vec![input]),
        (None, _) if inputs.is_empty() => Blame::Surroundings,
        (None, Error::NoMemory(_) | Error::NoSpaceToCompact { .. }) => Blame::Surroundings,
        (None, error) => match error.disk_trouble() {
            Some(DiskTrouble::Full | DiskTrouble::Refused) => Blame::Surroundings,
            Some(DiskTrouble::Damaged) | None => Blame::Inputs(inputs.to_vec()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_sstable::names::SsTableId;
    use std::path::PathBuf;

    #[test]
    fn a_failure_is_blamed_on_the_file_it_names_else_on_the_inputs_or_on_the_disk() {
        let inputs: Vec<_> = (1..4).map(|n| Descriptor::new(SsTableId::Sequence(n))).collect();
        let of = |descriptor: &Descriptor| PathBuf::from("/d").join(descriptor.file_name(Component::Data));
        let corrupt = |file: PathBuf| {
            Error::Table(helenus_sstable::Error::Corrupt { file, offset: 1, problem: "x".into() })
        };
        let io = |file: PathBuf, kind: std::io::ErrorKind| {
            Error::Table(helenus_sstable::Error::Io { file, source: kind.into() })
        };
        let other = of(&Descriptor::new(SsTableId::Sequence(9)));
        let panicked = || Error::Panicked { message: "x".into() };
        assert_eq!(blame(&corrupt(of(&inputs[1])), &inputs), Blame::Damaged(inputs[1]));
        assert_eq!(blame(&corrupt(other.clone()), &inputs), Blame::Inputs(inputs.clone()));
        let refused = std::io::ErrorKind::Other;
        assert_eq!(blame(&io(of(&inputs[0]), refused), &inputs), Blame::Inputs(vec![inputs[0]]));
        assert_eq!(blame(&io(other.clone(), refused), &inputs), Blame::Surroundings);
        assert_eq!(blame(&io(other, std::io::ErrorKind::StorageFull), &inputs), Blame::Surroundings);
        assert_eq!(blame(&panicked(), &inputs), Blame::Inputs(inputs.clone()));
        assert_eq!(blame(&panicked(), &[]), Blame::Surroundings, "it had not begun");
    }
}
