//! Combines several rows into one with aggregates.

use super::row::{Computing, RowAt};
use super::sink::write;
use crate::analysis::selection::Selection;
use crate::answer::RowsOut;
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
                *first = row.selected(selected, computing, scratch)?.map(|value| value.into_owned());
            }
        }
        self.rows += 1;
        for (call, fold) in selection.aggregates.iter().zip(&mut self.folds) {
            match &call.argument {
                None => fold.add(None),
                Some(argument) => fold.add(row.selected(argument, computing, scratch)?.as_deref()),
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
        let folded: Result<Vec<Option<Vec<u8>>>> = self.folds.iter().map(Fold::result).collect();
        let folded = folded?;
        let computing = Computing { folded: &folded, first: &self.first, ..*computing };
        let nothing = RowAt { key: &[], key_columns: 0, statics: None, row: None, now_s: 0 };
        write(selection, &nothing, &computing, out, &mut Vec::new())?;
        *self = Folding::new(selection);
        Ok(())
    }
}
