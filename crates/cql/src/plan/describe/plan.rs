//! Which objects a DESCRIBE shows, and the rows of its answer.

use super::cluster;
use super::element::{Element, find_index, sorted, tables, types, whole, with_indexes};
use crate::analysis::Scope;
use crate::analysis::selection::result_columns;
use crate::answer::{Outcome, ResultColumn, ResultColumns, RowsOut};
use crate::error::{CqlError, Result};
use crate::plan::Execution;
use crate::plan::paging_state::PagingState;
use crate::syntax::ast::{Describe, DescribeWhat, Ident, QualifiedName};
use crate::virtual_table::RELEASE_VERSION;
use helenus_engine::is_system_keyspace;
use helenus_model::schema::{Keyspace, Schema};
use helenus_model::types::CqlType;
use std::sync::Arc;
use uuid::Uuid;

/// An analysed DESCRIBE. Until it runs it depends only on its text, so it may describe objects that are created later.
#[derive(Debug)]
pub(crate) struct DescribePlan {
    what: What,
    internals: bool,
    columns: Arc<ResultColumns>,
}

/// A name, possibly with its keyspace.
#[derive(Debug)]
struct Name {
    keyspace: Option<String>,
    name: String,
}

#[derive(Debug)]
enum What {
    Cluster {
        with_ranges: bool,
    },
    Schema {
        full: bool,
    },
    Keyspaces,
    Keyspace {
        only: bool,
        name: Option<String>,
    },
    Tables,
    Table(Name),
    Types,
    Type(Name),
    Index(Name),
    /// Functions and aggregates: there are none.
    Nothing,
    /// An object of a kind that does not exist here; the function makes the error text from keyspace and name.
    Missing(Name, fn(&str, &str) -> String),
    Any(Name),
}

impl DescribePlan {
    /// Analyses a DESCRIBE.
    ///
    /// # Errors
    /// None so far.
    pub(crate) fn prepare(describe: &Describe<'_>, scope: &Scope<'_>) -> Result<DescribePlan> {
        let part = |keyspace: &Option<Ident<'_>>, name: &Ident<'_>| Name {
            keyspace: keyspace.as_ref().map(|keyspace| keyspace.as_str().to_owned()),
            name: name.as_str().to_owned(),
        };
        let name = |name: &QualifiedName<'_>| part(&name.keyspace, &name.name);
        let what = match &describe.what {
            DescribeWhat::Cluster => What::Cluster {
                with_ranges: scope.keyspace.is_some_and(|keyspace| !is_system_keyspace(keyspace)),
            },
            DescribeWhat::Schema { full } => What::Schema { full: *full },
            DescribeWhat::Keyspaces => What::Keyspaces,
            DescribeWhat::Keyspace { only, name } => {
                What::Keyspace { only: *only, name: name.as_ref().map(|name| name.as_str().to_owned()) }
            }
            DescribeWhat::Tables => What::Tables,
            DescribeWhat::Table(table) => What::Table(name(table)),
            DescribeWhat::Types => What::Types,
            DescribeWhat::Type(ty) => What::Type(name(ty)),
            DescribeWhat::Functions | DescribeWhat::Aggregates => What::Nothing,
            DescribeWhat::Index(index) => What::Index(name(index)),
            DescribeWhat::View(view) => What::Missing(name(view), |ks, name| {
                format!("Materialized view '{name}' not found in '{ks}'")
            }),
            DescribeWhat::Function(function) => {
                What::Missing(part(&function.keyspace, &function.name), |ks, name| {
                    format!("User defined function '{name}' not found in '{ks}'")
                })
            }
            DescribeWhat::Aggregate(function) => {
                What::Missing(part(&function.keyspace, &function.name), |ks, name| {
                    format!("User defined aggregate '{name}' not found in '{ks}'")
                })
            }
            DescribeWhat::Any(any) => What::Any(name(any)),
        };
        let columns = columns_of(&what);
        Ok(DescribePlan { what, internals: describe.internals, columns })
    }

    /// The columns of the result.
    pub(crate) fn columns(&self) -> &Arc<ResultColumns> {
        &self.columns
    }

