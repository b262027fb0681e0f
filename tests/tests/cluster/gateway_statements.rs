//! Statements at a gateway that depend on more than themselves: on the keyspace in use, on what was prepared, on a change of the
//! schema meanwhile. All scripts of `tests/conformance` run through a gateway by command (`tests/conformance/README.md`).

use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::raw::{EXECUTE, RESULT, Raw, Reply};

use crate::ring::Ring;

const INVALID: i32 = 0x2200;
const PATIENCE: Duration = Duration::from_secs(60);
const CREATE: &str =
    "CREATE KEYSPACE gw_statements WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

pub fn passes(ring: &Ring) {
    let gateway = Server::start_with(&["--gateway", &ring.address(1)]);
    for version in [3, 4, 5] {
        let mut client = Raw::ready(gateway.address(), version);
        // The gateway answers a change of the schema once the nodes agree.
        let mut other = Raw::ready(gateway.address(), version);
        other.run("DROP KEYSPACE IF EXISTS gw_statements");
        other.run(CREATE);
        client.run("USE gw_statements");
        client.run("CREATE TABLE t (k int PRIMARY KEY, v int)");
        client.run("CREATE TYPE address (street text)");
        for (text, expected) in [
            ("DESCRIBE TABLE t", "CREATE TABLE gw_statements.t"),
            ("DESCRIBE TYPE address", "CREATE TYPE gw_statements.address"),
            ("DESCRIBE KEYSPACE", "CREATE KEYSPACE gw_statements"),
            ("SELECT v FROM t", "gw_statements"),
        ] {
            let reply = client.query(text);
            assert!(reply.opcode == RESULT && has(&reply, expected), "{text} in v{version}: {reply:?}");
        }
        if version == 4 {
            prepared(ring, &mut client, &mut other);
        }
        other.run("DROP KEYSPACE gw_statements");
        for text in ["SELECT key FROM system.local", "DESCRIBE KEYSPACE system", CREATE] {
            let reply = client.query(text);
            assert_eq!(reply.opcode, RESULT, "{text} in v{version}: {reply:?}");
        }
        other.run("DROP KEYSPACE gw_statements");
        let (code, why) = client.query("SELECT v FROM t").error();
        assert!(code == INVALID && why.contains("gw_statements"), "{why}");
    }
}

/// Prepared statements have the ids that a node gives, and are used on across changes of the schema.
fn prepared(ring: &Ring, client: &mut Raw, other: &mut Raw) {
    let mut node = Raw::ready(&ring.address(1), 4);
    node.run("USE gw_statements");
    let texts = ["SELECT * FROM t", "SELECT v FROM gw_statements.t", "SELECT v FROM t WHERE k = 0"];
    let [all, qualified, one] = texts.map(|text| {
        let id = client.prepare(text).0;
        assert_eq!(id, node.prepare(text).0, "{text}");
        id
    });
    client.run("ALTER TABLE t ADD added int");
    // The client knows of its own change.
    let (again, columns) = client.prepare(texts[0]);
    assert!(again == all && has(&columns, "added"), "{columns:?}");
    for text in &texts[1..] {
        client.prepare(text);
    }
    // A node may tell of that change now, and of this one, which concerns other columns.
    other.run("CREATE TABLE gw_statements.elsewhere (k int PRIMARY KEY)");
    for (id, text) in [(&all, texts[0]), (&qualified, texts[1]), (&one, texts[2])] {
        assert_eq!(execute(client, id).opcode, RESULT, "{text}");
    }
    // Another client's change is told by a node, sooner or later: until then the statement has the old columns. Who has learnt of it
    // so gets the new ones from then on, also while other nodes do not know of it.
    node.run("ALTER TABLE t DROP added");
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "no node has told of the change");
        let reply = execute(client, &all);
        if reply.opcode != RESULT {
            assert!(reply.error().1.contains("not found"), "{reply:?}");
            break;
        }
    }
    assert!(!has(&client.prepare(texts[0]).1, "added"));
}

/// Executes a statement without values in v4.
fn execute(client: &mut Raw, id: &[u8]) -> Reply {
    let mut body = (id.len() as u16).to_be_bytes().to_vec();
    body.extend_from_slice(id);
    // Consistency ONE, no flags.
    body.extend_from_slice(&[0, 1, 0]);
    client.ask(EXECUTE, &body)
}

fn has(reply: &Reply, text: &str) -> bool {
    reply.body.windows(text.len()).any(|part| part == text.as_bytes())
}
