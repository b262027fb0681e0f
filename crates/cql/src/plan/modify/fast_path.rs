//! A fast path for the commonest writes: an INSERT or UPDATE of one row by its whole key, with values that are markers
//! or constants of types that are stored as received. It encodes the values directly into the bytes that are logged.
//!
//! Whether a statement qualifies is decided once, by its analysis. An execution first checks all values and then
//! writes. If a value is null, unset, of the wrong type or too long, or if the timestamp is invalid, it returns before
//! anything is written, and `apply` handles the case or reports the error.

use super::apply::Moment;
use super::attributes::{check_timestamp, expires_s, timestamp_of};
use super::collector::Collector;
use super::keys::KEY_BYTES_MAX;
use super::operation::{Action, Operation};
use super::prepare::{ModifyKind, ModifyPlan};
use super::restriction::{Restriction, Test, Values};
use crate::analysis::{Bindings, Term};
use crate::budget::{room_for, room_in};
use crate::request::BoundValue;
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::packed::RowWriter;
use helenus_model::types::CqlType;

/// A longer constant is not copied for the fast path, which saves little beside it.
const CONSTANT_BYTES_MAX: usize = 64 << 10;
/// The bytes of a row's change besides its values and cells: head, flags, times.
const ROW_BYTES: usize = 48;
/// The bytes of a cell besides its value: column, flags, timestamp, TTL, expiry, length.
const CELL_BYTES: usize = 32;

/// A value that is stored as received.
#[derive(Debug)]
enum DirectValue {
    Marker(u16, CqlType),
    Constant(Box<[u8]>),
}

impl DirectValue {
    fn of(term: &Term) -> Option<DirectValue> {
        match term {
            Term::Value(bytes) => {
                (bytes.len() <= CONSTANT_BYTES_MAX).then(|| DirectValue::Constant(bytes.clone()))
            }
            // Collections are sorted when they are bound.
            Term::Marker(
                _,
                CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } | CqlType::Vector { .. },
            ) => None,
            Term::Marker(index, ty) => Some(DirectValue::Marker(*index, ty.clone())),
            _ => None,
        }
    }

    /// The value; `None` if it is null or unset.
    #[inline]
    fn bytes<'a>(&'a self, bindings: &Bindings<'a>) -> Option<&'a [u8]> {
        match self {
            DirectValue::Constant(bytes) => Some(bytes),
            DirectValue::Marker(index, _) => match bindings.values.get(*index) {
                BoundValue::Bytes(bytes) => Some(bytes),
                BoundValue::Null | BoundValue::Unset => None,
            },
        }
    }

    /// The value, if it is valid for its type. Constants were checked by the analysis.
    #[inline]
    fn valid<'a>(&'a self, bindings: &Bindings<'a>) -> Option<&'a [u8]> {
        let bytes = self.bytes(bindings)?;
        match self {
            DirectValue::Marker(_, ty) if ty.validate(bytes).is_err() => None,
            _ => Some(bytes),
        }
    }
}

/// A column and its new value.
#[derive(Debug)]
struct Assigned {
    column: ColumnId,
    dropped_us: i64,
    value: DirectValue,
}

/// A statement that can use the fast path.
#[derive(Debug)]
pub(super) struct FastPath {
    key: Vec<DirectValue>,
    clustering: Vec<DirectValue>,
    regular: Vec<Assigned>,
    statics: Vec<Assigned>,
    /// Whether the row gets a row marker (liveness).
    marks_row: bool,
}

