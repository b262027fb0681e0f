//! Flushes and compacts the profiled server through its admin socket, if it is a Helenus server of this user on this
//! machine. CQL has no statement for that, so it is impossible on any other server.

use super::progress::{compacting, show};
use crate::commands::running::running_servers;
use anyhow::{Context, Result, bail};
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Compaction, ServerStatus, TableSelection, ask, socket_for_data,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server with a reachable admin socket.
#[derive(Debug)]
pub struct AdminClient {
    socket: PathBuf,
}

impl AdminClient {
    /// The server whose data is in `given`. Without it: the one of this user on this machine that listens on `address`.
    ///
    /// # Errors
    /// No server answers for the given directory.
    pub fn find(address: &str, given: Option<&Path>) -> Result<Option<AdminClient>> {
        if let Some(data) = given {
            let found = AdminClient { socket: socket_for_data(data) };
            found.status().with_context(|| format!("--server-data {}", data.display()))?;
            return Ok(Some(found));
        }
        let Ok(address) = address.parse() else { return Ok(None) };
        let found = running_servers().into_iter().find(|server| server.is_at(&address));
        Ok(found.map(|server| AdminClient { socket: server.socket }))
    }

    /// Flushes the memtables of a keyspace; returns the time it took.
    pub fn flush(&self, keyspace: &str) -> Result<Duration> {
        let begun = Instant::now();
        show("flush");
        self.ask(&AdminRequest::Flush { which: TableSelection::keyspace(keyspace) })?;
        Ok(begun.elapsed())
    }

    /// Compacts all tables of a keyspace and waits; returns the time it took.
    pub fn compact(&self, keyspace: &str) -> Result<Duration> {
        let begun = Instant::now();
        let mut request = AdminRequest::Compact { which: TableSelection::keyspace(keyspace) };
        loop {
            let AdminAnswer::Compaction(Compaction { number, is_over, running, .. }) = self.ask(&request)?
            else {
                bail!("the server at {} answered something else than asked", self.socket.display());
            };
            if is_over {
                return Ok(begun.elapsed());
            }
            let ours = running.iter().find(|one| one.keyspace == keyspace);
            show(
                &ours.map_or("compact".into(), |one| compacting(&one.table, one.bytes_done, one.bytes_total)),
            );
            request = AdminRequest::Compaction { number };
        }
    }

    /// The number of SSTables of a keyspace, and the bytes of their files.
    pub fn footprint(&self, keyspace: &str) -> Result<(u64, u64)> {
        let status = self.status()?;
        let ours = status.tables.iter().filter(|table| table.keyspace == keyspace);
        Ok(ours
            .fold((0, 0), |(sstables, bytes), table| (sstables + table.sstables, bytes + table.disk_bytes)))
    }

    fn status(&self) -> Result<ServerStatus> {
        match self.ask(&AdminRequest::Status)? {
            AdminAnswer::Status(status) => Ok(status),
            _ => bail!("the server at {} answered something else than asked", self.socket.display()),
        }
    }

    fn ask(&self, request: &AdminRequest) -> Result<AdminAnswer> {
        match ask(&self.socket, request)? {
            AdminAnswer::Error(text) => bail!("{text}"),
            answer => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_a_server_is_an_error_and_nothing_to_be_found_is_none() {
        let folder = std::env::temp_dir().join("helenus-no-server-here");
        let error = AdminClient::find("127.0.0.1:1", Some(&folder)).unwrap_err();
        assert!(format!("{error:#}").contains("--server-data"), "{error:#}");
        assert!(AdminClient::find("127.0.0.1:1", None).unwrap().is_none());
    }
}
