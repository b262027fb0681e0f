//! Workloads on one wide partition, as in "Cassandra Query Plans" (2011): loading in batches, reading by slices and by
//! names.

use super::content::{NAME, WIDE_VALUE, below, mix, name, wide_value};
use super::options::{LoadOptions, Order, Start};
use super::workload::{Extent, Workload, Wrong, check_cell, check_columns, check_void};
use crate::commands::client::{AnswerBody, BlockingClient, Template, calls};
use anyhow::{Result, ensure};
use helenus_wire::thrift::SlicePredicate;

/// Number of rows in a page of "Cassandra Query Plans": 64 KiB of columns of 50 bytes.
const PAGE_ROWS: u64 = 1_310;

/// A wide partition: its table and its width.
#[derive(Clone, Copy, Debug)]
struct Partition {
    order: Order,
    width: u64,
}

/// Creates both tables if they do not exist.
pub(super) fn make_tables(caller: &mut BlockingClient, keyspace: &str) -> Result<()> {
    let is_compact = caller.sees_compact_tables_alone();
    for order in [Order::Asc, Order::Desc] {
        caller.run(&create_table(keyspace, order, is_compact))?;
    }
    Ok(())
}

/// The statement that creates the table with the given clustering order.
pub fn create_table(keyspace: &str, order: Order, is_compact: bool) -> String {
    let storage = if is_compact { "COMPACT STORAGE AND " } else { "" };
    let direction = match order {
        Order::Asc => "ASC",
        Order::Desc => "DESC",
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.{} (key text, name text, value text, PRIMARY KEY (key, name)) WITH \
         {storage}CLUSTERING ORDER BY (name {direction}) AND caching = {{'keys': 'NONE', 'rows_per_partition': 'NONE'}}",
        order.table()
    )
}

impl Order {
    /// The name of the table.
    pub fn table(self) -> &'static str {
        match self {
            Order::Asc => "ascending",
            Order::Desc => "reversed",
        }
    }
}

impl Partition {
    fn new(order: Order, load: &LoadOptions, rows_min: u64) -> Result<Partition> {
        ensure!(load.rows >= rows_min, "--rows {} is less than one request asks for ({rows_min})", load.rows);
        ensure!(load.rows <= 10_u64.pow(NAME as u32), "--rows: names of {NAME} digits end at 10^{NAME}");
        Ok(Partition { order, width: load.rows })
    }

    fn key(&self) -> Vec<u8> {
        format!("row-{}", self.width).into_bytes()
    }

    /// Checks that the answer has `expected` rows: the rows with the numbers that `number` returns, in this order.
    fn check(
        &self,
        answer: &AnswerBody<'_>,
        expected: u64,
        number: impl Fn(u64) -> u64,
    ) -> Result<u64, Wrong> {
        check_columns(answer, expected, |at, found| {
            let row = number(at);
            check_cell((at, 0), found.name, &name(row))?;
            check_cell((at, 1), found.value, &wide_value(self.width, row))
        })
    }
}

/// Writes the partition in batches.
pub(super) struct Load {
    partition: Partition,
    batch: u64,
    full: Template,
    /// The last batch, if it is smaller.
    last: Option<Template>,
}

impl Load {
    pub fn prepare(
        caller: &mut BlockingClient,
        load: &LoadOptions,
        order: Order,
        batch: u16,
    ) -> Result<Load> {
        let partition = Partition::new(order, load, u64::from(batch))?;
        let table = order.table();
        let (key, name, value) = (partition.key(), [b'0'; NAME], [b'0'; WIDE_VALUE]);
        let template: Box<dyn Fn(u64) -> Result<Template>> = match caller {
            BlockingClient::Cql(session) => {
                let query =
                    format!("INSERT INTO {}.{table} (key, name, value) VALUES (?, ?, ?)", load.keyspace);
                let (statement, version) = (session.prepare(&query)?, session.version());
                Box::new(move |rows| {
                    Template::batch(version, &statement, &[&key, &name, &value], rows as usize)
                })
            }
            BlockingClient::Rpc(_) => Box::new(move |rows| {
                calls::write_columns(table, &key, &vec![(&name[..], &value[..]); rows as usize])
            }),
        };
        let batch = u64::from(batch);
        let rest = partition.width % batch;
        let last = if rest == 0 { None } else { Some(template(rest)?) };
        Ok(Load { partition, batch, full: template(batch)?, last })
    }

