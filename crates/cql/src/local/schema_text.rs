//! Converts a schema to and from CQL: reads the statements of a `schema.cql`, and writes the statements that recreate a
//! schema.
//!
//! Snapshots of Cassandra have such a file beside each table's SSTables. It has the table's user-defined types, the
//! table with its id and its dropped columns, and its indexes, but not the keyspace, nor types that the table uses only within
//! other types. Files of other versions and makers have more; `foreign_schema` knows what of that is passed over.

use super::backend::LocalBackend;
use super::foreign_schema::{
    PassedOver, TypeLookup, freeze_inner_types, has_fields_of, is_foreign, passed_over, types_of,
    types_within, with_equal_sign,
};
use super::schema_comment::{Undeclared, make_runnable, name_undeclared, parts, readd};
use super::schema_digest::{add_schema_digest, check_schema_digest};
use crate::analysis::{Memo, Scope};
use crate::budget::UNBOUNDED;
use crate::error::{CqlError, Result};
use crate::plan::ddl::{DdlPlan, adapt_keyspace_options, adapt_table_options, with_type};
use crate::plan::describe::{parts_of_table, statements_of_keyspace, statements_of_table};
use crate::syntax::ast::{Statement, StatementKind};
use crate::syntax::{parse, split_statements};
use helenus_engine::import::is_of_node;
use helenus_model::schema::{Keyspace, Schema, Table};
use helenus_model::types::UserType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The result of executing the statements of texts.
#[derive(Debug)]
pub(super) struct ReadSchema {
    /// The schema that they created.
    pub(super) schema: Schema,
    /// Keyspaces that no statement created, although statements created things in them.
    pub(super) assumed: Vec<Arc<str>>,
    /// Tables by keyspace and name, in the order of their statements.
    pub(super) tables: Vec<(String, String)>,
    /// What was passed over.
    pub(super) passed_over: PassedOver,
    /// Materialized views by keyspace and name: their SSTables are passed over too.
    pub(super) views: BTreeSet<(String, String)>,
    /// Statements of user-defined types, of all texts, by keyspace and name: a text may use a type that another one gives.
    type_statements: BTreeMap<(String, String), String>,
}

/// How strictly a text is read.
pub(super) enum Reading<'l, 'a> {
    /// A text of this program: everything in it must be possible.
    Strict,
    /// A text of any version and maker: what is not supported is passed over, and types that are missing are looked for.
    Foreign(&'l mut TypeLookup<'a>),
}

impl LocalBackend {
    /// Executes the statements of a text on an empty schema, or on the result of earlier texts. Existing things are
    /// kept if the statement has IF NOT EXISTS.
    ///
    /// # Errors
    /// An invalid statement, with its line and the server's error; a statement that does not change the schema; a text that does
    /// not match the digest in its first line.
    pub(super) fn read_schema(
        &self,
        text: &str,
        read: &mut ReadSchema,
        reading: &mut Reading<'_, '_>,
    ) -> Result<()> {
        let text = without_mark(text);
        let statements = check_schema_digest(text)?;
        for (part, is_commented) in parts(statements) {
            let before = (read.schema.clone(), read.tables.len());
            let applied = split_statements(part).into_iter().try_for_each(|statement| {
                self.apply_statement(statement, is_commented, read, reading)
                    .map_err(|error| CqlError::Invalid(format!("line {}: {error}", line_of(text, statement))))
            });
            match applied {
                // Cassandra calls the statement in a comment approximate, so one that cannot be executed is ignored.
                Err(_) if is_commented => {
                    read.schema = before.0;
                    read.tables.truncate(before.1);
                }
                applied => applied?,
            }
        }
        Ok(())
    }

