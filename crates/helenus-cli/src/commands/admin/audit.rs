//! `enableauditlog`, `disableauditlog`, `getauditlog`.

use super::requests::{Server, unexpected};
use anyhow::Result;
use helenus_server::admin::{AdminAnswer, AdminRequest};
use std::io::{Write, stdout};

/// `getauditlog` (`GetAuditLog.java`).
///
/// # Errors
/// No server answers.
pub fn getauditlog(server: &Server) -> Result<()> {
    let AdminAnswer::AuditLog(state) = server.request(&AdminRequest::AuditLog)? else { return unexpected() };
    if server.json {
        return server.print_json(&state);
    }
    let rows = [
        ("enabled", state.enabled.to_string()),
        ("logger", state.logger),
        ("audit_logs_dir", state.audit_logs_dir),
        ("archive_command", String::new()),
        ("roll_cycle", state.roll_cycle),
        ("block", state.block.to_string()),
        ("max_log_size", state.max_log_size.to_string()),
        ("max_queue_weight", state.max_queue_weight.to_string()),
        ("max_archive_retries", state.max_archive_retries.to_string()),
        ("included_keyspaces", state.included_keyspaces),
        ("excluded_keyspaces", state.excluded_keyspaces),
        ("included_categories", state.included_categories),
        ("excluded_categories", state.excluded_categories),
        ("included_users", state.included_users),
        ("excluded_users", state.excluded_users),
    ];
    let width = rows.iter().map(|(_, value)| value.len()).max().unwrap_or_default();
    let mut out = stdout().lock();
    for (name, value) in rows {
        writeln!(out, "{name:<19} {value:<width$}")?;
    }
    Ok(())
}
