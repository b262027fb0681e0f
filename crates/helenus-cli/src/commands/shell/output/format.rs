//! The formats of results.

use clap::ValueEnum;

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// One object a line.
    Json,
    /// A line of names, then one line for each row (RFC 4180).
    Csv,
}

impl Format {
    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}