    /// `is_commented`: the statement is from Cassandra's comment about a compact table.
    fn apply_statement(
        &self,
        text: &str,
        is_commented: bool,
        read: &mut ReadSchema,
        reading: &mut Reading<'_, '_>,
    ) -> Result<()> {
        if matches!(reading, Reading::Foreign(_)) && is_foreign(text) {
            read.passed_over.add("not imported, as there is nothing like it here", first_words(text));
            return Ok(());
        }
        let amended = match reading {
            Reading::Foreign(_) => with_equal_sign(text),
            Reading::Strict => None,
        };
        let text = amended.as_deref().unwrap_or(text);
        let mut parsed = parse(text)?;
        let undeclared = if is_commented { make_runnable(&mut parsed.kind) } else { None };
        if matches!(parsed.kind, StatementKind::Use(_)) {
            return Ok(());
        }
        if let Reading::Foreign(types) = reading {
            if pass_over(&parsed.kind, text, read) {
                return Ok(());
            }
            self.adapt(&mut parsed.kind, read);
            self.add_types(&parsed.kind, read, &mut **types)?;
            if self.repeats_type(&parsed, text, read)? {
                return Ok(());
            }
        }
        let applied = self.run_parsed(&parsed, (text, is_commented), undeclared, read);
        let Reading::Foreign(_) = reading else { return applied };
        match (&parsed.kind, applied) {
            (StatementKind::CreateIndex(create), Err(error)) => {
                let name = create.name.as_ref().map_or("", |name| name.as_str());
                let table = create.table.name.as_str();
                read.passed_over.add(format!("index not made ({error})"), format!("{name} of {table}"));
                Ok(())
            }
            (StatementKind::CreateKeyspace(create), Err(error)) => {
                let made = one_copy(create.name.as_str());
                let what = format!("keyspace made with a replication factor of 1 ({error})");
                read.passed_over.add(what, create.name.as_str());
                read.schema.keyspaces.entry(made.name.clone()).or_insert_with(|| Arc::new(made));
                Ok(())
            }
            (_, applied) => applied,
        }
    }

    /// Runs a statement on the schema that was read.
    fn run_parsed(
        &self,
        parsed: &Statement<'_>,
        (text, is_commented): (&str, bool),
        undeclared: Undeclared,
        read: &mut ReadSchema,
    ) -> Result<()> {
        if let Some(keyspace) = keyspace_of(&parsed.kind)
            && !read.schema.keyspaces.contains_key(keyspace)
            && !matches!(parsed.kind, StatementKind::CreateKeyspace(_))
        {
            let made = one_copy(keyspace);
            read.assumed.push(made.name.clone());
            read.schema.keyspaces.insert(made.name.clone(), Arc::new(made));
        }
        let memo = Memo::default();
        // Its meaning depends only on the schema at the time it is applied.
        let (version, epoch) = (read.schema.version, read.schema.epoch);
        let none = Arc::new(Schema { keyspaces: BTreeMap::new(), version, epoch });
        let scope = Scope { schema: &none, keyspace: None, memo: &memo, work: &UNBOUNDED };
        let plan = DdlPlan::prepare(parsed, &scope)?;
        let Some(plan) = plan else {
            return Err(CqlError::Invalid(format!(
                "{}: only statements that make a schema may stand in a schema file",
                first_line(text)
            )));
        };
        let timestamp_us = self.database().next_timestamp()?;
        let apply = |schema: &mut Schema| {
            plan.apply(&parsed.kind, schema, (self.ddl_settings(), timestamp_us), &mut Vec::new())
        };
        match is_commented {
            true => readd(&mut read.schema, &parsed.kind, plan.keyspace(), apply)?,
            false => apply(&mut read.schema)?,
        }
        if let StatementKind::CreateTable(create) = &parsed.kind {
            let name = create.name.name.as_str();
            name_undeclared(&mut read.schema, (plan.keyspace(), name), undeclared);
            read.tables.push((plan.keyspace().to_owned(), name.to_owned()));
        }
        Ok(())
    }

    /// Changes the options of a statement until they can be taken.
    fn adapt(&self, kind: &mut StatementKind<'_>, read: &mut ReadSchema) {
        match kind {
            StatementKind::CreateKeyspace(create) => {
                let left_out = adapt_keyspace_options(&mut create.properties);
                read.passed_over.options(create.name.as_str(), left_out);
            }
            StatementKind::CreateTable(create) => {
                let base = &self.ddl_settings().table_options;
                let left_out = adapt_table_options(&mut create.options.properties, base);
                let keyspace = create.name.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
                read.passed_over.options(&format!("{keyspace}.{}", create.name.name.as_str()), left_out);
            }
            StatementKind::CreateType(create) => {
                create.fields.iter_mut().for_each(|(_, ty)| freeze_inner_types(ty));
            }
            _ => {}
        }
    }

    /// Makes the types that a statement names and that no earlier statement has made: by a later statement of any text, or as
    /// `types` finds them.
    fn add_types(
        &self,
        kind: &StatementKind<'_>,
        read: &mut ReadSchema,
        types: &mut TypeLookup<'_>,
    ) -> Result<()> {
        let Some(keyspace) = keyspace_of(kind).map(str::to_owned) else { return Ok(()) };
        types_of(kind, &keyspace).into_iter().try_for_each(|place| self.add_type(place, read, types))
    }

