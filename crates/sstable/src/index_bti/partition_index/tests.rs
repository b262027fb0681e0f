//! Partitions.db written and read back.
