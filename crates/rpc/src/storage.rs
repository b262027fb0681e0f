//! The storage that calls read and write: the database of this process, or tables elsewhere (`rpc-gateway`: a cluster of Cassandra).
//!
//! A call becomes a `ReadCommand` or a `Mutation`, whoever runs it. What needs more than that (conditions, changes of families, prepared
//! statements) the local database does in its own ways; elsewhere it is one of the requests below. Traces are local alone.

use crate::call_options::{CallOptions, LoginHandle, LoginTurn};
use helenus_cql::CqlError;
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Answer, Backend, Identity, LoginRefused, Request, RowsOut};
use helenus_cql::budget::RequestBudget;
use helenus_cql::syntax::ast::Permission;
use helenus_engine::read::{ReadCommand, RowSink};
use helenus_engine::{Listening, TableStatus, Ticket, read_indexed};
use helenus_model::index::IndexSearch;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{Schema, Table};
use helenus_model::types::CqlType;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// Waits for the turn of a login.
pub type LoginTurnFuture = Pin<Box<dyn Future<Output = Option<LoginTurn>> + Send>>;

/// A client that has logged in.
pub struct LoggedIn {
    /// Its role.
    pub identity: Identity,
    /// What the storage needs of it at each call, if anything.
    pub handle: Option<LoginHandle>,
}

/// A search for the partitions whose indexed column has a value.
pub struct IndexEquality<'a> {
    /// The search.
    pub search: IndexSearch,
    /// The value, serialised.
    pub value: &'a [u8],
}

/// A change of a column family. Options are those of CREATE and ALTER TABLE, joined by AND.
pub enum FamilyChange<'a> {
    /// A new family.
    New {
        /// The family's table, as a local database would have it.
        table: &'a Table,
        /// Its options.
        options: &'a str,
    },
    /// Another definition of a family.
    Other {
        /// The present table.
        before: &'a Table,
        /// The wanted table, whose options are the present ones still.
        after: &'a Table,
        /// The wanted options.
        options: &'a str,
    },
}

/// Changes of a partition that are made if it has the expected cells.
pub struct Swap<'a> {
    /// The cells that must be there with these values; without any, the partition must have no column.
    pub expected: &'a PartitionUpdate,
    /// The cells to write. Their timestamps mean nothing.
    pub updates: &'a PartitionUpdate,
    /// The consistency level of the condition, as the native protocol numbers it.
    pub serial: u16,
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

    /// Runs a read of the partitions that an index finds. Some of them may no longer match.
    ///
    /// # Errors
    /// Those of the storage; the sink's.
    fn read_indexed(
        &self,
        command: &ReadCommand,
        by: &IndexEquality<'_>,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError>;

    /// Makes changes if a condition holds; `manner` has the level of the changes. If it does not hold, the expected cells that are there
    /// go to the sink, and the answer is `false`. Asked where `local` is `None`.
    ///
    /// # Errors
    /// Those of the storage; the condition cannot be put; the sink's.
    fn swap(
        &self,
        _swap: &Swap<'_>,
        _sink: &mut dyn RowSink,
        _manner: CallOptions<'_>,
    ) -> Result<bool, CqlError> {
        Err(done_locally())
    }

    /// The statements of CQL 3 that make a change of a family, in their order. Asked where `local` is `None`.
    ///
    /// # Errors
    /// No statements can make it.
    fn family_statements(&self, _change: &FamilyChange<'_>) -> Result<Vec<String>, CqlError> {
        Err(done_locally())
    }

    /// The names and types of the markers of a statement of CQL 3. Asked where `local` is `None`.
    ///
    /// # Errors
    /// The statement cannot be prepared.
    fn markers(
        &self,
        _text: &str,
        _keyspace: Option<&str>,
        _manner: CallOptions<'_>,
    ) -> Result<Vec<(Arc<str>, CqlType)>, CqlError> {
        Err(done_locally())
    }

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

    /// Waits until a login as this role may be checked, where the storage bounds checks by turns of its own; `None` where it does not. No
    /// thread is needed meanwhile, however long it takes. The future's value goes to `log_in`; `None`: too many wait.
    fn login_turn(&self, _user: &str, _client: Option<IpAddr>) -> Option<LoginTurnFuture> {
        None
    }

    /// Logs in by name and password. May block. `turn`: the login's turn, if it has waited for it.
    ///
    /// # Errors
    /// The login is refused, or cannot be checked.
    fn log_in(
        &self,
        user: &str,
        password: &str,
        from: (Option<IpAddr>, Option<&LoginTurn>),
    ) -> Result<LoggedIn, LoginRefused>;

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

    /// The estimated number of rows of a family that the client may read.
    ///
    /// # Errors
    /// The client may not read it.
    fn rows_known(&self, table: &Table, manner: CallOptions<'_>) -> Result<u64, CqlError>;

    /// Calls `listener` whenever tickets may have become ready, for as long as the result lives.
    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening;

    /// Hands the written log records to the operating system.
    ///
    /// # Errors
    /// The log has failed.
    fn write_out(&self) -> Result<(), helenus_engine::Error>;
}

fn done_locally() -> CqlError {
    CqlError::Server("the local database does this by itself".to_owned())
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
        RequestBudget::of_read(manner.read(), self.database()).terms_of(mutation)?;
        let ticket = self.database().write_stamped_by_clients(mutation, manner.read())?;
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

    fn read_indexed(
        &self,
        command: &ReadCommand,
        by: &IndexEquality<'_>,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError> {
        let searches = std::slice::from_ref(&by.search);
        let mut probe = manner.probe.map(Mutex::lock);
        read_indexed(self.database(), command, searches, manner.read(), sink, probe.as_deref_mut())?;
        Ok(())
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

    fn log_in(
        &self,
        user: &str,
        password: &str,
        (client, _turn): (Option<IpAddr>, Option<&LoginTurn>),
    ) -> Result<LoggedIn, LoginRefused> {
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

    fn rows_known(&self, table: &Table, _manner: CallOptions<'_>) -> Result<u64, CqlError> {
        let tables = self.database().status().tables;
        let of_it = |known: &&TableStatus| known.keyspace == *table.keyspace && known.table == *table.name;
        let known = tables.iter().find(of_it);
        Ok(known.map_or(0, |known| known.partitions.saturating_add(known.memtable_rows)))
    }

    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.database().on_written(listener)
    }

    fn write_out(&self) -> Result<(), helenus_engine::Error> {
        self.database().write_out()
    }
}
