//! The state of a move that survives a restart: one file in the data directory, replaced whole.
//!
//! A range of tokens is in it once all its rows are acknowledged by the target, and a position once all changes before it are.
//! So whatever a crash leaves out is sent again, which changes nothing: every write has its timestamp.

use crate::definitions::{Items, is_index};
use crate::error::MoveError;
use crate::messages::MoveOrder;
use helenus_host::Disk;
use helenus_model::schema::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A move.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MoveState {
    /// The order, without its password: that is in a file of the operator's, which the order names.
    pub(crate) order: MoveOrder,
    /// How often the move was begun or resumed. From the second time on, lists may be there already.
    pub(crate) runs: u64,
    /// Whether the schema is at the target.
    pub(crate) has_schema: bool,
    /// The tables.
    pub(crate) tables: Vec<TableState>,
    /// The roles that the move has made at the target: no others are changed there.
    #[serde(default)]
    pub(crate) roles_made: BTreeSet<String>,
    /// The cut, once clients are served by the target.
    #[serde(default)]
    pub(crate) cut: Option<Cut>,
    /// Whether a rollback that did not come to its end has brought rows here since the cut.
    #[serde(default)]
    pub(crate) has_brought: bool,
    /// Whether the move has ended: there is none any more, but what it has set of its tables may not be set back yet. The file goes after that.
    #[serde(default)]
    pub(crate) is_ended: bool,
}

/// A cut: since then the target has the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cut {
    /// When it was made, microseconds since the epoch.
    pub(crate) at_us: i64,
    /// How long after it a rollback is allowed, seconds.
    #[serde(default)]
    pub(crate) rollback_within_s: u64,
}

impl Cut {
    /// Until when a rollback is allowed, microseconds since the epoch.
    pub(crate) fn rollback_until_us(self) -> i64 {
        let within_us = self.rollback_within_s.saturating_mul(1_000_000);
        self.at_us.saturating_add(i64::try_from(within_us).unwrap_or(i64::MAX))
    }
}

/// A move that has been cut over.
#[derive(Clone, Debug)]
pub struct CutOver {
    /// The order of the move, which names the target.
    pub order: MoveOrder,
    /// Until when it may be rolled back, microseconds since the epoch.
    pub rollback_until_us: i64,
}

/// The move that has been cut over in this data directory; `None` if this server answers itself. The listeners of a server that
/// starts depend on it.
///
/// # Errors
/// The state cannot be read. Then nobody may be served, because the truth may be at the target.
pub fn cut_of(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Option<CutOver>, MoveError> {
    let state = StateFile::of(Arc::clone(disk), directory).read()?;
    Ok(state.and_then(|state| {
        Some(CutOver { rollback_until_us: state.cut?.rollback_until_us(), order: state.order })
    }))
}

/// Whether a move is under way in this data directory. A server must know before it begins to compact: the target has to
/// be sent each deletion, so tombstones are kept as on a node of a cluster (`Compactions::keep_tombstones`). A state that
/// cannot be read counts as a move.
#[must_use]
pub fn is_under_way(disk: &Arc<dyn Disk>, directory: &Path) -> bool {
    match StateFile::of(Arc::clone(disk), directory).read() {
        Ok(state) => state.is_some_and(|state| state.cut.is_none() && !state.is_ended),
        Err(_) => true,
    }
}

/// A table of a move.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TableState {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    /// Its identity, by which a table that was dropped and made again is told.
    pub(crate) id: String,
    /// Whether the move has set `cdc` of the table.
    pub(crate) sets_cdc: bool,
    /// The feed's position from which the tail goes on; `None` before the back-fill.
    pub(crate) position: Option<String>,
    /// The ranges that are done, ascending.
    pub(crate) done: Vec<u32>,
    /// The number of ranges.
    pub(crate) ranges: u32,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) changes: u64,
    /// Whether the rows are sent once more, because changes were missed, and what the target has of the table is not taken away yet.
    #[serde(default)]
    pub(crate) is_anew: bool,
    /// How often changes were missed.
    #[serde(default)]
    pub(crate) gaps: u64,
    /// How often they were when both sides were last compared to the end and found equal.
    #[serde(default)]
    pub(crate) gaps_verified: u64,
    /// How often the table was begun anew.
    #[serde(default)]
    pub(crate) begun_anew: u32,
    /// How often it was because the log of its changes was removed before they were sent, since its tail was last at their end.
    #[serde(default)]
    pub(crate) log_losses: u32,
    /// The identity of the table at the target, by which one is told that was dropped and made again there.
    #[serde(default)]
    pub(crate) target_id: Option<String>,
    /// Whether the target had rows of the table before the move. They are never taken away but by a TRUNCATE here.
    #[serde(default)]
    pub(crate) had_rows: bool,
    /// The definition here that the target has taken (`definitions::items`): what differs from it is carried over.
    #[serde(default)]
    pub(crate) defined: Items,
    /// Why it has stopped.
    pub(crate) stopped: Option<String>,
    /// Whether a rollback has left it out: the target has rows that are nowhere else, and it is stopped until somebody says that they may go.
    #[serde(default)]
    pub(crate) left_out: bool,
    /// Whether a TRUNCATE of the table may be under way at the target.
    #[serde(default)]
    pub(crate) truncates: bool,
}

