//! The target of a command: a running server, through its admin socket, or a directory that no server has open.

use super::overlay::without_writing;
use super::running::{DATA, only_server};
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, is_system_keyspace};
use helenus_host::{Disk, Host};
use helenus_server::address::Address;
use helenus_server::admin::{AdminRequest, ask, socket_for_data};
use helenus_server::backup::remove_all;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options that choose the target.
#[derive(Args, Debug, Clone)]
pub struct TargetOptions {
    /// Data directory: of a running server or, if none runs on it, to work on directly [default: ./data]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Admin socket of the server, as printed at its start
    #[arg(long, value_name = "PATH", conflicts_with = "data")]
    socket: Option<PathBuf>,
    /// Running server on this machine, by the address it listens on
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["data", "socket"])]
    host: Option<Address>,
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
    disk: Arc<dyn Disk>,
    /// The folders that were made for the database: its directory first, then those above. Empty if the directory was there.
    made: Vec<PathBuf>,
}

impl Opened {
    /// Closes the database. One that was made for work that failed, and that has nothing but the system's keyspaces, is removed
    /// with its directory: a name that was typed wrong leaves no database behind.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn close(self, has_failed: bool) -> Result<()> {
        let Opened { database, backend, disk, made } = self;
        let is_empty = database.schema().keyspaces.keys().all(|name| is_system_keyspace(name));
        database.close()?;
        drop((database, backend));
        if has_failed && is_empty {
            remove_made(&*disk, &made);
        }
        Ok(())
    }
}

/// Refuses a file where a directory is asked for.
///
/// # Errors
/// It is a file.
pub fn refuse_file(host: &Host, directory: &Path) -> Result<()> {
    if host.disk.exists(directory) && !host.disk.is_dir(directory) {
        bail!("--data {}: this is a file; give the directory of a database", directory.display());
    }
    Ok(())
}

/// Removes a directory and those above it that are empty then. What cannot be removed stays: the caller reports another error.
fn remove_made(disk: &dyn Disk, made: &[PathBuf]) {
    let Some((directory, above)) = made.split_first() else { return };
    if remove_all(disk, directory).is_ok() {
        let _ = above.iter().try_for_each(|folder| disk.remove_dir(folder));
    }
}

impl TargetOptions {
    /// Finds a running server, or opens the directory.
    ///
    /// # Errors
    /// The given socket does not answer; the directory cannot be opened.
    pub fn find(&self, host: &Host) -> Result<Target> {
        match self.answering()? {
            Some(socket) => Ok(Target::Server(socket)),
            None => self.open(host),
        }
    }

    /// The socket of the server that answers; `None` if none answers for the directory.
    fn answering(&self) -> Result<Option<PathBuf>> {
        if let Some(address) = &self.host {
            return Ok(Some(only_server(Some(address))?.socket));
        }
        if let Some(socket) = &self.socket {
            ask(socket, &AdminRequest::Status)?;
            return Ok(Some(socket.clone()));
        }
        let socket = socket_for_data(self.data());
        Ok(ask(&socket, &AdminRequest::Status).is_ok().then_some(socket))
    }

    /// As `find`, for a command that only reads a database: a directory without a database is refused, instead of being
    /// made one. If nothing is named and nothing is in the default directory, the only running server is the target.
    ///
    /// # Errors
    /// Those of `find`; a directory without a database.
    pub fn find_existing(&self, host: &Host) -> Result<Target> {
        match self.find_server(host)? {
            Some(socket) => Ok(Target::Server(socket)),
            None => self.open(host),
        }
    }

    /// The same for a command that needs a server: `None` if there is a database and no server answers. The directory is not opened, because
    /// a server that starts at this moment would find it locked.
    ///
    /// # Errors
    /// Those of `find_existing`.
    pub fn find_server(&self, host: &Host) -> Result<Option<PathBuf>> {
        let is_none = self.socket.is_none()
            && self.host.is_none()
            && !host.disk.exists(&self.data().join("helenus.lock"))
            && ask(&socket_for_data(self.data()), &AdminRequest::Status).is_err();
        if is_none && self.data.is_none() {
            let found = only_server(None).with_context(|| format!("{}: no database is here", DATA))?;
            return Ok(Some(found.socket));
        }
        if is_none {
            bail!("{}: no database is here, and no server answers", self.data().display());
        }
        self.answering()
    }

    /// As `find`, for a dry run: a directory is opened without writing to it, and without being made.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn find_to_read(&self, host: &Host) -> Result<Target> {
        self.find(&without_writing(host))
    }

    fn open(&self, host: &Host) -> Result<Target> {
        refuse_file(host, self.data())?;
        let mut options = DatabaseOptions::new(self.data());
        options.compaction.automatic = false;
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !host.disk.exists(folder);
        let made = self.data().ancestors().take_while(missing).map(Path::to_owned).collect();
        let opened = Database::open(host.clone(), options);
        let (database, _) = opened.with_context(|| format!("cannot open {}", self.data().display()))?;
        let backend = LocalBackend::new(Arc::clone(&database), LocalOptions::default());
        Ok(Target::Directory(Box::new(Opened { database, backend, disk: Arc::clone(&host.disk), made })))
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        self.data.as_deref().unwrap_or(Path::new(DATA))
    }
}
