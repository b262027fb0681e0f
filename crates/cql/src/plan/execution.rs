//! The context in which a plan runs.

use crate::analysis::Bindings;
use crate::guardrails::Guardrails;
use crate::request::Request;
use crate::virtual_table::VirtualTables;
use helenus_engine::Database;
use helenus_engine::read::Stage;
use helenus_model::schema::Schema;
use std::sync::Arc;

/// One execution of a plan: the database, the request, and its values in the order of the markers.
pub(crate) struct Execution<'a> {
    /// The database.
    pub(crate) database: &'a Database,
    /// The virtual tables.
    pub(crate) virtuals: &'a VirtualTables,
    /// The request.
    pub(crate) request: &'a Request<'a>,
    /// The guardrails; `None` if there are none.
    pub(crate) guardrails: Option<&'a Guardrails>,
    /// The number of tombstones that a read may pass before its client is warned.
    pub(crate) tombstones_warn: u64,
    /// The number of tombstones that a read may pass before it fails.
    pub(crate) tombstones_fail: u64,
    /// The most bytes of an answer without paging.
    pub(crate) answer_bytes_max: usize,
    /// The values of the request, and the context that functions need.
    pub(crate) bindings: Bindings<'a>,
}

impl Execution<'_> {
    /// The current schema, virtual tables included.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.virtuals.shown_in(&self.database.schema())
    }

    /// The clock, if the request has a probe; pass it to `spent`.
    pub(crate) fn began_ns(&self) -> Option<u64> {
        self.request.began_ns(self.database)
    }

    /// Adds the time since `began_ns` to a stage of the request's probe.
    pub(crate) fn spent(&self, stage: Stage, began_ns: Option<u64>) {
        self.request.spent(self.database, stage, began_ns);
    }

    /// The time of this execution, seconds: decides what has expired, and when new data will expire.
    pub(crate) fn now_s(&self) -> i64 {
        self.request.now_s.unwrap_or_else(|| self.database.now_s())
    }
}