impl TableState {
    /// A table of which nothing is sent.
    pub(crate) fn new(table: &Table, ranges: u32) -> TableState {
        TableState {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
            id: table.id.0.to_string(),
            sets_cdc: false,
            position: None,
            done: Vec::new(),
            ranges,
            rows: 0,
            bytes: 0,
            changes: 0,
            is_anew: false,
            gaps: 0,
            gaps_verified: 0,
            begun_anew: 0,
            log_losses: 0,
            target_id: None,
            had_rows: false,
            defined: Items::new(),
            stopped: None,
            left_out: false,
            truncates: false,
        }
    }

    /// Lets a table that has stopped go on. `is_anew`: it is truncated at the target and sent anew. One that a rollback has left out goes on
    /// only so. Returns whether it had stopped.
    pub(crate) fn resume(&mut self, is_anew: bool) -> bool {
        if is_anew {
            self.begin_anew();
            (self.had_rows, self.left_out) = (false, false);
        }
        self.ask_for_indexes();
        if self.left_out {
            return false;
        }
        let had_stopped = self.stopped.take().is_some();
        if had_stopped {
            self.log_losses = 0;
        }
        had_stopped
    }

    /// Whether changes were missed since both sides were last found equal.
    pub(crate) fn has_gap(&self) -> bool {
        self.gaps > self.gaps_verified
    }

    /// Forgets what was sent, because changes were missed: deletions among them, so rows that are there may be gone here.
    pub(crate) fn begin_anew(&mut self) {
        self.position = None;
        self.is_anew = true;
        self.gaps += 1;
        self.begun_anew += 1;
        self.done.clear();
        (self.rows, self.bytes) = (0, 0);
    }

    /// Keyspace and name.
    pub(crate) fn full_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.table)
    }

    /// The indexes that the target has taken are asked for once more there, because an operator may have dropped them.
    pub(crate) fn ask_for_indexes(&mut self) {
        let indexes = self.defined.iter_mut().filter(|(item, _)| is_index(item));
        indexes.for_each(|(_, text)| text.clear());
    }

    /// Whether all ranges are done.
    pub(crate) fn is_filled(&self) -> bool {
        self.done.len() >= self.ranges as usize
    }
}

