//! Imports SSTables with their schema: missing parts of the schema are created, existing tables must match.
//!
//! The schema of a table is the first that exists of: the given text, `schema.cql` beside the SSTables (snapshots have
//! one), the `system_schema` SSTables of the node that the directory belongs to, this database's table of the same
//! name.

use super::backend::LocalBackend;
use super::current_folders::{drop_older_ids, has_several_ids, keep_current_folders};
use super::foreign_schema::{has_fields_of, later_of};
use super::schema_text::{ReadSchema, Reading, keyspace_of_table};
use crate::plan::ddl::{check_index, with_type};
use helenus_engine::import::Imports;
use helenus_engine::import::{
    FindOptions, ImportError, ImportOptions, ImportProgress, ImportSource, ImportTable, KnownTypes,
    SourceDisk, find_sources, is_of_node, node_schema, schema_folder_of, types_in_headers,
};
use helenus_engine::{DdlError, SchemaChange, SchemaChangeKind, index_id};
use helenus_model::schema::{Index, Keyspace, Schema, Table, TableId};
use helenus_model::types::{CqlType, UserType};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An import request.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// A snapshot, the folder of a table or keyspace, or a data directory.
    pub directory: PathBuf,
    /// Which part of it to import.
    pub find: FindOptions,
    /// The schema as statements, if the directory has none.
    pub schema: Option<String>,
    /// Import options.
    pub options: ImportOptions,
    /// Only report what would be imported, and the problems.
    pub dry_run: bool,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Keyspace, table and number of SSTables.
    pub tables: Vec<(String, String, u64)>,
    /// Bytes of data files.
    pub bytes: u64,
    /// Created keyspaces and tables.
    pub made: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The schema of the sources, and notes from reading it.
struct Described {
    schema: Schema,
    sources: Vec<ImportSource>,
    notes: Vec<String>,
}

/// The additions to the database's schema.
#[derive(Default)]
pub(super) struct Additions {
    keyspaces: BTreeMap<Arc<str>, Keyspace>,
    tables: Vec<Arc<Table>>,
}

impl LocalBackend {
    /// Imports the contents of a directory on `from`: everything or nothing.
    ///
    /// # Errors
    /// All problems, each with its file or table; disk errors.
    pub fn import(
        &self,
        from: &SourceDisk,
        request: &ImportRequest,
        progress: &ImportProgress,
    ) -> Result<ImportReport, ImportError> {
        let sources = find_sources(&**from, &request.directory, &request.find)?;
        let described = self.describe_sources(from, request, sources)?;
        let present = self.database().schema();
        let mut report = ImportReport { notes: described.notes.clone(), ..ImportReport::default() };
        let (tables, additions) = self.assign(&present, &described, &mut report)?;
        let staged = Imports::of(self.database()).stage(from, &tables, request.options, progress)?;
        let sstables = |import: &ImportTable| {
            let table = &import.table;
            (table.keyspace.to_string(), table.name.to_string(), import.sstables.len() as u64)
        };
        report.tables = tables.iter().map(sstables).collect();
        if request.dry_run {
            return Ok(report);
        }
        self.add_to_schema(&additions)?;
        report.bytes = Imports::of(self.database()).commit(staged)?.bytes;
        Ok(report)
    }

    /// Loads the SSTables that were put into a table's own folder.
    ///
    /// # Errors
    /// Problems with an SSTable; disk errors.
    pub fn refresh(
        &self,
        table: &Arc<Table>,
        progress: &ImportProgress,
    ) -> Result<ImportReport, ImportError> {
        let (sstables, bytes) = Imports::of(self.database()).refresh(table, progress)?;
        let tables = vec![(table.keyspace.to_string(), table.name.to_string(), sstables)];
        Ok(ImportReport { tables, bytes, ..ImportReport::default() })
    }

