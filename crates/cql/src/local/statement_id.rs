//! Ids of prepared statements (`QueryProcessor.computeId`).

use crate::statement_id::StatementId;

/// The id of a statement. `keyspace` is `None` if the statement names its own.
pub(super) fn statement_id(query: &str, keyspace: Option<&str>) -> StatementId {
    let mut context = md5::Context::new();
    context.consume(keyspace.unwrap_or_default());
    context.consume(query);
    context.finalize().0
}
