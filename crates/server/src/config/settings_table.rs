//! `system_views.settings`: the options of this server, in Cassandra's table (`SettingsTable`).

use std::sync::Arc;

use helenus_cql::virtual_table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;

use super::audit::audit_text;
use super::encryption::encryption_text;
use super::options::{OPTIONS, option};
use super::server_config::ServerConfig;
use super::settings::{Settings, parse};
use super::value::{Value, size_text};

struct SettingsTable {
    table: Arc<Table>,
    rows: Vec<(&'static str, String)>,
}

/// The table of the effective configuration: the given values, and the defaults of the others.
pub fn settings_table(settings: &Settings, config: &ServerConfig) -> Arc<dyn VirtualTable> {
    let columns = [("name", CqlType::Text), ("value", CqlType::Text)];
    let table = virtual_definition(("system_views", "settings"), "current settings", (1, 0), &columns);
    let value = |key: &str, default: &str| match settings.get(key) {
        Some(value) => text(value),
        None => computed(key, config).unwrap_or_else(|| default.to_owned()),
    };
    let rows = OPTIONS.iter().map(|option| (option.key, value(option.key, option.default))).collect();
    Arc::new(SettingsTable { table, rows })
}

/// The value of an option whose default depends on nothing else, formatted as in the table.
pub fn setting_text(settings: &Settings, key: &'static str) -> String {
    let default = || option(key).and_then(|option| parse(option, key.to_owned(), option.default).ok());
    settings.get(key).cloned().or_else(default).as_ref().map(text).unwrap_or_default()
}

/// Defaults that depend on the machine or on other options.
fn computed(key: &str, config: &ServerConfig) -> Option<String> {
    let limits = &config.limits;
    let bytes = match key {
        "memory_limit" => config.memory_limit,
        "memtable_heap_space" => config.memtable_bytes as u64,
        "file_cache_size" => config.cache_bytes,
        "max_mutation_size" => config.mutation_bytes_max as u64,
        "native_transport_max_message_size" => limits.message_bytes_max,
        "native_transport_max_request_data_in_flight" => limits.in_flight_bytes_max,
        "native_transport_max_request_data_in_flight_per_ip" => limits.in_flight_bytes_max_per_address,
        "native_transport_max_concurrent_connections" if limits.budget.in_all() < u64::MAX => {
            return Some(limits.budget.in_all().to_string());
        }
        "concurrent_reads" => return Some(limits.disk_threads_max.to_string()),
        "concurrent_compactors" => return Some(config.compactors.to_string()),
        "busy_poll_us" => return Some(limits.busy_poll.as_micros().to_string()),
        "available_processors" => return Some(limits.event_loops.to_string()),
        _ => return None,
    };
    Some(size_text(bytes))
}

fn text(value: &Value) -> String {
    match value {
        Value::Size(bytes) => size_text(*bytes),
        Value::Duration(time) => format!("{}ms", time.as_millis()),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Text(text) => text.clone(),
        Value::Encryption(options) => encryption_text(options),
        Value::Audit(options) => audit_text(options),
    }
}

impl VirtualTable for SettingsTable {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, _cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        for (name, value) in &self.rows {
            rows.row(&[("name", name.as_bytes().to_vec()), ("value", value.as_bytes().to_vec())]);
        }
    }
}