    /// Reads the schema of the sources, and finds the tables of sources whose paths do not tell.
    fn describe_sources(
        &self,
        from: &SourceDisk,
        request: &ImportRequest,
        mut sources: Vec<ImportSource>,
    ) -> Result<Described, ImportError> {
        let mut notes = Vec::new();
        if has_several_ids(&sources) {
            let folder = schema_folder_of(&**from, &request.directory);
            let node = folder.map(|folder| node_schema(self.database(), &**from, &folder)).transpose()?;
            keep_current_folders((&self.database().schema(), node.as_ref()), &mut sources, &mut notes)?;
        }
        let mut read = ReadSchema::new();
        let mut problems = Vec::new();
        let mut moved = sources.clone();
        for source in &mut moved {
            let keyspace = source.schema.as_deref().and_then(keyspace_of_table);
            if let (Some(keyspace), None) = (keyspace, &request.schema) {
                source.keyspace = keyspace;
            }
        }
        let mut types = FoundTypes { backend: self, from, request, sources: moved, found: None };
        let mut lookup = |keyspace: &str, name: &str| types.find(keyspace, name);
        let mut reading = Reading::Foreign(&mut lookup);
        if let Some(text) = &request.schema {
            self.note_type_statements(text, &mut read);
            self.read_schema(text, &mut read, &mut reading)
                .map_err(|error| ImportError::refused(format!("the given schema: {error}")))?;
        } else {
            for text in sources.iter().filter_map(|source| source.schema.as_ref()) {
                self.note_type_statements(text, &mut read);
            }
            for source in &mut sources {
                let Some(text) = &source.schema else { continue };
                let (known, views) = (read.tables.len(), read.views.clone());
                if let Err(error) = self.read_schema(text, &mut read, &mut reading) {
                    problems.push(format!("{}: {error}", source.folder.join("schema.cql").display()));
                }
                // A snapshot's schema has one table, even if the snapshot was moved.
                if let [(keyspace, table)] = read.tables.get(known..).unwrap_or_default() {
                    (source.keyspace, source.table) = (keyspace.clone(), table.clone());
                }
                // Nor has that of a view.
                let mut new_views = read.views.difference(&views);
                if let (true, Some((keyspace, view)), None) =
                    (read.tables.len() == known, new_views.next(), new_views.next())
                {
                    (source.keyspace, source.table) = (keyspace.clone(), view.clone());
                }
            }
        }
        if !problems.is_empty() {
            return Err(ImportError::Refused { problems });
        }
        notes.extend(read.passed_over.notes());
        // The SSTables of a view are made from those of its table.
        sources.retain(|source| !read.views.contains(&(source.keyspace.clone(), source.table.clone())));
        let is_known = |source: &ImportSource| read.schema.table(&source.keyspace, &source.table).is_some();
        let mut schema = read.schema.clone();
        if sources.iter().any(|source| !is_known(source))
            && let Some(folder) = schema_folder_of(&**from, &request.directory)
        {
            let node = node_schema(self.database(), &**from, &folder)?;
            let asked = asked_for(request, &folder, &sources);
            self.add_keyspaces_of_node(&node, &asked, &mut schema, &mut notes);
            let (views, others): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| {
                schema.table(&source.keyspace, &source.table).is_none()
                    && node.keyspaces.contains_key(&*source.keyspace)
                    && self.database().schema().table(&source.keyspace, &source.table).is_none()
            });
            // The folders of dropped tables remain until their snapshots are cleared.
            notes.extend(views.iter().filter(|source| !source.sstables.is_empty()).map(|source| {
                format!(
                    "not imported: {} is no table of the node\'s schema (dropped, or a materialized view)",
                    source.folder.display()
                )
            }));
            sources = others;
            drop_older_ids((&self.database().schema(), &schema), &mut sources, &mut notes);
        }
        self.replicate(from, request, (&read.assumed, &mut schema), &mut notes)?;
        Ok(Described { schema, sources, notes })
    }

    /// Finds the replication of keyspaces that a `schema.cql` does not give: that of the node, if its schema is
    /// available.
    fn replicate(
        &self,
        from: &SourceDisk,
        request: &ImportRequest,
        (assumed, schema): (&[Arc<str>], &mut Schema),
        notes: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let present = self.database().schema();
        let unknown: Vec<_> = assumed.iter().filter(|name| !present.keyspaces.contains_key(*name)).collect();
        let folder = schema_folder_of(&**from, &request.directory).filter(|_| !unknown.is_empty());
        let node = match folder {
            Some(folder) => Some(node_schema(self.database(), &**from, &folder)?),
            None => None,
        };
        for name in unknown {
            let of_node = node.as_ref().and_then(|node| node.keyspaces.get(name));
            match (of_node, schema.keyspaces.get_mut(name)) {
                (Some(of_node), Some(keyspace)) => {
                    let mut as_there = Keyspace::clone(keyspace);
                    as_there.replication = of_node.replication.clone();
                    as_there.durable_writes = of_node.durable_writes;
                    *keyspace = Arc::new(as_there);
                }
                _ => notes.push(format!(
                    "keyspace {name} is made with SimpleStrategy and a replication factor of 1: a schema.cql does not say"
                )),
            }
        }
        Ok(())
    }

    /// Adds the requested keyspaces of a node's schema, without indexes that are not supported.
    fn add_keyspaces_of_node(
        &self,
        node: &Schema,
        find: &FindOptions,
        schema: &mut Schema,
        notes: &mut Vec<String>,
    ) {
        for (name, keyspace) in &node.keyspaces {
            let is_wanted = find.keyspace.as_ref().is_none_or(|wanted| **wanted == **name);
            if !is_wanted || is_of_node(name) {
                continue;
            }
            let mut keyspace = Keyspace::clone(keyspace);
            if let Some(table) = &find.table {
                keyspace.tables.retain(|name, _| **name == **table);
            }
            for table in keyspace.tables.values_mut() {
                let refused: Vec<_> = table
                    .indexes
                    .iter()
                    .filter_map(|(name, index)| Some((name.clone(), check_index(table, index).err()?)))
                    .collect();
                for (index, error) in refused {
                    notes.push(format!("index not made ({error}): {index} of {}", table.name));
                    Arc::make_mut(table).indexes.remove(&index);
                }
            }
            schema.keyspaces.insert(name.clone(), Arc::new(keyspace));
        }
    }

    /// Assigns each source to a table, and collects what must be created first.
    fn assign(
        &self,
        present: &Schema,
        described: &Described,
        report: &mut ImportReport,
    ) -> Result<(Vec<ImportTable>, Additions), ImportError> {
        let mut tables: BTreeMap<(String, String), ImportTable> = BTreeMap::new();
        let mut additions = Additions::default();
        let mut problems = Vec::new();
        // Tables without SSTables are created as well.
        for keyspace in described.schema.keyspaces.values() {
            for table in keyspace.tables.values() {
                if present.table(&keyspace.name, &table.name).is_none() {
                    let made = self.addition(present, (keyspace, table), &mut additions, &mut problems);
                    report.made.push(format!("table {}.{}", keyspace.name, table.name));
                    let key = (keyspace.name.to_string(), table.name.to_string());
                    tables.insert(key, ImportTable { table: made, sstables: Vec::new() });
                }
            }
        }
        for source in &described.sources {
            let key = (source.keyspace.clone(), source.table.clone());
            let sstables = source.sstables.iter().map(|descriptor| (source.folder.clone(), *descriptor));
            if let Some(import) = tables.get_mut(&key) {
                import.sstables.extend(sstables);
            } else if let Some(table) = present.table(&source.keyspace, &source.table) {
                tables.insert(key, ImportTable { table: table.clone(), sstables: sstables.collect() });
            } else {
                problems.push(format!(
                    "{}: nothing tells the schema of {}.{}: there is no schema.cql, no system_schema beside it and no such \
                     table here; make the table, or give a file of statements with --schema",
                    source.folder.display(),
                    source.keyspace,
                    source.table
                ));
            }
        }
        for name in additions.keyspaces.keys().filter(|name| !present.keyspaces.contains_key(*name)) {
            report.made.insert(0, format!("keyspace {name}"));
        }
        if problems.is_empty() {
            Ok((tables.into_values().collect(), additions))
        } else {
            Err(ImportError::Refused { problems })
        }
    }

    /// Adds a table to those to be created, with a new id: the commit log may have records of a dropped table with the
    /// old id, which must never be applied to the new table.
    pub(super) fn addition(
        &self,
        present: &Schema,
        (keyspace, table): (&Keyspace, &Arc<Table>),
        additions: &mut Additions,
        problems: &mut Vec<String>,
    ) -> Arc<Table> {
        let bare = || Keyspace { tables: BTreeMap::new(), types: BTreeMap::new(), ..keyspace.clone() };
        let mut of_table =
            Keyspace { tables: [(table.name.clone(), table.clone())].into(), ..keyspace.clone() };
        let here = present.keyspaces.get(&keyspace.name).map(|present| &present.types);
        for (name, ty) in &keyspace.types {
            let Some(here) = here.and_then(|types| types.get(name)) else { continue };
            let problem = if here.fields == ty.fields {
                None
            } else if has_fields_of(here, ty) {
                // The type here may have fields that were added later: the table has them too from now on.
                match fitted(present, &of_table, here) {
                    Ok(fitted) => {
                        of_table = fitted;
                        None
                    }
                    Err(error) => Some(format!("type {}.{name}: {error}", keyspace.name)),
                }
            } else {
                Some(format!("type {}.{name} is here already, with other fields", keyspace.name))
            };
            problems.extend(problem.filter(|problem| !problems.contains(problem)));
        }
        let added = additions.keyspaces.entry(keyspace.name.clone()).or_insert_with(bare);
        let is_here = |name: &Arc<str>| here.is_some_and(|types| types.contains_key(name));
        added.types.extend(of_table.types.into_iter().filter(|(name, _)| !is_here(name)));
        let table = of_table.tables.get(&table.name).unwrap_or(table);
        let made = Arc::new(Table { id: TableId((self.ddl_settings().new_id)()), ..Table::clone(table) });
        additions.tables.push(made.clone());
        made
    }

    /// Adds the missing parts of the schema, in one change.
    pub(super) fn add_to_schema(&self, additions: &Additions) -> Result<(), ImportError> {
        if additions.tables.is_empty() {
            return Ok(());
        }
        let changing = self.access().changing();
        let created = additions.created();
        let created: Vec<&SchemaChange> = created.iter().collect();
        self.forget_grants_on(&created).map_err(|error| ImportError::refused(error.to_string()))?;
        let changed = self.database().change_schema(|schema, timestamp_us| {
            let mut next = schema.clone();
            for (name, added) in &additions.keyspaces {
                let present = next.keyspaces.get(name).map(|keyspace| Keyspace::clone(keyspace));
                let mut keyspace =
                    present.unwrap_or_else(|| Keyspace { types: BTreeMap::new(), ..added.clone() });
                for (name, ty) in &added.types {
                    keyspace.types.entry(name.clone()).or_insert_with(|| ty.clone());
                }
                for table in additions.tables.iter().filter(|table| table.keyspace == *name) {
                    if keyspace.tables.contains_key(&table.name) {
                        return Err(format!("table {name}.{} was made meanwhile", table.name));
                    }
                    keyspace.tables.insert(table.name.clone(), with_index_ids(table, timestamp_us));
                }
                next.keyspaces.insert(name.clone(), Arc::new(keyspace));
            }
            Ok(next)
        });
        let (changes, ticket) = changed.map_err(|error| match error {
            DdlError::Refused(problem) => ImportError::refused(problem),
            DdlError::Engine(error) => ImportError::Engine(error),
        })?;
        ticket.wait()?;
        drop(changing);
        self.announce(&changes);
        Ok(())
    }
}

