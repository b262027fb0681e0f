//! UPDATE, INSERT, DELETE and BATCH of CQL 2: one write for all statements.

use super::ast::{Change as Wanted, Modify, Operation, Term, Using};
use super::term::{Variables, check_names_key};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::validate::{check_column, check_counts, check_name, check_write_level};
use crate::write::{Change, RowChanges};
use helenus_engine::Ticket;
use helenus_model::mutation::Mutation;
use helenus_wire::thrift::{Column, ConsistencyLevel, CqlResult, CqlResultType};
use std::sync::Arc;

/// The times that a statement's columns are written with.
#[derive(Clone, Copy)]
struct WriteTimes {
    now_s: i64,
    timestamp_us: i64,
    ttl_s: Option<i32>,
}

impl Rpc {
    /// Runs modifications. `batch` is the USING of the surrounding batch.
    pub(super) fn first_modify(
        &self,
        statements: &[Modify],
        batch: Option<Using>,
        variables: &Variables<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let (mut plain, mut counting) = (Mutation::default(), Mutation::default());
        let server_us = self.storage.next_timestamp()?;
        let now_s = self.storage.now_s();
        if batch.is_some_and(|using| using.ttl_s.is_some_and(|ttl_s| ttl_s != 0)) {
            return invalid("Global TTL on the BATCH statement is not supported.");
        }
        for statement in statements {
            let using = statement.using;
            if batch.is_some() && using.level.is_some() {
                return invalid("Consistency level must be set on the BATCH, not individual statements");
            }
            let of_batch = batch.and_then(|using| using.timestamp_us);
            if of_batch.is_some() && using.timestamp_us.is_some() {
                return invalid("Timestamp must be set either on BATCH or individual statements");
            }
            let timestamp_us = of_batch.or(using.timestamp_us).unwrap_or(server_us);
            let level = batch.unwrap_or(using).level.unwrap_or(ConsistencyLevel::One);
            let family = self.named(&statement.family, work)?;
            check_names_key(&statement.key_name, &family.table)?;
            check_write_level(level, None)?;
            work.manner.at(level);
            if family.counts {
                check_write_level(level, Some(&family.table))?;
            }
            let moment = WriteTimes { now_s, timestamp_us, ttl_s: using.ttl_s };
            for key in &statement.keys {
                let key = key.key(&family.table, variables)?;
                let mut rows = Row { family: &family, key: &key, variables, moment };
                let update = rows.changed(&statement.change)?;
                if family.counts { &mut counting } else { &mut plain }.updates.push(update);
            }
        }
        let (mut ticket, mut manner) = (Ticket::ready(), work.manner);
        if !counting.updates.is_empty() {
            ticket = self.storage.count(&counting, manner)?;
            // After counters were changed, the call cannot be run again, so it must block if needed.
            manner.may_block = true;
        }
        if !plain.updates.is_empty() {
            ticket = self.storage.write(&plain, false, manner)?;
        }
        let void = CqlResult { kind: CqlResultType::Void, rows: None, num: None, schema: None };
        work.reply.success(&void, work.out);
        Ok(ReplyState::Promise(ticket))
    }
}

struct Row<'a> {
    family: &'a Arc<Family>,
    key: &'a [u8],
    variables: &'a Variables<'a>,
    moment: WriteTimes,
}

impl Row<'_> {
    fn changed(&mut self, wanted: &Wanted) -> Result<helenus_model::mutation::PartitionUpdate> {
        // Owns the names and values that the changes borrow.
        let mut columns: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        match wanted {
            Wanted::Delete(names) => {
                let mut changes = RowChanges::new(self.family, self.key, self.moment.now_s);
                if names.is_empty() {
                    changes.delete_row(self.moment.timestamp_us);
                }
                for name in names {
                    let name = self.name(name)?;
                    changes.column(None, &name, Change::Deletion(self.moment.timestamp_us))?;
                }
                return Ok(changes.finish());
            }
            Wanted::Set(assignments) => {
                for (column, operation) in assignments {
                    let name = self.name(column)?;
                    let value = self.value(column, &name, operation)?;
                    columns.push((name, value));
                }
            }
        }
        let mut changes = RowChanges::new(self.family, self.key, self.moment.now_s);
        for (name, value) in &columns {
            let change = match <[u8; 8]>::try_from(&value[..]) {
                Ok(number) if self.family.counts => Change::Sum(number, self.moment.timestamp_us),
                _ => {
                    let column = Column {
                        name,
                        value: Some(value),
                        timestamp: Some(self.moment.timestamp_us),
                        ttl: self.moment.ttl_s,
                    };
                    let (value, timestamp_us, ttl_s) =
                        check_column(self.family, None, &column, self.moment.now_s)?;
                    Change::Value(value, timestamp_us, ttl_s)
                }
            };
            changes.column(None, name, change)?;
        }
        Ok(changes.finish())
    }

    fn name(&self, term: &Term) -> Result<Vec<u8>> {
        let name = term.column(&self.family.comparator, self.variables)?;
        check_name(self.family, None, &name)?;
        Ok(name)
    }

    /// The value that a column is set to, or the number added to it.
    fn value(&self, column: &Term, name: &[u8], operation: &Operation) -> Result<Vec<u8>> {
        match operation {
            Operation::Set(term) => {
                check_counts(self.family, false)?;
                term.value(self.family.type_of(name), self.variables)
            }
            Operation::Count(again, number, subtracts) => {
                check_counts(self.family, true)?;
                if again.text() != column.text() {
                    return invalid("Only expressions like X = X + <long> are supported.");
                }
                let Ok(number) = number.text().parse::<i64>() else {
                    return invalid(format!("'{}' is an invalid value, should be a long.", number.text()));
                };
                let number = if *subtracts { number.wrapping_neg() } else { number };
                Ok(number.to_be_bytes().to_vec())
            }
        }
    }
}
