//! A database with both of its interfaces: CQL statements and calls of the old RPC interface.

use std::sync::Arc;

use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Host;
use helenus_rpc::{CallOptions, CallOutcome, Node, Rpc, Session};
use helenus_wire::thrift::{
    ColumnParent, ConsistencyLevel, Field, KeyRange, Limits, Method, SlicePredicate, SliceRange, args,
    begin_call, end_message, next_message,
};

/// The keyspace of all tables.
pub const KEYSPACE: &str = "ks";

#[derive(Default)]
struct Texts(Vec<String>);

impl RowsOut for Texts {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(String::from_utf8_lossy(value.unwrap_or_default()).into_owned());
    }

    fn end_row(&mut self) {}

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// A database with both interfaces.
pub struct TestDatabase {
    pub backend: Arc<LocalBackend>,
    rpc: Rpc,
    session: Session,
}

impl TestDatabase {
    pub fn open(host: Host) -> TestDatabase {
        let (database, _) = Database::open(host, DatabaseOptions::new("/db")).unwrap();
        let options = LocalOptions { drops_compact_storage: true, ..LocalOptions::default() };
        let backend = LocalBackend::new(database, options);
        let node = Node {
            cluster_name: "tests".into(),
            datacenter: "datacenter1".into(),
            rack: "rack1".into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let rpc = Rpc::new(backend.clone(), node);
        TestDatabase { backend, rpc, session: Session::default() }
    }

    /// Runs a statement; returns the cells of its answer as text.
    pub fn cql(&self, query: &str) -> Result<Vec<String>, String> {
        let identity = Identity::default();
        let mut out = Texts::default();
        let answer = self.backend.query(query, &Request::plain(&identity, &[]), &mut out);
        let answer = answer.map_err(|error| format!("{query}: {error}"))?;
        if let Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) = answer.outcome {
            ticket.wait().map_err(|error| format!("{query}: {error}"))?;
        }
        Ok(out.0)
    }

    /// Makes a call; returns the bytes of its answer, or the exception.
    pub fn call<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let at = begin_call(method, 1, &mut bytes);
        asked.write(&mut bytes);
        end_message(at, &mut bytes);
        let message = next_message(&bytes, None, Limits::default()).unwrap().unwrap();
        let manner = CallOptions { may_block: true, ..CallOptions::default() };
        let mut out = Vec::new();
        match self.rpc.call(&message, &mut self.session, manner, &mut out).unwrap() {
            CallOutcome::Answered => Ok(out),
            CallOutcome::Held(_, ticket) => ticket.wait().map(|()| out).map_err(|error| error.to_string()),
            CallOutcome::Refused(refused) => Err(format!("{refused:?}")),
            CallOutcome::WouldBlock | CallOutcome::Cancelled => Err("not done".to_owned()),
        }
    }

    /// Chooses the keyspace, which must exist.
    pub fn use_keyspace(&mut self) {
        self.call(Method::SetKeyspace, &args::OfKeyspace { keyspace: KEYSPACE }).unwrap();
    }

    /// The names of the tables.
    pub fn tables(&self) -> Vec<String> {
        let schema = self.backend.database().schema();
        schema.keyspaces[KEYSPACE].tables.keys().map(|name| name.to_string()).collect()
    }

    /// The schema as named facts: rows of `system_schema` without ids, because every copy makes new ids, and the
    /// definitions that the old interface returns.
    pub fn schema(&mut self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for table in ["tables", "columns", "dropped_columns", "indexes", "types"] {
            let rows = self
                .cql(&format!("SELECT JSON * FROM system_schema.{table} WHERE keyspace_name = '{KEYSPACE}'"));
            for row in rows.unwrap() {
                let id = row.find("\"id\": \"").map_or(0..0, |at| at..at + 45);
                let name = row
                    .split("_name\": \"")
                    .nth(2)
                    .and_then(|rest| rest.split('"').next())
                    .unwrap_or_default();
                let name = name.to_owned();
                found.push((format!("{table} of {name}"), row.replacen(&row[id], "", 1)));
            }
        }
        let described = self.call(Method::DescribeKeyspace, &args::OfKeyspace { keyspace: KEYSPACE });
        found.push(("definitions".to_owned(), text(&described)));
        found
    }

    /// The rows by table, as both interfaces return them.
    pub fn rows(&mut self) -> Vec<(String, String)> {
        self.use_keyspace();
        let mut found = Vec::new();
        for table in self.tables() {
            let rows = self.cql(&format!("SELECT JSON * FROM {KEYSPACE}.{table}"));
            found.push((format!("rows of {table}"), format!("{rows:#?}")));
            let range = SliceRange { start: b"", finish: b"", reversed: false, count: 1_000 };
            let asked = args::GetRangeSlices {
                column_parent: ColumnParent { column_family: &table, super_column: None },
                predicate: SlicePredicate { column_names: None, slice_range: Some(range) },
                range: KeyRange {
                    start_key: Some(b""),
                    end_key: Some(b""),
                    start_token: None,
                    end_token: None,
                    row_filter: None,
                    count: 1_000,
                },
                consistency_level: ConsistencyLevel::One,
            };
            found.push((format!("columns of {table}"), text(&self.call(Method::GetRangeSlices, &asked))));
        }
        found
    }
}

fn text(answer: &Result<Vec<u8>, String>) -> String {
    match answer {
        Ok(bytes) => bytes.escape_ascii().to_string(),
        Err(why) => why.clone(),
    }
}
