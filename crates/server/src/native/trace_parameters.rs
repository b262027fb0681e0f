//! The name and parameters of a traced request, worded as in Cassandra's `QueryMessage`, `ExecuteMessage` and
//! `BatchMessage`.

use helenus_cql::backend::{Backend, StatementId};
use helenus_model::types::{to_cql_literal, to_short_literal};
use helenus_wire::native as wire;
use helenus_wire::native::{Consistency, Request, Value};

/// A value of more bytes is not shown: its text would take several times as much memory.
const VALUE_BYTES_MAX: usize = 16 << 10;
/// The most characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 1000;

/// The request's name and its parameters.
#[cold]
pub(super) fn traced_request(
    request: &Request<'_>,
    backend: &dyn Backend,
) -> (&'static str, Vec<(String, String)>) {
    match request {
        Request::Query(query) => {
            let mut parameters = settings(&query.parameters);
            add(&mut parameters, "query", query.query);
            ("Execute CQL3 query", parameters)
        }
        Request::Prepare(prepare) => {
            ("Preparing CQL3 query", vec![("query".to_owned(), prepare.query.to_owned())])
        }
        Request::Execute(execute) => ("Execute CQL3 prepared query", executed(execute, backend)),
        Request::Batch(batch) => {
            let mut parameters = settings(&batch.parameters);
            parameters.retain(|(name, _)| name != "page_size");
            ("Execute batch of CQL3 queries", parameters)
        }
        Request::Startup(_) | Request::Options | Request::Register(_) | Request::AuthResponse(_) => {
            ("Request", Vec::new())
        }
    }
}

fn add(parameters: &mut Vec<(String, String)>, name: &str, value: impl ToString) {
    parameters.push((name.to_owned(), value.to_string()));
}

fn settings(of: &wire::QueryParameters<'_>) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    if let Some(rows) = of.page_size.filter(|rows| *rows > 0) {
        add(&mut parameters, "page_size", rows);
    }
    add(&mut parameters, "consistency_level", of.consistency);
    // SERIAL is the default.
    add(&mut parameters, "serial_consistency_level", of.serial_consistency.unwrap_or(Consistency::Serial));
    parameters
}

fn executed(execute: &wire::Execute<'_>, backend: &dyn Backend) -> Vec<(String, String)> {
    let mut parameters = settings(&execute.parameters);
    let id = StatementId::try_from(execute.id).ok();
    let Some(prepared) = id.and_then(|id| backend.prepared(&id).ok().flatten()) else { return parameters };
    add(&mut parameters, "query", &prepared.query);
    let are_secret = prepared.subject.as_ref().is_none_or(|subject| subject.has_secret_values());
    let values = execute.parameters.values.iter().map(|(_, value)| value);
    for (at, (marker, value)) in prepared.markers.iter().zip(values).enumerate() {
        let text = match value {
            // Every role may read the traces.
            _ if are_secret => "*******".to_owned(),
            Value::Null => to_cql_literal(&marker.ty, None),
            Value::Unset => "<unset>".to_owned(),
            Value::Bytes(bytes) if bytes.len() > VALUE_BYTES_MAX => format!("<{} bytes>", bytes.len()),
            Value::Bytes(bytes) => to_short_literal(&marker.ty, Some(bytes), VALUE_CHARS_MAX + 1),
        };
        let shown = match text.char_indices().nth(VALUE_CHARS_MAX) {
            Some((end, _)) => format!("{}...'", text.get(..end).unwrap_or_default()),
            None => text,
        };
        add(&mut parameters, &format!("bound_var_{at}_{}", marker.name), shown);
    }
    parameters
}
