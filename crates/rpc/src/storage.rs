//! The storage that calls read and write: the database of this process, or tables elsewhere (`rpc-gateway`: a cluster of Cassandra).
//!
//! A call becomes a `ReadCommand` or a `Mutation`, whoever runs it. Calls that need more than that (conditions, indexes, traces, changes
//! of the schema, prepared statements) ask for the local database, and are refused where there is none.

use crate::call_options::{CallOptions, LoginHandle};
use helenus_cql::CqlError;
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Answer, Backend, Identity, LoginRefused, Request, RowsOut};
use helenus_cql::syntax::ast::Permission;
use helenus_engine::read::{ReadCommand, RowSink};
use helenus_engine::{TableStatus, Ticket};
use helenus_model::mutation::Mutation;
use helenus_model::schema::{Schema, Table};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;

/// A client that has logged in.
pub struct LoggedIn {
    /// Its role.
    pub identity: Identity,
    /// What the storage needs of it at each call, if anything.
    pub handle: Option<LoginHandle>,
}

/// Tables, as calls use them. `CqlError::WouldBlock` is the answer to all that would have to wait while `may_block` is false.
pub trait Storage: Send + Sync {
    /// The local database, if the tables are there.
    fn local(&self) -> Option<&Arc<LocalBackend>> {
        None
    }

    /// The current schema.
    fn schema(&self) -> Arc<Schema>;

    /// The epoch of the current schema.
    fn schema_epoch(&self) -> u64;

    /// Why a table is no column family, for the client that has named it.
    fn no_family(&self, table: &Table) -> String;

    /// The time that decides about expiry, in seconds.
    fn now_s(&self) -> i64;

    /// A new timestamp of the server, microseconds.
    ///
    /// # Errors
    /// The machine's clock is wrong.
    fn next_timestamp(&self) -> Result<i64, CqlError>;

    /// The longest answer, in bytes.
    fn answer_bytes_max(&self) -> usize;

    /// Runs a read. The rows go to the sink.
    ///
    /// # Errors
    /// Those of the storage; the sink's.
    fn read(
        &self,
        command: &ReadCommand,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError>;

    /// Writes changes whose timestamps clients have given. `is_atomic`: all of them or none, where that costs something.
    ///
    /// # Errors
    /// Those of the storage.
    fn write(
        &self,
        mutation: &Mutation,
        is_atomic: bool,
        manner: CallOptions<'_>,
    ) -> Result<Ticket, CqlError>;

    /// Adds to counters, and deletes some.
    ///
    /// # Errors
    /// Those of the storage.
    fn count(&self, mutation: &Mutation, manner: CallOptions<'_>) -> Result<Ticket, CqlError>;

    /// Runs a statement of CQL 3. `out`: where its rows go, and how it runs.
    ///
    /// # Errors
    /// As `Backend::query`.
    fn query(
        &self,
        text: &str,
        request: &Request<'_>,
        out: (&mut dyn RowsOut, CallOptions<'_>),
    ) -> Result<Answer, CqlError>;

    /// Whether clients have to log in.
    fn has_logins(&self) -> bool;

    /// Logs in by name and password. May block.
    ///
    /// # Errors
    /// The login is refused, or cannot be checked.
    fn log_in(&self, user: &str, password: &str, client: Option<IpAddr>) -> Result<LoggedIn, LoginRefused>;

    /// Checks that a client has logged in, and, where nobody else does, that it has these permissions on a table.
    ///
    /// # Errors
    /// It has not.
    fn check_permissions(
        &self,
        identity: &Identity,
        permissions: &[Permission],
        named: (&str, &str),
        may_block: bool,
    ) -> Result<(), CqlError>;

    /// The estimated number of rows of a family.
    fn rows_known(&self, table: &Table) -> u64;

    /// Calls `listener` whenever tickets may have become ready.
    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>);

    /// Hands the written log records to the operating system.
    ///
    /// # Errors
    /// The log has failed.
    fn write_out(&self) -> Result<(), helenus_engine::Error>;
}

impl Storage for Arc<LocalBackend> {
    fn local(&self) -> Option<&Arc<LocalBackend>> {
        Some(self)
    }

    fn schema(&self) -> Arc<Schema> {
        self.database().schema()
    }

    fn schema_epoch(&self) -> u64 {
        self.database().schema_epoch()
    }

    fn no_family(&self, table: &Table) -> String {
        format!(
            "table {} is not one of COMPACT STORAGE: only CQL can read and write it, through the native protocol or \
             execute_cql3_query",
            table.name
        )
    }

    fn now_s(&self) -> i64 {
        self.database().now_s()
    }

    fn next_timestamp(&self) -> Result<i64, CqlError> {
        Ok(self.database().next_timestamp()?)
    }

    fn answer_bytes_max(&self) -> usize {
        LocalBackend::answer_bytes_max(self)
    }

    fn read(
        &self,
        command: &ReadCommand,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError> {
        let view = self.database().view(&command.table)?;
        let mut probe = manner.probe.map(Mutex::lock);
        let _complete = self.database().read(command, &view, manner.read(), sink, probe.as_deref_mut())?;
        Ok(())
    }

    fn write(
        &self,
        mutation: &Mutation,
        _is_atomic: bool,
        manner: CallOptions<'_>,
    ) -> Result<Ticket, CqlError> {
        let ticket = self.database().write_stamped_by_clients(mutation, manner.may_block)?;
        manner.wrote(mutation);
        Ok(ticket)
    }

    fn count(&self, mutation: &Mutation, manner: CallOptions<'_>) -> Result<Ticket, CqlError> {
        let mut probe = manner.probe.map(Mutex::lock);
        let ticket = self.database().count(mutation, manner.read(), probe.as_deref_mut())?;
        drop(probe);
        manner.wrote(mutation);
        Ok(ticket)
    }

    fn query(
        &self,
        text: &str,
        request: &Request<'_>,
        (rows, _manner): (&mut dyn RowsOut, CallOptions<'_>),
    ) -> Result<Answer, CqlError> {
        Backend::query(&**self, text, request, rows)
    }

    fn has_logins(&self) -> bool {
        self.authenticator().is_some()
    }

    fn log_in(&self, user: &str, password: &str, client: Option<IpAddr>) -> Result<LoggedIn, LoginRefused> {
        let identity = self.log_in_by_password(user, password, client)?;
        Ok(LoggedIn { identity, handle: None })
    }

    fn check_permissions(
        &self,
        identity: &Identity,
        permissions: &[Permission],
        named: (&str, &str),
        may_block: bool,
    ) -> Result<(), CqlError> {
        LocalBackend::check_permissions(self, identity, permissions, named, may_block)
    }

    fn rows_known(&self, table: &Table) -> u64 {
        let tables = self.database().status().tables;
        let of_it = |known: &&TableStatus| known.keyspace == *table.keyspace && known.table == *table.name;
        tables.iter().find(of_it).map_or(0, |known| known.partitions.saturating_add(known.memtable_rows))
    }

    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.database().on_written(listener);
    }

    fn write_out(&self) -> Result<(), helenus_engine::Error> {
        self.database().write_out()
    }
}