/// The file of a move's state.
#[derive(Clone)]
pub(crate) struct StateFile {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

impl StateFile {
    /// In this data directory.
    pub(crate) fn of(disk: Arc<dyn Disk>, directory: &Path) -> StateFile {
        StateFile { disk, folder: directory.join("move") }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    fn error(&self, reason: impl ToString) -> MoveError {
        MoveError::State { path: self.path().display().to_string(), reason: reason.to_string() }
    }

    /// Reads the state; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(&self) -> Result<Option<MoveState>, MoveError> {
        let path = self.path();
        if !self.disk.exists(&path) {
            return Ok(None);
        }
        let read = || -> std::io::Result<Vec<u8>> {
            let file = self.disk.open(&path)?;
            let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| self.error(error))?;
        let damaged = |error| {
            self.error(format!(
                "{error}; remove the file to forget the move, and begin anew with helenus move start"
            ))
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Replaces the file, durably.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn write(&self, state: &MoveState) -> Result<(), MoveError> {
        let bytes = serde_json::to_vec(state).map_err(|error| self.error(error))?;
        let write = || -> std::io::Result<()> {
            self.disk.create_dir_all(&self.folder)?;
            let next = self.folder.join("state.json.next");
            if self.disk.exists(&next) {
                self.disk.remove(&next)?;
            }
            let file = self.disk.create(&next)?;
            file.write_all_at(&bytes, 0)?;
            file.sync()?;
            self.disk.rename(&next, &self.path())?;
            self.disk.sync_dir(&self.folder)
        };
        write().map_err(|error| self.error(error))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn remove(&self) -> Result<(), MoveError> {
        let remove = || -> std::io::Result<()> {
            if self.disk.exists(&self.path()) {
                self.disk.remove(&self.path())?;
                self.disk.sync_dir(&self.folder)?;
            }
            Ok(())
        };
        remove().map_err(|error| self.error(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_a_rollback_has_left_out_goes_on_only_if_it_is_sent_anew() {
        let table = Table::new(("ks", "t"), helenus_model::schema::TableId(Default::default()), []);
        let stopped = Some("left out".to_owned());
        let table = TableState { stopped, left_out: true, had_rows: true, ..TableState::new(&table, 64) };
        let mut plainly = table.clone();
        assert!(!plainly.resume(false) && plainly.stopped.is_some() && plainly.left_out);
        let mut anew = table.clone();
        assert!(anew.resume(true) && anew.stopped.is_none() && anew.is_anew);
        assert!(!anew.had_rows && !anew.left_out);
        let mut other = TableState { left_out: false, ..table };
        assert!(other.resume(false) && other.stopped.is_none() && !other.is_anew);
        assert!(!other.resume(false));
    }

    #[test]
    fn a_state_is_read_back_as_it_was_written_and_a_damaged_one_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::of(helenus_host::real::host().disk, folder.path());
        let disk = helenus_host::real::host().disk;
        assert!(file.read().unwrap().is_none() && !is_under_way(&disk, folder.path()));
        let order: crate::MoveOrder = serde_json::from_str(
            r#"{"to":["a"],"local_dc":null,"login":["u","p"],"tls":null,"what":[],"replication":{},"rows_per_second":0,
                "target_p99_ms":50,"ranges_at_once":4}"#,
        )
        .unwrap();
        let table = Table::new(("ks", "t"), helenus_model::schema::TableId(Default::default()), []);
        let position = Some("x".to_owned());
        let table = TableState { position, done: vec![1, 3], ..TableState::new(&table, 64) };
        let state = MoveState {
            order,
            runs: 2,
            has_schema: true,
            tables: vec![table],
            roles_made: BTreeSet::new(),
            cut: None,
            has_brought: false,
            is_ended: false,
        };
        assert_eq!(state.order.without_password().login, Some(("u".to_owned(), String::new())));
        file.write(&state).unwrap();
        assert!(cut_of(&disk, folder.path()).unwrap().is_none() && is_under_way(&disk, folder.path()));
        let cut = Some(Cut { at_us: 1, rollback_within_s: 60 });
        file.write(&MoveState { cut, ..state.clone() }).unwrap();
        let cut_over = cut_of(&disk, folder.path()).unwrap().unwrap();
        assert_eq!((&cut_over.order, cut_over.rollback_until_us), (&state.order, 60_000_001));
        assert!(!is_under_way(&disk, folder.path()));
        file.write(&MoveState { is_ended: true, ..state.clone() }).unwrap();
        assert!(!is_under_way(&disk, folder.path()) && cut_of(&disk, folder.path()).unwrap().is_none());
        file.write(&MoveState { cut, ..state.clone() }).unwrap();
        // A state that was written before there were cuts.
        let text = std::fs::read_to_string(folder.path().join("move/state.json")).unwrap();
        let (before, after) = text.split_once(r#","cut":"#).unwrap();
        let after = after.split_once('}').unwrap().1;
        std::fs::write(folder.path().join("move/state.json"), format!("{before}{after}")).unwrap();
        assert_eq!(file.read().unwrap().unwrap().cut, None);
        file.write(&state).unwrap();
        let read = file.read().unwrap().unwrap();
        assert_eq!(read.order, state.order);
        assert_eq!((read.runs, read.tables[0].done.clone()), (2, vec![1, 3]));
        std::fs::write(folder.path().join("move/state.json"), "{").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(cut_of(&disk, folder.path()).is_err() && is_under_way(&disk, folder.path()));
        assert!(error.contains("state.json") && error.contains("remove the file"), "{error}");
        file.remove().unwrap();
        assert!(file.read().unwrap().is_none());
    }
}
