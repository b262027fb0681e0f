//! End-to-end tests: run the real binary over real sockets, and check it with real clients and Cassandra's own tools.
//!
//! The tests in `tests/tests/` share this library:
//! - [`Server`]: one `helenus serve` process, which can be stopped, killed and started again on its directory;
//! - [`Client`]: a program of `tests/drivers/`, run against an address;
//! - [`Cql`]: a blocking session of the Rust driver, for tests that inspect rows;
//! - [`Oracle`]: the one Cassandra 5.0.9 that all tests share, and [`offline`], its tools for files;
//! - [`raw`]: a client that sends hand-made bytes, for requests that no driver sends;
//! - [`Calls`]: a connection of Thrift RPC;
//! - [`files`]: the SSTables in a data directory; [`tool()`], the binary's commands on files;
//! - [`Terminal`]: a program on a pseudo-terminal, typed at and read as by a person;
//! - [`process`]: memory and CPU time of a process;
//! - [`draw`]: inputs drawn from a seed;
//! - [`SmallDisk`]: a file system that fills up; [`Injection`]: system calls that fail or kill;
//! - [`conformance`]: compares every answer with Cassandra's.
//!
//! This crate builds and installs nothing. `cargo xtask e2e` does that and passes the paths in the environment. To run
//! a test by hand:
//!
//! | variable | what | default |
//! |---|---|---|
//! | `HELENUS_BIN` | the binary under test | `target/release/helenus` |
//! | `HELENUS_CLIENTS` | what `cargo xtask setup` installed | `target/clients` |
//! | `HELENUS_ORACLE` | the directory of the shared Cassandra | `target/oracle` |
//! | `HELENUS_ORACLE_PORT` | its CQL port | 19042 |

mod calls;
mod client;
mod cql;
pub mod draw;
pub mod files;
mod injection;
pub mod offline;
mod oracle;
pub mod process;
pub mod raw;
mod small_disk;
mod terminal;
mod tool;

pub use calls::{Calls, is_result};
pub use client::{Client, analysis};
pub use conformance::root;
pub use conformance::server::{Server, binary};
pub use cql::Cql;
pub use injection::Injection;
pub use oracle::Oracle;
pub use small_disk::SmallDisk;
pub use terminal::Terminal;
pub use tool::{refused, tool};

use conformance::configured;
