//! The text of a request for the log of slow and failed statements.

use helenus_cql::backend::{Backend, StatementId};
use helenus_cql::syntax::has_secret_values;
use helenus_wire::native as wire;
use helenus_wire::native::{Request, Value};

use crate::log::StatementText;

/// The most bytes of a value that are shown.
const VALUE_BYTES_MAX: usize = 64;

/// The texts of a request's statements and, if `with_values`, its values. Those of statements on the tables of roles are secrets.
#[cold]
pub(super) fn statement_text(
    request: &Request<'_>,
    backend: &dyn Backend,
    with_values: bool,
) -> StatementText {
    let prepared = |id: &[u8]| {
        let found = StatementId::try_from(id).ok().and_then(|id| backend.prepared(&id).ok().flatten());
        found.map_or_else(
            || "a statement that is not known any more".to_owned(),
            |found| StatementText::cut(&found.query),
        )
    };
    let are_secret = |id: &[u8]| {
        let found = StatementId::try_from(id).ok().and_then(|id| backend.prepared(&id).ok().flatten());
        let subject = found.and_then(|found| found.subject.clone());
        subject.is_none_or(|subject| subject.has_secret_values())
    };
    let values = |values: &wire::Values<'_>| match with_values {
        true => values.iter().take(StatementText::VALUES_MAX).map(|(_, value)| value_text(value)).collect(),
        false => Vec::new(),
    };
    match request {
        Request::Query(query) => StatementText {
            kind: "query",
            texts: vec![StatementText::cut(query.query)],
            count: 1,
            values: match has_secret_values(query.query) {
                true => Vec::new(),
                false => values(&query.parameters.values),
            },
        },
        Request::Execute(execute) => StatementText {
            kind: "prepared",
            texts: vec![prepared(execute.id)],
            count: 1,
            values: match are_secret(execute.id) {
                true => Vec::new(),
                false => values(&execute.parameters.values),
            },
        },
        Request::Prepare(prepare) => {
            let texts = vec![StatementText::cut(prepare.query)];
            StatementText { kind: "prepare", texts, count: 1, values: Vec::new() }
        }
        Request::Batch(batch) => {
            let text = |entry: &wire::BatchStatement<'_>| match &entry.statement {
                wire::StatementRef::Query(query) => StatementText::cut(query),
                wire::StatementRef::Prepared(id) => prepared(id),
            };
            let shown = batch.statements.iter().take(StatementText::SHOWN_MAX);
            let texts = shown.map(|entry| text(&entry)).collect();
            StatementText { kind: "batch", texts, count: batch.statements.iter().count(), values: Vec::new() }
        }
        Request::Startup(_) | Request::Options | Request::Register(_) | Request::AuthResponse(_) => {
            StatementText { kind: "request", texts: Vec::new(), count: 0, values: Vec::new() }
        }
    }
}

fn value_text(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Unset => "unset".to_owned(),
        Value::Bytes(bytes) => {
            let hex: String = bytes.iter().take(VALUE_BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
            let more = if bytes.len() > VALUE_BYTES_MAX { "..." } else { "" };
            format!("0x{hex}{more}")
        }
    }
}
