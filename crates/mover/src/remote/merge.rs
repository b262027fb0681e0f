//! Puts two streams of rows side by side, in the order of the ring and of the clustering.

use super::local::scan_local;
use super::portions::{Portions, last, portions};
use super::range::TokenRange;
use super::read::{Remote, RemoteTable};
use super::row::SeenRow;
use crate::error::MoveError;
use crate::threads::Threads;
use helenus_engine::Database;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Portions of rows that a reader may be ahead.
const AHEAD: usize = 4;

/// Both sides of a range.
pub(crate) struct Merge {
    here: Side,
    there: Side,
    /// The reader of the other side, which ends with this value.
    _reader: JoinSet<()>,
}

struct Side {
    rows: VecDeque<SeenRow>,
    portions: Portions,
    is_ended: bool,
    last: Option<(Vec<u8>, Vec<u8>)>,
}

/// A row here and the row of the same name there; one of them may be missing.
pub(crate) type Pair = (Option<SeenRow>, Option<SeenRow>);

impl Merge {
    /// Begins to read a range of a table from both sides.
    ///
    /// # Errors
    /// There is no thread that could read here.
    pub(crate) fn of_range(
        (database, threads): (&Arc<Database>, &Threads),
        remote: &Arc<Remote>,
        table: &Arc<RemoteTable>,
        range: TokenRange,
    ) -> Result<Merge, MoveError> {
        let (local, here) = portions(AHEAD);
        let (of, database) = (Arc::clone(table), Arc::clone(database));
        threads.start(move || {
            let read = scan_local(&database, of.texts.table(), &range.key_range(), &local);
            // Whoever does not listen any more needs nothing.
            let _ = local.blocking_send(last(read));
        })?;
        let (sender, there) = portions(AHEAD);
        let (of, remote) = (Arc::clone(table), Arc::clone(remote));
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            let read = remote.read_range(&of, range, None, &sender).await;
            let _ = sender.send(last(read)).await;
        });
        Ok(Merge { here: Side::new(here), there: Side::new(there), _reader: reader })
    }

    /// The next pair; `None` at the end.
    ///
    /// # Errors
    /// A side cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<Pair>, MoveError> {
        self.here.fill().await?;
        self.there.fill().await?;
        let order = match (self.here.rows.front(), self.there.rows.front()) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(here), Some(there)) => here.position().cmp(&there.position()),
        };
        let here = if order.is_le() { self.here.take()? } else { None };
        let there = if order.is_ge() { self.there.take()? } else { None };
        Ok(Some((here, there)))
    }
}

impl Side {
    fn new(portions: Portions) -> Side {
        Side { rows: VecDeque::new(), portions, is_ended: false, last: None }
    }

    async fn fill(&mut self) -> Result<(), MoveError> {
        while self.rows.is_empty() && !self.is_ended {
            match self.portions.next().await? {
                Some(rows) => self.rows.extend(rows),
                None => self.is_ended = true,
            }
        }
        Ok(())
    }

    /// The next row. Rows out of order would be taken for missing ones.
    fn take(&mut self) -> Result<Option<SeenRow>, MoveError> {
        let Some(row) = self.rows.pop_front() else { return Ok(None) };
        let position = row.position();
        if self.last.as_ref().is_some_and(|(key, order)| (&key[..], &order[..]) >= position) {
            let text = "rows come in another order than ours; the cluster needs Murmur3Partitioner";
            return Err(MoveError::Table(text.to_owned()));
        }
        self.last = Some((position.0.to_vec(), position.1.to_vec()));
        Ok(Some(row))
    }
}
