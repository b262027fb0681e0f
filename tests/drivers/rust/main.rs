//! The Rust driver (`scylla`) against a CQL server: see ../README.md for arguments and cases. `../rust-tls` is the same by TLS.

mod cases;
mod run;
mod types;

use std::process::ExitCode;

use scylla::client::session_builder::SessionBuilder;

#[tokio::main]
async fn main() -> ExitCode {
    run::main().await
}

/// What every connection of this program has.
fn reach(builder: SessionBuilder) -> SessionBuilder {
    builder
}
