//! Rows of five columns under a key of their own: the old CQL benchmark's insert and read.

use super::content::{COLUMNS, KEY, VALUE, below, key, value};
use super::options::LoadOptions;
use super::workload::{Extent, Workload, Wrong, check_cell, check_rows, check_void};
use crate::commands::client::{Session, Template};
use anyhow::Result;
use helenus_wire::native::ResultMessage;

/// Writes rows 0 to `rows`.
pub(super) struct Insert {
    template: Template,
    rows: u64,
    indexed: bool,
}

/// Reads random ones of them.
pub(super) struct Read {
    template: Template,
    rows: u64,
}

/// Reads random ones of them by the value of the column that has an index.
pub(super) struct Find {
    template: Template,
    rows: u64,
}

/// Adds 1 to the five counters of random rows.
pub(super) struct Count {
    template: Template,
    rows: u64,
}

/// The column that has an index, in the table that has one.
const INDEXED: usize = 1;

/// Name of the table of rows, without an index or with one.
fn table(indexed: bool) -> &'static str {
    if indexed { "indexed1" } else { "standard1" }
}

/// Makes the table if it is not there, with an index on `C1` if that is asked for.
pub(super) fn make_table(session: &mut Session, keyspace: &str, indexed: bool) -> Result<()> {
    let table = table(indexed);
    session.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.{table} (key blob PRIMARY KEY, \"C0\" blob, \"C1\" blob, \"C2\" blob, \
         \"C3\" blob, \"C4\" blob)"
    ))?;
    if indexed {
        let index = format!("CREATE INDEX IF NOT EXISTS {table}_c1 ON {keyspace}.{table} (\"C{INDEXED}\")");
        session.run(&index)?;
    }
    Ok(())
}

/// Makes the table of counters if it is not there.
pub(super) fn make_counters(session: &mut Session, keyspace: &str) -> Result<()> {
    session.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.counter1 (key blob PRIMARY KEY, \"C0\" counter, \"C1\" counter, \
         \"C2\" counter, \"C3\" counter, \"C4\" counter)"
    ))
}

impl Insert {
    pub fn prepare(session: &mut Session, load: &LoadOptions, indexed: bool) -> Result<Insert> {
        let statement = session.prepare(&format!(
            "INSERT INTO {}.{} (key, \"C0\", \"C1\", \"C2\", \"C3\", \"C4\") VALUES (?, ?, ?, ?, ?, ?)",
            load.keyspace,
            table(indexed)
        ))?;
        let value: &[u8] = &[0; VALUE];
        let values = [&[0; KEY], value, value, value, value, value];
        let template = Template::execute(session.version(), &statement, &values, false)?;
        Ok(Insert { template, rows: load.rows, indexed })
    }
}

impl Workload for Insert {
    fn name(&self) -> String {
        if self.indexed { "insert with an index".into() } else { "insert".into() }
    }

    fn extent(&self) -> Extent {
        Extent::Each(self.rows)
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let mut copy = self.template.put(stream, out);
        copy.set(0, 0, &key(operation));
        for column in 0..COLUMNS {
            copy.set(1 + column, 0, &value(operation, column));
        }
    }

    fn check(&self, _operation: u64, result: &ResultMessage<'_>) -> Result<u64, Wrong> {
        check_void(result).map(|()| 1)
    }
}

impl Read {
    pub fn prepare(session: &mut Session, load: &LoadOptions) -> Result<Read> {
        let statement = session.prepare(&format!(
            "SELECT \"C0\", \"C1\", \"C2\", \"C3\", \"C4\" FROM {}.standard1 WHERE key = ?",
            load.keyspace
        ))?;
        let template = Template::execute(session.version(), &statement, &[&[0; KEY]], true)?;
        Ok(Read { template, rows: load.rows })
    }

    fn row(&self, operation: u64) -> u64 {
        below(operation, self.rows)
    }
}

impl Workload for Read {
    fn name(&self) -> String {
        "read".into()
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        self.template.put(stream, out).set(0, 0, &key(self.row(operation)));
    }

    fn check(&self, operation: u64, result: &ResultMessage<'_>) -> Result<u64, Wrong> {
        check_values(result, self.row(operation))
    }
}

/// One row, with the values of this number.
fn check_values(result: &ResultMessage<'_>, row: u64) -> Result<u64, Wrong> {
    let rows = check_rows(result, 1)?;
    let found = rows.iter().next().and_then(Result::ok).ok_or(Wrong::Cut)?;
    let mut columns = 0;
    for (column, cell) in found.cells().enumerate() {
        check_cell((0, column), cell, &value(row, column))?;
        columns += 1;
    }
    if columns == COLUMNS { Ok(1) } else { Err(Wrong::Cut) }
}

impl Find {
    pub fn prepare(session: &mut Session, load: &LoadOptions) -> Result<Find> {
        let statement = session.prepare(&format!(
            "SELECT \"C0\", \"C1\", \"C2\", \"C3\", \"C4\" FROM {}.{} WHERE \"C{INDEXED}\" = ?",
            load.keyspace,
            table(true)
        ))?;
        let template = Template::execute(session.version(), &statement, &[&[0; VALUE]], true)?;
        Ok(Find { template, rows: load.rows })
    }
}

impl Workload for Find {
    fn name(&self) -> String {
        "find by an index".into()
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        self.template.put(stream, out).set(0, 0, &value(below(operation, self.rows), INDEXED));
    }

    fn check(&self, operation: u64, result: &ResultMessage<'_>) -> Result<u64, Wrong> {
        check_values(result, below(operation, self.rows))
    }
}

impl Count {
    pub fn prepare(session: &mut Session, load: &LoadOptions) -> Result<Count> {
        let add: Vec<String> =
            (0..COLUMNS).map(|column| format!("\"C{column}\" = \"C{column}\" + 1")).collect();
        let statement = session.prepare(&format!(
            "UPDATE {}.counter1 SET {} WHERE key = ?",
            load.keyspace,
            add.join(", ")
        ))?;
        let template = Template::execute(session.version(), &statement, &[&[0; KEY]], false)?;
        Ok(Count { template, rows: load.rows })
    }
}

impl Workload for Count {
    fn name(&self) -> String {
        "count".into()
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        self.template.put(stream, out).set(0, 0, &key(below(operation, self.rows)));
    }

    fn check(&self, _operation: u64, result: &ResultMessage<'_>) -> Result<u64, Wrong> {
        check_void(result).map(|()| 1)
    }
}