impl FastPath {
    /// Prepares the fast path of a statement, if it qualifies.
    pub(super) fn of(plan: &ModifyPlan) -> Option<FastPath> {
        let table = &plan.table;
        if plan.kind == ModifyKind::Delete || !plan.is_plain() || plan.missing_value.is_some() {
            return None;
        }
        let filter = &plan.filter;
        let key = equal(&filter.keys)?;
        let clustering = equal(&filter.clustering)?;
        let names_row = clustering.len() == table.clustering.len();
        if filter.is_range || key.len() != table.partition_key.len() || !(names_row || clustering.is_empty())
        {
            return None;
        }
        let (regular, statics) = (assigned(&plan.operations.regular)?, assigned(&plan.operations.statics)?);
        // Without clustering values there is no row; `apply` handles that.
        if !names_row && !regular.is_empty() {
            return None;
        }
        let marks_row = plan.kind == ModifyKind::Insert && !plan.is_compact && names_row;
        Some(FastPath { key, clustering, regular, statics, marks_row })
    }

    /// Adds the changes of one execution to `collector`. `false`: nothing was added, and the caller must use `apply`.
    pub(super) fn apply<'a>(
        &'a self,
        plan: &'a ModifyPlan,
        bindings: &Bindings<'a>,
        moment: Moment,
        collector: &mut Collector,
    ) -> bool {
        let Some(bytes) = self.checked(plan, bindings) else { return false };
        let Some(times) = Times::of(plan, bindings, moment) else { return false };
        // Without memory the slow path asks again, and reports the refusal.
        if room_for(bytes).is_err() || !self.put_key(plan, bindings, collector) {
            return false;
        }
        let changes = collector.changes_of_key(&plan.table, bytes);
        if room_in(changes.buffer(), bytes).is_err() {
            return false;
        }
        if self.marks_row || !self.regular.is_empty() {
            let values = self.clustering.iter().map(|value| value.bytes(bindings));
            let liveness = if self.marks_row { times.liveness() } else { Liveness::NONE };
            changes.row(values, (liveness, DeletionTime::LIVE), &[], |row| {
                times.write(&self.regular, bindings, row);
            });
        }
        if !self.statics.is_empty() {
            changes.static_row(&[], |row| times.write(&self.statics, bindings, row));
        }
        true
    }

    /// The approximate size of the change in bytes, if all values except the key's are valid.
    fn checked<'a>(&'a self, plan: &ModifyPlan, bindings: &Bindings<'a>) -> Option<usize> {
        let mut clustering_bytes = 0;
        for value in &self.clustering {
            clustering_bytes += value.valid(bindings)?.len();
        }
        // A compact table with one clustering column rejects an empty value.
        let is_refused = clustering_bytes == 0 && self.clustering.len() == 1 && plan.is_compact;
        if clustering_bytes > KEY_BYTES_MAX || is_refused {
            return None;
        }
        let mut bytes = 2 * ROW_BYTES + clustering_bytes;
        for assigned in self.regular.iter().chain(&self.statics) {
            bytes += CELL_BYTES + assigned.value.valid(bindings)?.len();
        }
        Some(bytes)
    }

    /// Puts the partition's key into the collector's buffer, if it is valid. A key that equals the last one was checked
    /// then.
    fn put_key<'a>(&'a self, plan: &ModifyPlan, bindings: &Bindings<'a>, collector: &mut Collector) -> bool {
        let key = &mut collector.key;
        key.clear();
        if let [only] = &self.key[..] {
            let Some(bytes) = only.bytes(bindings) else { return false };
            key.extend_from_slice(bytes);
        } else {
            for value in &self.key {
                let Some(bytes) = value.bytes(bindings).filter(|bytes| bytes.len() <= KEY_BYTES_MAX) else {
                    return false;
                };
                key.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
                key.extend_from_slice(bytes);
                key.push(0);
            }
        }
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return false;
        }
        collector.is_last_key(&plan.table) || self.key.iter().all(|value| value.valid(bindings).is_some())
    }
}

/// The values of equalities, one for each column, in column order.
fn equal(restrictions: &[Restriction]) -> Option<Vec<DirectValue>> {
    let each = restrictions.iter().enumerate().map(|(at, restriction)| match &restriction.test {
        Test::Equal(Values::One(term)) if restriction.first == at => DirectValue::of(term),
        _ => None,
    });
    each.collect()
}

