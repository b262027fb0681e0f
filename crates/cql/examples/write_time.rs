//! How long a prepared INSERT of five columns takes from bound values to memtable.
//!
//! `cargo run --profile optimized -p helenus-cql --example write_time`

use helenus_cql::backend::{Backend, BoundValue, Identity, NoRows, Outcome, Request};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let (database, _) = Database::open(Machine::new(1).host(), options)?;
    let backend = LocalBackend::new(database, LocalOptions::default());
    let identity = Identity::default();
    for query in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k blob PRIMARY KEY, a blob, b blob, c blob, d blob, e blob)",
    ] {
        backend.query(query, &Request::plain(&identity, &[]), &mut NoRows)?;
    }
    let insert = "INSERT INTO ks.t (k, a, b, c, d, e) VALUES (?, ?, ?, ?, ?, ?)";
    let prepared = backend.prepare(insert, None, &identity)?;
    const COUNT: u64 = 500_000;
    for (what, unprepared) in [("prepared", false), ("by text", true)] {
        let start = Instant::now();
        for number in 0..COUNT {
            let key = number.to_be_bytes();
            let value = [b'x'; 34];
            let mut values = [BoundValue::Bytes(&value); 6];
            values[0] = BoundValue::Bytes(&key);
            let request = Request::plain(&identity, &values);
            let answer = if unprepared {
                backend.query(insert, &request, &mut NoRows)?
            } else {
                backend.execute(&prepared, &request, &mut NoRows)?
            };
            if let Outcome::Done(ticket) = answer.outcome {
                drop(ticket);
            }
        }
        println!("{what}: {} ns an INSERT", start.elapsed().as_nanos() as u64 / COUNT);
    }
    Ok(())
}
