//! The channel by which a reader of rows hands them over, with an explicit end.
//!
//! A reader that dies, by a panic or a bug, only drops its sender. What follows would be taken for rows that are not there, and a rollback
//! deletes such rows. So a reader says that it has come to its end, and a channel that closes without that is an error.

use super::row::SeenRow;
use crate::error::MoveError;
use tokio::sync::mpsc;

/// Rows, or why there are no more. A portion without rows is the end.
pub(crate) type RowsOrError = Result<Vec<SeenRow>, MoveError>;

/// The receiving end.
pub(crate) struct Portions(mpsc::Receiver<RowsOrError>);

/// What a reader sends last: that it has come to its end, or why it has not.
pub(crate) fn last(read: Result<(), MoveError>) -> RowsOrError {
    read.map(|()| Vec::new())
}

/// A channel; a reader may be this number of portions ahead.
pub(crate) fn portions(ahead: usize) -> (mpsc::Sender<RowsOrError>, Portions) {
    let (sender, receiver) = mpsc::channel(ahead);
    (sender, Portions(receiver))
}

impl Portions {
    /// The next rows; `None` once the reader has come to its end.
    ///
    /// # Errors
    /// The reader failed, or is gone before its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<SeenRow>>, MoveError> {
        match self.0.recv().await {
            Some(Ok(rows)) if rows.is_empty() => Ok(None),
            Some(rows) => rows.map(Some),
            None => Err(MoveError::Internal("a reader of rows has gone before its end".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_dies_is_not_the_end_of_its_rows() {
        let (sender, mut rows) = portions(2);
        sender.send(last(Ok(()))).await.unwrap();
        assert!(rows.next().await.unwrap().is_none());
        let (sender, mut rows) = portions(2);
        sender.send(last(Err(MoveError::Stopped))).await.unwrap();
        assert!(matches!(rows.next().await, Err(MoveError::Stopped)));
        let (sender, mut rows) = portions(2);
        let reader = tokio::spawn(async move {
            let _sender = sender;
            assert!(std::hint::black_box(false), "a reader that dies");
        });
        assert!(matches!(rows.next().await, Err(MoveError::Internal(_))));
        assert!(reader.await.is_err());
    }
}
