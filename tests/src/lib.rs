//! End-to-end tests: the real binary over a real socket, judged by real clients and by Cassandra's own tools.
//!
//! This library is what the tests in `tests/tests/` share:
//! - [`Server`]: one `helenus serve` process, which can be stopped, killed and started again on its directory;
//! - [`Client`]: a program of `tests/drivers/`, run against an address;
//! - [`Cql`]: a session of the Rust driver without async, for tests that look at rows themselves;
//! - [`Oracle`]: the one Cassandra 5.0.9 that all tests share, and [`offline`], its tools for files;
//! - [`raw`]: a client of bytes made by hand, for what no driver sends;
//! - [`files`]: the SSTables in a data directory; [`tool`], the binary's commands on files;
//! - [`Terminal`]: a program on a pseudo-terminal, typed at and read as a person would;
//! - [`process`]: memory and CPU time of one;
//! - [`draw`]: inputs drawn from a seed;
//! - [`SmallDisk`]: a file system that fills up;
//! - [`conformance`]: every answer beside Cassandra's.
//!
//! Nothing here builds or installs: `cargo xtask e2e` does, and says where through the environment. Run by hand:
//!
//! | variable | what | default |
//! |---|---|---|
//! | `HELENUS_BIN` | the binary under test | `target/release/helenus` |
//! | `HELENUS_CLIENTS` | what `cargo xtask setup` installed | `target/clients` |
//! | `HELENUS_ORACLE` | the directory of the shared Cassandra | `target/oracle` |
//! | `HELENUS_ORACLE_PORT` | its CQL port | 19042 |

mod client;
mod cql;
pub mod draw;
pub mod files;
pub mod offline;
mod oracle;
pub mod process;
pub mod raw;
mod small_disk;
mod terminal;
mod tool;

pub use client::{Client, analysis};
pub use conformance::root;
pub use conformance::server::{Server, binary};
pub use cql::Cql;
pub use oracle::Oracle;
pub use small_disk::SmallDisk;
pub use terminal::Terminal;
pub use tool::{refused, tool};

use conformance::configured;
