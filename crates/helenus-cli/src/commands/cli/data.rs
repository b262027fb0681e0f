//! Statements on rows and columns: set, get, del, count, incr, list.

use super::ast::{Condition, Path, Statement, Written};
use super::session::{CliSession, FamilyTypes};
use super::values::{bytes, class_of, comparator, now_us};
use anyhow::{Result, bail};
use helenus_cql::counted;
use helenus_rpc::Comparator;
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, ColumnPath, CounterColumn, Field, IndexClause,
    IndexExpression, IndexOperator, KeyRange, KeySlice, Method, ReplyBody, SlicePredicate, SliceRange, args,
};

use std::io;

/// The default limit of columns or rows.
const LIMIT: i32 = 100;
/// The maximum number of columns when a whole row is shown.
const COLUMNS_MAX: i32 = 1_000_000;

/// A path whose parts are serialised.
struct Found {
    key: Vec<u8>,
    super_column: Option<Vec<u8>>,
    column: Option<Vec<u8>>,
}

impl Found {
    /// Serialises the steps of a path by the types of its family.
    fn new(path: &Path, types: &FamilyTypes) -> Result<Found> {
        let mut found = Found { key: Vec::new(), super_column: None, column: None };
        match &path.steps[..] {
            [key] => found.key = bytes(key, &types.keys)?,
            [key, name] => {
                found.key = bytes(key, &types.keys)?;
                let name = Some(bytes(name, &types.names)?);
                if types.is_super { found.super_column = name } else { found.column = name }
            }
            [key, of, name] if types.is_super => {
                found.key = bytes(key, &types.keys)?;
                found.super_column = Some(bytes(of, &types.names)?);
                found.column = Some(bytes(name, &types.subnames)?);
            }
            _ => bail!("Invalid row, super column, or column specification."),
        }
        Ok(found)
    }

    fn column(&self) -> Result<&[u8]> {
        match &self.column {
            Some(column) => Ok(column),
            None => bail!("Invalid row, super column, or column specification."),
        }
    }

    fn path<'f>(&'f self, family: &'f str) -> ColumnPath<'f> {
        ColumnPath {
            column_family: family,
            super_column: self.super_column.as_deref(),
            column: self.column.as_deref(),
        }
    }

    fn parent<'f>(&'f self, family: &'f str) -> ColumnParent<'f> {
        ColumnParent { column_family: family, super_column: self.super_column.as_deref() }
    }
}

fn slice(reversed: bool, count: i32) -> SlicePredicate<'static> {
    SlicePredicate {
        column_names: None,
        slice_range: Some(SliceRange { start: &[], finish: &[], reversed, count }),
    }
}

impl CliSession {
    pub(super) fn set(&mut self, path: &Path, value: &Written, ttl: Option<i32>) -> Result<()> {
        let types = self.types(&path.family)?;
        let found = Found::new(path, &types)?;
        let name = found.column()?;
        let value = bytes(value, types.value(name))?;
        let asked = args::Insert {
            key: &found.key,
            column_parent: found.parent(&path.family),
            column: Column { name, value: Some(&value), timestamp: Some(now_us()), ttl },
            consistency_level: self.level,
        };
        self.client.call::<i32>(Method::Insert, |out| asked.write(out))?;
        say!("Value inserted.")?;
        Ok(())
    }

    pub(super) fn increment(&mut self, path: &Path, by: i64) -> Result<()> {
        let types = self.types(&path.family)?;
        let found = Found::new(path, &types)?;
        let asked = args::Add {
            key: &found.key,
            column_parent: found.parent(&path.family),
            column: CounterColumn { name: found.column()?, value: by },
            consistency_level: self.level,
        };
        self.client.call::<i32>(Method::Add, |out| asked.write(out))?;
        say!("Value {}", if by < 0 { "decremented." } else { "incremented." })?;
        Ok(())
    }

