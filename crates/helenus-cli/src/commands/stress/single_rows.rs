//! Workloads on rows of five columns, each a partition of its own: what "CQL benchmarking" (2011) inserted, counted and
//! read, over every interface. `statements` has the texts of statements.

use super::content::{COLUMNS, KEY, VALUE, below, key, mix, value};
use super::interface::Interface;
use super::options::LoadOptions;
use super::statements::{self, INDEXED, NAMES, counters, table};
use super::workload::{Extent, Workload, Wrong, check_cell, check_columns, check_rows, check_void};
use crate::commands::client::{AnswerBody, BlockingClient, Copy, Template, calls};
use anyhow::Result;
use helenus_wire::thrift::{CqlResult, Field, Type};

/// Writes rows 0 to `rows`.
pub(super) struct Insert {
    request: Request,
    rows: u64,
    indexed: bool,
}

/// Reads random rows.
pub(super) struct Read {
    request: Request,
    rows: u64,
}

/// Reads random rows by the value of the indexed column.
pub(super) struct Find {
    request: Request,
    rows: u64,
}

/// Adds 1 to the five counters of random rows, or to one of them.
pub(super) struct Count {
    requests: Vec<Request>,
    rows: u64,
}

/// A request whose values each copy sets.
struct Request {
    template: Template,
    /// The index of the key among the template's values, and those of the columns' values.
    key: usize,
    values: [usize; COLUMNS],
    /// Whether values are hexadecimal digits in a text.
    is_text: bool,
}

impl Request {
    /// A prepared statement with the key first.
    fn prepared(template: Template) -> Request {
        Request { template, key: 0, values: [1, 2, 3, 4, 5], is_text: false }
    }

    /// An RPC call, which repeats the key beside each column's name and value.
    fn call(template: Template) -> Request {
        Request { template, key: 0, values: [2, 5, 8, 11, 14], is_text: false }
    }

    fn text(template: Template) -> Request {
        Request { template, key: 0, values: [1, 2, 3, 4, 5], is_text: true }
    }

    /// Places the key after `values` values.
    fn key_after(mut self, values: usize) -> Request {
        self.key = values;
        self.values = [0, 1, 2, 3, 4];
        self
    }

    fn set(&self, copy: &mut Copy<'_>, place: usize, bytes: &[u8]) {
        if self.is_text { copy.set_hex(place, bytes) } else { copy.set(place, 0, bytes) }
    }
}

impl Insert {
    /// `as_update` uses UPDATE in place of INSERT, as "CQL benchmarking" did. RPC does not distinguish them, and CQL 2
    /// always uses UPDATE.
    pub fn prepare(
        caller: &mut BlockingClient,
        load: &LoadOptions,
        indexed: bool,
        as_update: bool,
    ) -> Result<Insert> {
        let (keyspace, table) = (&load.keyspace, table(indexed));
        let (key, value): (&[u8], &[u8]) = (&[0; KEY], &[0; VALUE]);
        let request = match (caller, load.interface()) {
            (BlockingClient::Cql(session), Interface::Prepared) if as_update => {
                let statement = session.prepare(&statements::update(keyspace, table))?;
                let values = [value, value, value, value, value, key];
                let template = Template::execute(session.version(), &statement, &values, false)?;
                Request::prepared(template).key_after(COLUMNS)
            }
            (BlockingClient::Cql(session), Interface::Prepared) => {
                let statement = session.prepare(&statements::insert(keyspace, table))?;
                let values = [key, value, value, value, value, value];
                Request::prepared(Template::execute(session.version(), &statement, &values, false)?)
            }
            (BlockingClient::Cql(session), _) if as_update => {
                let text = statements::update_text(keyspace, table);
                Request::text(Template::query(session.version(), &text)?).key_after(COLUMNS)
            }
            (BlockingClient::Cql(session), _) => {
                let text = statements::insert_text(keyspace, table);
                Request::text(Template::query(session.version(), &text)?)
            }
            (BlockingClient::Rpc(_), Interface::Cql2) => {
                let template = calls::execute_first(&statements::first_update(table))?;
                Request::text(template).key_after(COLUMNS)
            }
            (BlockingClient::Rpc(_), _) => {
                let columns = NAMES.map(|name| (name.as_bytes(), value));
                Request::call(calls::write_columns(table, key, &columns)?)
            }
        };
        Ok(Insert { request, rows: load.rows, indexed })
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
        let request = &self.request;
        let mut copy = request.template.put(stream, out);
        request.set(&mut copy, request.key, &key(operation));
        for (column, place) in request.values.into_iter().enumerate() {
            request.set(&mut copy, place, &value(operation, column));
        }
    }

    fn check(&self, _operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        check_void(answer).map(|()| 1)
    }
}

impl Read {
    pub fn prepare(caller: &mut BlockingClient, load: &LoadOptions) -> Result<Read> {
        let (keyspace, table, key) = (&load.keyspace, table(false), &[0; KEY]);
        let request = match (caller, load.interface()) {
            (BlockingClient::Cql(session), Interface::Prepared) => {
                let statement = session.prepare(&statements::select(keyspace, table))?;
                Request::prepared(Template::execute(session.version(), &statement, &[key], true)?)
            }
            (BlockingClient::Cql(session), _) => {
                let text = statements::select_text(keyspace, table);
                Request::text(Template::query(session.version(), &text)?)
            }
            (BlockingClient::Rpc(_), Interface::Cql2) => {
                Request::text(calls::execute_first(&statements::first_select(table))?)
            }
            (BlockingClient::Rpc(_), _) => {
                let all = calls::range(b"", b"", false, COLUMNS as i32);
                Request::call(calls::get_slice(table, key, all)?)
            }
        };
        Ok(Read { request, rows: load.rows })
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
        let request = &self.request;
        request.set(&mut request.template.put(stream, out), request.key, &key(self.row(operation)));
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        check_values(answer, self.row(operation))
    }
}

