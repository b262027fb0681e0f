//! The server's schema: keyspaces, tables with their columns, types, indexes. Used for completion, the colours of
//! columns, and COPY.

use super::session::Session;
use anyhow::Result;
use helenus_model::types::Elements;
use std::collections::BTreeMap;

/// The role of a column in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub role: Role,
    pub position: i32,
    /// The type in CQL.
    pub ty: String,
}

/// The columns of a table, in the order of `SELECT *`.
pub type Table = Vec<Column>;

/// A keyspace.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    pub tables: BTreeMap<String, Table>,
    pub types: Vec<String>,
    pub indexes: Vec<String>,
}

/// The cached schema.
#[derive(Debug, Default)]
pub struct Catalog {
    keyspaces: BTreeMap<String, Keyspace>,
    is_fresh: bool,
}

impl Catalog {
    /// Marks the schema as changed, so that it is read again before the next use.
    pub fn is_stale(&mut self) {
        self.is_fresh = false;
    }

    /// The keyspaces. Reads them from the server if the cache is stale.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn keyspaces(&mut self, session: &mut Session) -> Result<&BTreeMap<String, Keyspace>> {
        if !self.is_fresh {
            self.keyspaces = load(session)?;
            self.is_fresh = true;
        }
        Ok(&self.keyspaces)
    }

    /// A table, or `None`. If the cache does not have it, the schema is read again, because another client may have
    /// created it.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn table(&mut self, session: &mut Session, keyspace: &str, table: &str) -> Result<Option<&Table>> {
        let find = |keyspaces: &BTreeMap<String, Keyspace>| {
            keyspaces.get(keyspace).is_some_and(|found| found.tables.contains_key(table))
        };
        if !find(self.keyspaces(session)?) {
            self.is_fresh = false;
        }
        Ok(self.keyspaces(session)?.get(keyspace).and_then(|found| found.tables.get(table)))
    }
}

fn load(session: &mut Session) -> Result<BTreeMap<String, Keyspace>> {
    let mut keyspaces: BTreeMap<String, Keyspace> = BTreeMap::new();
    for row in session.rows("SELECT keyspace_name FROM system_schema.keyspaces")? {
        keyspaces.entry(text(&row, 0)).or_default();
    }
    for schema in ["system_schema", "system_virtual_schema"] {
        let query = format!(
            "SELECT keyspace_name, table_name, column_name, kind, position, type FROM {schema}.columns"
        );
        // Cassandra before 4.0 has no virtual tables.
        let rows = match session.rows(&query) {
            Err(error) if schema == "system_virtual_schema" && error.is::<super::refusal::Refused>() => {
                continue;
            }
            rows => rows?,
        };
        for row in rows {
            let position = match row.get(4) {
                Some(Some(bytes)) => bytes.first_chunk::<4>().map_or(-1, |bytes| i32::from_be_bytes(*bytes)),
                _ => -1,
            };
            let role = match text(&row, 3).as_str() {
                "partition_key" => Role::PartitionKey,
                "clustering" => Role::Clustering,
                "static" => Role::Static,
                _ => Role::Regular,
            };
            let column = Column { name: text(&row, 2), role, position, ty: text(&row, 5) };
            keyspaces.entry(text(&row, 0)).or_default().tables.entry(text(&row, 1)).or_default().push(column);
        }
    }
    for row in session.rows("SELECT keyspace_name, table_name, flags FROM system_schema.tables")? {
        let found =
            keyspaces.get_mut(&text(&row, 0)).and_then(|keyspace| keyspace.tables.get_mut(&text(&row, 1)));
        if let Some(table) = found {
            hide(table, row.get(2).and_then(Option::as_deref).unwrap_or_default());
        }
    }
    for table in keyspaces.values_mut().flat_map(|keyspace| keyspace.tables.values_mut()) {
        table.sort_by(|a, b| (a.role, a.position, &a.name).cmp(&(b.role, b.position, &b.name)));
    }
    for row in session.rows("SELECT keyspace_name, type_name FROM system_schema.types")? {
        keyspaces.entry(text(&row, 0)).or_default().types.push(text(&row, 1));
    }
    for row in session.rows("SELECT keyspace_name, index_name FROM system_schema.indexes")? {
        keyspaces.entry(text(&row, 0)).or_default().indexes.push(text(&row, 1));
    }
    Ok(keyspaces)
}

/// Removes the internal columns of a compact table (`CompactTableMetadata.hiddenColumns`), which statements do not see.
fn hide(table: &mut Table, flags: &[u8]) {
    let flags: Vec<&[u8]> = Elements::of_list(flags).flatten().collect();
    let has = |flag: &str| flags.contains(&flag.as_bytes());
    if has("super") || has("compound") && !has("dense") {
        return;
    }
    let is_static = !has("dense");
    table.retain(|column| match column.role {
        Role::PartitionKey | Role::Static => true,
        Role::Clustering => !is_static,
        Role::Regular => !is_static && column.ty != "empty",
    });
}

fn text(row: &[Option<Vec<u8>>], at: usize) -> String {
    match row.get(at) {
        Some(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}
