//! What a database is: commit log, memtable, flush, read and write paths. Knows no statement and no socket.
