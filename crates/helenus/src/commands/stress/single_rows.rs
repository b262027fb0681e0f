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
}

/// Reads random ones of them.
pub(super) struct Read {
    template: Template,
    rows: u64,
}

/// Makes the table if it is not there.
pub(super) fn make_table(session: &mut Session, keyspace: &str) -> Result<()> {
    session.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.standard1 (key blob PRIMARY KEY, \"C0\" blob, \"C1\" blob, \"C2\" blob, \
         \"C3\" blob, \"C4\" blob)"
    ))
}

impl Insert {
    pub fn prepare(session: &mut Session, load: &LoadOptions) -> Result<Insert> {
        let statement = session.prepare(&format!(
            "INSERT INTO {}.standard1 (key, \"C0\", \"C1\", \"C2\", \"C3\", \"C4\") VALUES (?, ?, ?, ?, ?, ?)",
            load.keyspace
        ))?;
        let value: &[u8] = &[0; VALUE];
        let values = [&[0; KEY], value, value, value, value, value];
        let template = Template::execute(session.version(), &statement, &values, false)?;
        Ok(Insert { template, rows: load.rows })
    }
}

impl Workload for Insert {
    fn name(&self) -> String {
        "insert".into()
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
        let rows = check_rows(result, 1)?;
        let row = self.row(operation);
        let found = rows.iter().next().and_then(Result::ok).ok_or(Wrong::Cut)?;
        let mut columns = 0;
        for (column, cell) in found.cells().enumerate() {
            check_cell((0, column), cell, &value(row, column))?;
            columns += 1;
        }
        if columns == COLUMNS { Ok(1) } else { Err(Wrong::Cut) }
    }
}
