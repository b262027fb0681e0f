//! The service of the old RPC interface over a database on a simulated machine: calls as they come, and statements of the
//! first dialect and of CQL 3 through it. Whatever is asked, it answers.

use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_rpc::{CallOptions, Node, Rpc, Session};
use helenus_wire::thrift::{
    Compression, ConsistencyLevel, Field, Framing, Limits, Message, Method, args, begin_call, end_message,
    next_message,
};
use std::cell::RefCell;

/// Inputs that one database serves: what they make stays in memory.
const INPUTS_MAX: u32 = 500;
/// Calls wait for the disk themselves.
const BLOCKING: CallOptions<'static> = CallOptions {
    login_turn: None,
    may_block: true,
    probe: None,
    cancelled: None,
    consistency: 1,
    deadline_ns: None,
    limited: None,
    login: None,
    refuses_login: false,
    refused: None,
    memory: None,
    arrival: None,
};
const LIMITS: Limits = Limits { frame: 1 << 16, message: 1 << 16 };

thread_local! {
    static SERVED: RefCell<Option<(Rpc, u32)>> = const { RefCell::new(None) };
}

fn statement(text: &str) -> Vec<u8> {
    let asked = args::CqlQuery { query: text.as_bytes(), compression: Compression::None };
    call(Method::ExecuteCqlQuery, |out| asked.write(out))
}

fn call(method: Method, arguments: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(method, 1, &mut bytes);
    arguments(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

/// Statements of the first dialect.
const STATEMENTS: [&str; 16] = [
    "SELECT FIRST 2 REVERSED 'b'..'a' FROM wide USING CONSISTENCY ONE WHERE KEY = 'k' LIMIT 3",
    "SELECT * FROM fixed WHERE state = 'UT' AND age > 3 AND KEY >= 'a'",
    "SELECT COUNT(*) FROM wide WHERE KEY IN ('a', 'b')",
    "SELECT a, 'b c' FROM wide WHERE KEY > 'a' AND KEY <= 'z' LIMIT 1",
    "UPDATE wide USING CONSISTENCY QUORUM AND TIMESTAMP 5 AND TTL 10 SET 'a' = 'b', 1 = 2 WHERE KEY = 'k'",
    "UPDATE counts SET 'n' = 'n' + 3 WHERE KEY = k",
    "INSERT INTO wide (KEY, 'a', 'b') VALUES ('k', 1, 'x') USING TTL 5",
    "DELETE 'a', b FROM wide USING TIMESTAMP 9 WHERE KEY IN (a, b)",
    "DELETE FROM fixed WHERE KEY = 'k'",
    "BEGIN BATCH USING CONSISTENCY ONE UPDATE wide SET a = b WHERE KEY = c; DELETE a FROM wide WHERE KEY = d; APPLY BATCH",
    "CREATE KEYSPACE other WITH strategy_class = 'SimpleStrategy' AND strategy_options:replication_factor = 1",
    "CREATE COLUMNFAMILY made (KEY text PRIMARY KEY, a int, 'b' varint) WITH comparator = ascii AND default_validation = blob",
    "CREATE INDEX named ON fixed (note)",
    "ALTER COLUMNFAMILY fixed ADD more int",
    "TRUNCATE wide",
    "DROP COLUMNFAMILY made; USE ks",
];

pub(super) fn statements() -> Vec<Vec<u8>> {
    STATEMENTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub(super) fn calls() -> Vec<Vec<u8>> {
    let mut corpus = super::thrift::corpus();
    corpus.extend(STATEMENTS.map(statement));
    let text = b"SELECT * FROM wide WHERE key = 'k' AND column1 > 'a'";
    let cql3 =
        args::Cql3Query { query: text, compression: Compression::None, consistency: ConsistencyLevel::One };
    corpus.push(call(Method::ExecuteCql3Query, |out| cql3.write(out)));
    corpus.push(call(Method::DescribeKeyspaces, |out| out.push(0)));
    corpus
}

/// A statement of the first dialect, as a call.
pub(super) fn run_statement(input: &[u8]) {
    run_calls(&statement(&String::from_utf8_lossy(input)));
}

/// Messages, one after the other, as a connection finds them.
pub(super) fn run_calls(input: &[u8]) {
    SERVED.with_borrow_mut(|served| {
        let is_used_up = served.as_ref().is_none_or(|(_, count)| *count >= INPUTS_MAX);
        if is_used_up {
            *served = Some((service(), 0));
        }
        let Some((rpc, count)) = served else { return };
        *count += 1;
        let mut session = Session::default();
        set_keyspace(rpc, &mut session);
        let (mut rest, mut framing) = (input, None);
        while let Ok(Some(message)) = next_message(rest, framing, LIMITS) {
            framing = Some(message.framing);
            let mut out = Vec::new();
            let done = rpc.call(&message, &mut session, BLOCKING, &mut out);
            assert!(done.is_err() || !out.is_empty(), "a call without an answer");
            rest = rest.get(message.size..).unwrap_or_default();
            if rest.is_empty() {
                return;
            }
        }
    });
}

fn set_keyspace(rpc: &Rpc, session: &mut Session) {
    let set = call(Method::SetKeyspace, |out| args::OfKeyspace { keyspace: "ks" }.write(out));
    ask(rpc, session, &set);
}

fn ask(rpc: &Rpc, session: &mut Session, framed: &[u8]) {
    let bytes = framed.get(4..).unwrap_or_default();
    let message = Message { bytes, size: framed.len(), framing: Framing::Framed };
    let _answered = rpc.call(&message, session, BLOCKING, &mut Vec::new());
}

fn service() -> Rpc {
    let machine = Machine::new(1);
    let opened = Database::open(machine.host(), DatabaseOptions::new("/db"));
    let Ok((database, _)) = opened else { panic!("a database on a new machine opens") };
    let backend = LocalBackend::new(database, LocalOptions::default());
    let node = Node {
        cluster_name: "fuzz".into(),
        datacenter: "datacenter1".into(),
        rack: "rack1".into(),
        address: std::net::Ipv4Addr::LOCALHOST.into(),
    };
    let rpc = Rpc::new(backend, node);
    let mut session = Session::default();
    for text in [
        "CREATE KEYSPACE ks WITH strategy_class = 'SimpleStrategy' AND strategy_options:replication_factor = 1",
        "USE ks",
        "CREATE COLUMNFAMILY wide (KEY text PRIMARY KEY) WITH comparator = text AND default_validation = text",
        "CREATE COLUMNFAMILY \"Standard1\" (KEY blob PRIMARY KEY)",
        "CREATE COLUMNFAMILY fixed (KEY text PRIMARY KEY, state text, age int, note text) WITH comparator = text",
        "CREATE COLUMNFAMILY counts (KEY text PRIMARY KEY) WITH comparator = text AND default_validation = counter",
        "CREATE INDEX fixed_state ON fixed (state)",
        "UPDATE wide SET a = b, c = d WHERE KEY = 'k'",
        "UPDATE fixed SET state = UT, age = 4, other = x WHERE KEY = 'k'",
    ] {
        ask(&rpc, &mut session, &statement(text));
    }
    rpc
}