/// Checks that the answer is one row with the values of row `row`.
fn check_values(answer: &AnswerBody<'_>, row: u64) -> Result<u64, Wrong> {
    if let AnswerBody::Value(Type::Struct, reader) = answer {
        let result = CqlResult::read(&mut reader.clone())?;
        let rows = result.rows.unwrap_or_default();
        let [only] = &rows[..] else { return Err(Wrong::Count { expected: 1, found: rows.len() as u64 }) };
        let found = only.columns.len() as u64;
        if found != COLUMNS as u64 {
            return Err(Wrong::Count { expected: COLUMNS as u64, found });
        }
        for (column, cell) in only.columns.iter().enumerate() {
            let name = NAMES.get(column).copied().unwrap_or_default();
            check_cell((0, column), Some(cell.name), name.as_bytes())?;
            check_cell((0, column), cell.value, &value(row, column))?;
        }
        return Ok(1);
    }
    if let AnswerBody::Value(..) = answer {
        return check_columns(answer, COLUMNS as u64, |at, found| {
            let column = at as usize;
            let name = NAMES.get(column).copied().unwrap_or_default();
            check_cell((0, column), found.name, name.as_bytes())?;
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

/// Converts an answer to get_indexed_slices with a single row into the answer that has that row's columns. Returns any
/// other answer as it is.
fn only_row<'a>(answer: &AnswerBody<'a>) -> Result<AnswerBody<'a>, Wrong> {
    let AnswerBody::Value(Type::List, reader) = answer else { return Ok(answer.clone()) };
    let mut reader = reader.clone();
    let (_, found) = reader.list()?;
    if found != 1 {
        return Err(Wrong::Count { expected: 1, found: found as u64 });
    }
    while let Some((ty, number)) = reader.field()? {
        if (ty, number) == (Type::List, 2) {
            return Ok(AnswerBody::Value(ty, reader));
        }
        reader.skip(ty)?;
    }
    Err(Wrong::Cut)
}

impl Find {
    pub fn prepare(caller: &mut BlockingClient, load: &LoadOptions) -> Result<Find> {
        let (keyspace, table, value) = (&load.keyspace, table(true), &[0; VALUE]);
        let request = match (caller, load.interface()) {
            (BlockingClient::Cql(session), Interface::Prepared) => {
                let statement = session.prepare(&statements::find(keyspace, table))?;
                Request::prepared(Template::execute(session.version(), &statement, &[value], true)?)
            }
            (BlockingClient::Cql(session), _) => {
                let text = statements::find_text(keyspace, table);
                Request::text(Template::query(session.version(), &text)?)
            }
            (BlockingClient::Rpc(_), Interface::Cql2) => {
                Request::text(calls::execute_first(&statements::first_find(table))?)
            }
            (BlockingClient::Rpc(_), _) => {
                let name = NAMES.get(INDEXED).copied().unwrap_or_default();
                Request::call(calls::find(table, name.as_bytes(), value, 100)?)
            }
        };
        Ok(Find { request, rows: load.rows })
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
        let (request, row) = (&self.request, below(operation, self.rows));
        request.set(&mut request.template.put(stream, out), 0, &value(row, INDEXED));
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        check_values(&only_row(answer)?, below(operation, self.rows))
    }
}

impl Count {
    /// `single`: one counter for each request.
    pub fn prepare(caller: &mut BlockingClient, load: &LoadOptions, single: bool) -> Result<Count> {
        let each = if single { NAMES.iter().map(std::slice::from_ref).collect() } else { vec![&NAMES[..]] };
        let requests = each.into_iter().map(|names| Count::request(caller, load, names, single));
        Ok(Count { requests: requests.collect::<Result<_>>()?, rows: load.rows })
    }

    fn request(
        caller: &mut BlockingClient,
        load: &LoadOptions,
        names: &[&str],
        single: bool,
    ) -> Result<Request> {
        let (keyspace, table, key) = (&load.keyspace, counters(), &[0; KEY]);
        Ok(match (caller, load.interface()) {
            (BlockingClient::Cql(session), Interface::Prepared) => {
                let statement = session.prepare(&statements::count(keyspace, names))?;
                Request::prepared(Template::execute(session.version(), &statement, &[key], false)?)
            }
            (BlockingClient::Cql(session), _) => {
                let text = statements::count_text(keyspace, names);
                Request::text(Template::query(session.version(), &text)?)
            }
            (BlockingClient::Rpc(_), Interface::Cql2) => {
                Request::text(calls::execute_first(&statements::first_count(names))?)
            }
            (BlockingClient::Rpc(_), _) => {
                let columns: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
                Request::call(match columns[..] {
                    [name] if single => calls::add(table, key, name)?,
                    _ => calls::add_to_counters(table, key, &columns)?,
                })
            }
        })
    }
}

impl Workload for Count {
    fn name(&self) -> String {
        if self.requests.len() > 1 { "count one".into() } else { "count".into() }
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let which = below(mix(operation), self.requests.len() as u64) as usize;
        if let Some(request) = self.requests.get(which) {
            request.set(&mut request.template.put(stream, out), 0, &key(below(operation, self.rows)));
        }
    }

    fn check(&self, _operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        check_void(answer).map(|()| 1)
    }
}
