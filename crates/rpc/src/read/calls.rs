//! Reads of rows by key: get, get_slice, get_count, their multi variants, get_multi_slice.

use super::sink::{ColumnSink, Envelope};
use crate::call_options::CallOptions;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use crate::family::{Family, Shape};
use crate::predicate::Wanted;
use crate::validate::{check_key, check_name, check_parent, check_path, check_predicate, check_read_level};
use helenus_cql::backend::Identity;
use helenus_engine::read::{PartitionKey, Partitions, ReadCommand};
use helenus_model::filter::{Limits, Slice};
use helenus_wire::thrift::{
    ColumnParent, ConsistencyLevel, Exception, Field, Reader, SlicePredicate, SliceRange, Type, args,
    put_i32, put_list, put_map,
};

/// The default maximum number of columns of `get_multi_slice`.
const MULTI_SLICE_COUNT: i32 = 1000;

/// Refuses an answer that is too long. RPC calls have limits that a client can lower. Cassandra 3.11 answers everything
/// that fits in its memory.
#[cold]
fn too_long(most: usize) -> Result<()> {
    invalid(format!(
        "The answer is longer than {} MiB, the most that is given at once: ask for fewer columns or rows",
        most >> 20
    ))
}

impl Rpc {
    /// The engine's command to read rows by key.
    pub(crate) fn command(&self, family: &Family, keys: Vec<PartitionKey>, wanted: &Wanted) -> ReadCommand {
        // The sink does the counting if the answer's columns are not rows of the table.
        let counts_rows =
            matches!(family.shape, Shape::Dynamic | Shape::Composite) || wanted.within.is_none();
        let per_partition = if counts_rows && wanted.declared.is_empty() { wanted.limit } else { u64::MAX };
        ReadCommand {
            table: family.table.clone(),
            partitions: Partitions::Keys(keys),
            filter: wanted.filter.clone(),
            reversed: wanted.reversed,
            statics: !wanted.declared.is_empty(),
            columns: wanted.only_declared(family),
            limits: Limits { rows: u64::MAX, per_partition },
            now_s: self.storage.now_s(),
            resume: None,
            page_rows: None,
        }
    }

    pub(crate) fn run_read(
        &self,
        command: &ReadCommand,
        slicer: &mut ColumnSink<'_>,
        manner: CallOptions<'_>,
    ) -> Result<()> {
        manner.go_on()?;
        slicer.bytes_max = self.storage.answer_bytes_max();
        // A call of many reads goes on counting.
        slicer.memory = manner.memory.map(|memory| std::mem::take(&mut *memory.lock())).unwrap_or_default();
        if !slicer.memory.counts() {
            slicer.memory = manner.limited.map(Identity::answer_memory).unwrap_or_default();
        }
        let read = self.storage.read(command, slicer, manner);
        if slicer.is_too_long {
            return too_long(slicer.bytes_max);
        }
        if let Some(refusal) = slicer.refusal.take() {
            return Err(refusal.into());
        }
        read?;
        slicer.count_for_role()?;
        if let Some(memory) = manner.memory {
            *memory.lock() = std::mem::take(&mut slicer.memory);
        }
        Ok(())
    }

