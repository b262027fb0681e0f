//! A database of one side of a test, on a simulated machine, with its table `ks.t`; and random numbers.

#![allow(dead_code, reason = "each test uses a part")]

use helenus_cql::backend::{Backend, BoundValue, Identity, NoRows, Outcome, Request};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_model::schema::Table;
use helenus_mover::source::{TableTexts, Write};
use std::sync::Arc;

/// Random numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

/// One side.
pub struct Side {
    pub machine: Machine,
    pub backend: Arc<LocalBackend>,
    pub identity: Identity,
}

impl Side {
    /// A database in which these statements were run.
    pub fn new(seed: u64, create: &[&str]) -> Side {
        let machine = Machine::new(seed);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let side = Side { backend, identity: Identity::default(), machine };
        create.iter().for_each(|text| side.run(text));
        side
    }

    pub fn run(&self, text: &str) {
        let answer = self.backend.query(text, &Request::plain(&self.identity, &[]), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    pub fn pass(&self, seconds: u64) {
        self.machine.advance(seconds * 1_000_000_000);
    }

    pub fn database(&self) -> &Arc<Database> {
        self.backend.database()
    }

    pub fn table(&self) -> Arc<Table> {
        self.database().schema().table("ks", "t").unwrap().clone()
    }

    /// Runs a write that a move makes of what the other side has.
    pub fn write(&self, texts: &TableTexts, write: &Write) {
        let text = texts.text(write.kind);
        let prepared = self.backend.prepare(&text, None, &self.identity);
        let prepared = prepared.unwrap_or_else(|error| panic!("{text}: {error}"));
        let value = |value| match value {
            Ok(bytes) => BoundValue::Bytes(bytes),
            Err(true) => BoundValue::Unset,
            Err(false) => BoundValue::Null,
        };
        let values: Vec<BoundValue<'_>> = write.values.iter().map(value).collect();
        let answer = self.backend.execute(&prepared, &Request::plain(&self.identity, &values), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
            Outcome::Done(ticket) => ticket.wait().unwrap(),
            _ => panic!("{text}: not a write"),
        }
    }
}
