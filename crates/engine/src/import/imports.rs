//! `Imports`: the imports into one database. Its methods are beside what they do: `check`, `stage`, `commit`, `refresh`, `adopt`.

use crate::database::Database;

/// Imports into a database.
pub struct Imports<'d> {
    pub(super) database: &'d Database,
}

impl<'d> Imports<'d> {
    /// Those into this database.
    pub fn of(database: &'d Database) -> Imports<'d> {
        Imports { database }
    }
}
