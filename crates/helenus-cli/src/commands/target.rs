//! The target of a command: a running server, through its admin socket, or a directory that no server has open.

use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Host;
use helenus_server::admin::{AdminRequest, ask, socket_for_data};
use std::path::PathBuf;
use std::sync::Arc;

/// The options that choose the target.
#[derive(Args, Debug, Clone)]
pub struct TargetOptions {
    /// Data directory: of a running server or, if none runs on it, to work on directly
    #[arg(long, value_name = "PATH", default_value = "./data")]
    data: PathBuf,
    /// Admin socket of the server, as printed at its start
    #[arg(long, value_name = "PATH", conflicts_with = "data")]
    socket: Option<PathBuf>,
}

/// The target that was found.
pub enum Target {
    /// A running server: the path of its admin socket.
    Server(PathBuf),
    /// A directory, which only this process has open.
    Directory(Box<Opened>),
}

/// A directory opened by this process.
pub struct Opened {
    /// The storage engine.
    pub database: Arc<Database>,
    /// Runs CQL statements on the database.
    pub backend: Arc<LocalBackend>,
}

impl TargetOptions {
    /// Finds a running server, or opens the directory.
    ///
    /// # Errors
    /// The given socket does not answer; the directory cannot be opened.
    pub fn find(&self, host: &Host) -> Result<Target> {
        if let Some(socket) = &self.socket {
            ask(socket, &AdminRequest::Status)?;
            return Ok(Target::Server(socket.clone()));
        }
        let socket = socket_for_data(&self.data);
        if ask(&socket, &AdminRequest::Status).is_ok() {
            return Ok(Target::Server(socket));
        }
        self.open(host)
    }

    /// As `find`, for a command that only reads a database: a directory without a database is refused, instead of being
    /// made one.
    ///
    /// # Errors
    /// Those of `find`; a directory without a database.
    pub fn find_existing(&self, host: &Host) -> Result<Target> {
        let is_none = self.socket.is_none() && !host.disk.exists(&self.data.join("helenus.lock"));
        if is_none && ask(&socket_for_data(&self.data), &AdminRequest::Status).is_err() {
            bail!(
                "{}: no database is here, and no server answers; name its directory with --data or its admin socket with \
                 --socket",
                self.data.display()
            );
        }
        self.find(host)
    }

    fn open(&self, host: &Host) -> Result<Target> {
        let mut options = DatabaseOptions::new(&self.data);
        options.compaction.automatic = false;
        let opened = Database::open(host.clone(), options);
        let (database, _) = opened.with_context(|| format!("cannot open {}", self.data.display()))?;
        let backend = LocalBackend::new(Arc::clone(&database), LocalOptions::default());
        Ok(Target::Directory(Box::new(Opened { database, backend })))
    }

    /// The data directory.
    pub fn data(&self) -> &PathBuf {
        &self.data
    }
}
