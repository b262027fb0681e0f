//! A server inside a tool: opens a database for this process alone, and serves CQL to its own connections.
//!
//! `helenus shell --data` and `--memory` use it, so that they have every statement, COPY and EXPLAIN of the server.

use super::run::{describe_node, local_options, open_quietly};
use crate::commands::running::RunningServer;
use anyhow::{Context, Result, bail};
use helenus_cql::LocalBackend;
use helenus_engine::{Database, JournalSlot, OpenProgress};
use helenus_mover::cut_of;
use helenus_server::admin::socket_for_data;
use helenus_server::config::{LogForm, ServerConfig, Settings, settings_table};
use helenus_server::engine_journal::EngineJournal;
use helenus_server::log::{Format, Level, Log};
use helenus_server::native::{NativeServer, OwnClients};
use helenus_server::policy::FailurePolicies;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// An open database with its server.
pub struct InProcess {
    database: Arc<Database>,
    native: NativeServer,
    log: Arc<Log>,
    /// Opens the connections that are let in.
    pub clients: Arc<OwnClients>,
}

impl InProcess {
    /// Opens the database of a directory, which is made if it is not there; `None`: an empty one in memory.
    ///
    /// # Errors
    /// The directory cannot be opened; a server has it open.
    pub fn open(directory: Option<&Path>) -> Result<InProcess> {
        let mut settings = Settings::default();
        let host = match directory {
            Some(directory) => {
                refuse_served(directory)?;
                settings.set_flag("data", &directory.display().to_string())?;
                let host = helenus_host::real::host();
                if let Some(cut) = cut_of(&host.disk, directory)? {
                    eprintln!(
                        "Warning: a move was cut over to {}: this directory has the data of that moment, and what is written here is not \
                         seen by clients",
                        cut.order.to.join(", ")
                    );
                }
                host
            }
            None => {
                settings.set_flag("memory", "true")?;
                helenus_host::memory::host()
            }
        };
        let (memory, cores) = (helenus_host::real::memory_bytes(), helenus_host::real::cores());
        let mut config = ServerConfig::new(&settings, memory, cores)?;
        config.log.form = LogForm::Text;
        let log = Log::start(&host, Format::Text { coloured: false }, Some(Level::Warn));
        let (policies, _told) = FailurePolicies::new(config.disk_failure, config.commit_failure, &log);
        let journal = JournalSlot::of(Arc::new(EngineJournal::new(&log, &policies)));
        let database = open_quietly(&host, &config, (Arc::new(OpenProgress::default()), journal))?;
        let local = LocalBackend::new(Arc::clone(&database), local_options(&config));
        local.begin_logins(None)?;
        let clients = Arc::new(OwnClients::default());
        let mut limits = config.limits.clone();
        limits.own_clients = Some(Arc::clone(&clients));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let native = NativeServer::start(&host, local.clone(), address, limits)?;
        describe_node(&local, &config, native.address());
        local.virtual_tables().register(native.clients_table());
        local.virtual_tables().register(settings_table(&settings, &config));
        Ok(InProcess { database, native, log, clients })
    }

    /// The address of its server.
    pub fn address(&self) -> SocketAddr {
        self.native.address()
    }

    /// Ends the server and writes what is in memory.
    ///
    /// # Errors
    /// The disk fails.
    pub fn close(self) -> Result<()> {
        self.native.stop();
        let closed = self.database.close().context("closing the database");
        self.log.close();
        closed
    }
}

/// Refuses a directory that a running server has open, and says how to reach the server.
fn refuse_served(directory: &Path) -> Result<()> {
    let Some(server) = RunningServer::at(socket_for_data(directory)) else { return Ok(()) };
    bail!(
        "a server has {} open (process {}): helenus shell --host {}",
        directory.display(),
        server.status.pid,
        server.status.listening
    )
}
