//! Takes SSTables in that somebody else wrote: all that are given, or none.
//!
//! `sources` finds them in a directory, `node_schema` reads the schema of a Cassandra node from its own files, `check`
//! says what speaks against a file, `stage` gathers checked files in a folder of the database, and `commit` puts what was
//! gathered into the tables. `commit` has one point at which everything counts: the renaming of that folder; what a cut
//! leaves is finished or removed at the next start. `adopt` makes a directory of ours out of a copy of a node's; `placed` takes in what lies
//! in a table's own folder.

mod adopt;
mod check;
mod commit;
mod error;
mod node_schema;
mod placed;
mod progress;
mod sources;
mod stage;

pub use adopt::{Adoption, adopt};
pub use check::check_header;
pub use commit::Imported;
pub(crate) use commit::{finish_imports, link_all};
pub use error::{ImportError, SourceDisk};
pub use node_schema::{node_schema, schema_folder_of};
pub use progress::ImportProgress;
pub use sources::{FindOptions, ImportSource, find_sources, read_text};
pub use stage::{ImportOptions, ImportTable, StagedImport};
pub(crate) use stage::{remove_all, retire};
