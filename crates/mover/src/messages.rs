//! What `helenus move` asks the server, and what it is answered.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveRequest {
    /// Says what a move would do.
    Plan(MoveOrder),
    /// Starts a move.
    Start(MoveOrder),
    /// The progress.
    Status,
    /// Goes on after a stop, with the tables that have stopped too.
    Resume,
    /// The same, with changes.
    ResumeWith(ResumeOrder),
    /// Starts to compare both sides.
    Verify(VerifyOrder),
    /// What the comparison has found until now.
    VerifyStatus,
    /// Ends the comparison.
    VerifyStop,
    /// From now on the target has the truth, and clients are served by it.
    Cutover(CutOrder),
    /// Brings the target's later writes back, and serves clients here again.
    Rollback(RollbackOrder),
    /// Ends the move and forgets it. Both sides keep what they have.
    Abort,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveAnswer {
    /// What a move would do.
    Plan(PlanReport),
    /// The progress.
    Status(StatusReport),
    /// What a comparison has found until now.
    Verified(VerifyReport),
    /// Done; what was done, in words.
    Done(String),
}

/// The target of a move, and how to go about it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    /// Nodes of the target, as `HOST` or `HOST:PORT`.
    pub to: Vec<String>,
    /// The data center that is written to first; that of the first node if `None`.
    pub local_dc: Option<String>,
    /// User and password. The password is empty where `password_file` has it: an order that is kept has no password.
    pub login: Option<(String, String)>,
    /// The file whose first line is the password, as the server finds it. It is read whenever the target is connected to.
    #[serde(default)]
    pub password_file: Option<String>,
    /// The role of the target as which clients are served after a cut, where they do not log in.
    #[serde(default)]
    pub clients: Option<ClientsRole>,
    /// TLS, if the target takes it.
    pub tls: Option<TlsFiles>,
    /// Keyspaces, or tables as `KEYSPACE.TABLE`; all of users if empty.
    pub what: Vec<String>,
    /// Replication of keyspaces that are made, as CQL maps by name.
    pub replication: BTreeMap<String, String>,
    /// Rows a second at most; 0 for no limit.
    pub rows_per_second: u64,
    /// The 99th percentile of the target's latency above which fewer requests are sent, milliseconds.
    pub target_p99_ms: u64,
    /// Ranges of tokens that are read at the same time.
    pub ranges_at_once: usize,
    /// Whether roles go too.
    #[serde(default)]
    pub roles: bool,
}

impl MoveOrder {
    /// The order as it is kept.
    pub(crate) fn without_password(&self) -> MoveOrder {
        let login = self.login.as_ref().map(|(user, _)| (user.clone(), String::new()));
        MoveOrder { login, ..self.clone() }
    }
}

/// A role of the target, and the file whose first line is its password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsRole {
    /// The role.
    pub user: String,
    /// The file, as the server finds it.
    pub password_file: String,
}

impl fmt::Debug for MoveOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        f.debug_struct("MoveOrder").field("to", &self.to).field("user", &user).finish_non_exhaustive()
    }
}

/// How a move goes on: what is `None` stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumeOrder {
    /// Tables (`KEYSPACE.TABLE`) that are truncated at the target and sent anew.
    pub anew: Vec<String>,
    /// As `MoveOrder::rows_per_second`.
    pub rows_per_second: Option<u64>,
    /// As `MoveOrder::target_p99_ms`.
    pub target_p99_ms: Option<u64>,
    /// As `MoveOrder::ranges_at_once`.
    pub ranges_at_once: Option<usize>,
}

/// How a move is cut over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOrder {
    /// How long clients may wait, milliseconds.
    pub pause_ms: u64,
    /// How long after the cut a rollback is allowed, seconds.
    pub rollback_within_s: u64,
    /// Whether only the conditions are checked.
    pub is_dry_run: bool,
    /// The role of the target as which clients are served, where they do not log in.
    #[serde(default)]
    pub clients: Option<ClientsRole>,
    /// Whether definitions, and rows of tables whose changes were missed, may differ.
    #[serde(default)]
    pub accepts_differences: bool,
}

/// How a cut is taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackOrder {
    /// How long clients may wait during the last pass, milliseconds.
    pub pause_ms: u64,
    /// Whether the target is not asked: what was written there since the cut is lost, and the move ends.
    #[serde(default)]
    pub loses_later_writes: bool,
    /// Tables (`KEYSPACE.TABLE`) that do not come back: they keep here the rows that they have.
    #[serde(default)]
    pub without: Vec<String>,
}

/// Files of a TLS client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFiles {
    /// Certificates to trust; the machine's if `None`.
    pub cafile: Option<String>,
    /// The client's certificate.
    pub cert: Option<String>,
    /// Its key.
    pub key: Option<String>,
    /// Whether the target's certificate is not checked.
    pub insecure: bool,
}

