//! Pages of partitions with a static row whose first rows are hidden: they end among hidden rows, and the static row is a
//! row of the answer only if the partition has no other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::backend::{Backend, Identity, Outcome, Request};
use support::{KEYSPACE, Server};

/// Rows that a deletion hides: more than after which a page ends (`PAGE_LEFT_OUT_MAX` of the engine).
const HIDDEN: usize = 210_000;

/// A queue in partition 0 of which nothing is left, and one in partition 1 with two rows behind what was deleted.
fn server() -> Server {
    let server = Server::open(5);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    server.run("CREATE TABLE q (k int, c int, s int static, PRIMARY KEY (k, c))");
    for k in [0, 1] {
        for first in (0..HIDDEN).step_by(1000) {
            let rows: String =
                (first..first + 1000).map(|c| format!("INSERT INTO q (k, c) VALUES ({k}, {c});")).collect();
            server.run(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"));
        }
        server.run(&format!("DELETE FROM q WHERE k = {k} AND c < {HIDDEN}"));
        server.run(&format!("INSERT INTO q (k, s) VALUES ({k}, 7)"));
    }
    for c in [HIDDEN + 1, HIDDEN + 2] {
        server.run(&format!("INSERT INTO q (k, c) VALUES (1, {c})"));
    }
    server
}

/// All rows in pages, and the number of pages.
fn paged(server: &Server, query: &str, size: u32) -> (Vec<Vec<Option<Vec<u8>>>>, usize) {
    let identity = Identity::default();
    let (mut rows, mut state): (Vec<_>, Option<Vec<u8>>) = (Vec::new(), None);
    for page in 1.. {
        assert!(page < 100, "{query}: pages without an end");
        let request = Request {
            keyspace: Some(KEYSPACE),
            page_size: Some(size),
            paging_state: state.as_deref(),
            ..Request::plain(&identity, &[])
        };
        let mut out = support::Collected::default();
        let answer = server.backend().query(query, &request, &mut out).unwrap();
        let Outcome::Rows { paging_state, .. } = answer.outcome else { panic!("{query}: no rows") };
        rows.extend(out.into_rows());
        if paging_state.is_none() {
            return (rows, page);
        }
        state = paging_state;
    }
    unreachable!("the loop returns")
}

#[test]
fn a_page_ends_among_hidden_rows_and_the_static_row_is_given_once_and_only_alone() {
    let server = server();
    for (rest, rows) in [
        ("WHERE k = 0", 1),
        ("WHERE k = 1", 2),
        ("WHERE k IN (0, 1)", 3),
        ("", 3),
        ("PER PARTITION LIMIT 1", 2),
        ("WHERE k = 1 PER PARTITION LIMIT 2", 2),
        ("LIMIT 2", 2),
        ("WHERE k = 0 ORDER BY c DESC", 1),
        ("WHERE k = 1 ORDER BY c DESC", 2),
        ("WHERE k = 0 GROUP BY k", 1),
    ] {
        let query = format!("SELECT k, s, c FROM q {rest}");
        let whole = server.select(&query, None).unwrap().rows;
        assert_eq!(whole.len(), rows, "{query}");
        for size in [1, 2, 100] {
            let (found, pages) = paged(&server, &query, size);
            assert!(found == whole, "{query}, {size}: {found:?}, not {whole:?}");
            let is_grouped = rest.contains("GROUP");
            assert!(pages > 1 || is_grouped || rest.contains("LIMIT"), "{query}, {size}: {pages} page");
        }
    }
}
