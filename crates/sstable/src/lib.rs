//! What a file is: Cassandra SSTables, read and written.
