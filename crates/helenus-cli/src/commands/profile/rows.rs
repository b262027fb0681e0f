//! The rows of "Cassandra Query Plans" and "Reversed Comparators" (2011): their names, widths and content.

use crate::commands::stress::WideOrder as Order;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// Number of columns in a page of the two articles: 64 KiB of columns of 50 bytes. The cases are defined by these
/// pages, which are independent of the blocks in the files.
pub(super) const PAGE: u64 = 1_310;

/// A row of the two articles: `width` columns with names of 10 bytes and values of 25 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Number of columns.
    pub width: u64,
    /// The row's name in the articles.
    pub name: &'static str,
}

/// The seven rows of the articles, narrow ones first.
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
    /// Number of pages; the last page may be shorter.
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
    /// The clustering order of the table.
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
