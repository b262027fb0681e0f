//! The server that drawn calls are made to, the role that makes them, and what was granted to it.

use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_rpc::{CallOptions, CallOutcome, Node, Rpc, Session};
use helenus_wire::thrift::{
    AuthenticationRequest, Field, Limits, Map, Method, args, begin_call, end_message, next_message,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub const KEYSPACE: &str = "ks";
/// A second keyspace, which calls create and drop.
pub const OTHER: &str = "other";
pub const TABLES: [&str; 3] = ["a", "b", "c"];
pub const COUNTERS: &str = "counts";
const PERMISSIONS: [&str; 5] = ["SELECT", "MODIFY", "DROP", "CREATE", "ALTER"];

/// Numbers from a seed (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

pub struct Server {
    _machine: Machine,
    backend: Arc<LocalBackend>,
    rpc: Rpc,
    session: Session,
    /// Permissions and the resources on which the role has them, in the words of GRANT.
    pub rights: BTreeSet<(&'static str, String)>,
}

impl Server {
    pub fn open() -> Server {
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
        server.make_other();
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

    pub fn make(&self, table: &str) {
        self.own(&format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.{table} (k blob, c blob, v blob, PRIMARY KEY (k, c)) WITH COMPACT STORAGE"
        ));
    }

    /// Makes the second keyspace, unless it is there.
    pub fn make_other(&self) {
        self.own(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {OTHER} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
    }

    /// Runs a statement as the superuser.
    pub fn own(&self, statement: &str) {
        let identity = Identity::of_role("cassandra");
        let answer = self.backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{statement}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    /// Makes a call; its exception as text.
    pub fn call<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Result<(), String> {
        self.call_for_reply(method, asked).map(drop)
    }

    /// Makes a call. Returns the message of its answer, or its exception as text.
    pub fn call_for_reply<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Result<Vec<u8>, String> {
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
            CallOutcome::Refused(refused) => Err(refused.text),
            CallOutcome::WouldBlock | CallOutcome::Cancelled => Err("not done".to_owned()),
        }
    }

    /// Grants or revokes something drawn.
    pub fn change(&mut self, draw: &mut Draw) {
        let permission = PERMISSIONS[draw.below(PERMISSIONS.len())];
        let resource = match draw.below(9) {
            0 => "ALL KEYSPACES".to_owned(),
            1 => format!("KEYSPACE {KEYSPACE}"),
            2 => format!("ALL TABLES IN KEYSPACE {KEYSPACE}"),
            3 => format!("TABLE {KEYSPACE}.{COUNTERS}"),
            4 => format!("KEYSPACE {OTHER}"),
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

    /// Whether the role has a permission on a resource or on one of its parents.
    pub fn has(&self, permission: &'static str, resource: &Resource) -> bool {
        resource
            .with_parents()
            .into_iter()
            .any(|resource| self.rights.contains(&(permission, resource.granted())))
    }

    /// Forgets the rights on what was dropped, which are gone with it.
    pub fn forget(&mut self, resource: &Resource) {
        self.rights.retain(|(_, granted)| *granted != resource.granted());
    }
}

/// What permissions are held on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// All keyspaces.
    AllKeyspaces,
    /// A keyspace.
    Keyspace(&'static str),
    /// All tables of a keyspace.
    AllTables(&'static str),
    /// A table of `KEYSPACE`.
    Table(&'static str),
}

impl Resource {
    /// In the words of GRANT.
    fn granted(&self) -> String {
        match self {
            Resource::AllKeyspaces => "ALL KEYSPACES".to_owned(),
            Resource::Keyspace(name) => format!("KEYSPACE {name}"),
            Resource::AllTables(keyspace) => format!("ALL TABLES IN KEYSPACE {keyspace}"),
            Resource::Table(name) => format!("TABLE {KEYSPACE}.{name}"),
        }
    }

    /// In the words of the refusal.
    pub fn named(&self) -> String {
        match self {
            Resource::AllKeyspaces => "<all keyspaces>".to_owned(),
            Resource::Keyspace(name) => format!("<keyspace {name}>"),
            Resource::AllTables(keyspace) => format!("<all tables in {keyspace}>"),
            Resource::Table(name) => format!("<table {KEYSPACE}.{name}>"),
        }
    }

    /// Itself, and what contains it.
    fn with_parents(&self) -> Vec<Resource> {
        let mut all = vec![self.clone()];
        if let Resource::Table(_) = self {
            all.push(Resource::AllTables(KEYSPACE));
        }
        match self {
            Resource::Table(_) => all.push(Resource::Keyspace(KEYSPACE)),
            Resource::AllTables(keyspace) => all.push(Resource::Keyspace(keyspace)),
            Resource::AllKeyspaces | Resource::Keyspace(_) => {}
        }
        all.push(Resource::AllKeyspaces);
        all
    }
}
