//! Configuration: one table of options feeds the command line, the YAML file, help and docs.
//!
//! `options` is the table and `value` the kinds of values; `cassandra_keys` decides what happens to Cassandra's other
//! keys. `encryption` reads those of TLS, `audit` those of the audit log, both with `sub_options`. `file` reads YAML, `settings` merges the file and the command line,
//! `server_config` is the result, of which `guardrails` is a part, and `settings_table` shows it to clients. `page` writes
//! the book's page of options.

mod audit;
mod cassandra_keys;
mod encryption;
mod file;
mod guardrails;
mod options;
mod page;
mod server_config;
mod settings;
mod settings_table;
mod sub_options;
mod value;

pub use cassandra_keys::{Guarded, NoEffect, REFUSED_KEYS, names_without_effect};
pub use guardrails::judges_statements;
pub use options::{OPTIONS, OptionSpec};
pub use page::options_page;
pub use server_config::{LogConfig, LogForm, ServerConfig, Storage, SyncChoice, Timeouts};
pub use settings::{ConfigError, Settings};
pub use settings_table::{setting_text, settings_table};
pub use value::{Kind, Value, size_text};