    /// Makes a type, by keyspace and name, if it is not made, and the types that it names itself.
    fn add_type(
        &self,
        place: (String, String),
        read: &mut ReadSchema,
        types: &mut TypeLookup<'_>,
    ) -> Result<()> {
        if read.schema_type(&place).is_some() {
            return Ok(());
        }
        if let Some(statement) = read.type_statements.remove(&place) {
            return self.apply_statement(&statement, false, read, &mut Reading::Foreign(types));
        }
        let Some(found) = types(&place.0, &place.1) else { return Ok(()) };
        let (keyspace, name) = place;
        let inner = types_within(&found, &keyspace);
        let assumed = &mut read.assumed;
        let made = read.schema.keyspaces.entry(keyspace.as_str().into()).or_insert_with(|| {
            let made = one_copy(&keyspace);
            assumed.push(made.name.clone());
            Arc::new(made)
        });
        Arc::make_mut(made).types.insert(name.as_str().into(), found);
        inner.into_iter().try_for_each(|inner| self.add_type(inner, read, types))
    }

    /// Whether a statement makes a type that is made already. Cassandra 3.x repeats CREATE TYPE in the `schema.cql` of each table
    /// with a column of the type (`ColumnFamilyStoreCQLHelper.getUserTypesAsCQL`), and marks nested types as frozen where
    /// the column is. The type keeps the fields of the statement that has more of them: fields are only added.
    fn repeats_type(&self, parsed: &Statement<'_>, text: &str, read: &mut ReadSchema) -> Result<bool> {
        let StatementKind::CreateType(create) = &parsed.kind else { return Ok(false) };
        let Some(keyspace) = &create.name.keyspace else { return Ok(false) };
        let place = (keyspace.as_str().to_owned(), create.name.name.as_str().to_owned());
        let Some(first) = read.schema_type(&place) else { return Ok(false) };
        let mut alone = ReadSchema::new();
        alone.schema = read.schema.clone();
        if let Some(keyspace) = alone.schema.keyspaces.get_mut(place.0.as_str()) {
            Arc::make_mut(keyspace).types.remove(place.1.as_str());
        }
        self.run_parsed(parsed, (text, false), None, &mut alone)?;
        let Some(again) = alone.schema_type(&place) else { return Ok(false) };
        if has_fields_of(&first, &again) {
            return Ok(true);
        }
        if !has_fields_of(&again, &first) {
            return Ok(false);
        }
        let before = Arc::new(read.schema.clone());
        if let Some(keyspace) = read.schema.keyspaces.get_mut(place.0.as_str()) {
            *keyspace = Arc::new(with_type(keyspace, again, &before)?);
        }
        Ok(true)
    }

    /// Notes the types that a text makes, for texts that use them and are read before.
    pub(super) fn note_type_statements(&self, text: &str, read: &mut ReadSchema) {
        let Ok(text) = check_schema_digest(without_mark(text)) else { return };
        for statement in split_statements(text) {
            let Ok(parsed) = parse(statement) else { continue };
            if let StatementKind::CreateType(create) = &parsed.kind
                && let Some(keyspace) = &create.name.keyspace
            {
                let place = (keyspace.as_str().to_owned(), create.name.name.as_str().to_owned());
                read.type_statements.insert(place, statement.to_owned());
            }
        }
    }

    /// The schema that the statements of a text create. What is not supported of it is passed over.
    ///
    /// # Errors
    /// An invalid statement; a text that does not match the digest in its first line.
    pub fn schema_of_text(&self, text: &str) -> Result<Schema> {
        let mut read = ReadSchema::new();
        self.note_type_statements(text, &mut read);
        self.read_schema(text, &mut read, &mut Reading::Foreign(&mut |_, _| None))?;
        Ok(read.schema)
    }

    /// The contents of a file with the statements that recreate these keyspaces.
    pub fn schema_text(keyspaces: &[&Keyspace]) -> String {
        let mut out = String::new();
        for keyspace in keyspaces {
            for statement in statements_of_keyspace(keyspace) {
                out.push_str(&guarded(&statement));
                out.push_str("\n\n");
            }
        }
        add_schema_digest(&out)
    }

    /// What ALTER TABLE and CREATE INDEX make of a table: its options as they stand behind WITH, each as `name = value`, and the statements
    /// that create its indexes unless they are there, by name.
    pub fn table_parts(keyspace: &Keyspace, table: &Table) -> (Vec<String>, BTreeMap<String, String>) {
        let (options, indexes) = parts_of_table(keyspace, table);
        (options, indexes.into_iter().map(|(name, statement)| (name, guarded(&statement))).collect())
    }

    /// The statements that recreate one table with the types it uses: the `schema.cql` of a snapshot.
    pub fn table_text(keyspace: &Keyspace, table: &Table) -> String {
        let statements = statements_of_table(keyspace, table);
        add_schema_digest(&statements.iter().map(|statement| guarded(statement) + "\n\n").collect::<String>())
    }
}