    pub(super) fn delete(&mut self, path: &Path) -> Result<()> {
        let types = self.types(&path.family)?;
        let found = Found::new(path, &types)?;
        let column_path = found.path(&path.family);
        if types.counts {
            let (key, path, consistency_level) = (&found.key[..], column_path, self.level);
            let asked = args::RemoveCounter { key, path, consistency_level };
            self.client.call::<i32>(Method::RemoveCounter, |out| asked.write(out))?;
        } else {
            let asked = args::Remove {
                key: &found.key,
                column_path,
                timestamp: now_us(),
                consistency_level: Some(self.level),
            };
            self.client.call::<i32>(Method::Remove, |out| asked.write(out))?;
        }
        say!("{} removed.", if path.steps.len() == 1 { "row" } else { "cell" })?;
        Ok(())
    }

    pub(super) fn count(&mut self, path: &Path) -> Result<()> {
        let types = self.types(&path.family)?;
        let found = Found::new(path, &types)?;
        let asked = args::GetSlice {
            key: &found.key,
            column_parent: found.parent(&path.family),
            predicate: slice(false, i32::MAX),
            consistency_level: self.level,
        };
        let count = self.client.call::<i32>(Method::GetCount, |out| asked.write(out))?.unwrap_or_default();
        say!("{}", counted(count, "cell"))?;
        Ok(())
    }

    pub(super) fn get(&mut self, path: &Path, ty: Option<&str>, limit: Option<i32>) -> Result<()> {
        let types = self.types(&path.family)?;
        let found = Found::new(path, &types)?;
        let shown_as = ty.map(|ty| comparator(&class_of(ty))).transpose()?;
        if found.column.is_none() {
            let asked = args::GetSlice {
                key: &found.key,
                column_parent: found.parent(&path.family),
                predicate: slice(false, limit.unwrap_or(COLUMNS_MAX)),
                consistency_level: self.level,
            };
            let columns =
                self.client.call::<Vec<ColumnOrSuperColumn<'_>>>(Method::GetSlice, |out| asked.write(out))?;
            let columns = columns.unwrap_or_default();
            let within = found.super_column.is_some();
            columns.iter().try_for_each(|column| print(column, &types, within, shown_as.as_ref()))?;
            say!("Returned {} results.", columns.len())?;
            return Ok(());
        }
        let asked = args::Get {
            key: &found.key,
            column_path: found.path(&path.family),
            consistency_level: self.level,
        };
        match self.client.ask::<ColumnOrSuperColumn<'_>>(Method::Get, |out| asked.write(out))? {
            ReplyBody::Success(column) => print(&column, &types, true, shown_as.as_ref())?,
            ReplyBody::Exception(helenus_wire::thrift::Exception::NotFound) => {
                say!("Value was not found")?;
            }
            ReplyBody::Exception(other) => bail!("{}", crate::commands::client::exception_text(&other)),
            ReplyBody::Failure(text) => bail!("{text}"),
            ReplyBody::Void => {}
        }
        Ok(())
    }

    pub(super) fn get_where(
        &mut self,
        family: &str,
        conditions: &[Condition],
        limit: Option<i32>,
    ) -> Result<()> {
        let types = self.types(family)?;
        let mut read = Vec::new();
        for Condition { column, operator, value } in conditions {
            let name = bytes(column, types.column())?;
            let value = bytes(value, types.value(&name))?;
            let op = match operator.as_str() {
                "=" => IndexOperator::Eq,
                ">" => IndexOperator::Gt,
                ">=" => IndexOperator::Gte,
                "<" => IndexOperator::Lt,
                "<=" => IndexOperator::Lte,
                other => bail!("Syntax error: no comparison {other}"),
            };
            read.push((name, op, value));
        }
        let expressions =
            read.iter().map(|(name, op, value)| IndexExpression { column_name: name, op: *op, value });
        let asked = args::GetIndexedSlices {
            column_parent: ColumnParent { column_family: family, super_column: None },
            index_clause: IndexClause {
                expressions: expressions.collect(),
                start_key: &[],
                count: limit.unwrap_or(LIMIT),
            },
            column_predicate: slice(false, COLUMNS_MAX),
            consistency_level: self.level,
        };
        let rows = self.client.call::<Vec<KeySlice<'_>>>(Method::GetIndexedSlices, |out| asked.write(out))?;
        Ok(print_rows(&rows.unwrap_or_default(), &types)?)
    }

    pub(super) fn list(&mut self, statement: &Statement) -> Result<()> {
        let Statement::List { family, start, finish, limit, columns, reversed } = statement else {
            return Ok(());
        };
        let types = self.types(family)?;
        if limit.is_none() {
            say!("Using default limit of {LIMIT}")?;
        }
        if columns.is_none() {
            say!("Using default cell limit of {LIMIT}")?;
        }
        let key = |written: &Option<Written>| match written {
            Some(written) => bytes(written, &types.keys),
            None => Ok(Vec::new()),
        };
        let (start, finish) = (key(start)?, key(finish)?);
        let asked = args::GetRangeSlices {
            column_parent: ColumnParent { column_family: family, super_column: None },
            predicate: slice(*reversed, columns.unwrap_or(LIMIT)),
            range: KeyRange {
                start_key: Some(&start),
                end_key: Some(&finish),
                start_token: None,
                end_token: None,
                row_filter: None,
                count: limit.unwrap_or(LIMIT),
            },
            consistency_level: self.level,
        };
        let rows = self.client.call::<Vec<KeySlice<'_>>>(Method::GetRangeSlices, |out| asked.write(out))?;
        let mut rows = rows.unwrap_or_default();
        // A deleted row may still appear, without columns.
        rows.retain(|row| !row.columns.is_empty());
        Ok(print_rows(&rows, &types)?)
    }
}

