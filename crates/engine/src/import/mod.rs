//! Imports SSTables that Cassandra or another database wrote: all of the given ones, or none.
//!
//! `sources` finds them in a directory, `node_schema` reads the schema of a Cassandra node from the node's files, `header_types` user-defined types
//! from the headers of SSTables,
//! `check` finds problems of a file, `stage` gathers checked files in a folder of the database, and `commit` puts them
//! into the tables. The renaming of that folder commits the whole import; the next start finishes or removes what a
//! crash leaves. `adopt` turns a copy of a node's directory into a directory of Helenus; `refresh` imports files that
//! lie in a table's own folder. `progress` reports how far an import is, `error` has its errors.

mod adopt;
mod check;
mod commit;
mod error;
mod header_types;
mod imports;
mod node_schema;
mod progress;
mod refresh;
mod sources;
mod stage;

pub use adopt::{Adoption, adopt};
pub use check::check_header;
pub use commit::Imported;
pub use error::{ImportError, SourceDisk};
pub use header_types::{KnownTypes, types_in_headers};
pub use imports::Imports;
pub use node_schema::{node_schema, schema_folder_of};
pub use progress::ImportProgress;
pub use sources::{FindOptions, ImportSource, find_sources, is_of_node, read_text};
pub use stage::{ImportOptions, ImportTable, StagedImport};
