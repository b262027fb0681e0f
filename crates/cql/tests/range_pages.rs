//! Pages of a search for a range of terms: their work grows with the table and not with its square, and they give what
//! a table without an index gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::backend::{Backend, Identity, Outcome, Request};
use helenus_engine::read::Probe;
use parking_lot::Mutex;
use support::{KEYSPACE, Server};

/// Rows of a partition.
const ROWS: usize = 7;

/// A server with two equal tables of so many partitions; the values of `r` are indexed, those of `p` are not.
fn server(partitions: usize) -> Server {
    let server = Server::open(5);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    for table in ["r", "p"] {
        server.run(&format!("CREATE TABLE {table} (k int, c int, s int static, v int, PRIMARY KEY (k, c))"));
    }
    server.run("CREATE INDEX ON r (v) USING 'sai'");
    server.run("CREATE INDEX ON r (s) USING 'sai'");
    server.machine().run_until_idle();
    for table in ["r", "p"] {
        for k in 0..partitions {
            let row = |c: usize| {
                let v = (k * ROWS + c) * 7919 % (partitions * ROWS);
                format!("INSERT INTO {table} (k, c, v) VALUES ({k}, {c}, {v});")
            };
            let rows: String = (0..ROWS).map(row).collect();
            let of_statics = format!("INSERT INTO {table} (k, s) VALUES ({k}, {});", k * 31 % partitions);
            server.run(&format!("BEGIN UNLOGGED BATCH {rows} {of_statics} APPLY BATCH"));
        }
    }
    server
}

/// All rows in pages, and the number of rows and entries that were visited for them.
fn paged(server: &Server, query: &str, size: u32) -> (Vec<Vec<Option<Vec<u8>>>>, u64) {
    let (identity, probe) = (Identity::default(), Mutex::new(Probe::default()));
    let (mut rows, mut state): (Vec<_>, Option<Vec<u8>>) = (Vec::new(), None);
    loop {
        let request = Request {
            keyspace: Some(KEYSPACE),
            page_size: Some(size),
            paging_state: state.as_deref(),
            probe: Some(&probe),
            ..Request::plain(&identity, &[])
        };
        let mut out = support::Collected::default();
        let answer = server.backend().query(query, &request, &mut out).unwrap();
        let Outcome::Rows { paging_state, .. } = answer.outcome else { panic!("{query}: no rows") };
        rows.extend(out.into_rows());
        if paging_state.is_none() {
            let probe = probe.lock();
            return (rows, probe.index_entries + probe.rows + probe.rows_filtered);
        }
        state = paging_state;
    }
}

#[test]
fn all_pages_of_a_range_visit_a_number_of_rows_that_grows_as_the_table_does() {
    const FACTOR: usize = 4;
    let (small, large) = (server(150), server(150 * FACTOR));
    for (condition, size) in [("v >= 0", 50), ("v >= 0", 7), ("v >= 100", 50), ("s >= 0", 20)] {
        let query = format!("SELECT k, c FROM r WHERE {condition}");
        let ((few, of_few), (many, of_many)) = (paged(&small, &query, size), paged(&large, &query, size));
        assert!(many.len() >= FACTOR * few.len() - 100, "{query}");
        // A square would be 16 times as much.
        assert!(of_many <= of_few * FACTOR as u64 * 3 / 2, "{query}, {size}: {of_few} and {of_many}");
    }
}

#[test]
fn pages_of_a_range_give_what_a_table_without_an_index_gives() {
    let server = server(300);
    for flushed in [false, true] {
        if flushed {
            server.run("DELETE FROM r WHERE k = 7");
            server.run("DELETE FROM p WHERE k = 7");
            server.flush();
        }
        for rest in [
            "v >= 0",
            "v > 3 AND v < 2000",
            "v >= 1900",
            "v >= 0 PER PARTITION LIMIT 2",
            "v >= 0 LIMIT 777",
            "v > 400 PER PARTITION LIMIT 3 LIMIT 555",
            "v >= 0 AND c > 2 AND c < 6",
            "s >= 0",
            "s > 100 AND c >= 3",
            "s >= 0 AND v >= 700 LIMIT 600",
            "token(k) > 0 AND v >= 0",
            "k = 2 AND v >= 0",
        ] {
            let aggregate = if rest.contains("PARTITION LIMIT") { "k" } else { "count(*)" };
            for selected in ["k, c, v", "k, s, v", aggregate] {
                let text =
                    |table: &str| format!("SELECT {selected} FROM {table} WHERE {rest} ALLOW FILTERING");
                for size in [3, 100, 5000] {
                    let (found, expected) =
                        (paged(&server, &text("r"), size).0, paged(&server, &text("p"), size).0);
                    assert!(
                        found == expected,
                        "{}, {size}: {} and {}",
                        text("r"),
                        found.len(),
                        expected.len()
                    );
                }
                let whole = |table: &str| server.select(&text(table), None).unwrap().rows;
                assert!(whole("r") == whole("p"), "{}", text("r"));
            }
        }
    }
}