fn print_rows(rows: &[KeySlice<'_>], types: &FamilyTypes) -> io::Result<()> {
    for row in rows {
        say!("-------------------")?;
        say!("RowKey: {}", types.keys.text_of(row.key))?;
        row.columns.iter().try_for_each(|column| print(column, types, false, None))?;
    }
    say!("\n{} Row{} Returned.", rows.len(), if rows.len() > 1 { "s" } else { "" })
}

/// Prints a column or super column. With `within`, the answer holds single columns of a super column.
fn print(
    found: &ColumnOrSuperColumn<'_>,
    types: &FamilyTypes,
    within: bool,
    shown_as: Option<&Comparator>,
) -> io::Result<()> {
    let names = if types.is_super && within { &types.subnames } else { &types.names };
    if let Some(column) = &found.column {
        say!("=> {}", column_text(column, names, types, shown_as))?;
    }
    if let Some(counter) = &found.counter_column {
        say!("=> (counter={}, value={})", names.text_of(counter.name), counter.value)?;
    }
    if let Some(of) = &found.super_column {
        put!("=> (super_column={},", types.names.text_of(of.name))?;
        for column in &of.columns {
            put!("\n     {}", column_text(column, &types.subnames, types, shown_as))?;
        }
        say!(")")?;
    }
    if let Some(of) = &found.counter_super_column {
        put!("=> (super_column={},", types.names.text_of(of.name))?;
        for counter in &of.columns {
            put!("\n     (counter={}, value={})", types.subnames.text_of(counter.name), counter.value)?;
        }
        say!(")")?;
    }
    Ok(())
}

fn column_text(
    column: &Column<'_>,
    names: &Comparator,
    types: &FamilyTypes,
    shown_as: Option<&Comparator>,
) -> String {
    let values = shown_as.unwrap_or_else(|| types.value(column.name));
    let ttl = column.ttl.map(|ttl| format!(", ttl={ttl}")).unwrap_or_default();
    format!(
        "(name={}, value={}, timestamp={}{ttl})",
        names.text_of(column.name),
        values.text_of(column.value.unwrap_or_default()),
        column.timestamp.unwrap_or_default()
    )
}
