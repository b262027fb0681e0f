//! Reads and changes the tables of `system_auth` with statements that the server runs itself.

use crate::backend::{
    Backend, Batch, BatchEntry, BatchKind, BoundValue, Identity, Outcome, Request, ResultColumns, RowsOut,
    Values,
};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::request::RoleLimits;
use helenus_engine::Ticket;
use helenus_model::types::{Elements, pack};
use std::sync::Arc;

/// The values of a row, in the order of the statement's columns.
#[derive(Debug, Default)]
pub(super) struct Row(Vec<Option<Vec<u8>>>);

impl Row {
    fn value(&self, at: usize) -> Option<&[u8]> {
        self.0.get(at)?.as_deref()
    }

    /// A text.
    pub(super) fn text(&self, at: usize) -> Option<&str> {
        std::str::from_utf8(self.value(at)?).ok()
    }

    /// A boolean.
    pub(super) fn boolean(&self, at: usize) -> Option<bool> {
        self.value(at)?.first().map(|byte| *byte != 0)
    }

    /// A bigint.
    pub(super) fn bigint(&self, at: usize) -> Option<i64> {
        self.value(at)?.try_into().ok().map(i64::from_be_bytes)
    }

    /// The elements of a set.
    pub(super) fn elements(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        Elements::of_list(self.value(at).unwrap_or_default()).flatten()
    }

    /// The elements of a set of texts.
    pub(super) fn texts(&self, at: usize) -> Vec<Box<str>> {
        self.elements(at).filter_map(|text| std::str::from_utf8(text).ok()).map(Box::from).collect()
    }
}

/// A set of texts as a value.
pub(super) fn text_set<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut texts: Vec<&str> = texts.into_iter().collect();
    texts.sort_unstable();
    let mut bytes = Vec::new();
    pack(texts.len(), texts.iter().map(|text| Some(text.as_bytes())), &mut bytes);
    bytes
}

/// A set of values in the order of their type, as a value.
pub(super) fn value_set(values: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(values.len(), values.iter().map(|value| Some(value.as_slice())), &mut bytes);
    bytes
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    row: Row,
}

impl RowsOut for Rows {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.row.0.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        *self = Rows::default();
    }
}

/// Changes that are made together, in one write.
#[derive(Default)]
pub(super) struct Changes {
    statements: Vec<(&'static str, Vec<Vec<u8>>)>,
    /// Deletions of what stands in the way, in a write of its own before: in one write they would win over what it writes.
    pub(super) before: Option<Box<Changes>>,
    /// The limits of roles that running sessions get with it.
    pub(super) limits: Vec<(Box<str>, RoleLimits)>,
    /// The roles whose sessions end with it.
    pub(super) ended: Vec<Box<str>>,
}

impl Changes {
    /// Whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Adds a statement with its values.
    pub(super) fn add(&mut self, statement: &'static str, values: &[&[u8]]) {
        self.statements.push((statement, values.iter().map(|value| value.to_vec()).collect()));
    }

    /// Adds a statement whose values are texts.
    pub(super) fn add_texts(&mut self, statement: &'static str, values: &[&str]) {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        self.add(statement, &values);
    }
}

impl LocalBackend {
    /// The rows of a SELECT.
    ///
    /// # Errors
    /// `WouldBlock` if it needs the disk and may not wait.
    pub(super) fn ask(&self, query: &str, values: &[&str], may_block: bool) -> Result<Vec<Row>> {
        let values: Vec<BoundValue<'_>> =
            values.iter().map(|value| BoundValue::Bytes(value.as_bytes())).collect();
        let identity = Identity::server();
        let mut rows = Rows::default();
        let request = Request { may_block, ..Request::plain(&identity, &values) };
        self.query(query, &request, &mut rows)?;
        Ok(rows.rows)
    }

    /// Makes changes as one write, forgets what the caches had read before, and waits until the write is safe. The caches forget
    /// before the wait: reads show the change from then on, and a failed wait must leave nothing of before in them.
    ///
    /// # Errors
    /// Those of a write.
    pub(super) fn change_and_wait(&self, changes: &Changes, timestamp_us: Option<i64>) -> Result<()> {
        let changed = self.change(changes, timestamp_us);
        self.access().forget();
        Ok(changed?.wait()?)
    }

    /// Makes changes as one write. `timestamp_us`: the time of the write; `None` for now.
    ///
    /// # Errors
    /// Those of a write.
    pub(super) fn change(&self, changes: &Changes, timestamp_us: Option<i64>) -> Result<Ticket> {
        let bound: Vec<Vec<BoundValue<'_>>> = changes
            .statements
            .iter()
            .map(|(_, values)| values.iter().map(|value| BoundValue::Bytes(value)).collect())
            .collect();
        let statements = changes.statements.iter().zip(&bound);
        let entries: Vec<BatchEntry<'_>> = statements
            .map(|((query, _), values)| BatchEntry::Query(query, Values::Positional(values)))
            .collect();
        if entries.is_empty() {
            return Ok(Ticket::ready());
        }
        let identity = Identity::server();
        let request = Request { timestamp_us, ..Request::plain(&identity, &[]) };
        let answer =
            self.batch(&Batch { kind: BatchKind::Logged, entries }, &request, &mut Rows::default())?;
        match answer.outcome {
            Outcome::Done(ticket) => Ok(ticket),
            _ => Err(CqlError::Server("a change of system_auth was answered with rows".to_owned())),
        }
    }
}
