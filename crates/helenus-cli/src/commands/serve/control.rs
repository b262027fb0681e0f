//! The running server, as the admin socket controls it: listeners, settings, log.

use super::disk::DiskWatch;
use super::front::ServerFront;
use super::run::{local_options, read_timeouts, settings};
use super::tls::reload_tls;
use clap::ArgMatches;
use helenus_cql::LocalBackend;
use helenus_cql::audit::EventType;
use helenus_cql::guardrails::Guardrails;
use helenus_engine::Database;
use helenus_server::admin::{AuditState, ClientsSeen, Pool, Reloaded, ServerControl};
use helenus_server::audit::{Audit, AuditOverrides, AuditUser};
use helenus_server::config::{ServerConfig, Settings, judges_statements, setting_text, settings_table};
use helenus_server::engine_journal::EngineJournal;
use helenus_server::log::{Entry, Level, Log, SlowStatements};
use helenus_server::native::NativeServer;
use helenus_server::policy::FailurePolicies;
use helenus_server::rpc::RpcServer;
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::sync::Arc;

/// `setcompactionthroughput` sets this value too, so a reload applies it only if the key itself has changed.
const COMPACTION_THROUGHPUT: &str = "compaction_throughput";

/// The keys that a running server applies at a reload, besides those of the guardrails and limits of statements.
const TAKEN: [&str; 9] = [
    COMPACTION_THROUGHPUT,
    "commit_failure_policy",
    "disk_failure_policy",
    "log_level",
    "log_values",
    "range_request_timeout",
    "read_request_timeout",
    "slow_query_log_timeout",
    "write_request_timeout",
];

/// The listeners of a running server, with its database and settings.
pub struct RunningServer {
    /// The server of the native protocol.
    pub native: Arc<NativeServer>,
    /// The server of the Thrift-era RPC protocol, if it is enabled.
    pub rpc: Option<Arc<RpcServer>>,
    /// What a move switches between database and cluster.
    pub front: Arc<ServerFront>,
    /// The storage engine.
    pub database: Arc<Database>,
    /// Runs CQL statements.
    pub local: Arc<LocalBackend>,
    /// The log.
    pub log: Arc<Log>,
    /// The log of slow statements.
    pub slow: Arc<SlowStatements>,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// The reactions to failures of disk and commit log.
    pub policies: Arc<FailurePolicies>,
    /// The configuration of the start.
    pub started: ServerConfig,
    /// The settings of file and command line at the start.
    pub settings_started: Settings,
    /// The settings in force.
    pub settings: Mutex<Settings>,
    /// The command line.
    pub matches: ArgMatches,
    /// The engine's way to the log.
    pub journal: Arc<EngineJournal>,
    /// Measures the usage of the disk; `None` without one.
    pub disk: Option<Arc<DiskWatch>>,
    /// The keys and certificates; `None` without TLS.
    pub tls: Option<Arc<ServerTls>>,
}

impl ServerControl for RunningServer {
    fn connections(&self) -> usize {
        self.native.connections_count()
    }

    fn pools(&self) -> Vec<Pool> {
        self.native.pools()
    }

    fn request_bytes(&self) -> (u64, u64) {
        self.native.request_bytes()
    }

    fn resident_bytes(&self) -> Option<u64> {
        Some(helenus_host::real::process_usage().resident_bytes).filter(|bytes| *bytes > 0)
    }

    fn trace_probability(&self) -> f64 {
        self.native.trace_probability()
    }

    fn set_trace_probability(&self, probability: f64) {
        self.native.set_trace_probability(probability);
    }

    fn close(&self) {
        self.front.stop();
        if let Some(rpc) = &self.rpc {
            rpc.stop();
        }
    }

    fn are_open(&self) -> bool {
        self.front.is_open()
    }

    fn resume(&self) -> Result<(), String> {
        match self.front.keeps_closed() {
            Some(reason) => Err(reason),
            None => self.native.resume().map_err(|error| error.to_string()),
        }
    }

    fn begin_writing(&self, what: &str) -> Result<Box<dyn Send>, String> {
        self.front.begin_writing(what)
    }

    fn pause(&self) -> Result<(), String> {
        if let Some(reason) = self.front.keeps_closed() {
            return Err(reason);
        }
        self.native.pause();
        Ok(())
    }

    fn clients(&self) -> ClientsSeen {
        self.native.clients_seen()
    }

    fn clear_clients(&self) {
        self.native.clear_clients_seen();
    }

    fn enable_audit(&self, overrides: &AuditOverrides) -> Result<(), String> {
        let enabled =
            self.front.change_here(|| self.audit.enable(overrides).map_err(|error| error.to_string()));
        enabled.ok_or_else(|| {
            "clients are served by the target of the move, and this log would not have their CQL statements: turn the audit log on at the \
             nodes of the target"
                .to_owned()
        })??;
        self.log.write(Level::Info, &Entry::new("audit", "the audit log is on"));
        Ok(())
    }

    fn disable_audit(&self) {
        self.audit.disable();
        self.log.write(Level::Warn, &Entry::new("audit", "the audit log is off"));
    }

    fn reload_tls(&self) -> Result<(), String> {
        let none = "there is no TLS here: client_encryption_options of --config, or --tls-cert, sets it at the start";
        let tls = self.tls.as_ref().ok_or(none)?;
        reload_tls(&helenus_host::real::host(), tls, &self.log, true).map_or(Ok(()), Err)
    }

