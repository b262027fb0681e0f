//! What a plan is run with.

use crate::analysis::Bindings;
use crate::backend::Request;
use crate::guardrails::Guardrails;
use crate::virtual_table::VirtualTables;
use helenus_engine::Database;
use helenus_engine::read::Stage;
use helenus_model::schema::Schema;
use std::sync::Arc;

/// One execution of a plan: the database, the request, and its values in the order of the markers.
pub(crate) struct Execution<'a> {
    /// The database.
    pub(crate) database: &'a Database,
    /// The tables that are not stored.
    pub(crate) virtuals: &'a VirtualTables,
    /// The request.
    pub(crate) request: &'a Request<'a>,
    /// What is guarded; `None` if nothing is.
    pub(crate) guardrails: Option<&'a Guardrails>,
    /// Tombstones that a read may pass before its client is warned.
    pub(crate) tombstones_warn: u64,
    /// Tombstones that a read may pass before it fails.
    pub(crate) tombstones_fail: u64,
    /// Bytes that an answer without pages may have.
    pub(crate) answer_bytes_max: usize,
    /// Its values, and what functions may ask for.
    pub(crate) bindings: Bindings<'a>,
}

impl Execution<'_> {
    /// The present schema, virtual tables included.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.virtuals.shown_in(&self.database.schema())
    }

    /// The clock, if somebody watches this request; give it to `spent`.
    pub(crate) fn began_ns(&self) -> Option<u64> {
        self.request.began_ns(self.database)
    }

    /// Adds what has passed since `began_ns` to a stage of whoever watches.
    pub(crate) fn spent(&self, stage: Stage, began_ns: Option<u64>) {
        self.request.spent(self.database, stage, began_ns);
    }

    /// The moment of this execution, seconds: decides what has expired, and when what is written will.
    pub(crate) fn now_s(&self) -> i64 {
        self.request.now_s.unwrap_or_else(|| self.database.now_s())
    }
}
