//! Rows.db written and read back.
