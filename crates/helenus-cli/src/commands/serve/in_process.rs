//! A server inside a tool: opens a database for this process alone, and serves CQL to its own connections.
//!
//! `helenus shell --data`, `--sstables` and `--memory` use it, so that they have every statement, COPY and EXPLAIN of the server.

use super::run::{MEMORY, describe_node, local_options, open_quietly};
use crate::commands::overlay::without_writing_or_folder;
use crate::commands::running::RunningServer;
use crate::commands::target::refuse_file;
use anyhow::{Context, Result, anyhow, bail};
use helenus_cql::LocalBackend;
use helenus_engine::import::ImportProgress;
use helenus_engine::{Database, JournalSlot, OpenProgress};
use helenus_host::Host;
use helenus_mover::cut_of;
use helenus_server::admin::{ImportOrder, request_of, socket_for_data};
use helenus_server::config::{LogForm, ServerConfig, Settings, settings_table};
use helenus_server::engine_journal::EngineJournal;
use helenus_server::log::{Format, Level, Log};
use helenus_server::native::{NativeServer, OwnClients};
use helenus_server::policy::FailurePolicies;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// What the database is made of.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A directory of a database, which is made if it is not there.
    Directory(&'a Path),
    /// A folder of SSTables with their schema, as a backup, an export, a snapshot or a data directory: they are read where they are, and
    /// what is written ends with the process.
    SsTables(&'a Path, Option<&'a Path>),
    /// Nothing.
    Memory,
}

/// An open database with its server.
pub struct InProcess {
    database: Arc<Database>,
    native: NativeServer,
    log: Arc<Log>,
    /// Opens the connections that are let in.
    pub clients: Arc<OwnClients>,
}

impl InProcess {
    /// Opens a database.
    ///
    /// # Errors
    /// The directory cannot be opened; a server has it open; the SSTables cannot be read.
    pub fn open(source: Source<'_>) -> Result<InProcess> {
        let mut settings = Settings::default();
        let host = match source {
            Source::Directory(directory) => {
                refuse_served(directory)?;
                refuse_file(&helenus_host::real::host(), directory)?;
                settings.set_flag("data", &directory.display().to_string())?;
                let host = helenus_host::real::host();
                if let Some(cut) = cut_of(&host.disk, directory)? {
                    note!(
                        "Warning: a move was cut over to {}: this directory has the data of that moment, and what is written here is not \
                         seen by clients",
                        cut.order.to.join(", ")
                    );
                }
                host
            }
            Source::SsTables(..) => {
                settings.set_flag("memory", "true")?;
                // A folder of the machine by the name that a database in memory has is none of it.
                without_writing_or_folder(&helenus_host::real::host(), Path::new(MEMORY))
            }
            Source::Memory => {
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
        let parts = (Arc::new(OpenProgress::default()), journal);
        // Merged SSTables would fill memory.
        let compacts = !matches!(source, Source::SsTables(..));
        let database = open_quietly(&host, &config, parts, compacts)?;
        let local = LocalBackend::new(Arc::clone(&database), local_options(&config));
        local.begin_logins(None)?;
        if let Source::SsTables(folder, schema) = source {
            read_sstables(&host, &local, (folder, schema))?;
        }
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

/// Takes the SSTables of a folder, which keep their place, into a database on an overlay of their disk.
fn read_sstables(
    host: &Host,
    local: &Arc<LocalBackend>,
    (folder, schema): (&Path, Option<&Path>),
) -> Result<()> {
    if !host.disk.is_dir(folder) {
        bail!("--sstables {}: give a folder; a backup in a tar file is unpacked by tar", folder.display());
    }
    let order = ImportOrder {
        directory: std::path::absolute(folder)?,
        schema: schema.map(std::path::absolute).transpose()?,
        no_verify: true,
        ..ImportOrder::default()
    };
    let request = request_of(&order, &host.disk).map_err(|text| anyhow!(text))?;
    let report = local.import(&host.disk, &request, &ImportProgress::default());
    let report = report.with_context(|| format!("cannot read {}", folder.display()))?;
    for note in &report.notes {
        note!("Warning: {note}");
    }
    Ok(())
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