    pub(crate) fn get_slice(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::GetSlice::read(reader)?;
        let family = self.family(work.session, asked.column_parent.column_family)?;
        let wanted = self.wanted(&family, &asked.column_parent, &asked.predicate, asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        check_key(&family.table, asked.key)?;
        self.slice_of(&family, asked.key, &wanted, work)
    }

    /// Answers with the columns of one row.
    fn slice_of(
        &self,
        family: &Family,
        key: &[u8],
        wanted: &Wanted,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        work.reply.begin_success(Type::List, work.out);
        put_list(Type::Struct, 0, work.out);
        let count_at = work.out.len() - 4;
        if wanted.limit > 0 {
            let command = self.command(family, vec![PartitionKey::new(key.to_vec())], wanted);
            let mut slicer = ColumnSink::new(family, wanted, command.now_s, Envelope::Columns, work.out);
            self.run_read(&command, &mut slicer, work.manner)?;
            let count = slicer.given as u32;
            work.out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
        }
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn get(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::Get::read(reader)?;
        let path = &asked.column_path;
        let family = self.family(work.session, path.column_family)?;
        check_path(&family, path.super_column, path.column)?;
        check_read_level(asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        check_key(&family.table, asked.key)?;
        let wanted = match (path.super_column, path.column) {
            (super_column, Some(column)) => Wanted::one(&family, super_column, column)?,
            (Some(super_column), None) => Wanted::super_column(&family, super_column)?,
            (None, None) => return Err(RpcError::Thrown(Exception::NotFound)),
        };
        let wanted = Wanted { limit: 1, ..wanted };
        work.reply.begin_success(Type::Struct, work.out);
        let command = self.command(&family, vec![PartitionKey::new(asked.key.to_vec())], &wanted);
        let mut slicer = ColumnSink::new(&family, &wanted, command.now_s, Envelope::Columns, work.out);
        self.run_read(&command, &mut slicer, work.manner)?;
        if slicer.given == 0 {
            return Err(RpcError::Thrown(Exception::NotFound));
        }
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn multiget_slice(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::MultigetSlice::read(reader)?;
        work.reply.begin_success(Type::Map, work.out);
        put_map(Type::String, Type::List, 0, work.out);
        self.multiget(&asked, Envelope::Entry, work)
    }

    pub(crate) fn multiget_count(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::MultigetSlice::read(reader)?;
        work.reply.begin_success(Type::Map, work.out);
        put_map(Type::String, Type::I32, 0, work.out);
        self.multiget(&asked, Envelope::Count, work)
    }

    fn multiget(
        &self,
        asked: &args::MultigetSlice<'_>,
        envelope: Envelope,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let count_at = work.out.len() - 4;
        let family = self.family(work.session, asked.column_parent.column_family)?;
        let wanted = self.wanted(&family, &asked.column_parent, &asked.predicate, asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        let is_serial =
            matches!(asked.consistency_level, ConsistencyLevel::Serial | ConsistencyLevel::LocalSerial);
        if is_serial && asked.keys.len() > 1 {
            return invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            );
        }
        let mut keys: Vec<PartitionKey> = Vec::with_capacity(asked.keys.len());
        for key in &asked.keys {
            check_key(&family.table, key)?;
            keys.push(PartitionKey::new(key.to_vec()));
        }
        keys.sort_by(|a, b| a.decorated.cmp(&b.decorated));
        keys.dedup_by(|a, b| a.bytes == b.bytes);
        let command = self.command(&family, keys, &wanted);
        let mut slicer = ColumnSink::new(&family, &wanted, command.now_s, envelope, work.out);
        slicer.keys = Some(Vec::new());
        self.run_read(&command, &mut slicer, work.manner)?;
        let found = slicer.keys.take().unwrap_or_default();
        if let Partitions::Keys(keys) = &command.partitions {
            // `keys` and `found` are in the same order.
            let mut found = found.iter().peekable();
            for key in keys {
                if found.next_if(|found| **found == key.bytes).is_none() {
                    slicer.put_empty(&key.bytes);
                }
            }
        }
        let count = slicer.rows as u32;
        work.out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn get_count(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let mut asked = args::GetSlice::read(reader)?;
        if asked.predicate.column_names.is_none() && asked.predicate.slice_range.is_none() {
            let everything = SliceRange { start: &[], finish: &[], reversed: false, count: i32::MAX };
            asked.predicate.slice_range = Some(everything);
        }
        let family = self.family(work.session, asked.column_parent.column_family)?;
        let wanted = self.wanted(&family, &asked.column_parent, &asked.predicate, asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        check_key(&family.table, asked.key)?;
        work.reply.begin_success(Type::I32, work.out);
        let mut count = 0;
        if wanted.limit > 0 {
            let command = self.command(&family, vec![PartitionKey::new(asked.key.to_vec())], &wanted);
            let mut slicer = ColumnSink::new(&family, &wanted, command.now_s, Envelope::Silent, work.out);
            self.run_read(&command, &mut slicer, work.manner)?;
            count = slicer.given as i32;
        }
        put_i32(count, work.out);
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn get_multi_slice(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::GetMultiSlice::read(reader)?.request;
        let Some(parent) = &asked.column_parent else { return invalid("column_parent is required") };
        let family = self.family(work.session, parent.column_family)?;
        if family.is_super() {
            return invalid("get_multi_slice does not support super columns");
        }
        check_parent(&family, parent.super_column)?;
        let level = asked.consistency_level.unwrap_or(ConsistencyLevel::One);
        check_read_level(level)?;
        work.manner.at(level);
        let reversed = asked.reversed.unwrap_or(false);
        let mut slices = Vec::new();
        for (index, slice) in asked.column_slices.iter().flatten().enumerate() {
            let (from, to) = (slice.start.unwrap_or_default(), slice.finish.unwrap_or_default());
            for name in [from, to].into_iter().filter(|name| !name.is_empty()) {
                check_name(&family, None, name)?;
            }
            let (low, high) = if reversed { (to, from) } else { (from, to) };
            let (mut start, mut end) = (Vec::new(), Vec::new());
            family.comparator.put_bound(low, true, &mut start)?;
            family.comparator.put_bound(high, false, &mut end)?;
            if start > end {
                return invalid(if reversed {
                    format!("Reversed column slice at index {index} had start less than finish")
                } else {
                    format!("Column slice at index {index} had start greater than finish")
                });
            }
            slices.push(Slice { start, end });
        }
        let Some(key) = asked.key else { return invalid("Key may not be empty") };
        check_key(&family.table, key)?;
        let limit = u64::try_from(asked.count.unwrap_or(MULTI_SLICE_COUNT)).unwrap_or(0);
        let wanted = Wanted { reversed, limit, ..Wanted::slices(&family, merged(slices)) };
        self.slice_of(&family, key, &wanted, work)
    }

    /// Validates a read and converts it to storage terms.
    pub(crate) fn wanted(
        &self,
        family: &Family,
        parent: &ColumnParent<'_>,
        predicate: &SlicePredicate<'_>,
        level: ConsistencyLevel,
    ) -> Result<Wanted> {
        check_parent(family, parent.super_column)?;
        let wanted = check_predicate(family, parent.super_column, predicate)?;
        check_read_level(level)?;
        Ok(wanted)
    }
}

/// The slices in order; overlapping and adjacent ones are merged.
fn merged(mut slices: Vec<Slice>) -> Vec<Slice> {
    slices.sort_by(|a, b| a.start.cmp(&b.start));
    let mut merged: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        match merged.last_mut() {
            Some(last) if slice.start <= last.end => last.end = slice.end.max(std::mem::take(&mut last.end)),
            _ => merged.push(slice),
        }
    }
    merged
}
