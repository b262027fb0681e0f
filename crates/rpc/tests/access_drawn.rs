//! Drawn rights against every call of the RPC interface that names column families: a call is done if and only if its role has
//! every right that it needs on each of them.
//!
//! The needs stand here by hand a second time (`CassandraServer` of Cassandra 3.11), and so does what was granted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_rpc::{CallOptions, CallOutcome, Node, Rpc, Session};
use helenus_wire::thrift::{
    AuthenticationRequest, Column, ColumnOrSuperColumn, ColumnParent, ColumnPath, ColumnSlice, Compression,
    ConsistencyLevel, CounterColumn, Field, KeyRange, Limits, Map, Method, MultiSliceRequest, Mutation,
    SlicePredicate, SliceRange, args, begin_call, end_message, next_message,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const KEYSPACE: &str = "ks";
const TABLES: [&str; 3] = ["a", "b", "c"];
const COUNTERS: &str = "counts";
const PERMISSIONS: [&str; 4] = ["SELECT", "MODIFY", "DROP", "CREATE"];
const ONE: ConsistencyLevel = ConsistencyLevel::One;
const ROUNDS: usize = 3000;

/// Numbers from a seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

struct Server {
    _machine: Machine,
    backend: Arc<LocalBackend>,
    rpc: Rpc,
    session: Session,
    /// Permissions and the resources on which the role has them, in the words of GRANT.
    rights: BTreeSet<(&'static str, String)>,
}

impl Server {
    fn open() -> Server {
        let machine = Machine::new(3);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let access = AccessOptions {
            authenticator: Authenticator::Password,
            authorizer: Authorizer::Cassandra,
            roles_validity: Duration::ZERO,
            permissions_validity: Duration::ZERO,
            ..AccessOptions::default()
        };
        let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
        backend.begin_logins(None).unwrap();
        let node = Node {
            cluster_name: "tests".into(),
            datacenter: "datacenter1".into(),
            rack: "rack1".into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let rpc = Rpc::new(backend.clone(), node);
        let mut server = Server {
            _machine: machine,
            backend,
            rpc,
            session: Session::default(),
            rights: BTreeSet::default(),
        };
        server.own(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        TABLES.iter().for_each(|table| server.make(table));
        server.own(&format!(
            "CREATE TABLE {KEYSPACE}.{COUNTERS} (k blob, c blob, v counter, PRIMARY KEY (k, c)) WITH COMPACT STORAGE"
        ));
        server.own("CREATE ROLE bob WITH LOGIN = true AND PASSWORD = 'b'");
        let credentials = Map(vec![("username".into(), "bob".into()), ("password".into(), "b".into())]);
        let login = args::Login { auth_request: AuthenticationRequest { credentials } };
        server.call(Method::Login, &login).unwrap();
        server.call(Method::SetKeyspace, &args::OfKeyspace { keyspace: KEYSPACE }).unwrap();
        server
    }

    fn make(&self, table: &str) {
        self.own(&format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.{table} (k blob, c blob, v blob, PRIMARY KEY (k, c)) WITH COMPACT STORAGE"
        ));
    }

    /// Runs a statement as the superuser.
    fn own(&self, statement: &str) {
        let identity = Identity::of_role("cassandra");
        let answer = self.backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{statement}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    /// Makes a call; its exception as text.
    fn call<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Result<(), String> {
        let mut bytes = Vec::new();
        let at = begin_call(method, 1, &mut bytes);
        asked.write(&mut bytes);
        end_message(at, &mut bytes);
        let message = next_message(&bytes, None, Limits::default()).unwrap().unwrap();
        let manner = CallOptions { may_block: true, ..CallOptions::default() };
        let mut out = Vec::new();
        match self.rpc.call(&message, &mut self.session, manner, &mut out).unwrap() {
            CallOutcome::Answered => Ok(()),
            CallOutcome::Held(_, ticket) => ticket.wait().map_err(|error| error.to_string()),
            CallOutcome::Refused(refused) => Err(refused.text),
            CallOutcome::WouldBlock | CallOutcome::Cancelled => Err("not done".to_owned()),
        }
    }

    /// Grants or revokes something drawn.
    fn change(&mut self, draw: &mut Draw) {
        let permission = PERMISSIONS[draw.below(PERMISSIONS.len())];
        let resource = match draw.below(8) {
            0 => "ALL KEYSPACES".to_owned(),
            1 => format!("KEYSPACE {KEYSPACE}"),
            2 => format!("ALL TABLES IN KEYSPACE {KEYSPACE}"),
            3 => format!("TABLE {KEYSPACE}.{COUNTERS}"),
            _ => format!("TABLE {KEYSPACE}.{}", TABLES[draw.below(TABLES.len())]),
        };
        // A table has no permission CREATE.
        if permission == "CREATE" && resource.starts_with("TABLE") {
            return;
        }
        let right = (permission, resource.clone());
        if self.rights.remove(&right) {
            self.own(&format!("REVOKE {permission} ON {resource} FROM bob"));
        } else {
            self.own(&format!("GRANT {permission} ON {resource} TO bob"));
            self.rights.insert(right);
        }
    }

    /// Whether the role has a permission on a table, or on all tables of the keyspace where the name is empty.
    fn has(&self, permission: &'static str, table: &str) -> bool {
        let on = |resource: String| self.rights.contains(&(permission, resource));
        on("ALL KEYSPACES".to_owned())
            || on(format!("KEYSPACE {KEYSPACE}"))
            || on(format!("ALL TABLES IN KEYSPACE {KEYSPACE}"))
            || on(format!("TABLE {KEYSPACE}.{table}"))
    }
}

fn column(name: &[u8]) -> Column<'_> {
    Column { name, value: Some(b"v"), timestamp: Some(1), ttl: None }
}

/// Makes a drawn call. Returns its name, its needs in the order in which they are checked, and its answer.
fn drawn_call(
    server: &mut Server,
    draw: &mut Draw,
) -> (String, Vec<(&'static str, String)>, Result<(), String>) {
    let table = TABLES[draw.below(TABLES.len())];
    let column_parent = ColumnParent { column_family: table, super_column: None };
    let column_path = ColumnPath { column_family: table, super_column: None, column: Some(b"c") };
    let slice_range = SliceRange { start: b"", finish: b"", reversed: false, count: 10 };
    let predicate = SlicePredicate { column_names: None, slice_range: Some(slice_range) };
    let range = KeyRange {
        start_key: Some(b""),
        end_key: Some(b""),
        start_token: None,
        end_token: None,
        row_filter: None,
        count: 10,
    };
    let (key, keys): (&[u8], Vec<&[u8]>) = (b"k", vec![b"k", b"l"]);
    let (reads, writes) = (vec![("SELECT", table.to_owned())], vec![("MODIFY", table.to_owned())]);
    let slice =
        |column_parent, predicate| args::GetSlice { key, column_parent, predicate, consistency_level: ONE };
    let (method, needs, answer) = match draw.below(22) {
        0 => {
            let asked = args::Get { key, column_path, consistency_level: ONE };
            (Method::Get, reads, server.call(Method::Get, &asked))
        }
        1 => (Method::GetSlice, reads, server.call(Method::GetSlice, &slice(column_parent, predicate))),
        2 => (Method::GetCount, reads, server.call(Method::GetCount, &slice(column_parent, predicate))),
        number @ (3 | 4) => {
            let method = if number == 3 { Method::MultigetSlice } else { Method::MultigetCount };
            let asked = args::MultigetSlice { keys, column_parent, predicate, consistency_level: ONE };
            (method, reads, server.call(method, &asked))
        }
        5 => {
            let asked = args::GetRangeSlices { column_parent, predicate, range, consistency_level: ONE };
            (Method::GetRangeSlices, reads, server.call(Method::GetRangeSlices, &asked))
        }
        6 => {
            let asked = args::GetPagedSlice {
                column_family: table,
                range,
                start_column: b"",
                consistency_level: ONE,
            };
            (Method::GetPagedSlice, reads, server.call(Method::GetPagedSlice, &asked))
        }
        7 => {
            let request = MultiSliceRequest {
                key: Some(key),
                column_parent: Some(column_parent),
                column_slices: Some(vec![ColumnSlice { start: Some(b""), finish: Some(b"") }]),
                reversed: None,
                count: Some(5),
                consistency_level: Some(ONE),
            };
            (
                Method::GetMultiSlice,
                reads,
                server.call(Method::GetMultiSlice, &args::GetMultiSlice { request }),
            )
        }
        number @ (8 | 9) => {
            let method = if number == 8 { Method::DescribeSplits } else { Method::DescribeSplitsEx };
            let asked = args::DescribeSplits {
                column_family: table,
                start_token: "0",
                end_token: "5",
                keys_per_split: 128,
            };
            (method, reads, server.call(method, &asked))
        }
        10 => {
            let asked = args::Insert { key, column_parent, column: column(b"c"), consistency_level: ONE };
            (Method::Insert, writes, server.call(Method::Insert, &asked))
        }
        11 => {
            let asked = args::Remove { key, column_path, timestamp: 1, consistency_level: Some(ONE) };
            (Method::Remove, writes, server.call(Method::Remove, &asked))
        }
        12 => {
            let asked = args::OfColumnFamily { column_family: table };
            (Method::Truncate, writes, server.call(Method::Truncate, &asked))
        }
        13 => {
            let asked = args::Cas {
                key,
                column_family: table,
                expected: Some(vec![column(b"c")]),
                updates: Some(vec![column(b"d")]),
                serial_consistency_level: ConsistencyLevel::Serial,
                commit_consistency_level: ONE,
            };
            let both = vec![("MODIFY", table.to_owned()), ("SELECT", table.to_owned())];
            (Method::Cas, both, server.call(Method::Cas, &asked))
        }
        number @ (14 | 15) => {
            let method = if number == 14 { Method::BatchMutate } else { Method::AtomicBatchMutate };
            let mutation = |_: usize| Mutation {
                column_or_supercolumn: Some(ColumnOrSuperColumn {
                    column: Some(column(b"c")),
                    super_column: None,
                    counter_column: None,
                    counter_super_column: None,
                }),
                deletion: None,
            };
            let named: Vec<&str> = TABLES.into_iter().filter(|_| draw.below(2) == 0).chain([table]).collect();
            let of_tables = named.iter().map(|table| (*table, vec![mutation(0), mutation(1)])).collect();
            let asked =
                args::BatchMutate { mutation_map: Map(vec![(key, Map(of_tables))]), consistency_level: ONE };
            let needs = named.iter().map(|table| ("MODIFY", (*table).to_owned())).collect();
            (method, needs, server.call(method, &asked))
        }
        16 => {
            let column_parent = ColumnParent { column_family: COUNTERS, super_column: None };
            let column = CounterColumn { name: b"c", value: 1 };
            let asked = args::Add { key, column_parent, column, consistency_level: ONE };
            (Method::Add, vec![("MODIFY", COUNTERS.to_owned())], server.call(Method::Add, &asked))
        }
        17 => {
            let path = ColumnPath { column_family: COUNTERS, super_column: None, column: Some(b"c") };
            let asked = args::RemoveCounter { key, path, consistency_level: ONE };
            let needs = vec![("MODIFY", COUNTERS.to_owned())];
            (Method::RemoveCounter, needs, server.call(Method::RemoveCounter, &asked))
        }
        18 => {
            let asked = args::OfColumnFamily { column_family: table };
            let answer = server.call(Method::SystemDropColumnFamily, &asked);
            server.make(table);
            // Dropping a table drops what was granted on it.
            if answer.is_ok() {
                server.rights.retain(|(_, resource)| *resource != format!("TABLE {KEYSPACE}.{table}"));
            }
            (Method::SystemDropColumnFamily, vec![("DROP", table.to_owned())], answer)
        }
        number @ (19 | 20) => {
            let (text, needs) = match draw.below(4) {
                0 => (format!("SELECT * FROM {table}"), reads),
                1 => (format!("TRUNCATE {table}"), writes),
                2 if number == 19 => {
                    (format!("INSERT INTO {table} (k, c, v) VALUES (0x01, 0x02, 0x03)"), writes)
                }
                2 => (format!("INSERT INTO {table} (k, '0102') VALUES ('01', '03')"), writes),
                _ if number == 19 => (format!("DELETE FROM {table} WHERE k = 0x01"), writes),
                _ => (format!("DELETE FROM {table} WHERE k = '01'"), writes),
            };
            let (query, compression) = (text.as_bytes(), Compression::None);
            let (method, answer) = if number == 19 {
                let asked = args::Cql3Query { query, compression, consistency: ONE };
                (Method::ExecuteCql3Query, server.call(Method::ExecuteCql3Query, &asked))
            } else {
                let asked = args::CqlQuery { query, compression };
                (Method::ExecuteCqlQuery, server.call(Method::ExecuteCqlQuery, &asked))
            };
            return (format!("{method:?} {text}"), needs, answer);
        }
        _ => {
            let asked = args::OfKeyspace { keyspace: KEYSPACE };
            (Method::DescribeKeyspace, Vec::new(), server.call(Method::DescribeKeyspace, &asked))
        }
    };
    (format!("{method:?} {table}"), needs, answer)
}

#[test]
fn a_call_is_done_if_and_only_if_its_role_has_every_right_that_it_needs() {
    let mut server = Server::open();
    let mut draw = Draw(11);
    let (mut allowed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..ROUNDS {
        for _ in 0..draw.below(4) {
            server.change(&mut draw);
        }
        // Before the call, which may drop a table and its rights.
        let before = server.rights.clone();
        let (name, needs, answer) = drawn_call(&mut server, &mut draw);
        let after = std::mem::replace(&mut server.rights, before);
        let missing: Vec<_> =
            needs.iter().filter(|(permission, table)| !server.has(permission, table)).collect();
        server.rights = after;
        let method = name.split(' ').next().unwrap().to_owned();
        match answer {
            Err(text) if text.contains("permission on") => {
                let is_one_of_them = missing.iter().any(|(permission, table)| {
                    text == format!(
                        "User bob has no {permission} permission on <table {KEYSPACE}.{table}> or any of its parents"
                    )
                });
                assert!(is_one_of_them, "{name}: {text}; it lacks {missing:?}");
                refused.insert(method);
            }
            // A call may fail for another reason, such as a column that is not there, but only with its rights.
            answer => {
                assert!(missing.is_empty(), "{name} was done without {missing:?}: {answer:?}");
                let is_absent = answer.as_ref().is_err_and(String::is_empty);
                assert!(answer.is_ok() || is_absent, "{name}: {answer:?}");
                allowed.insert(method);
            }
        }
    }
    assert_eq!(allowed.len(), 22, "{allowed:?}");
    assert_eq!(refused.len(), 21, "{refused:?}");
}
