//! A CQL server as a subject: one connection, one prepared statement at a time, as a client sees it.
//!
//! Timed is from the first byte written to the last one read. The request is put together before, columns are taken out
//! of the answer after.

use super::answer::Answer;
use super::cases::{Query, Slice};
use super::door::Door;
use super::options::RunOptions;
use super::progress::Progress;
use super::results::Settled;
use super::rows::Partition;
use super::subject::Subject;
use crate::commands::client::{Session, Template};
use crate::commands::stress::content::{NAME, name};
use crate::commands::stress::{WideLoad, WideOrder as Order, create_wide_table, load_wide};
use anyhow::{Context, Result, bail, ensure};
use helenus_engine::read::Probe;
use helenus_wire::native::{Response, ResultMessage, Rows, Version};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// A server.
pub(super) struct Remote {
    address: String,
    protocol: u8,
    keyspace: String,
    /// Where it can be told to flush and compact, if it can.
    door: Option<Door>,
    session: Session,
    /// Requests by what they differ in besides the columns that they name.
    requests: HashMap<Shape, Template>,
}

/// What decides the statement of a query and the sizes of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    width: u64,
    descending: bool,
    /// Of a query by name: how many.
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

    fn request(&self, session: &mut Session, keyspace: &str) -> Result<Template> {
        let prepared = session.prepare(&self.statement(keyspace))?;
        let key = format!("row-{}", self.width).into_bytes();
        let list = list_of(self.names.unwrap_or_default());
        let values: &[&[u8]] = match (self.names, self.has_start) {
            (Some(_), _) => &[&key, &list],
            (None, true) => &[&key, &[b'0'; NAME]],
            (None, false) => &[&key],
        };
        Template::execute(session.version(), &prepared, values, true)
    }
}

/// A list of names to be set: its count, then each with its length.
fn list_of(names: usize) -> Vec<u8> {
    let mut list = (names as i32).to_be_bytes().to_vec();
    for _ in 0..names {
        list.extend_from_slice(&(NAME as i32).to_be_bytes());
        list.extend_from_slice(&[b'0'; NAME]);
    }
    list
}

impl Remote {
    /// Connects.
    pub fn open(address: &str, options: &RunOptions) -> Result<Remote> {
        let version = Version::from_number(options.protocol, false)?;
        Ok(Remote {
            address: address.to_owned(),
            protocol: options.protocol,
            keyspace: options.keyspace.clone(),
            door: Door::find(address, options.server_data.as_deref())?,
            session: Session::open(address, version)?,
            requests: HashMap::new(),
        })
    }
}

impl Subject for Remote {
    fn make_tables(&mut self, anew: bool) -> Result<()> {
        let (session, keyspace) = (&mut self.session, &self.keyspace);
        if anew {
            session.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        }
        session.run(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': 1}}"
        ))?;
        for order in [Order::Asc, Order::Desc] {
            session.run(&create_wide_table(keyspace, order))?;
        }
        Ok(())
    }

    fn load(&mut self, partition: Partition, progress: &Progress) -> Result<()> {
        let load = WideLoad {
            address: &self.address,
            keyspace: &self.keyspace,
            order: partition.order,
            width: partition.row.width,
            protocol: self.protocol,
        };
        load_wide(load, &|columns| progress.add(columns))
    }

    fn settle(&mut self) -> Result<Settled> {
        let Some(door) = &self.door else { return Ok(Settled::default()) };
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
            Entry::Vacant(place) => place.insert(shape.request(&mut self.session, &self.keyspace)?),
        };
        answer.clear();
        let fill = |out: &mut Vec<u8>| {
            let mut copy = request.put(0, out);
            match query {
                Query::Names(names) => {
                    for (at, column) in names.iter().enumerate() {
                        copy.set(1, 4 + at * (4 + NAME) + 4, &name(*column));
                    }
                }
                Query::Slice(Slice { start: Some(start), .. }) => copy.set(1, 0, &name(*start)),
                Query::Slice(_) => {}
            }
        };
        self.session.exchange(fill, |response| match response {
            Response::Result(ResultMessage::Rows(rows)) => take(&rows, answer),
            Response::Error(error) => bail!("{}: {}", error.detail.code().name(), error.message),
            other => bail!("an answer that does not fit: {other:?}"),
        })
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
