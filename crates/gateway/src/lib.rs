//! The gateway: serves the native protocol, versions 3 to 5, in front of a cluster of Cassandra, as if the cluster were one node.
//!
//! A client's connection is two tasks (`connection`, `client`). Each request becomes a `job` that goes to the node which
//! holds its partition (`forward`); the answer is put into the client's version on the task that reads the node's connection
//! (`deliver`, `translate`). What cannot be passed on as it is, is made here: STARTUP and OPTIONS, ids of prepared statements
//! (`statements`), logins (`roles`), paging states (`paging`), `system.local` and `system.peers` (`own_tables`, `peers_select`), USE, and
//! events (`events`, `schema_picture`). By option it shows the nodes of the cluster beside itself (`shown_nodes`).
//!
//! Nothing is sent a second time if the first may have had an effect: see `forward`.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod budget;
mod client;
mod connection;
mod deliver;
mod events;
mod forward;
mod handshake_socket;
mod input;
mod job;
mod lexed;
mod listeners;
mod login_turns;
mod newcomers;
mod open_connections;
mod options;
mod own_tables;
mod paging;
mod patience;
mod peers_select;
mod prepare;
mod refused;
mod roles;
mod schema_picture;
mod server;
mod shared;
mod shown_nodes;
mod statement_text;
mod statements;
mod translate;

pub use listeners::Listeners;
pub use options::{Admission, GatewayError, GatewayOptions, KnownStatements, Newcomer, OwnNode, Place};
pub use roles::{LoginPlace, LoginRefused, Role, Roles, RolesOptions};
pub use server::Gateway;
pub use statement_text::{is_select, used_keyspace};