/// The new values of single-cell columns, each column once.
fn assigned(operations: &[Operation]) -> Option<Vec<Assigned>> {
    if operations.windows(2).any(|pair| matches!(pair, [a, b] if a.column == b.column)) {
        return None;
    }
    let each = operations.iter().map(|operation| match &operation.action {
        Action::Set(term) => Some(Assigned {
            column: operation.column,
            dropped_us: operation.dropped_us,
            value: DirectValue::of(term)?,
        }),
        _ => None,
    });
    each.collect()
}

/// The times that all changes of one execution share.
struct Times {
    timestamp_us: i64,
    ttl_s: i32,
    expires_s: i64,
}

impl Times {
    fn of(plan: &ModifyPlan, bindings: &Bindings<'_>, moment: Moment) -> Option<Times> {
        let attributes = &plan.attributes;
        let timestamp_us = timestamp_of(attributes.timestamp.as_ref(), moment.timestamp_us, bindings).ok()?;
        check_timestamp(timestamp_us).ok()?;
        let ttl_s = attributes.ttl_s(&plan.table, moment.now_s, bindings).ok()?;
        Some(Times { timestamp_us, ttl_s, expires_s: expires_s(moment.now_s, ttl_s) })
    }

    fn liveness(&self) -> Liveness {
        let mut liveness = Liveness::at(self.timestamp_us);
        if self.ttl_s != 0 {
            (liveness.ttl_s, liveness.expires_s) = (self.ttl_s, self.expires_s);
        }
        liveness
    }

