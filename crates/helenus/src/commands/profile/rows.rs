//! The rows of the old texts, by name, and what they hold.

use crate::commands::stress::WideOrder as Order;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// Columns of a page in the old texts: 64 KiB of columns of 50 bytes. The cases are put together in these pages; how the
/// files are cut into blocks is another matter.
pub(super) const PAGE: u64 = 1_310;

/// A row of the texts. Each has so many columns, names of 10 bytes and values of 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Columns in it.
    pub width: u64,
    /// What the texts call it.
    pub name: &'static str,
}

/// The seven of them, narrow ones first.
pub(super) const ROWS: [Row; 7] = [
    Row { width: 100, name: "small-row" },
    Row { width: 1_200, name: "no-col-index" },
    Row { width: 5_000, name: "five-thousand" },
    Row { width: 10_000, name: "ten-thousand" },
    Row { width: 100_000, name: "hundred-thousand" },
    Row { width: 1_000_000, name: "one-million" },
    Row { width: 10_000_000, name: "ten-million" },
];

impl Row {
    /// Its pages, the last of which may be shorter.
    pub fn pages(self) -> u64 {
        self.width.div_ceil(PAGE)
    }

    /// The columns of a page.
    pub fn page(self, page: u64) -> std::ops::Range<u64> {
        let first = page * PAGE;
        first..(first + PAGE).min(self.width)
    }
}

impl ValueEnum for Row {
    fn value_variants<'a>() -> &'a [Row] {
        &ROWS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name))
    }
}

/// A row in one of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// Clustering order of the table.
    pub order: Order,
    /// The row.
    pub row: Row,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.order.table(), self.row.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_pages_that_the_text_counted() {
        assert_eq!(ROWS.map(Row::pages)[..5], [1, 1, 4, 8, 77]);
        assert!(ROWS.is_sorted());
        for row in ROWS {
            assert_eq!(row.page(row.pages() - 1).end, row.width);
            assert_eq!(row.page(0).end, row.width.min(PAGE));
        }
    }
}
