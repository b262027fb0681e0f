//! Helenus as a library: a wide-column database in this process, in Cassandra's own files.
//!
//! ```no_run
//! use helenus::{Database, Slice};
//!
//! let db = Database::open("./data")?;
//! db.execute("CREATE KEYSPACE IF NOT EXISTS app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", &[])?;
//! db.execute("CREATE TABLE IF NOT EXISTS app.events (stream text, at bigint, what text, PRIMARY KEY (stream, at))", &[])?;
//! db.execute("INSERT INTO app.events (stream, at, what) VALUES (?, ?, ?)", &["door".into(), 1i64.into(), "open".into()])?;
//!
//! let events = db.wide_table("app", "events")?;
//! events.put(&"door".into(), &[(2i64.into(), "closed".into())])?;
//! let last = events.slice(&"door".into(), &Slice::last(10))?;
//! assert_eq!(last[0].1.as_str(), Some("closed"));
//! # db.close()?; Ok::<(), helenus::Error>(())
//! ```
//!
//! A `Probe` counts the work of a read, for CQL (`Database::execute_probed`) and for wide rows:
//!
//! ```
//! # let db = helenus::Database::in_memory()?;
//! # db.execute("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", &[])?;
//! # db.execute("CREATE TABLE app.events (stream text, at bigint, what text, PRIMARY KEY (stream, at))", &[])?;
//! use helenus::{Probe, Slice};
//!
//! let events = db.wide_table("app", "events")?;
//! events.put(&"door".into(), &[(1i64.into(), "open".into()), (2i64.into(), "closed".into())])?;
//! let mut probe = Probe::default();
//! events.probed(&mut probe).slice(&"door".into(), &Slice::last(1))?;
//! assert_eq!((probe.rows, probe.memtables, probe.touched.blocks_read), (1, 1, 0));
//! # Ok::<(), helenus::Error>(())
//! ```
//!
//! Values are written from Rust types and read as them, collections and types of one's own too:
//!
//! ```
//! # let db = helenus::Database::in_memory()?;
//! # db.execute("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", &[])?;
//! use helenus::Value;
//! use std::collections::BTreeMap;
//!
//! db.execute("CREATE TYPE app.place (street text, zip int)", &[])?;
//! db.execute("CREATE TABLE app.users (name text PRIMARY KEY, mails set<text>, at map<text, frozen<place>>)", &[])?;
//! let home = Value::udt([("street", "Elm".into()), ("zip", 7i32.into())]);
//! let at = BTreeMap::from([("home", home)]);
//! db.execute("INSERT INTO app.users (name, mails, at) VALUES (?, ?, ?)", &["foo".into(), vec!["a@x"].into(), at.into()])?;
//!
//! let found = db.execute("SELECT mails, at FROM app.users WHERE name = ?", &["foo".into()])?;
//! let row = &found.rows[0];
//! assert_eq!(row[0].get::<Vec<String>>()?, ["a@x"]);
//! let at: BTreeMap<String, Value> = row[1].get()?;
//! assert_eq!(at["home"].field("zip").and_then(Value::integer), Some(7));
//! # Ok::<(), helenus::Error>(())
//! ```
//!
//! Errors can be matched: [`Error`] has a variant for each case.
//!
//! ```
//! # let db = helenus::Database::in_memory()?;
//! match db.execute("CREATE TABLE app.events (stream text PRIMARY KEY)", &[]) {
//!     Err(helenus::Error::Invalid { message }) => assert_eq!(message, "Keyspace 'app' doesn't exist"),
//!     other => panic!("there is no keyspace yet: {other:?}"),
//! }
//! # Ok::<(), helenus::Error>(())
//! ```
//!
//! The library has no runtime of its own: calls block until they are done. A write returns when it is as safe as the
//! sync mode demands. Only one process can have a directory open. The server and its tools are the package
//! `helenus-cli`; nothing of them is linked here.

mod database;
mod error;
mod value;
mod wide;

pub use database::{Database, Options, ResultSet, Row};
pub use error::{Error, Result};
#[doc(inline)]
pub use helenus_engine::read::{Probe, SkipReason, SsTableCounts, Stage, StageTimes, Touched};
#[doc(inline)]
pub use helenus_engine::{MemoryShares, SyncMode};
#[doc(inline)]
pub use helenus_model::types::Duration;
pub use uuid::Uuid;
pub use value::{ConversionError, Decimal, FromValue, NumberError, Value, Varint};
pub use wide::{ProbedTable, Slice, WideTable};