    fn write<'a>(&self, assigned: &'a [Assigned], bindings: &Bindings<'a>, row: &mut RowWriter<'_>) {
        for Assigned { column, dropped_us, value } in assigned {
            let Some(bytes) = value.bytes(bindings).filter(|_| self.timestamp_us > *dropped_us) else {
                continue;
            };
            let cell = Cell {
                column: *column,
                ttl_s: self.ttl_s,
                timestamp_us: self.timestamp_us,
                local_deletion_s: if self.ttl_s == 0 { NO_EXPIRY } else { self.expires_s },
                path: Span::NULL,
                value: Span::NULL,
            };
            row.cell(&cell, None, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{BoundValues, Memo, Scope};
    use crate::answer::ResultColumn;
    use crate::budget::UNBOUNDED;
    use crate::plan::{Analysed, Plan, analyse};
    use crate::request::Values as Sent;
    use crate::scope::CallContext;
    use crate::syntax::parse;
    use helenus_model::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableId};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use uuid::Uuid;

    fn plan(text: &str) -> (ModifyPlan, Vec<ResultColumn>) {
        let columns = [
            ("k", ColumnKind::PartitionKey, CqlType::Int),
            ("p", ColumnKind::PartitionKey, CqlType::Text),
            ("c", ColumnKind::Clustering, CqlType::Text),
            ("s", ColumnKind::Static, CqlType::Text),
            ("v", ColumnKind::Regular, CqlType::Text),
            ("n", ColumnKind::Regular, CqlType::Int),
        ];
        let columns = columns.map(|(name, kind, ty)| Column::new(name, kind, ty));
        let table = Arc::new(Table::new(("ks", "t"), TableId(Uuid::nil()), columns));
        let keyspace = Keyspace {
            name: "ks".into(),
            durable_writes: true,
            replication: BTreeMap::new(),
            tables: BTreeMap::from([("t".into(), table)]),
            types: BTreeMap::new(),
        };
        let keyspaces = BTreeMap::from([("ks".into(), Arc::new(keyspace))]);
        let schema = Arc::new(Schema { keyspaces, version: Uuid::nil(), epoch: 0 });
        let (statement, memo) = (parse(text).unwrap(), Memo::default());
        let scope = Scope { schema: &schema, keyspace: Some("ks"), memo: &memo, work: &UNBOUNDED };
        let Analysed { plan: Plan::Modify(plan), markers, .. } = analyse(&statement, &scope).unwrap() else {
            panic!("{text} is no write")
        };
        (plan, markers)
    }

    /// The changes that a statement makes of values, or its error.
    fn made(plan: &ModifyPlan, markers: &[ResultColumn], values: &[BoundValue<'_>]) -> String {
        let calls = CallContext {
            now_us: 5_000_000,
            unique_us: &|| 0,
            now_uuid: &|| [0; 16],
            random: &|_| (),
            node: 0,
            work: &UNBOUNDED,
        };
        let values = BoundValues::ordered(&Sent::Positional(values), markers).unwrap();
        let bindings = Bindings { values, calls: &calls };
        let moment = Moment { timestamp_us: 5_000_000, now_s: 5, is_conditional: false, is_clients: false };
        let mut collector = Collector::default();
        if let Err(error) = plan.apply(&bindings, moment, None, &mut collector) {
            return error.to_string();
        }
        let updates = collector.finish().updates;
        format!("{:?}", updates.iter().map(|update| (&update.key, &update.changes)).collect::<Vec<_>>())
    }

    #[test]
    fn both_ways_make_the_same_of_the_same_values() {
        let number = 7_i32.to_be_bytes();
        let (number, text) = (BoundValue::Bytes(&number), BoundValue::Bytes(b"text"));
        let (ascii, wrong) = (BoundValue::Bytes(b"a"), BoundValue::Bytes(b"\xFF\xFE\xFD"));
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        let statements: [(&str, &[BoundValue<'_>]); 5] = [
            (
                "INSERT INTO t (k, p, c, s, v, n) VALUES (?, ?, ?, ?, ?, ?)",
                &[number, text, ascii, text, text, number],
            ),
            ("INSERT INTO t (k, p, c, v) VALUES (?, 'p', ?, 'v') USING TTL 100", &[number, ascii]),
            (
                "UPDATE t USING TIMESTAMP ? SET v = ?, n = 3 WHERE k = ? AND p = ? AND c = ?",
                &[BoundValue::Bytes(&[0, 0, 0, 0, 0, 0, 0, 9]), text, number, ascii, text],
            ),
            ("INSERT INTO t (k, p, s) VALUES (?, ?, ?)", &[number, ascii, text]),
            ("INSERT INTO t (k, p, c) VALUES (?, ?, ?)", &[number, ascii, text]),
        ];
        for (statement, values) in statements {
            let (short, markers) = plan(statement);
            let (mut general, _) = plan(statement);
            assert!(short.fast_path.is_some(), "{statement}");
            general.fast_path = None;
            let agree = |values: &[BoundValue<'_>]| {
                let made = made(&short, &markers, values);
                assert_eq!(made, self::made(&general, &markers, values), "{statement} {values:?}");
                made
            };
            assert!(agree(values).starts_with("[("), "{statement}");
            let odd = [
                BoundValue::Null,
                BoundValue::Unset,
                BoundValue::Bytes(&[]),
                wrong,
                BoundValue::Bytes(&long),
            ];
            for index in 0..values.len() {
                for odd in odd {
                    let mut values = values.to_vec();
                    values[index] = odd;
                    agree(&values);
                }
            }
        }
    }

    #[test]
    fn what_needs_more_than_its_values_goes_the_general_way() {
        for statement in [
            "DELETE FROM t WHERE k = 1 AND p = 'a' AND c = 'b'",
            "INSERT INTO t (k, p, c, v) VALUES (?, ?, ?, ?) IF NOT EXISTS",
            "UPDATE t SET v = ? WHERE k = ? AND p = ? AND c IN ('a', 'b')",
            "UPDATE t SET v = ? WHERE k IN (1, 2) AND p = ? AND c = ?",
            "UPDATE t SET n = (int) 5 WHERE k = ? AND p = ? AND (c) = (?)",
        ] {
            assert!(plan(statement).0.fast_path.is_none(), "{statement}");
        }
    }
}
