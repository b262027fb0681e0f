//! EXPLAIN's forecast: the sources that a read would choose, by what is in memory.

use super::command::{Partitions, ReadCommand};
use super::probe::{Probe, SkipReason};
use super::range::{has_part_of, is_outside, near};
use super::source::reason_to_skip;
use crate::table::View;
use helenus_model::deletion::DeletionTime;

/// Chooses the sources as `execute` would, and records them in a probe. Reads no block, so what only the files know is
/// missing.
pub fn forecast(command: &ReadCommand, view: &View) -> Probe {
    let mut probe = Probe::default();
    match &command.partitions {
        Partitions::Keys(keys) => {
            for key in keys {
                probe.partitions += 1;
                let mut deletion = DeletionTime::LIVE;
                for memtable in &view.memtables {
                    let Some(partition) = memtable.partition_of_key(key.hash.token, &key.bytes) else {
                        continue;
                    };
                    let content = partition.content();
                    deletion = deletion.max(content.deletion(content.sequence()));
                    probe.memtables += 1;
                }
                let mut noted = 0;
                for table in
                    view.sstables.at(key.hash.token).filter_map(|position| view.sstables.get(position))
                {
                    probe.note(table, reason_to_skip(table, key, &command.filter, deletion));
                    noted += 1;
                }
                probe.note_elsewhere(view.sstables.len() - noted);
            }
        }
        Partitions::Range(range) => {
            let memtables = view.memtables.iter();
            probe.memtables = memtables.filter(|memtable| has_part_of(memtable, range)).count() as u64;
            let near = near(view, range);
            probe.note_elsewhere(view.sstables.len() - near.len());
            for (_, table) in near {
                probe.note(table, is_outside(table, range).then_some(SkipReason::KeyRange));
            }
        }
    }
    probe
}
