//! Measures how long parsing takes, in nanoseconds a statement: the UPDATE of "CQL benchmarking" (2011; five columns
//! with 34-byte values, here as blobs and as strings), prepared forms of it, and a SELECT.
//!
//! `cargo run --profile optimized -p helenus-cql --example parse_time`

use std::hint::black_box;
use std::time::Instant;

use helenus_cql::syntax::parse;

const VALUES: [&str; 5] = [
    "d41d8cd98f00b204e9800998ecf8427ed41d8cd98f00b204e9800998ecf8427efd34",
    "03c7c0ace395d801803c7c0ace395d80182db07ae2c30f0342db07ae2c30f03407ae",
    "3691308f2a4c2f6983f2880d32369133691308f2a4c2f6983f2880d32e29c8408f2a",
    "9f6e6800cfae7749eb6c49f6e689f6e6800cfae7749eb6c486619254b9c00cfae774",
    "8f60c8102d29fcd52518f60c8102d298f60c8102d29fcd525162d02eed4566bfcd51",
];

/// `UPDATE` with each value between `open` and `close`.
fn update(open: &str, close: &str) -> String {
    let pairs = VALUES.iter().zip(1..).map(|(value, column)| format!("\n    C{column}={open}{value}{close}"));
    let set = pairs.collect::<Vec<_>>().join(",");
    format!(
        "UPDATE \"Keyspace1\".\"Standard1\" USING TIMESTAMP 1323648000000000 AND TTL 86400 SET{set}\n    WHERE KEY={open}00000000000001{close}"
    )
}

fn measure(what: &str, text: &str) {
    const ROUNDS: u32 = 200_000;
    if let Err(error) = parse(text) {
        println!("{what}: {error}");
        return;
    }
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let _ = black_box(parse(black_box(text)));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    println!("{what:<24} {:>4} bytes {best:>7.0} ns", text.len());
}

fn main() {
    measure("update, blobs", &update("0x", ""));
    measure("update, strings", &update("'", "'"));
    measure("update, markers", "UPDATE standard1 SET c1=?, c2=?, c3=?, c4=?, c5=? WHERE key=?");
    measure("insert, named markers", "INSERT INTO ks.t (a, b, c) VALUES (:a, :b, :c) USING TTL :ttl");
    measure("select", "SELECT a, b, writetime(c) FROM ks.t WHERE k = ? AND c > 5 ORDER BY c DESC LIMIT 100");
}