impl Additions {
    /// What is created, if it is not there: grants may be left on the names.
    fn created(&self) -> Vec<SchemaChange> {
        let created = |keyspace: &Arc<str>, name| SchemaChange {
            kind: SchemaChangeKind::Created,
            keyspace: keyspace.clone(),
            name,
            is_type: false,
        };
        let tables = self.tables.iter().map(|table| created(&table.keyspace, Some(table.name.clone())));
        self.keyspaces.keys().map(|keyspace| created(keyspace, None)).chain(tables).collect()
    }
}

/// The part of a node's schema that an import concerns: a folder of one keyspace or table excludes all others.
fn asked_for(request: &ImportRequest, schema_folder: &Path, sources: &[ImportSource]) -> FindOptions {
    let mut of = request.find.clone();
    let is_of_all = schema_folder.starts_with(&request.directory);
    if let Some(first) = sources.first()
        && !is_of_all
        && sources.iter().all(|source| source.keyspace == first.keyspace)
    {
        of.keyspace = Some(first.keyspace.clone());
        if first.folder == request.directory {
            of.table = Some(first.table.clone());
        }
    }
    of
}

/// Finds user-defined types that no schema.cql gives: Cassandra writes only those that a column has as its own type.
struct FoundTypes<'a> {
    backend: &'a LocalBackend,
    from: &'a SourceDisk,
    request: &'a ImportRequest,
    sources: Vec<ImportSource>,
    /// Those of the node's schema and those in the headers of the SSTables, once they were looked for.
    found: Option<(Option<Schema>, KnownTypes)>,
}

