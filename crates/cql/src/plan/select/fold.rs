//! Combines several rows into one with aggregates.

use super::row::{Computing, RowAt};
use super::sink::write;
use crate::analysis::selection::Selection;
use crate::answer::RowsOut;
use crate::budget::room_for;
use crate::error::Result;
use crate::functions::Fold;

/// The state of a selection's aggregates.
pub(super) struct Folding {
    folds: Vec<Fold>,
    first: Vec<Option<Vec<u8>>>,
    rows: u64,
}

impl Folding {
    pub(super) fn new(selection: &Selection) -> Folding {
        Folding {
            folds: selection.aggregates.iter().map(|call| Fold::new(call.function.clone())).collect(),
            first: vec![None; selection.first.len()],
            rows: 0,
        }
    }

    /// Whether no row has been added yet.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The bytes of the values that are kept until the last row.
    pub(super) fn kept_bytes(&self) -> usize {
        let first = self.first.iter().flatten().map(Vec::len).sum::<usize>();
        first + self.folds.iter().map(Fold::kept_bytes).sum::<usize>()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A function inside refuses its arguments.
    pub(super) fn add(
        &mut self,
        selection: &Selection,
        row: &RowAt<'_>,
        computing: &Computing<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        if self.rows == 0 {
            for (selected, first) in selection.first.iter().zip(&mut self.first) {
                let value = row.selected(selected, computing, scratch)?;
                room_for(value.as_deref().map_or(0, <[u8]>::len))?;
                *first = value.map(|value| value.into_owned());
            }
        }
        self.rows += 1;
        for (call, fold) in selection.aggregates.iter().zip(&mut self.folds) {
            match &call.argument {
                None => fold.add(None, computing.calls.work)?,
                Some(argument) => {
                    let value = row.selected(argument, computing, scratch)?;
                    // The fold may keep it, in a buffer that grows by doubling.
                    room_for(2 * value.as_deref().map_or(0, <[u8]>::len))?;
                    fold.add(value.as_deref(), computing.calls.work)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the row that all added rows make, and starts over.
    ///
    /// # Errors
    /// A function refuses its arguments.
    pub(super) fn write(
        &mut self,
        selection: &Selection,
        computing: &Computing<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<()> {
        let mut folded = Vec::with_capacity(self.folds.len());
        for fold in &self.folds {
            room_for(fold.kept_bytes())?;
            folded.push(fold.result()?);
            // A number may be longer than those it is the sum of.
            room_for(0)?;
        }
        let computing = Computing { folded: &folded, first: &self.first, ..*computing };
        let nothing = RowAt { key: &[], key_columns: 0, statics: None, row: None, now_s: 0 };
        write(selection, &nothing, &computing, out, &mut Vec::new())?;
        *self = Folding::new(selection);
        Ok(())
    }
}