    /// The rows of a batch.
    fn rows(&self, operation: u64) -> std::ops::Range<u64> {
        let start = operation * self.batch;
        start..(start + self.batch).min(self.partition.width)
    }
}

impl Workload for Load {
    fn name(&self) -> String {
        format!("load {} batch {}", self.partition.order.table(), self.batch)
    }

    fn extent(&self) -> Extent {
        Extent::Each(self.partition.width.div_ceil(self.batch))
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let rows = self.rows(operation);
        let is_full = rows.end - rows.start == self.batch;
        let template = self.last.as_ref().filter(|_| !is_full).unwrap_or(&self.full);
        let mut copy = template.put(stream, out);
        for (at, row) in rows.enumerate() {
            copy.set(at * 3 + 1, 0, &name(row));
            copy.set(at * 3 + 2, 0, &wide_value(self.partition.width, row));
        }
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        let rows = self.rows(operation);
        check_void(answer).map(|()| rows.end - rows.start)
    }
}

/// Reads slices.
pub(super) struct Slice {
    partition: Partition,
    start: Start,
    reversed: bool,
    limit: u64,
    template: Template,
}

/// The parameters of slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceShape {
    pub start: Start,
    pub reversed: bool,
    pub limit: u16,
}

impl Slice {
    pub fn prepare(
        caller: &mut BlockingClient,
        load: &LoadOptions,
        order: Order,
        shape: SliceShape,
    ) -> Result<Slice> {
        let SliceShape { start, reversed, limit } = shape;
        let partition = Partition::new(order, load, u64::from(limit))?;
        let (keyspace, table) = (&load.keyspace, order.table());
        let (key, from) = (partition.key(), [b'0'; NAME]);
        let template = match caller {
            BlockingClient::Cql(session) => {
                let (operator, direction) = if reversed { ("<=", "DESC") } else { (">=", "ASC") };
                let bound =
                    if start == Start::First { String::new() } else { format!("AND name {operator} ? ") };
                let statement = session.prepare(&format!(
                    "SELECT name, value FROM {keyspace}.{table} WHERE key = ? {bound}ORDER BY name {direction} LIMIT \
                     {limit}"
                ))?;
                let values: [&[u8]; 2] = [&key, &from];
                let values = if start == Start::First { &values[..1] } else { &values[..] };
                Template::execute(session.version(), &statement, values, true)?
            }
            BlockingClient::Rpc(_) => {
                // Whether the read goes against the table's order.
                let turned = reversed != (order == Order::Desc);
                let from = if start == Start::First { &[][..] } else { &from };
                calls::get_slice(table, &key, calls::range(from, &[], turned, i32::from(limit)))?
            }
        };
        Ok(Slice { partition, start, reversed, limit: u64::from(limit), template })
    }

    /// The number of the slice's first row.
    fn first(&self, operation: u64) -> u64 {
        let width = self.partition.width;
        let up = match self.start {
            Start::First => 0,
            Start::Middle => (width - self.limit) / 2,
            Start::Last => width - self.limit,
            Start::Random => below(operation, width - self.limit + 1),
        };
        if self.reversed { width - 1 - up } else { up }
    }
}

impl Workload for Slice {
    fn name(&self) -> String {
        let (table, start) = (self.partition.order.table(), self.start);
        let direction = if self.reversed { "reversed" } else { "forward" };
        format!("slice {table} {direction} {start:?} of {}", self.partition.width).to_lowercase()
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let mut copy = self.template.put(stream, out);
        if self.start != Start::First {
            copy.set(1, 0, &name(self.first(operation)));
        }
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        let first = self.first(operation);
        self.partition.check(answer, self.limit, |at| if self.reversed { first - at } else { first + at })
    }
}

/// Reads rows by name.
pub(super) struct Names {
    partition: Partition,
    names: u64,
    /// Number of pages for each request, at most the number of names.
    pages: u64,
    template: Template,
    /// The offset of the first name in the template's second value.
    names_at: usize,
}