    /// Runs the statement.
    ///
    /// # Errors
    /// The object to describe does not exist; an invalid paging state.
    pub(crate) fn execute(&self, execution: &Execution<'_>, out: &mut dyn RowsOut) -> Result<Outcome> {
        let (schema, request) = (described(execution), execution.request);
        out.columns(&self.columns);
        if let What::Cluster { with_ranges } = self.what {
            for value in cluster::row(&execution.virtuals.node(), with_ranges) {
                out.cell(Some(&value));
            }
            out.end_row();
            return Ok(self.outcome(None));
        }
        let elements = self.elements(&schema, request.keyspace)?;
        let first = request.paging_state.map_or(Ok(0), |state| offset(state, schema.version))?;
        let page = request.page_size.filter(|size| *size > 0).map_or(usize::MAX, |size| size as usize);
        let shown = elements.iter().skip(first).take(page);
        let mut count = 0;
        for element in shown {
            execution.bindings.calls.work.check()?;
            element.listed().iter().for_each(|value| out.cell(Some(value.as_bytes())));
            if self.columns.columns.len() > 3 {
                out.cell(Some(element.statement(self.internals).as_bytes()));
            }
            out.end_row();
            count += 1;
            if out.bytes() > execution.answer_bytes_max {
                return Err(CqlError::Invalid(format!(
                    "The description is longer than {} MiB; ask for pages, or for one table after another",
                    execution.answer_bytes_max >> 20
                )));
            }
        }
        let is_full = count == page && first.saturating_add(count) < elements.len();
        Ok(self.outcome(is_full.then(|| state(first + count, schema.version))))
    }

    fn outcome(&self, paging_state: Option<Vec<u8>>) -> Outcome {
        Outcome::Rows { columns: self.columns.clone(), paging_state, ticket: None }
    }

    fn elements<'s>(&self, schema: &'s Schema, session: Option<&str>) -> Result<Vec<Element<'s>>> {
        let all = || schema.keyspaces.values().map(|keyspace| &**keyspace);
        // A listing covers the keyspace in use, or all keyspaces.
        let listed = |of: fn(&'s Keyspace) -> Vec<Element<'s>>| match session {
            Some(keyspace) => find_keyspace(schema, keyspace).map(of),
            None => Ok(all().flat_map(of).collect()),
        };
        match &self.what {
            What::Cluster { .. } | What::Nothing => Ok(Vec::new()),
            What::Schema { full } => {
                let shown = all().filter(|keyspace| *full || !is_system_keyspace(&keyspace.name));
                Ok(shown.flat_map(whole).collect())
            }
            What::Keyspaces => Ok(sorted(all().map(Element::Keyspace))),
            What::Keyspace { only, name } => {
                let keyspace = self.keyspace_of(name.as_deref(), schema, session)?;
                Ok(if *only { vec![Element::Keyspace(keyspace)] } else { whole(keyspace) })
            }
            What::Tables => listed(tables),
            What::Types => listed(types),
            What::Table(name) => {
                let keyspace = self.keyspace_of(name.keyspace.as_deref(), schema, session)?;
                let missing = || format!("Table '{}' not found in keyspace '{}'", name.name, keyspace.name);
                find_table(keyspace, &name.name).ok_or_else(|| CqlError::Invalid(missing())).map(with_indexes)
            }
            What::Index(name) => {
                let keyspace = self.keyspace_of(name.keyspace.as_deref(), schema, session)?;
                let missing =
                    || format!("Table for existing index '{}' not found in '{}'", name.name, keyspace.name);
                find_index(keyspace, &name.name)
                    .ok_or_else(|| CqlError::Invalid(missing()))
                    .map(|found| vec![found])
            }
            What::Type(name) => {
                let keyspace = self.keyspace_of(name.keyspace.as_deref(), schema, session)?;
                let found = keyspace.types.get(&*name.name).map(|ty| vec![Element::Type(keyspace, ty)]);
                let missing =
                    || format!("User defined type '{}' not found in '{}'", name.name, keyspace.name);
                found.ok_or_else(|| CqlError::Invalid(missing()))
            }
            What::Missing(name, text) => {
                let keyspace = self.keyspace_of(name.keyspace.as_deref(), schema, session)?;
                Err(CqlError::Invalid(text(&keyspace.name, &name.name)))
            }
            What::Any(name) => {
                if name.keyspace.is_none()
                    && let Some(keyspace) = schema.keyspaces.get(&*name.name)
                {
                    return Ok(whole(keyspace));
                }
                let keyspace = name.keyspace.as_deref().or(session).unwrap_or(&name.name);
                let keyspace = find_keyspace(schema, keyspace)?;
                let missing = || format!("'{}' not found in keyspace '{}'", name.name, keyspace.name);
                find_table(keyspace, &name.name)
                    .map(with_indexes)
                    .or_else(|| find_index(keyspace, &name.name).map(|found| vec![found]))
                    .ok_or_else(|| CqlError::Invalid(missing()))
            }
        }
    }

    fn keyspace_of<'s>(
        &self,
        name: Option<&str>,
        schema: &'s Schema,
        session: Option<&str>,
    ) -> Result<&'s Keyspace> {
        match name.or(session) {
            Some(name) => find_keyspace(schema, name),
            None => Err(CqlError::Invalid("No keyspace specified and no current keyspace".to_owned())),
        }
    }
}

