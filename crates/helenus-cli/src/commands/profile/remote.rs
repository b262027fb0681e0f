//! Profiles a server as a client sees it: one connection, one request at a time. The request is a prepared statement
//! over CQL and a get_slice over Thrift RPC. Both use the same tables, which have COMPACT STORAGE if RPC created them.
//!
//! The measured time is from the first byte written to the last byte read. The request is assembled before, and the
//! answer is decoded after.

use super::admin_client::AdminClient;
use super::answer::Answer;
use super::cases::{Query, Slice};
use super::options::RunOptions;
use super::progress::Progress;
use super::results::Settled;
use super::rows::Partition;
use super::subject::Subject;
use crate::commands::access::AccessOptions;
use crate::commands::client::{
    AnswerBody, BlockingClient, Endpoint, Session, Template, calls, columns, of_reply,
};
use crate::commands::stress::content::{NAME, name};
use crate::commands::stress::{WideLoad, WideOrder as Order, create_wide_table, load_wide};
use anyhow::{Context, Result, bail, ensure};
use helenus_engine::read::Probe;
use helenus_wire::native::{Response, ResultMessage, Rows, Version};
use helenus_wire::thrift::{Reader, SlicePredicate, Type};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// A connected server.
pub(super) struct Remote {
    address: String,
    /// The version of the native protocol; `None` over Thrift RPC.
    version: Option<Version>,
    access: AccessOptions,
    keyspace: String,
    /// The admin socket for flush and compaction, if there is one.
    admin: Option<AdminClient>,
    caller: BlockingClient,
    /// The request templates by shape.
    requests: HashMap<Shape, Template>,
}

/// Everything that determines the statement of a query and the sizes of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    width: u64,
    descending: bool,
    /// The number of names, for a query by name.
    names: Option<usize>,
    has_start: bool,
    reversed: bool,
    count: u64,
}

impl Shape {
    fn of(partition: Partition, query: &Query) -> Shape {
        let (width, descending) = (partition.row.width, partition.order == Order::Desc);
        let by_name = Shape { width, descending, names: None, has_start: false, reversed: false, count: 0 };
        match query {
            Query::Names(names) => Shape { names: Some(names.len()), ..by_name },
            Query::Slice(Slice { start, reversed, count }) => {
                Shape { has_start: start.is_some(), reversed: *reversed, count: *count, ..by_name }
            }
        }
    }

    fn statement(&self, keyspace: &str) -> String {
        let order = if self.descending { Order::Desc } else { Order::Asc };
        let head = format!("SELECT name, value FROM {keyspace}.{} WHERE key = ?", order.table());
        if self.names.is_some() {
            return format!("{head} AND name IN ?");
        }
        let downwards = self.descending != self.reversed;
        let bound = match (self.has_start, downwards) {
            (false, _) => "",
            (true, false) => " AND name >= ?",
            (true, true) => " AND name <= ?",
        };
        let turned = match (self.reversed, downwards) {
            (false, _) => "",
            (true, true) => " ORDER BY name DESC",
            (true, false) => " ORDER BY name ASC",
        };
        format!("{head}{bound}{turned} LIMIT {}", self.count)
    }

    fn request(&self, caller: &mut BlockingClient, keyspace: &str) -> Result<Template> {
        let key = format!("row-{}", self.width).into_bytes();
        match caller {
            BlockingClient::Cql(session) => self.execute(session, keyspace, &key),
            BlockingClient::Rpc(_) => self.get_slice(&key),
        }
    }

    fn get_slice(&self, key: &[u8]) -> Result<Template> {
        let order = if self.descending { Order::Desc } else { Order::Asc };
        let some = [b'0'; NAME];
        let predicate = match self.names {
            Some(names) => SlicePredicate { column_names: Some(vec![&some[..]; names]), slice_range: None },
            None => {
                let start = if self.has_start { &some[..] } else { &[] };
                calls::range(start, &[], self.reversed, i32::try_from(self.count)?)
            }
        };
        calls::get_slice(order.table(), key, predicate)
    }

    fn execute(&self, session: &mut Session, keyspace: &str, key: &[u8]) -> Result<Template> {
        let prepared = session.prepare(&self.statement(keyspace))?;
        let list = list_of(self.names.unwrap_or_default());
        let values: &[&[u8]] = match (self.names, self.has_start) {
            (Some(_), _) => &[key, &list],
            (None, true) => &[key, &[b'0'; NAME]],
            (None, false) => &[key],
        };
        Template::execute(session.version(), &prepared, values, true)
    }
}

/// A list of names to be set: its count, then each name with its length.
fn list_of(names: usize) -> Vec<u8> {
    let mut list = (names as i32).to_be_bytes().to_vec();
    for _ in 0..names {
        list.extend_from_slice(&(NAME as i32).to_be_bytes());
        list.extend_from_slice(&[b'0'; NAME]);
    }
    list
}

impl Remote {
    /// Connects to the server.
    pub fn open(at: Endpoint<'_>, options: &RunOptions) -> Result<Remote> {
        let version = match at {
            Endpoint::Cql(_, version, _) => Some(version),
            Endpoint::Rpc(..) => None,
        };
        Ok(Remote {
            address: at.address().to_owned(),
            version,
            access: AccessOptions::of(at.access()),
            keyspace: options.keyspace.clone(),
            admin: AdminClient::find(at.address(), options.server_data.as_deref())?,
            caller: BlockingClient::open(at)?,
            requests: HashMap::new(),
        })
    }

