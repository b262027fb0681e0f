//! Collects the changes of a statement or batch: one update for each partition, one mutation in all.
//!
//! A thread reuses the memory of a statement's mutation for the next one, together with its reference to the table. If
//! two threads dropped and took that reference for every statement, they would contend for the reference count.

use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::schema::{Table, TableId};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of updates from which they are looked up by hash instead of one by one.
const HASHED_FROM: usize = 8;

/// The most bytes of a mutation whose memory is kept.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The update of the thread's last mutation of one partition, without key and changes.
    static LEFT: Cell<Vec<PartitionUpdate>> = const { Cell::new(Vec::new()) };
}

/// Collects changes by partition.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    updates: Vec<PartitionUpdate>,
    by_key: HashMap<(TableId, Vec<u8>), usize>,
    /// The serialised key of the current partition, for `fast_path`.
    pub(super) key: Vec<u8>,
    /// Reused memory for the first update.
    left: Option<PartitionUpdate>,
}

impl Collector {
    /// A collector that reuses the memory that this thread has kept.
    pub(crate) fn of_thread() -> Collector {
        let mut updates = LEFT.take();
        let mut left = updates.pop();
        let key = left.as_mut().map(|left| std::mem::take(&mut left.key)).unwrap_or_default();
        Collector { updates, key, left, ..Collector::default() }
    }

    /// Keeps the memory of a written mutation for this thread's next one, unless it is large.
    pub(crate) fn keep(mut mutation: Mutation) {
        let [update] = &mut mutation.updates[..] else { return };
        if update.key.capacity() + update.changes.capacity() > KEPT_BYTES_MAX {
            return;
        }
        update.key.clear();
        update.changes.clear();
        LEFT.set(mutation.updates);
    }

    /// The changes of a partition, to be added to.
    pub(crate) fn changes(&mut self, table: &Arc<Table>, key: Vec<u8>) -> &mut Changes {
        let index = match self.find(table, &key) {
            Some(index) => index,
            None => self.add(table, key),
        };
        &mut self.updates[index].changes
    }

    /// Whether the last change was made to the partition of `key`.
    pub(super) fn is_last_key(&self, table: &Table) -> bool {
        self.updates.last().is_some_and(|update| update.key == self.key && update.table.id == table.id)
    }

    /// The changes of the partition of `key`, to be added to; a new one reserves `bytes`.
    pub(super) fn changes_of_key(&mut self, table: &Arc<Table>, bytes: usize) -> &mut Changes {
        let key = std::mem::take(&mut self.key);
        let index = match self.find(table, &key) {
            Some(index) => {
                self.key = key;
                index
            }
            None => {
                let index = self.add(table, key);
                self.updates[index].changes.reserve(bytes);
                index
            }
        };
        &mut self.updates[index].changes
    }

    /// The mutation, without partitions that have no changes.
    pub(crate) fn finish(mut self) -> Mutation {
        self.updates.retain(|update| !update.changes.is_empty());
        Mutation { updates: self.updates }
    }

    fn find(&self, table: &Table, key: &[u8]) -> Option<usize> {
        let is_it = |update: &PartitionUpdate| update.table.id == table.id && update.key == key;
        // Batches often change the same partition repeatedly.
        if let Some(last) = self.updates.len().checked_sub(1).filter(|last| is_it(&self.updates[*last])) {
            return Some(last);
        }
        if self.updates.len() < HASHED_FROM {
            return self.updates.iter().position(is_it);
        }
        self.by_key.get(&(table.id, key.to_vec())).copied()
    }

    fn add(&mut self, table: &Arc<Table>, key: Vec<u8>) -> usize {
        let index = self.updates.len();
        self.updates.push(match self.left.take().filter(|left| Arc::ptr_eq(&left.table, table)) {
            Some(left) => PartitionUpdate { key, ..left },
            None => PartitionUpdate { table: table.clone(), key, changes: Changes::default() },
        });
        if self.updates.len() == HASHED_FROM {
            let known = self.updates.iter().enumerate();
            self.by_key =
                known.map(|(index, update)| ((update.table.id, update.key.clone()), index)).collect();
        } else if self.updates.len() > HASHED_FROM {
            self.by_key.insert((table.id, self.updates[index].key.clone()), index);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::deletion::DeletionTime;
    use helenus_model::schema::{Column, ColumnKind};
    use helenus_model::types::CqlType;
    use uuid::Uuid;

    fn table(number: u128) -> Arc<Table> {
        let key = Column::new("k", ColumnKind::PartitionKey, CqlType::Text);
        Arc::new(Table::new(("ks", "t"), TableId(Uuid::from_u128(number)), [key]))
    }

    fn deletion_in(mut collector: Collector, table: &Arc<Table>, key: &[u8]) -> Mutation {
        assert!(collector.key.is_empty(), "nothing is left of the last key");
        collector.key.extend_from_slice(key);
        let deletion = DeletionTime { timestamp_us: 7, local_s: 1 };
        collector.changes_of_key(table, 10).delete_partition(deletion);
        collector.finish()
    }

    #[test]
    fn a_mutation_in_kept_memory_is_as_one_in_new_memory() {
        let (one, other) = (table(1), table(2));
        let big = vec![b'x'; KEPT_BYTES_MAX];
        for (table, key) in
            [(&one, &b"a"[..]), (&one, b"bc"), (&other, b"d"), (&other, &big), (&one, b""), (&one, b"e")]
        {
            let kept = deletion_in(Collector::of_thread(), table, key);
            let new = deletion_in(Collector::default(), table, key);
            assert_eq!(format!("{kept:?}"), format!("{new:?}"));
            Collector::keep(kept);
            let left = LEFT.take();
            assert_eq!(left.len(), usize::from(key.len() < KEPT_BYTES_MAX), "what is large is not kept");
            assert!(left.iter().all(|left| left.key.is_empty() && left.changes.is_empty()));
            LEFT.set(left);
        }
    }

    #[test]
    fn mutations_of_several_partitions_are_not_kept() {
        LEFT.take();
        let table = table(1);
        let mut two = deletion_in(Collector::default(), &table, b"a");
        two.updates.extend(deletion_in(Collector::default(), &table, b"b").updates);
        Collector::keep(two);
        assert!(LEFT.take().is_empty());
    }
}
