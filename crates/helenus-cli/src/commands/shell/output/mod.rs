//! The destination and the layout of results: aligned tables, rows one below the other, JSON, CSV.

mod format;
mod lines;
mod pager;
mod sink;
mod table;

pub use format::Format;
pub use lines::{csv_header, csv_row, json_row};
pub use pager::{More, terminal_columns, wait_for_more};
pub use sink::Sink;
pub use table::{columnize, expanded, table, table_width};