impl Names {
    pub fn prepare(
        caller: &mut BlockingClient,
        load: &LoadOptions,
        order: Order,
        (names, pages): (u16, u16),
    ) -> Result<Names> {
        let names = u64::from(names);
        let partition = Partition::new(order, load, names)?;
        let (keyspace, table) = (&load.keyspace, order.table());
        let (key, some) = (partition.key(), [b'0'; NAME]);
        let (template, names_at) = match caller {
            BlockingClient::Cql(session) => {
                let query = format!("SELECT name, value FROM {keyspace}.{table} WHERE key = ? AND name IN ?");
                let statement = session.prepare(&query)?;
                // A list value: its count, then each element with its length.
                let mut list = (names as i32).to_be_bytes().to_vec();
                for _ in 0..names {
                    list.extend_from_slice(&(NAME as i32).to_be_bytes());
                    list.extend_from_slice(&some);
                }
                (Template::execute(session.version(), &statement, &[&key, &list], true)?, 8)
            }
            BlockingClient::Rpc(_) => {
                let column_names = Some(vec![&some[..]; names as usize]);
                let predicate = SlicePredicate { column_names, slice_range: None };
                (calls::get_slice(table, &key, predicate)?, 0)
            }
        };
        let pages = u64::from(pages).min(names).min((partition.width / PAGE_ROWS).max(1));
        Ok(Names { partition, names, pages, template, names_at })
    }

    /// The row of the name `at`, ascending in `at`. Each page of the request is drawn from its own share of the
    /// partition, and each name from its own share of its page, so that all are different.
    fn row(&self, operation: u64, at: u64) -> u64 {
        let page_count = (self.partition.width / PAGE_ROWS).max(1);
        let page_rows = if page_count == 1 { self.partition.width } else { PAGE_ROWS };
        let share = ((at + 1) * self.pages - 1) / self.names;
        let page = drawn(page_count, (share, self.pages), mix(operation ^ share));
        let names_before = |share: u64| share * self.names / self.pages;
        let names_here = (at - names_before(share), names_before(share + 1) - names_before(share));
        page * page_rows + drawn(page_rows, names_here, mix(operation ^ (at << 32)))
    }
}

/// A random number from the share `number` of `count` equal shares of 0 to `end`.
fn drawn(end: u64, (number, count): (u64, u64), random: u64) -> u64 {
    let (from, to) = (number * end / count, (number + 1) * end / count);
    from + below(random, to - from)
}

impl Workload for Names {
    fn name(&self) -> String {
        let table = self.partition.order.table();
        format!("names {table} {} on {} pages of {}", self.names, self.pages, self.partition.width)
    }

    fn extent(&self) -> Extent {
        Extent::Any
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let mut copy = self.template.put(stream, out);
        let half = self.names.div_ceil(2);
        for at in 0..self.names {
            // The names are not sorted, because clients rarely sort them.
            let place = if at % 2 == 0 { half - 1 - at / 2 } else { half + at / 2 };
            copy.set(1, self.names_at + place as usize * (4 + NAME), &name(self.row(operation, at)));
        }
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        self.partition.check(answer, self.names, |at| match self.partition.order {
            Order::Asc => self.row(operation, at),
            Order::Desc => self.row(operation, self.names - 1 - at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_names_of_a_request_are_different_ascending_and_on_as_many_pages_as_asked() {
        for (width, names, pages) in
            [(100, 100, 1), (1_310, 7, 1), (10_000, 100, 7), (1_000_000, 100, 50), (10_000_000, 5, 2)]
        {
            let partition = Partition { order: Order::Asc, width };
            let template = Template::default();
            let names = Names { partition, names, pages, template, names_at: 0 };
            for operation in (0..50).map(mix) {
                let rows: Vec<u64> = (0..names.names).map(|at| names.row(operation, at)).collect();
                assert!(rows.is_sorted_by(|a, b| a < b), "{width} {rows:?}");
                assert!(rows.iter().all(|row| *row < width));
                let found: BTreeSet<u64> = rows.iter().map(|row| row / PAGE_ROWS).collect();
                assert_eq!(found.len() as u64, pages, "{width} {rows:?}");
            }
        }
    }
}
