//! Statements about roles and permissions, and statements of roles that lack permissions, answer as Cassandra 5.0.9 did.
//!
//! `tests/conformance/access` has the answers: of a node with PasswordAuthenticator and CassandraAuthorizer, caches off
//! (`permissions`; `masks` for masked columns), of one with AllowAllAuthorizer (`no_permissions`), and of one without
//! logins (`no_logins`). Left out are statements about functions, views and datacenters, which are not built, and
//! contents that depend on the node.
//! Lines: `role> statement`, then the answer, then where it differs that of Helenus, each line after `helenus`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "support/collected.rs"]
mod collected;

use collected::Collected;
use helenus_cql::backend::{Backend, Identity, Outcome, Request};
use helenus_cql::virtual_table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, Elements};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// `system_views.clients`, which the server registers, without rows.
struct Clients(Arc<Table>);

impl VirtualTable for Clients {
    fn table(&self) -> &Arc<Table> {
        &self.0
    }
    fn rows(&self, _cx: &VirtualContext<'_>, _rows: &mut VirtualRows) {}
}

struct Node {
    _machine: Machine,
    backend: Arc<LocalBackend>,
    keyspaces: BTreeMap<String, Arc<str>>,
}

fn open(authenticator: Authenticator, authorizer: Authorizer) -> Node {
    let machine = Machine::new(7);
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator,
        authorizer,
        roles_validity: Duration::ZERO,
        permissions_validity: Duration::ZERO,
        credentials_validity: Duration::ZERO,
        ..AccessOptions::default()
    };
    let masks_columns = authorizer == Authorizer::Cassandra;
    let backend =
        LocalBackend::new(database, LocalOptions { access, masks_columns, ..LocalOptions::default() });
    let columns = [("address", CqlType::Inet), ("port", CqlType::Int)];
    let clients = virtual_definition(("system_views", "clients"), "", (1, 1), &columns);
    backend.virtual_tables().register(Arc::new(Clients(clients)));
    backend.begin_logins(None).unwrap();
    Node { _machine: machine, backend, keyspaces: BTreeMap::new() }
}

fn shown(ty: &CqlType, value: Option<&[u8]>) -> String {
    let Some(bytes) = value else { return "null".to_owned() };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match ty {
        CqlType::Boolean => (bytes == [1]).to_string(),
        CqlType::Int => i32::from_be_bytes(bytes.try_into().unwrap()).to_string(),
        CqlType::BigInt => i64::from_be_bytes(bytes.try_into().unwrap()).to_string(),
        CqlType::Set { .. } => {
            let elements: Vec<String> = Elements::of_list(bytes).flatten().map(text).collect();
            format!("{{{}}}", elements.join(", "))
        }
        CqlType::Map { .. } => "{}".to_owned(),
        CqlType::List { element, .. } => {
            let elements = Elements::of_list(bytes);
            let elements: Vec<String> = elements.map(|value| shown(element, value)).collect();
            format!("[{}]", elements.join(", "))
        }
        CqlType::Blob => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        _ => text(bytes),
    }
}

fn type_name(ty: &CqlType) -> String {
    ty.to_string().replace("frozen<", "").replace("text", "varchar").replace(">>", ">")
}

fn code(error: &CqlError) -> u16 {
    match error {
        CqlError::Syntax(_) => 0x2000,
        CqlError::Unauthorized(_) | CqlError::SessionEnded(_) => 0x2100,
        CqlError::Invalid(_) => 0x2200,
        CqlError::Config(_) => 0x2300,
        CqlError::AlreadyExists { .. } => 0x2400,
        CqlError::Overloaded(_) => 0x1001,
        _ => 0,
    }
}