    fn audit_change(&self, event: EventType, operation: &str) {
        if self.audit.is_on() {
            self.audit.write_own(event, AuditUser::AdminSocket, operation);
        }
    }

    fn audit(&self) -> AuditState {
        let options = self.audit.options();
        let directory = self.audit.directory(&options);
        AuditState {
            enabled: self.audit.is_on(),
            logger: options.logger.class().to_owned(),
            audit_logs_dir: directory.map(|path| path.display().to_string()).unwrap_or_default(),
            roll_cycle: options.roll_cycle.name().to_owned(),
            block: options.block,
            max_log_size: options.log_bytes_max,
            max_queue_weight: options.queue_bytes_max,
            max_archive_retries: options.archive_retries_max,
            included_keyspaces: options.keyspaces.included,
            excluded_keyspaces: options.keyspaces.excluded,
            included_categories: options.categories.included,
            excluded_categories: options.categories.excluded,
            included_users: options.users.included,
            excluded_users: options.users.excluded,
        }
    }

    fn setting(&self, key: &'static str) -> String {
        setting_text(&self.settings.lock(), key)
    }

    fn set(&self, key: &'static str, value: Option<&str>) -> Result<(), String> {
        let mut present = self.settings.lock();
        let mut wanted = present.clone();
        match value {
            Some(text) => wanted.set_flag(key, text).map_err(|error| error.to_string())?,
            None => wanted.take_over(key, &self.settings_started),
        }
        let config =
            ServerConfig::new(&wanted, helenus_host::real::memory_bytes(), helenus_host::real::cores());
        self.take_over(&config.map_err(|error| error.to_string())?)?;
        *present = wanted;
        self.local.virtual_tables().register(settings_table(&present, &self.started));
        Ok(())
    }

    fn reload(&self) -> Result<Reloaded, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let read = settings(&helenus_host::real::host(), &self.matches).map_err(|error| text(&error))?;
        let cores = helenus_host::real::cores();
        let config = ServerConfig::new(&read, helenus_host::real::memory_bytes(), cores);
        let config = config.map_err(|error| text(&error))?;
        let mut reloaded = Reloaded::default();
        let mut present = self.settings.lock();
        let mut wanted = present.clone();
        // `--adopt` implies `--data`, so "data" differs from the file without a change.
        let is_adopted = self.matches.get_one::<String>("adopt").is_some();
        for key in read.differences(&present).into_iter().filter(|key| *key != "data" || !is_adopted) {
            if TAKEN.contains(&key) || judges_statements(key) {
                wanted.take_over(key, &read);
                reloaded.taken.push(key.to_owned());
            } else {
                reloaded.at_next_start.push(key.to_owned());
            }
        }
        if !reloaded.taken.is_empty() {
            self.take_over(&config)?;
            if reloaded.taken.iter().any(|key| key == COMPACTION_THROUGHPUT) {
                self.database.compactions().set_bytes_per_s(config.compaction_bytes_per_s);
            }
            *present = wanted;
            self.local.virtual_tables().register(settings_table(&present, &self.started));
        }
        Ok(reloaded)
    }
}

impl RunningServer {
    /// Reads the settings again because of SIGHUP, and logs the result.
    pub fn reload_told(&self) {
        let (level, text) = match self.reload() {
            Err(error) => (Level::Error, format!("not read again, and nothing has changed: {error}")),
            Ok(Reloaded { taken, at_next_start }) => {
                let mut parts = Vec::new();
                if !taken.is_empty() {
                    parts.push(format!("taken over: {}", taken.join(", ")));
                }
                if !at_next_start.is_empty() {
                    parts.push(format!("not before the next start: {}", at_next_start.join(", ")));
                }
                let is_same = parts.is_empty();
                (Level::Info, if is_same { "nothing has changed".to_owned() } else { parts.join("; ") })
            }
        };
        self.log.write(level, &Entry::new("settings", format!("SIGHUP: {text}")));
    }

    /// Applies every setting that can change while the server runs.
    ///
    /// # Errors
    /// There would be other guardrails, and clients are served by the target of a move: none of the settings is applied.
    fn take_over(&self, config: &ServerConfig) -> Result<(), String> {
        // Without guardrails there is nothing that a gateway would not keep.
        if config.guardrails == Guardrails::default() || config.guardrails == self.front.guardrails() {
            self.apply(config);
            return Ok(());
        }
        self.front.change_here(|| self.apply(config)).ok_or_else(|| {
            "clients are served by the target of the move, and guardrails of this server do not hold there: set them at the nodes of the \
             target, and leave them out here"
                .to_owned()
        })
    }

    fn apply(&self, config: &ServerConfig) {
        self.database.set_read_timeouts(read_timeouts(config));
        self.local.set_live_options(&local_options(config));
        self.journal.set_guardrails(&config.guardrails);
        if let Some(disk) = &self.disk {
            disk.measure();
        }
        self.log.set_level(config.log.level);
        self.slow.set(config.log.slow, config.log.shows_values);
        self.policies.choose(config.disk_failure, config.commit_failure);
        self.native.set_write_timeout(config.limits.write_timeout);
        if let Some(rpc) = &self.rpc {
            rpc.set_write_timeout(config.rpc_limits.write_timeout);
        }
    }
}
