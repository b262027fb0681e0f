//! Rows of five columns under a key of their own: the old CQL benchmark's insert and read.

use super::content::{COLUMNS, KEY, VALUE, below, key, value};
use super::options::LoadOptions;
use super::workload::{Extent, Workload, Wrong, check_cell, check_columns, check_rows, check_void};
use crate::commands::client::{Answered, Caller, Template, calls};
use anyhow::Result;
use helenus_wire::thrift::Type;

/// Writes rows 0 to `rows`.
pub(super) struct Insert {
    template: Template,
    /// Which values of the template those of the columns are; the first is the key.
    value_places: [usize; COLUMNS],
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

/// Names of the columns.
const NAMES: [&[u8]; COLUMNS] = [b"C0", b"C1", b"C2", b"C3", b"C4"];
/// The column that has an index, in the table that has one.
const INDEXED: usize = 1;

/// Name of the table of rows, without an index or with one.
fn table(indexed: bool) -> &'static str {
    if indexed { "indexed1" } else { "standard1" }
}

/// What the end of CREATE TABLE is.
fn storage(caller: &Caller) -> &'static str {
    if caller.sees_compact_tables_alone() { " WITH COMPACT STORAGE" } else { "" }
}

/// Makes the table if it is not there, with an index on `C1` if that is asked for.
pub(super) fn make_table(caller: &mut Caller, keyspace: &str, indexed: bool) -> Result<()> {
    let (table, storage) = (table(indexed), storage(caller));
    caller.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.{table} (key blob PRIMARY KEY, \"C0\" blob, \"C1\" blob, \"C2\" blob, \
         \"C3\" blob, \"C4\" blob){storage}"
    ))?;
    if indexed {
        let index = format!("CREATE INDEX IF NOT EXISTS {table}_c1 ON {keyspace}.{table} (\"C{INDEXED}\")");
        caller.run(&index)?;
    }
    Ok(())
}

/// Makes the table of counters if it is not there.
pub(super) fn make_counters(caller: &mut Caller, keyspace: &str) -> Result<()> {
    caller.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.counter1 (key blob PRIMARY KEY, \"C0\" counter, \"C1\" counter, \
         \"C2\" counter, \"C3\" counter, \"C4\" counter){}",
        storage(caller)
    ))
}

impl Insert {
    pub fn prepare(caller: &mut Caller, load: &LoadOptions, indexed: bool) -> Result<Insert> {
        let (key, value): (&[u8], &[u8]) = (&[0; KEY], &[0; VALUE]);
        let template = match caller {
            Caller::Cql(session) => {
                let statement = session.prepare(&format!(
                    "INSERT INTO {}.{} (key, \"C0\", \"C1\", \"C2\", \"C3\", \"C4\") VALUES (?, ?, ?, ?, ?, ?)",
                    load.keyspace,
                    table(indexed)
                ))?;
                let values = [key, value, value, value, value, value];
                Template::execute(session.version(), &statement, &values, false)?
            }
            Caller::Rpc(_) => {
                let columns = NAMES.map(|name| (name, value));
                calls::write_columns(table(indexed), key, &columns)?
            }
        };
        let value_places = match caller {
            Caller::Cql(_) => [1, 2, 3, 4, 5],
            Caller::Rpc(_) => [2, 5, 8, 11, 14],
        };
        Ok(Insert { template, value_places, rows: load.rows, indexed })
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
        for (column, place) in self.value_places.into_iter().enumerate() {
            copy.set(place, 0, &value(operation, column));
        }
    }

    fn check(&self, _operation: u64, answer: &Answered<'_>) -> Result<u64, Wrong> {
        check_void(answer).map(|()| 1)
    }
}

