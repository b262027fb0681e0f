//! Appends records to the active segment's buffer.

use super::active::{LARGE_RECORD_BYTES, PAGE_BYTES};
use super::log::{CommitLog, State};
use super::record::{self, HEADER_BYTES};
use super::ticket::Ticket;
use crate::error::Result;
use crate::log_position::LogPosition;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::Table;
use std::sync::Arc;

/// A mutation record whose header is not filled in yet.
pub(crate) struct MutationRecord(Vec<u8>);

impl CommitLog {
    /// The record of a mutation and of the index updates derived from it, for `append`.
    pub(crate) fn record(mutation: &Mutation, derived: &[PartitionUpdate]) -> MutationRecord {
        let updates = || mutation.updates.iter().chain(derived);
        let size: usize = updates().map(|u| u.key.len() + u.changes.as_bytes().len() + 24).sum();
        // A large record is padded to a whole page in its own memory.
        let padding = if size < LARGE_RECORD_BYTES { 0 } else { PAGE_BYTES as usize };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + 8 + size + padding);
        bytes.resize(HEADER_BYTES, 0);
        record::put_mutation(mutation, derived, &mut bytes);
        MutationRecord(bytes)
    }

    /// Appends the record of these updates, behind one of the rows as they were (`images`). The ticket tells when the mutation may be
    /// acknowledged.
    pub(crate) fn append(
        self: &Arc<Self>,
        MutationRecord(bytes): MutationRecord,
        (mutation, derived): (&Mutation, &[PartitionUpdate]),
        images: &[PartitionUpdate],
    ) -> Result<Ticket> {
        let updates = || mutation.updates.iter().chain(derived);
        let before = (!images.is_empty()).then(|| record::before(images));
        let before_bytes = before.as_ref().map_or(0, |content| content.len() + HEADER_BYTES);
        let content_bytes = bytes.len() - HEADER_BYTES + before_bytes;
        let mut state = self.state.lock();
        let definitions_bytes = state.watched.definitions_bytes(updates());
        // Only the server itself writes to these.
        let is_of_schema =
            |update: &PartitionUpdate| matches!(&*update.table.keyspace, "system" | "system_schema");
        let is_upkeep = || updates().all(is_of_schema);
        self.make_room(&mut state, content_bytes + layout_bytes(updates()) + definitions_bytes, is_upkeep)?;
        let State { active, pending, watched, .. } = &mut *state;
        let Some(active) = active else { unreachable!("make_room leaves an active segment") };
        for update in updates() {
            active.describe(&update.table);
        }
        if !watched.is_empty() {
            watched.define_all(updates(), active);
        }
        if let Some(content) = before {
            active.put(&content);
        }
        let ending = self.buffer_end(active);
        let position = active.put_record(bytes, ending, pending);
        for update in updates() {
            active.dirty.insert(update.table.id, position);
        }
        state.appended_bytes += content_bytes as u64;
        let wants_spare = state.wants_spare(self.options.segment_bytes).is_some();
        drop(state);
        if wants_spare && let Some(task) = self.spare_task.get() {
            task.wake();
        }
        if self.options.mode.waits_for_sync() {
            self.wake_sync();
        }
        Ok(Ticket::new(self.clone(), position))
    }

    /// A ticket for everything appended so far, for an answer that depends on writes of others.
    pub fn so_far(self: &Arc<Self>) -> Ticket {
        match &self.state.lock().active {
            Some(active) => Ticket::new(self.clone(), LogPosition::new(active.segment.number, active.end())),
            None => Ticket::ready(),
        }
    }

    /// Records the greatest timestamp given out, and syncs. It replaces the timestamps in earlier records.
    ///
    /// # Errors
    /// As `append`; failures of writing and syncing.
    pub(crate) fn note_timestamp(self: &Arc<Self>) -> Result<()> {
        let content = record::timestamp(self.options.last_given.get());
        let position = self.append_content(&content)?;
        self.sync_up_to(position)
    }

    pub(super) fn append_content(&self, content: &[u8]) -> Result<LogPosition> {
        let mut state = self.state.lock();
        self.make_room(&mut state, content.len(), || true)?;
        let Some(active) = &mut state.active else { unreachable!("make_room leaves an active segment") };
        let position = active.put(content);
        drop(state);
        self.wake_sync();
        Ok(position)
    }
}

fn layout_bytes<'u>(updates: impl Iterator<Item = &'u PartitionUpdate>) -> usize {
    let table = |table: &Table| {
        let columns = table.statics.iter().chain(&table.regulars);
        32 + columns.map(|column| column.name.len() + 6).sum::<usize>()
    };
    updates.map(|update| table(&update.table)).sum()
}