/// The current schema with virtual tables, and with super column families as they are stored, because the view that
/// other statements see could not recreate them.
fn described(execution: &Execution<'_>) -> Arc<Schema> {
    let stored = execution.database.schema();
    let shown = execution.virtuals.shown_in(&stored);
    let has_super = |keyspace: &Keyspace| keyspace.tables.values().any(|table| table.is_super());
    if !stored.keyspaces.values().any(|keyspace| has_super(keyspace)) {
        return shown;
    }
    let mut described = Schema::clone(&shown);
    for (name, keyspace) in stored.keyspaces.iter().filter(|(_, keyspace)| has_super(keyspace)) {
        described.keyspaces.insert(name.clone(), keyspace.clone());
    }
    Arc::new(described)
}

fn find_keyspace<'s>(schema: &'s Schema, name: &str) -> Result<&'s Keyspace> {
    let found = schema.keyspaces.get(name);
    found
        .map(|keyspace| &**keyspace)
        .ok_or_else(|| CqlError::Invalid(format!("'{name}' not found in keyspaces")))
}

fn find_table<'s>(keyspace: &'s Keyspace, name: &str) -> Option<Element<'s>> {
    keyspace.tables.get(name).map(|table| Element::Table(keyspace, table))
}

fn columns_of(what: &What) -> Arc<ResultColumns> {
    let text = |name: &str| column(name, CqlType::Text);
    let listed = || vec![text("keyspace_name"), text("type"), text("name")];
    let columns = match what {
        What::Cluster { with_ranges } => {
            let mut columns = vec![text("cluster"), text("partitioner"), text("snitch")];
            if *with_ranges {
                let nodes = CqlType::List { element: Arc::new(CqlType::Text), frozen: false };
                let ty = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(nodes), frozen: false };
                columns.push(column("range_ownership", ty));
            }
            columns
        }
        What::Keyspaces | What::Tables | What::Types | What::Nothing => listed(),
        _ => {
            let mut columns = listed();
            columns.push(text("create_statement"));
            columns
        }
    };
    result_columns(columns, |_| false)
}

fn column(name: &str, ty: CqlType) -> ResultColumn {
    ResultColumn { keyspace: "system".into(), table: "describe".into(), name: name.into(), ty }
}

/// The beginning of the key in a paging state of DESCRIBE. It is followed by Cassandra's version, the schema's version
/// (16 bytes) and the number of rows returned (8 bytes; `DescribeStatement.getPagingState`).
const STATE_VERSION: [u8; 2] = [0, 1];

fn state(rows: usize, version: Uuid) -> Vec<u8> {
    let mut key = STATE_VERSION.to_vec();
    key.extend_from_slice(&(RELEASE_VERSION.len() as u16).to_be_bytes());
    key.extend_from_slice(RELEASE_VERSION.as_bytes());
    key.extend_from_slice(version.as_bytes());
    key.extend_from_slice(&(rows as u64).to_be_bytes());
    let no_limit =
        PagingState { rows_left: u64::MAX, rows_left_in_partition: u64::MAX, ..PagingState::default() };
    PagingState { key: Some(key), ..no_limit }.encode()
}

fn offset(state: &[u8], version: Uuid) -> Result<usize> {
    let refused = |text: &str| Err(CqlError::Invalid(text.to_owned()));
    let key = PagingState::decode(state)?.key.unwrap_or_default();
    let Some(rest) = key.strip_prefix(&STATE_VERSION) else { return refused("Incompatible paging state") };
    let Some((release, rest)) = short_text(rest) else { return refused("Invalid paging state.") };
    if release != RELEASE_VERSION.as_bytes() {
        let release = String::from_utf8_lossy(release);
        return refused(&format!(
            "The server version of the paging state {release} is different from the one of the server {RELEASE_VERSION}"
        ));
    }
    let numbers = rest.split_first_chunk::<16>().and_then(|(of, rest)| Some((of, rest.first_chunk::<8>()?)));
    let Some((of, rows)) = numbers else { return refused("Invalid paging state.") };
    if *of != *version.as_bytes() {
        return refused(
            "The schema has changed since the previous page of the DESCRIBE statement result. Please retry the DESCRIBE statement.",
        );
    }
    // A position after the last row is valid and has no rows.
    Ok(usize::try_from(u64::from_be_bytes(*rows)).unwrap_or(usize::MAX))
}

/// A text preceded by its length in two bytes.
fn short_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
