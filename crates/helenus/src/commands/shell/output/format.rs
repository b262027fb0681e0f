//! The formats of results.

use clap::ValueEnum;

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// One object a line.
    Json,
    /// A line of names, then a line a row (RFC 4180).
    Csv,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}
