//! A blocking session of the Rust driver, for tests that inspect rows.

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::query_result::QueryResult;
use scylla::statement::unprepared::Statement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{CqlValue, Row};
use tokio::runtime::Runtime;

/// WRITETIME and TTL of the elements of a column.
pub type ElementTimes = (Option<Vec<Option<i64>>>, Option<Vec<Option<i32>>>);

/// A blocking session with one server.
pub struct Cql {
    runtime: Runtime,
    session: Session,
    /// Of every statement.
    consistency: Consistency,
}

impl Cql {
    /// Connects to `HOST:PORT`.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn connect(address: &str) -> Self {
        let found = Self::begin(SessionBuilder::new().known_node(address));
        found.unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// Connects to `HOST:PORT` and logs in.
    ///
    /// # Errors
    /// The login is refused.
    pub fn connect_as(address: &str, (user, password): (&str, &str)) -> Result<Self, String> {
        Self::begin(SessionBuilder::new().known_node(address).user(user, password))
    }

    fn begin(builder: SessionBuilder) -> Result<Self, String> {
        let runtime = Runtime::new().expect("a runtime for the driver");
        let session = runtime.block_on(builder.build()).map_err(|error| error.to_string())?;
        Ok(Self { runtime, session, consistency: Consistency::One })
    }

    /// Asks all nodes of a cluster from now on: what any node has acknowledged is read, and what is written is at every node.
    #[must_use]
    pub fn at_all(mut self) -> Self {
        self.consistency = Consistency::All;
        self
    }

    /// Runs a statement without values.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn run(&self, statement: &str) {
        self.ask(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Runs a statement that may be refused.
    ///
    /// # Errors
    /// The server's message.
    pub fn try_run(&self, statement: &str) -> Result<(), String> {
        self.ask(statement).map(|_| ())
    }

    /// The rows of a SELECT, in order. Null values are `None`.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn rows(&self, statement: &str) -> Vec<Vec<Option<CqlValue>>> {
        self.try_rows(statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// As `rows`, of a statement that may fail.
    ///
    /// # Errors
    /// The server's message, or that of the driver.
    pub fn try_rows(&self, statement: &str) -> Result<Vec<Vec<Option<CqlValue>>>, String> {
        let result = self.ask(statement)?.into_rows_result().map_err(|error| error.to_string())?;
        let rows = result.rows::<Row>().map_err(|error| error.to_string())?;
        rows.map(|row| row.map(|row| row.columns).map_err(|error| error.to_string())).collect()
    }

    /// Times and TTLs of a column of several cells: WRITETIME and TTL of each row's elements, in the order of the rows. Elements
    /// without a TTL have null, which `rows` does not take inside a list.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn times_of_elements(&self, column: &str, table: &str) -> Vec<ElementTimes> {
        let statement = format!("SELECT WRITETIME({column}), TTL({column}) FROM {table}");
        let result = self.ask(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let rows = result.into_rows_result().unwrap_or_else(|error| panic!("{statement}: {error}"));
        let rows = rows.rows::<ElementTimes>().unwrap_or_else(|error| panic!("{statement}: {error}"));
        rows.map(|row| row.unwrap_or_else(|error| panic!("{statement}: {error}"))).collect()
    }

    /// As `rows`, but repeated for up to a minute while a required index is being built.
    ///
    /// # Panics
    /// The server refuses it for another reason, or the minute is over.
    pub fn rows_once_indexed(&self, statement: &str) -> Vec<Vec<Option<CqlValue>>> {
        let began = std::time::Instant::now();
        let is_built = || match self.ask(statement) {
            Err(error) => !error.to_string().contains("is not yet available"),
            Ok(_) => true,
        };
        while !is_built() && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        self.rows(statement)
    }

    /// The server's message for a statement that it must refuse.
    ///
    /// # Panics
    /// The server accepts the statement.
    pub fn refusal(&self, statement: &str) -> String {
        match self.ask(statement) {
            Ok(_) => panic!("accepted: {statement}"),
            Err(message) => message,
        }
    }

    fn ask(&self, text: &str) -> Result<QueryResult, String> {
        let mut statement = Statement::new(text);
        statement.set_consistency(self.consistency);
        statement.set_serial_consistency(Some(SerialConsistency::LocalSerial));
        statement.set_request_timeout(Some(std::time::Duration::from_secs(60)));
        self.runtime.block_on(self.session.query_unpaged(statement, ())).map_err(|error| error.to_string())
    }
}