/// What a move would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// The cluster's name.
    pub cluster: String,
    /// The oldest version of its nodes.
    pub version: String,
    /// Connected nodes by data center.
    pub nodes: BTreeMap<String, usize>,
    /// Settings of the target that matter, by name.
    pub limits: BTreeMap<String, String>,
    /// Milliseconds by which the target's clock is ahead of this server's.
    pub clock_ahead_ms: i64,
    /// What is made at the target, a line each.
    pub to_make: Vec<String>,
    /// The tables.
    pub tables: Vec<PlannedTable>,
    /// What hinders the whole move; `start` refuses while there is any.
    pub problems: Vec<String>,
    /// Tables that cannot be moved, each with the reasons and what helps; `start` leaves them out, and a cut waits for them.
    #[serde(default)]
    pub left_out: BTreeMap<String, Vec<String>>,
    /// What is moved otherwise than it is here.
    pub notes: Vec<String>,
    /// The time, with its arithmetic.
    pub estimate: Vec<String>,
}

/// A table in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTable {
    /// Keyspace and name.
    pub table: String,
    /// Rows, about: one that is in several SSTables counts in each.
    pub rows: u64,
    /// Bytes on disk and in memory.
    pub bytes: u64,
}

/// The progress of a move.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The target's nodes, as given.
    pub to: Vec<String>,
    /// Whether it runs; otherwise why not.
    pub is_running: bool,
    /// Why it does not run.
    pub reason: Option<String>,
    /// How often it was begun or resumed.
    pub runs: u64,
    /// Rows a second at present.
    pub rows_per_second: u64,
    /// The target's 99th percentile of latency at present, milliseconds.
    pub target_p99_ms: f64,
    /// Requests in flight at most, at present.
    pub in_flight_max: usize,
    /// When the move was cut over, milliseconds since the epoch: since then the target serves the clients. `None` before.
    #[serde(default)]
    pub cut_at_ms: Option<i64>,
    /// Until when a rollback is allowed, milliseconds since the epoch.
    #[serde(default)]
    pub rollback_until_ms: Option<i64>,
    /// Requests that were sent again.
    pub repeated: u64,
    /// The last error of the target.
    pub last_error: Option<String>,
    /// The number of tables that are made or found at the target, while some are not yet; nothing is sent before all are.
    #[serde(default)]
    pub tables_made: Option<usize>,
    /// How definitions of tables differ at the target: columns, options, indexes, masks.
    #[serde(default)]
    pub differences: Vec<String>,
    /// The tables.
    pub tables: Vec<TableReport>,
}

/// The progress of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableReport {
    /// Keyspace and name.
    pub table: String,
    /// `waits`, `back-fill`, `tail` or `stopped`.
    pub phase: String,
    /// Why it has stopped.
    pub reason: Option<String>,
    /// Ranges of tokens that are done.
    pub ranges_done: usize,
    /// Ranges of tokens.
    pub ranges: usize,
    /// Rows sent by the back-fill.
    pub rows: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Changes sent by the tail.
    pub changes: u64,
    /// Seconds by which the target is behind; `None` before the tail.
    pub lag_s: Option<f64>,
    /// Whether changes were missed, or the target had rows before, and both sides were not found equal since; a cut needs a comparison then.
    #[serde(default)]
    pub is_to_verify: bool,
    /// How often the table was begun anew, because changes were missed.
    #[serde(default)]
    pub begun_anew: u32,
}

/// What is to be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyOrder {
    /// Keyspaces, or tables as `KEYSPACE.TABLE`; all of the move if empty.
    pub what: Vec<String>,
    /// Whether rows that differ are sent again.
    pub repairs: bool,
}

/// What a comparison of both sides has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Whether it goes on.
    pub is_running: bool,
    /// Why it has ended early.
    pub reason: Option<String>,
    /// Whether rows that differ are sent again.
    pub repairs: bool,
    /// How definitions of tables differ so that clients would see it after a cut: columns, indexes, masks, default TTLs.
    #[serde(default)]
    pub definitions: Vec<String>,
    /// How they differ otherwise.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The tables.
    pub tables: Vec<VerifiedTable>,
}

/// What a comparison has found in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTable {
    /// Keyspace and name.
    pub table: String,
    /// Ranges of tokens.
    pub ranges: usize,
    /// Ranges of tokens that are done.
    pub ranges_done: usize,
    /// Rows of either side.
    pub rows: u64,
    /// Cells that were compared.
    pub cells: u64,
    /// Rows that differ.
    pub differing: u64,
    /// The first of them, in words.
    pub differences: Vec<String>,
    /// Rows that changed again and again, so that they could not be compared.
    pub unsettled: u64,
    /// Rows that are the same since they were sent again.
    pub repaired: u64,
    /// Rows that still differ.
    pub not_repaired: u64,
    /// The first of them, in words.
    pub left: Vec<String>,
    /// What could not be compared.
    pub note: Option<String>,
    /// Why the table was not compared to its end.
    pub error: Option<String>,
    /// Why a rollback could not bring the table back after a cut.
    #[serde(default)]
    pub no_way_back: Option<String>,
}