impl Read {
    pub fn prepare(caller: &mut Caller, load: &LoadOptions) -> Result<Read> {
        let key = &[0; KEY];
        let template = match caller {
            Caller::Cql(session) => {
                let statement = session.prepare(&format!(
                    "SELECT \"C0\", \"C1\", \"C2\", \"C3\", \"C4\" FROM {}.standard1 WHERE key = ?",
                    load.keyspace
                ))?;
                Template::execute(session.version(), &statement, &[key], true)?
            }
            Caller::Rpc(_) => {
                calls::get_slice(table(false), key, calls::range(b"", b"", false, COLUMNS as i32))?
            }
        };
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

    fn check(&self, operation: u64, answer: &Answered<'_>) -> Result<u64, Wrong> {
        check_values(answer, self.row(operation))
    }
}

/// One row, with the values of this number.
fn check_values(answer: &Answered<'_>, row: u64) -> Result<u64, Wrong> {
    if let Answered::Value(..) = answer {
        return check_columns(answer, COLUMNS as u64, |at, found| {
            let column = at as usize;
            check_cell((0, column), found.name, NAMES.get(column).copied().unwrap_or_default())?;
            check_cell((0, column), found.value, &value(row, column))
        })
        .map(|_| 1);
    }
    let rows = check_rows(answer, 1)?;
    let found = rows.iter().next().and_then(Result::ok).ok_or(Wrong::Cut)?;
    let mut columns = 0;
    for (column, cell) in found.cells().enumerate() {
        check_cell((0, column), cell, &value(row, column))?;
        columns += 1;
    }
    if columns == COLUMNS { Ok(1) } else { Err(Wrong::Cut) }
}

/// The answer that the columns of the only row in the answer to get_indexed_slices would be; any other as it is.
fn only_row<'a>(answer: &Answered<'a>) -> Result<Answered<'a>, Wrong> {
    let Answered::Value(Type::List, reader) = answer else { return Ok(answer.clone()) };
    let mut reader = reader.clone();
    let (_, found) = reader.list()?;
    if found != 1 {
        return Err(Wrong::Count { expected: 1, found: found as u64 });
    }
    while let Some((ty, number)) = reader.field()? {
        if (ty, number) == (Type::List, 2) {
            return Ok(Answered::Value(ty, reader));
        }
        reader.skip(ty)?;
    }
    Err(Wrong::Cut)
}

impl Find {
    pub fn prepare(caller: &mut Caller, load: &LoadOptions) -> Result<Find> {
        let template = match caller {
            Caller::Cql(session) => {
                let statement = session.prepare(&format!(
                    "SELECT \"C0\", \"C1\", \"C2\", \"C3\", \"C4\" FROM {}.{} WHERE \"C{INDEXED}\" = ?",
                    load.keyspace,
                    table(true)
                ))?;
                Template::execute(session.version(), &statement, &[&[0; VALUE]], true)?
            }
            Caller::Rpc(_) => calls::find(table(true), NAMES[INDEXED], &[0; VALUE], 100)?,
        };
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

    fn check(&self, operation: u64, answer: &Answered<'_>) -> Result<u64, Wrong> {
        check_values(&only_row(answer)?, below(operation, self.rows))
    }
}

impl Count {
    pub fn prepare(caller: &mut Caller, load: &LoadOptions) -> Result<Count> {
        let add: Vec<String> =
            (0..COLUMNS).map(|column| format!("\"C{column}\" = \"C{column}\" + 1")).collect();
        let template = match caller {
            Caller::Cql(session) => {
                let statement = session.prepare(&format!(
                    "UPDATE {}.counter1 SET {} WHERE key = ?",
                    load.keyspace,
                    add.join(", ")
                ))?;
                Template::execute(session.version(), &statement, &[&[0; KEY]], false)?
            }
            Caller::Rpc(_) => calls::add_to_counters("counter1", &[0; KEY], &NAMES)?,
        };
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

    fn check(&self, _operation: u64, answer: &Answered<'_>) -> Result<u64, Wrong> {
        check_void(answer).map(|()| 1)
    }
}
