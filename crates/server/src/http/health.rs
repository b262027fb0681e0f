//! `/health` and `/ready`: whether the server is in order, and whether it serves clients.
//!
//! A server is healthy if its commit log takes writes and no failure policy has stopped it from serving clients. Other
//! problems (a flush or compaction that failed and is tried again, tables with a damaged file) are listed, but do not
//! make it unhealthy: a supervisor would restart it for that, which helps nothing. A server is ready if it accepts
//! clients.

use helenus_cql::counted;
use serde_json::{Value, json};

use super::state::{HttpState, Stage, opening_text};
use crate::admin::failures_of;
use crate::policy::Verdict;

/// Whether the server is in order, and its problems.
pub(super) fn health(state: &HttpState) -> (bool, Value) {
    let (stage, watched) = match state.stage() {
        Stage::Opening(progress) => {
            return (true, json!({ "status": "starting", "doing": opening_text(&progress), "problems": [] }));
        }
        Stage::Open(watched) => ("up", Some(watched)),
        Stage::Stopping(watched) => ("stopping", watched),
    };
    let Some(watched) = watched else { return (true, json!({ "status": stage, "problems": [] })) };
    let status = watched.database.status();
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    if let Some(failure) = status.log.as_ref().and_then(|log| log.failure.as_ref()) {
        problems.push(format!("the commit log takes no more writes until a restart: {failure}"));
    }
    if state.policies.verdict() >= Verdict::StopServing {
        problems
            .push("clients are no longer served, as a failure policy says; the log has the cause".to_owned());
    }
    notes.extend(status.compaction_failure.map(|failure| format!("the last compaction failed: {failure}")));
    for table in &status.tables {
        let failures = failures_of(table).into_iter();
        notes.extend(failures.map(|failure| format!("{}.{}: {failure}", table.keyspace, table.table)));
    }
    for table in status.tables.iter().filter(|table| table.unreadable > 0) {
        let (count, keyspace, name) = (table.unreadable, &table.keyspace, &table.table);
        notes.push(format!(
            "{} of {keyspace}.{name} cannot be read; its reads fail",
            counted(count, "SSTable")
        ));
    }
    let is_well = problems.is_empty();
    let word = if is_well { stage } else { "failing" };
    (is_well, json!({ "status": word, "problems": problems, "notes": notes }))
}

/// Whether clients are served, and if not, why.
pub(super) fn readiness(state: &HttpState) -> (bool, Value) {
    match state.stage() {
        Stage::Opening(progress) => (false, json!({ "ready": false, "reason": opening_text(&progress) })),
        Stage::Stopping(_) => (false, json!({ "ready": false, "reason": "stopping" })),
        Stage::Open(_) if state.policies.verdict() >= Verdict::StopServing => {
            (false, json!({ "ready": false, "reason": "a failure policy has closed the doors to clients" }))
        }
        Stage::Open(watched) => {
            (true, json!({ "ready": true, "listening": watched.native.address().to_string() }))
        }
    }
}
