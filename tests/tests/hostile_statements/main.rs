//! Attacks the real binary with extreme statements: every production of both grammars, repeated and nested, over every
//! listener. Each statement is answered or refused within a time proportional to its bytes, the process stays alive,
//! and other clients are served meanwhile.
//!
//! `decoders` attacks the other parsers: schema files, settings, admin requests. `productions` contains the grammars,
//! `attack` draws statements from them and sends them, `other_client` is the other client. The seed is printed. To run
//! longer, against a release binary: `HOSTILE_ROUNDS=2000 HOSTILE_BYTES=1000000 HOSTILE_SEED=1 cargo test --release -p
//! end-to-end --test hostile_statements -- --nocapture`; `HOSTILE_LIST=1` lists slow statements instead of failing at
//! the first, `HOSTILE_P99=1` limits the waiting time of the other client.

mod attack;
mod decoders;
mod other_client;
mod productions;

use attack::{Attack, Session};
use end_to_end::Server;
use other_client::OtherClient;
use productions::{PIECES, PLACES};
use std::time::{Duration, Instant};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The time allowed for a statement: one second for each started 100 KB. Ten times that in a debug build;
/// `HOSTILE_FACTOR` sets the factor for shared machines.
fn allowed(bytes: usize) -> Duration {
    let debug = end_to_end::binary().components().any(|part| part.as_os_str() == "debug");
    let factor = from_environment("HOSTILE_FACTOR", if debug { 10 } else { 1 });
    Duration::from_secs(factor * (1 + bytes as u64 / 100_000))
}

/// Starts a server with the tables that the statements use.
fn start() -> Server {
    let server = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    Session::open(&server, 4).make_scene();
    server
}

#[test]
fn every_production_repeated_and_nested_is_answered_in_time_and_others_are_served() {
    let seed = from_environment("HOSTILE_SEED", 33);
    let rounds = from_environment("HOSTILE_ROUNDS", 0);
    let bytes = from_environment("HOSTILE_BYTES", 16_000) as usize;
    let lists = from_environment("HOSTILE_LIST", 0) > 0;
    println!("seed {seed}; {} pieces, {} places", PIECES.len(), PLACES.len());
    let mut server = start();
    let alone = OtherClient::alone(server.address(), 2000);
    let mut beside = OtherClient::start(server.address());
    // Each piece and each place at least once, then random ones.
    let each = PIECES.len().max(PLACES.len()) as u64;
    let mut session = Session::open(&server, 4);
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for round in 0..each + rounds {
        let attack = Attack::draw(seed, round, each, bytes);
        if attack.reconnects(round) {
            session = Session::open(&server, attack.version);
        }
        session.make_row(round);
        let begin = Instant::now();
        let answered = session.send(&attack, allowed(attack.bytes()) * 3);
        let took = begin.elapsed();
        let problem = match answered {
            Err(problem) => Some(problem),
            Ok(()) if took > allowed(attack.bytes()) => Some(format!("answered after {took:?}")),
            Ok(()) => beside.problem(),
        };
        slowest.push((took, attack.to_string()));
        let Some(problem) = problem else { continue };
        assert!(lists, "seed {seed}, round {round}: {attack}: {problem}");
        println!("{problem}: {attack}");
        // Restarted, because work that continues in the server would be attributed to the next statement.
        drop(beside);
        server = start();
        beside = OtherClient::start(server.address());
        session = Session::open(&server, 4);
    }
    let waits = beside.finish();
    slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    for (took, attack) in slowest.iter().take(if lists { 40 } else { 5 }) {
        println!("{took:?}: {attack}");
    }
    println!("the other client: {waits}\nalone: {alone}");
    // Only on request, on a machine without other load: the other client waits at most three times as long as alone.
    if from_environment("HOSTILE_P99", 0) > 0 {
        assert!(waits.part(990) <= alone.part(990) * 3, "seed {seed}: {waits}; alone {alone}");
    }
}
