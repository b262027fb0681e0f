//! Converts a schema to and from CQL: reads the statements of a `schema.cql`, and writes the statements that recreate a
//! schema.
//!
//! Snapshots of Cassandra have such a file beside each table's SSTables. It has the table's user-defined types, the
//! table with its id and its dropped columns, and its indexes, but not the keyspace.

use super::backend::LocalBackend;
use super::schema_comment::{make_runnable, name_undeclared, parts, readd};
use super::schema_digest::{add_schema_digest, check_schema_digest};
use crate::analysis::{Memo, Scope};
use crate::budget::UNBOUNDED;
use crate::error::{CqlError, Result};
use crate::plan::ddl::DdlPlan;
use crate::plan::describe::{statements_of_keyspace, statements_of_table};
use crate::syntax::ast::StatementKind;
use crate::syntax::{parse, split_statements};
use helenus_model::schema::{Keyspace, Schema, Table};
use std::collections::BTreeMap;
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
    /// Materialized views, which are skipped.
    pub(super) views: Vec<String>,
}

impl LocalBackend {
    /// Executes the statements of a text on an empty schema, or on the result of earlier texts. Existing things are
    /// kept if the statement has IF NOT EXISTS.
    ///
    /// # Errors
    /// An invalid statement, with the server's error; a statement that does not change the schema; a text that does not
    /// match the digest in its first line.
    pub(super) fn read_schema(&self, text: &str, read: &mut ReadSchema) -> Result<()> {
        for (part, is_commented) in parts(check_schema_digest(text)?) {
            let before = (read.schema.clone(), read.tables.len());
            let applied = split_statements(part).into_iter().try_for_each(|statement| {
                if is_view(statement) {
                    read.views.push(first_line(statement));
                    return Ok(());
                }
                self.apply_statement(statement, is_commented, read)
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
    fn apply_statement(&self, text: &str, is_commented: bool, read: &mut ReadSchema) -> Result<()> {
        let mut parsed = parse(text)?;
        let undeclared = if is_commented { make_runnable(&mut parsed.kind) } else { None };
        if matches!(parsed.kind, StatementKind::Use(_)) {
            return Ok(());
        }
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
        let plan = DdlPlan::prepare(&parsed, &scope)?;
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

    /// The schema that the statements of a text create.
    ///
    /// # Errors
    /// An invalid statement; a text that does not match the digest in its first line.
    pub fn schema_of_text(&self, text: &str) -> Result<Schema> {
        let mut read = ReadSchema::new();
        self.read_schema(text, &mut read)?;
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

    /// The statements that recreate one table with the types it uses: the `schema.cql` of a snapshot.
    pub fn table_text(keyspace: &Keyspace, table: &Table) -> String {
        let statements = statements_of_table(keyspace, table);
        add_schema_digest(&statements.iter().map(|statement| guarded(statement) + "\n\n").collect::<String>())
    }
}

impl ReadSchema {
    /// The empty result.
    pub(super) fn new() -> ReadSchema {
        let schema = Schema { keyspaces: BTreeMap::new(), version: uuid::Uuid::nil(), epoch: 0 };
        ReadSchema { schema, assumed: Vec::new(), tables: Vec::new(), views: Vec::new() }
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
        _ => return None,
    };
    name.keyspace.as_ref().map(|keyspace| keyspace.as_str())
}

fn is_view(statement: &str) -> bool {
    let mut words = statement.split_whitespace();
    let mut is = |word: &str| words.next().is_some_and(|found| found.eq_ignore_ascii_case(word));
    is("CREATE") && is("MATERIALIZED") && is("VIEW")
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