impl Node {
    /// The answer of a statement, as the recordings have it.
    fn answer(&mut self, role: &str, statement: &str) -> String {
        let identity = match role {
            "anonymous" => Identity::default(),
            role => Identity::of_role(role),
        };
        let keyspace = self.keyspaces.get(role).cloned();
        let request = Request { keyspace: keyspace.as_deref(), ..Request::plain(&identity, &[]) };
        let mut rows = Collected::default();
        let answer = match self.backend.query(statement, &request, &mut rows) {
            Ok(answer) => answer,
            Err(error) => return format!("  -> ERROR 0x{:04X} {error}\n", code(&error)),
        };
        let mut text = match answer.outcome {
            Outcome::Done(_) => "  -> VOID\n".to_owned(),
            Outcome::UsedKeyspace(keyspace) => {
                let text = format!("  -> SET_KEYSPACE {keyspace}\n");
                self.keyspaces.insert(role.to_owned(), keyspace);
                text
            }
            Outcome::SchemaChanged(None, _) => "  -> VOID\n".to_owned(),
            Outcome::SchemaChanged(Some(change), _) => {
                let kind = format!("{:?}", change.kind).to_uppercase();
                match (&change.name, change.is_type) {
                    (None, _) => format!("  -> SCHEMA_CHANGE {kind} KEYSPACE {}\n", change.keyspace),
                    (Some(name), true) => {
                        format!("  -> SCHEMA_CHANGE {kind} TYPE {} {name}\n", change.keyspace)
                    }
                    (Some(name), false) => {
                        format!("  -> SCHEMA_CHANGE {kind} TABLE {} {name}\n", change.keyspace)
                    }
                }
            }
            Outcome::Rows { columns, .. } => {
                let rows = rows.into_rows();
                let of = &columns.columns[0];
                let named =
                    columns.columns.iter().map(|column| format!("{} {}", column.name, type_name(&column.ty)));
                let named: Vec<String> = named.collect();
                let mut text =
                    format!("  -> ROWS {}; {}.{}: {}\n", rows.len(), of.keyspace, of.table, named.join(", "));
                for row in &rows {
                    let cells = columns.columns.iter().zip(row);
                    let cells: Vec<String> =
                        cells.map(|(column, cell)| shown(&column.ty, cell.as_deref())).collect();
                    _ = writeln!(text, "        | {}", cells.join(" | "));
                }
                text
            }
        };
        for warning in answer.warnings {
            _ = writeln!(text, "        WARNING {warning}");
        }
        text
    }
}

fn check(mut node: Node, recorded: &str) {
    let mut wrong = String::new();
    let mut lines = recorded.lines().peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (role, statement) = line.split_once("> ").unwrap();
        let mut expected = String::new();
        while let Some(answer) = lines.next_if(|line| line.starts_with("  ")) {
            _ = writeln!(expected, "{answer}");
        }
        // Where Helenus is stricter on purpose, its own answer follows Cassandra's (docs/book/logins.md has the list).
        let mut ours = String::new();
        while let Some(answer) = lines.next_if(|line| line.starts_with("helenus  ")) {
            _ = writeln!(ours, "{}", answer.trim_start_matches("helenus"));
        }
        if !ours.is_empty() {
            assert_ne!(ours, expected, "{line}");
            expected = ours;
        }
        count += 1;
        let found = node.answer(role, statement);
        if found != expected {
            _ = writeln!(wrong, "{line}\n--- expected\n{expected}--- found\n{found}");
        }
    }
    assert!(count > 10, "nothing was recorded");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn roles_and_permissions_answer_as_cassandra() {
    let recorded = include_str!("../../../tests/conformance/access/permissions.txt");
    check(open(Authenticator::Password, Authorizer::Cassandra), recorded);
}

/// The order of several restricted columns in a refusal is that of a hash table in Cassandra, so no statement has two.
#[test]
fn roles_without_unmask_read_masked_values_as_in_cassandra() {
    let recorded = include_str!("../../../tests/conformance/access/masks.txt");
    check(open(Authenticator::Password, Authorizer::Cassandra), recorded);
}

#[test]
fn roles_without_permissions_answer_as_cassandra() {
    let recorded = include_str!("../../../tests/conformance/access/no_permissions.txt");
    check(open(Authenticator::Password, Authorizer::AllowAll), recorded);
}

#[test]
fn without_logins_statements_about_roles_answer_as_cassandra() {
    let recorded = include_str!("../../../tests/conformance/access/no_logins.txt");
    check(open(Authenticator::AllowAll, Authorizer::AllowAll), recorded);
}
