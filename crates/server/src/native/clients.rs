//! `system_views.clients`: the connected clients, in the shape of Cassandra's table (`ClientsTable`); and `system.clients`, the
//! same in the shape of ScyllaDB's (its documentation of system tables), for programs that were written for it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use helenus_cql::virtual_table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, pack};

use super::event_loops::Shared;

/// What is known of a connection's client, besides its counters.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientFacts {
    /// The client's address.
    pub address: Option<SocketAddr>,
    /// The protocol version; 0 before STARTUP.
    pub version: u8,
    /// The options of its STARTUP, as sent.
    pub options: Vec<(String, String)>,
    /// The keyspace in use.
    pub keyspace: Option<Arc<str>>,
    /// The role that has logged in.
    pub role: Option<Arc<str>>,
    /// Whether it must log in.
    pub needs_login: bool,
    /// The protocol and the cipher suite of TLS, if the connection is encrypted.
    pub session: Option<(&'static str, String)>,
}

impl ClientFacts {
    fn stage(&self) -> &'static str {
        match (self.version, self.needs_login && self.role.is_none()) {
            (0, _) => "established",
            (_, true) => "authenticating",
            (_, false) => "ready",
        }
    }

    /// The role; `None` before the login.
    pub(super) fn username(&self) -> Option<&str> {
        self.role.as_deref().or((!self.needs_login).then_some("anonymous"))
    }

    fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

struct Clients {
    table: Arc<Table>,
    /// Whether it is ScyllaDB's.
    is_scylla: bool,
    /// Weak, because the table outlives the server it describes.
    shared: Weak<Shared>,
}

/// The table of a server's clients.
pub(super) fn table(shared: &Arc<Shared>) -> Arc<dyn VirtualTable> {
    let text = || Arc::new(CqlType::Text);
    let columns = [
        ("address", CqlType::Inet),
        ("port", CqlType::Int),
        ("client_options", CqlType::Map { key: text(), value: text(), frozen: true }),
        ("connection_stage", CqlType::Text),
        ("driver_name", CqlType::Text),
        ("driver_version", CqlType::Text),
        ("hostname", CqlType::Text),
        ("keyspace_name", CqlType::Text),
        ("protocol_version", CqlType::Int),
        ("request_count", CqlType::BigInt),
        ("ssl_cipher_suite", CqlType::Text),
        ("ssl_enabled", CqlType::Boolean),
        ("ssl_protocol", CqlType::Text),
        ("username", CqlType::Text),
    ];
    let table =
        virtual_definition(("system_views", "clients"), "currently connected clients", (1, 1), &columns);
    Arc::new(Clients { table, is_scylla: false, shared: Arc::downgrade(shared) })
}

/// The table of a server's clients as ScyllaDB has it.
pub(super) fn table_of_scylla(shared: &Arc<Shared>) -> Arc<dyn VirtualTable> {
    let columns = [
        ("address", CqlType::Inet),
        ("port", CqlType::Int),
        ("client_type", CqlType::Text),
        ("connection_stage", CqlType::Text),
        ("driver_name", CqlType::Text),
        ("driver_version", CqlType::Text),
        ("hostname", CqlType::Text),
        ("protocol_version", CqlType::Int),
        ("shard_id", CqlType::Int),
        ("ssl_cipher_suite", CqlType::Text),
        ("ssl_enabled", CqlType::Boolean),
        ("ssl_protocol", CqlType::Text),
        ("username", CqlType::Text),
    ];
    let table = virtual_definition(("system", "clients"), "currently connected clients", (1, 2), &columns);
    Arc::new(Clients { table, is_scylla: true, shared: Arc::downgrade(shared) })
}

impl VirtualTable for Clients {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, _cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let Some(shared) = self.shared.upgrade() else { return };
        for (facts, requests) in shared.clients() {
            let Some(address) = facts.address else { continue };
            row(&facts, address, (!self.is_scylla).then_some(requests), rows);
        }
    }
}

/// A client's row; `requests` is their number for Cassandra's table, `None` for ScyllaDB's.
fn row(facts: &ClientFacts, address: SocketAddr, requests: Option<u64>, rows: &mut VirtualRows) {
    let text = |text: &str| text.as_bytes().to_vec();
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut values = vec![
        ("address", ip),
        ("port", i32::from(address.port()).to_be_bytes().to_vec()),
        ("connection_stage", text(facts.stage())),
        // Host names are not looked up, because a request must not wait for a name server.
        ("hostname", text(&address.ip().to_string())),
        ("protocol_version", i32::from(facts.version).to_be_bytes().to_vec()),
        ("ssl_enabled", vec![u8::from(facts.session.is_some())]),
    ];
    if let Some(name) = facts.username() {
        values.push(("username", text(name)));
    }
    match requests {
        Some(requests) => {
            let count = i64::try_from(requests).unwrap_or(i64::MAX);
            values.push(("request_count", count.to_be_bytes().to_vec()));
        }
        None => values.extend([("client_type", text("cql")), ("shard_id", 0_i32.to_be_bytes().to_vec())]),
    }
    if !facts.options.is_empty() && requests.is_some() {
        let mut sorted = facts.options.clone();
        sorted.sort();
        let parts = sorted.iter().flat_map(|(key, value)| [Some(key.as_bytes()), Some(value.as_bytes())]);
        let mut map = Vec::new();
        pack(sorted.len(), parts, &mut map);
        values.push(("client_options", map));
    }
    for (column, option) in [("driver_name", "DRIVER_NAME"), ("driver_version", "DRIVER_VERSION")] {
        values.extend(facts.option(option).map(|value| (column, text(value))));
    }
    if let Some((protocol, suite)) = &facts.session {
        values.extend([("ssl_protocol", text(protocol)), ("ssl_cipher_suite", text(suite))]);
    }
    let keyspace = facts.keyspace.as_deref().filter(|_| requests.is_some());
    values.extend(keyspace.map(|keyspace| ("keyspace_name", text(keyspace))));
    rows.row(&values);
}
