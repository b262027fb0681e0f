//! Conditional statements take turns: of many clients that read a number and write the next under a condition, none
//! overwrites another's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::backend::BoundValue;
use support::Server;

const CLIENTS: usize = 64;
const INCREMENTS: usize = 20;

fn server(seed: u64, table: &str) -> Server {
    let server = Server::open(seed);
    server.run(
        "CREATE KEYSPACE cqlsel_conformance WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    server.run(table);
    server
}

#[test]
fn conditional_increments_of_64_clients_lose_none() {
    let server = server(1, "CREATE TABLE t (k int PRIMARY KEY, n int)");
    server.run("INSERT INTO t (k, n) VALUES (1, 0)");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut done = 0;
                let mut known = 0_i32.to_be_bytes().to_vec();
                while done < INCREMENTS {
                    let next = (i32::from_be_bytes(known[..].try_into().unwrap()) + 1).to_be_bytes();
                    let values = [BoundValue::Bytes(&next), BoundValue::Bytes(&known)];
                    let rows = server.bound("UPDATE t SET n = ? WHERE k = 1 IF n = ?", &values).unwrap();
                    if rows[0][0].as_deref() == Some(&[1]) {
                        done += 1;
                        known = next.to_vec();
                    } else {
                        // A refusal shows what is there.
                        known = rows[0][1].clone().unwrap();
                    }
                }
            });
        }
    });
    let rows = server.select("SELECT n FROM t WHERE k = 1", None).unwrap().rows;
    assert_eq!(rows[0][0].as_deref(), Some(&((CLIENTS * INCREMENTS) as i32).to_be_bytes()[..]));
    server.end();
}

#[test]
fn one_of_64_clients_makes_a_row_that_must_not_exist() {
    let server = server(2, "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))");
    let won: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS as i32)
            .map(|client| {
                let server = &server;
                scope.spawn(move || {
                    let client = client.to_be_bytes();
                    let wins = (0..INCREMENTS as i32).filter(|row| {
                        let row = row.to_be_bytes();
                        let values = [BoundValue::Bytes(&row), BoundValue::Bytes(&client)];
                        let insert = "INSERT INTO t (k, c, v) VALUES (1, ?, ?) IF NOT EXISTS";
                        server.bound(insert, &values).unwrap()[0][0].as_deref() == Some(&[1])
                    });
                    wins.count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(won, INCREMENTS);
    server.end();
}

#[test]
fn counters_and_lists_of_64_clients_lose_nothing() {
    let server = server(3, "CREATE TABLE n (k int PRIMARY KEY, a counter, b counter)");
    server.run("CREATE TABLE l (k int PRIMARY KEY, l list<int>)");
    let all: Vec<String> = (0..CLIENTS).map(|client| client.to_string()).collect();
    server.run(&format!("INSERT INTO l (k, l) VALUES (1, [{}])", all.join(", ")));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..INCREMENTS {
                    server.run("UPDATE n SET a = a + 1, b = b - 2 WHERE k = 1");
                }
                server.run(&format!("UPDATE l SET l = l - [{client}] WHERE k = 1"));
            });
        }
    });
    let rows = server.select("SELECT a, b FROM n", None).unwrap().rows;
    let total = (CLIENTS * INCREMENTS) as i64;
    assert_eq!(rows[0][0].as_deref(), Some(&total.to_be_bytes()[..]));
    assert_eq!(rows[0][1].as_deref(), Some(&(-2 * total).to_be_bytes()[..]));
    assert!(server.select("SELECT l FROM l", None).unwrap().rows.iter().all(|row| row[0].is_none()));
    server.end();
}