impl ReadSchema {
    /// A type that statements made, by keyspace and name.
    fn schema_type(&self, (keyspace, name): &(String, String)) -> Option<Arc<UserType>> {
        self.schema.keyspaces.get(keyspace.as_str())?.types.get(name.as_str()).cloned()
    }

    /// The empty result.
    pub(super) fn new() -> ReadSchema {
        let schema = Schema { keyspaces: BTreeMap::new(), version: uuid::Uuid::nil(), epoch: 0 };
        ReadSchema {
            schema,
            assumed: Vec::new(),
            tables: Vec::new(),
            passed_over: PassedOver::default(),
            views: BTreeSet::new(),
            type_statements: BTreeMap::new(),
        }
    }
}

/// A keyspace of which only the name is known: with one replica.
pub(super) fn one_copy(name: &str) -> Keyspace {
    let replication = [("class", "org.apache.cassandra.locator.SimpleStrategy"), ("replication_factor", "1")];
    Keyspace {
        name: name.into(),
        durable_writes: true,
        replication: replication.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        tables: BTreeMap::new(),
        types: BTreeMap::new(),
    }
}

/// The keyspace that a statement names.
fn keyspace_of<'s>(statement: &'s StatementKind<'_>) -> Option<&'s str> {
    let name = match statement {
        StatementKind::CreateTable(create) => &create.name,
        StatementKind::CreateType(create) => &create.name,
        StatementKind::AlterTable(alter) => &alter.name,
        StatementKind::AlterType(alter) => &alter.name,
        StatementKind::CreateIndex(create) => &create.table,
        StatementKind::CreateKeyspace(create) => return Some(create.name.as_str()),
        _ => return None,
    };
    name.keyspace.as_ref().map(|keyspace| keyspace.as_str())
}

/// Notes a statement of something that is not imported. Returns whether it is one.
fn pass_over(kind: &StatementKind<'_>, text: &str, read: &mut ReadSchema) -> bool {
    if let Some(what) = passed_over(kind) {
        if let StatementKind::CreateView(create) = kind
            && let Some(keyspace) = &create.name.keyspace
        {
            let view = (keyspace.as_str().to_owned(), create.name.name.as_str().to_owned());
            read.views.insert(view);
        }
        read.passed_over.add(format!("not imported, as {what} are not"), first_words(text));
        return true;
    }
    let altered = match kind {
        StatementKind::AlterKeyspace { name, .. } => Some(name.as_str()),
        _ => None,
    };
    if let Some(keyspace) = keyspace_of(kind).or(altered)
        && is_of_node(keyspace)
    {
        read.passed_over.add("not imported, as it is of the node itself", first_words(text));
        return true;
    }
    // Once its statement is reached, no other text has to give the type.
    if let StatementKind::CreateType(create) = kind
        && let Some(keyspace) = &create.name.keyspace
    {
        let place = (keyspace.as_str().to_owned(), create.name.name.as_str().to_owned());
        read.type_statements.remove(&place);
    }
    false
}

/// The keyspace of the only table that a text makes: the one that a snapshot is of, wherever the snapshot lies.
pub(super) fn keyspace_of_table(text: &str) -> Option<String> {
    let mut tables =
        split_statements(check_schema_digest(without_mark(text)).ok()?).into_iter().filter_map(|statement| {
            match parse(statement).ok()?.kind {
                StatementKind::CreateTable(create) => Some(create.name.keyspace?.as_str().to_owned()),
                _ => None,
            }
        });
    let keyspace = tables.next()?;
    tables.next().is_none().then_some(keyspace)
}

/// The text without the byte order mark that editors of Windows put before it.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The line of a text, from 1, on which a part of it begins. 0 if it is no part.
fn line_of(text: &str, part: &str) -> usize {
    let at = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    at.and_then(|at| text.get(..at)).map_or(0, |before| before.matches('\n').count() + 1)
}

/// The beginning of a statement, without values that must not be shown, such as passwords.
fn first_words(text: &str) -> String {
    text.split_whitespace()
        .take(4)
        .take_while(|word| !word.eq_ignore_ascii_case("WITH"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The statement with IF NOT EXISTS.
fn guarded(statement: &str) -> String {
    let kinds =
        ["CREATE KEYSPACE ", "CREATE TABLE ", "CREATE TYPE ", "CREATE INDEX ", "CREATE CUSTOM INDEX "];
    match kinds.iter().find_map(|kind| Some((kind, statement.strip_prefix(kind)?))) {
        Some((kind, rest)) => format!("{kind}IF NOT EXISTS {rest}"),
        None => statement.to_owned(),
    }
}