    fn at(&self) -> Result<Endpoint<'_>> {
        let access = self.access.access()?;
        Ok(match self.version {
            Some(version) => Endpoint::Cql(&self.address, version, access),
            None => Endpoint::Rpc(&self.address, access),
        })
    }
}

impl Subject for Remote {
    fn make_tables(&mut self, anew: bool) -> Result<()> {
        let (caller, keyspace) = (&mut self.caller, &self.keyspace);
        if anew {
            caller.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        }
        caller.run(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': 1}}"
        ))?;
        let is_compact = caller.sees_compact_tables_alone();
        for order in [Order::Asc, Order::Desc] {
            caller.run(&create_wide_table(keyspace, order, is_compact))?;
        }
        match caller {
            BlockingClient::Cql(_) => Ok(()),
            BlockingClient::Rpc(client) => client.use_keyspace(keyspace),
        }
    }

    fn load(&mut self, partition: Partition, progress: &Progress) -> Result<()> {
        let load = WideLoad {
            endpoint: self.at()?,
            keyspace: &self.keyspace,
            order: partition.order,
            width: partition.row.width,
        };
        load_wide(load, &|columns| progress.add(columns))
    }

    fn settle(&mut self) -> Result<Settled> {
        let Some(door) = &self.admin else { return Ok(Settled::default()) };
        let flush_s = Some(door.flush(&self.keyspace)?.as_secs_f64());
        let compact_s = Some(door.compact(&self.keyspace).context("the compaction")?.as_secs_f64());
        let (sstables, disk_bytes) = door.footprint(&self.keyspace)?;
        let (sstables, disk_bytes) = (Some(sstables), Some(disk_bytes));
        Ok(Settled { flush_s, compact_s, sstables, disk_bytes, after_load: None })
    }

    fn ask(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Duration> {
        let shape = Shape::of(partition, query);
        let request = match self.requests.entry(shape) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(shape.request(&mut self.caller, &self.keyspace)?),
        };
        answer.clear();
        // In CQL, the list value begins with its count and the first length.
        let names_at = if self.version.is_some() { 8 } else { 0 };
        let fill = |out: &mut Vec<u8>| {
            let mut copy = request.put(0, out);
            match query {
                Query::Names(names) => {
                    for (at, column) in names.iter().enumerate() {
                        copy.set(1, names_at + at * (4 + NAME), &name(*column));
                    }
                }
                Query::Slice(Slice { start: Some(start), .. }) => copy.set(1, 0, &name(*start)),
                Query::Slice(_) => {}
            }
        };
        match &mut self.caller {
            BlockingClient::Cql(session) => session.exchange(fill, |response| match response {
                Response::Result(ResultMessage::Rows(rows)) => take(&rows, answer),
                Response::Error(error) => bail!("{}: {}", error.detail.code().name(), error.message),
                other => bail!("an answer that does not fit: {other:?}"),
            }),
            BlockingClient::Rpc(client) => client.exchange(fill, |message| match of_reply(message)? {
                Ok(AnswerBody::Value(Type::List, reader)) => take_columns(reader, answer),
                Ok(other) => bail!("an answer that does not fit: {other:?}"),
                Err(refusal) => bail!("{}: {}", refusal.kind, refusal.text),
            }),
        }
    }

    fn probe(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Option<Probe>> {
        self.ask(partition, query, answer)?;
        Ok(None)
    }
}

fn take(rows: &Rows<'_>, answer: &mut Answer) -> Result<()> {
    let mut count = 0;
    for row in rows.iter() {
        let mut cells = row?.cells();
        answer.push(cells.next().flatten(), cells.next().flatten());
        count += 1;
    }
    ensure!(count == rows.row_count as u64, "the rows of an answer end within a cell");
    Ok(())
}

fn take_columns(reader: Reader<'_>, answer: &mut Answer) -> Result<()> {
    for column in columns(reader)?.1 {
        let column = column?;
        answer.push(column.name, column.value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::cases::{CASES, Test};
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn the_statements_are_those_that_a_person_would_write() {
        let statement = |test: Test, id: &str| {
            let case = CASES.iter().find(|case| case.test == test && case.id == id).unwrap();
            let partition = Partition { order: case.order, row: ROWS[3] };
            Shape::of(partition, &case.query(ROWS[3], 0)).statement("profile")
        };
        assert_eq!(
            statement(Test::Names, "middle"),
            "SELECT name, value FROM profile.ascending WHERE key = ? AND name IN ?"
        );
        assert_eq!(
            statement(Test::Start, "none"),
            "SELECT name, value FROM profile.ascending WHERE key = ? LIMIT 100"
        );
        assert_eq!(
            statement(Test::Recent, "by-count-ascending"),
            "SELECT name, value FROM profile.ascending WHERE key = ? ORDER BY name DESC LIMIT 100"
        );
        assert_eq!(
            statement(Test::Recent, "by-start-reversed"),
            "SELECT name, value FROM profile.reversed WHERE key = ? AND name <= ? LIMIT 100"
        );
    }
}