impl FoundTypes<'_> {
    /// A type by the node's schema, else by the headers of the files and this database.
    fn find(&mut self, keyspace: &str, name: &str) -> Option<Arc<UserType>> {
        if self.found.is_none() {
            let in_headers = types_in_headers(&**self.from, &self.sources);
            self.found = Some((self.node(), in_headers));
        }
        let (node, in_headers) = self.found.as_ref()?;
        let in_schema = |schema: &Schema| schema.keyspaces.get(keyspace)?.types.get(name).cloned();
        if let Some(found) = node.as_ref().and_then(in_schema) {
            return Some(found);
        }
        let in_files = in_headers.get(&(keyspace.to_owned(), name.to_owned())).cloned();
        later_of(in_files, in_schema(&self.backend.database().schema()))
    }

    fn node(&self) -> Option<Schema> {
        let folder = schema_folder_of(&**self.from, &self.request.directory)?;
        // One that cannot be read is told of where it is needed for more than this.
        node_schema(self.backend.database(), &**self.from, &folder).ok()
    }
}

/// A keyspace of an import with a type as it is here.
///
/// # Errors
/// A column cannot have the type as it is here.
fn fitted(present: &Schema, keyspace: &Keyspace, here: &Arc<UserType>) -> Result<Keyspace, String> {
    let keyspaces = [(keyspace.name.clone(), Arc::new(keyspace.clone()))].into();
    let before = Arc::new(Schema { keyspaces, version: present.version, epoch: present.epoch });
    let fitted = with_type(keyspace, here.clone(), &before).map_err(|error| error.to_string())?;
    let is_nested = |ty: &CqlType| match ty {
        CqlType::Udt(udt) if !udt.frozen => udt.fields.iter().any(|(_, field)| field.is_multi_cell()),
        _ => false,
    };
    // The rule of CREATE TABLE.
    let nested = {
        let mut columns = fitted.tables.values().flat_map(|table| table.columns());
        columns.find(|column| is_nested(&column.ty)).map(|column| column.name.clone())
    };
    match nested {
        Some(name) => {
            Err(format!("here it has a collection that is not frozen, so column {name} cannot have it"))
        }
        None => Ok(fitted),
    }
}

fn with_index_ids(table: &Arc<Table>, timestamp_us: i64) -> Arc<Table> {
    let with_id = |(name, index): (&Arc<str>, &Arc<Index>)| {
        let id = index_id(table.id, name, timestamp_us);
        (name.clone(), Arc::new(Index { id, ..Index::clone(index) }))
    };
    Arc::new(Table { indexes: table.indexes.iter().map(with_id).collect(), ..Table::clone(table) })
}
