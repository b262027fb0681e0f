//! Reads the statements of a schema file without a server.

use anyhow::{Result, anyhow};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_model::schema::Schema;

/// The schema that statements create.
///
/// # Errors
/// Errors of the statements.
pub fn schema_of_text(statements: &str) -> Result<Schema> {
    // An empty database in memory, whose statements are used.
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/reader") };
    let (database, _) = Database::open(helenus_host::memory::host(), options)?;
    let backend = LocalBackend::new(database, LocalOptions::default());
    backend.schema_of_text(statements).map_err(|error| anyhow!("the schema: {error}"))
}
