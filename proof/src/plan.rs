//! A run of the model test: the tables that there are, and what happens to them, as values and as people read it.

use crate::generate::operations;
use crate::load::CREATE_LOADED;
use crate::random::Random;
use crate::statement::{Select, Write, batch_cql};
use crate::table::{CREATE_TYPE, Table, Timing, table};

/// One step of a run. Tables are named by number.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Write(Write),
    Batch {
        writes: Vec<Write>,
        logged: bool,
    },
    Read(Select),
    Flush(usize),
    Compact(usize),
    /// Steps of background work.
    Background(usize),
    Truncate(usize),
    Restart {
        clean: bool,
    },
    Advance {
        seconds: u64,
    },
    /// Of a hundred reads that may not wait, how many find nothing in memory.
    ColdReads(u64),
    /// Export a table, empty it and import what was exported.
    Move(usize),
    /// Drop a column and make it again.
    Remake {
        table: usize,
        column: usize,
    },
    /// Drop an index and make it again.
    Reindex {
        table: usize,
        index: usize,
    },
    /// Give a table other options: its strategy of compaction, its compression.
    Alter {
        table: usize,
        options: String,
    },
    /// Take a snapshot of a table, which is the one that counts from now on.
    Snapshot(usize),
    /// Empty a table and import its snapshot, if it has one.
    TakeBack(usize),
    /// Export a table with its schema, drop it, and restore both.
    Restore(usize),
    /// Rows are written to a table that no other operation touches.
    Load {
        rows: u32,
    },
    /// That table is dropped and made again.
    DropLoaded,
    /// The wall clock is set back.
    ClockBack {
        seconds: u64,
    },
}

/// A run: what there is, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) timing: Timing,
    pub(crate) tables: Vec<Table>,
    pub(crate) ops: Vec<Op>,
}

impl Plan {
    /// The run of a seed. `count`: operations.
    pub(crate) fn new(seed: u64, count: Option<usize>) -> Plan {
        let mut random = Random::new(seed);
        let timing = if random.chance(60) { Timing::Server } else { Timing::Client };
        let tables: Vec<Table> = (0..2).map(|number| table(&mut random, number, timing)).collect();
        let drawn = *random.pick(&[60, 200, 200, 600, 2000]);
        let keys = 1 + random.below(6);
        let ops = operations(&mut random, &tables, (timing, keys), count.unwrap_or(drawn));
        Plan { seed, timing, tables, ops }
    }

    /// The statements before the first operation.
    pub(crate) fn schema(&self) -> Vec<String> {
        let keyspace =
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
        let before = [keyspace.to_owned(), CREATE_TYPE.to_owned(), CREATE_LOADED.to_owned()];
        before.into_iter().chain(self.tables.iter().flat_map(Table::create)).collect()
    }
}

/// A run as people read it: statements, and what happens between them.
pub(crate) fn script(plan: &Plan) -> String {
    let mut lines = plan.schema();
    lines.extend(plan.ops.iter().map(|op| script_of(plan, op)));
    lines.join("\n")
}

/// One operation as people read it.
pub(crate) fn script_of(plan: &Plan, op: &Op) -> String {
    let named = |table: &usize| plan.tables[*table].name.clone();
    match op {
        Op::Write(write) => write.cql(&plan.tables),
        Op::Batch { writes, logged } => batch_cql(writes, *logged, &plan.tables),
        Op::Read(select) => match select.page {
            Some(page) => format!("{} -- in pages of {page}", select.text(&plan.tables[select.table])),
            None => select.text(&plan.tables[select.table]),
        },
        Op::Flush(table) => format!("-- flush {}", named(table)),
        Op::Compact(table) => format!("-- compact {}", named(table)),
        Op::Background(steps) => format!("-- {steps} steps of background work"),
        Op::Truncate(table) => format!("TRUNCATE {}", named(table)),
        Op::Restart { clean } => (if *clean { "-- restart" } else { "-- power cut and restart" }).into(),
        Op::Advance { seconds } => format!("-- {seconds} seconds pass"),
        Op::ColdReads(percent) => format!("-- {percent} % of reads find nothing in memory"),
        Op::Move(table) => format!("-- export, truncate, import {}", named(table)),
        Op::Remake { table, column } => {
            let of = &plan.tables[*table];
            let (name, column) = (&of.columns[*column].name, of.definition(*column));
            format!("ALTER TABLE {0} DROP {name}; ALTER TABLE {0} ADD {column}", of.name)
        }
        Op::Reindex { table, index } => {
            let of = &plan.tables[*table];
            let index = &of.indexes[*index];
            format!("DROP INDEX {}; {}", index.name, of.index_statement(index))
        }
        Op::Alter { table, options } => format!("ALTER TABLE {} WITH {options}", named(table)),
        Op::Snapshot(table) => format!("-- snapshot {}", named(table)),
        Op::TakeBack(table) => format!("-- take-back {}", named(table)),
        Op::Restore(table) => format!("-- restore {}", named(table)),
        Op::Load { rows } => format!("-- load {rows}"),
        Op::DropLoaded => format!("DROP TABLE loaded; {CREATE_LOADED}"),
        Op::ClockBack { seconds } => format!("-- clock {seconds}"),
    }
}
