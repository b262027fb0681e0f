//! Runs the cases. Each of the two programs has a `reach`, which says how a session reaches the server.

use std::error::Error;
use std::process::ExitCode;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;

use crate::{cases, reach};

/// What a case ends with: any error is its reason.
pub type Outcome = Result<(), Box<dyn Error>>;

/// The keyspace of the cases.
pub const KEYSPACE: &str = "rust_driver";

/// The program.
pub async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((address, wanted)) = args.split_first() else {
        eprintln!("usage: rust-driver HOST:PORT [CASE ...]");
        return ExitCode::from(2);
    };
    match run(address, wanted).await {
        Ok(0) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the wanted cases, or all; how many failed.
async fn run(address: &str, wanted: &[String]) -> Result<usize, Box<dyn Error>> {
    let session = connect(address).build().await?;
    all(
        &session,
        &[&format!(
            "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )],
    )
    .await?;
    let mut failed = 0;
    for name in
        cases::NAMES.iter().filter(|name| wanted.is_empty() || wanted.iter().any(|other| other == *name))
    {
        match cases::run(name, address, &session).await {
            Ok(()) => println!("ok {name}"),
            Err(error) => {
                failed += 1;
                println!("FAILED {name}: {error}");
            }
        }
    }
    all(&session, &[&format!("DROP KEYSPACE {KEYSPACE}")]).await?;
    Ok(failed)
}

/// A session builder for `address`.
pub fn connect(address: &str) -> SessionBuilder {
    let profile = scylla::client::execution_profile::ExecutionProfile::builder()
        .consistency(Consistency::One)
        .request_timeout(Some(std::time::Duration::from_secs(30)))
        .build();
    reach(SessionBuilder::new().known_node(address).default_execution_profile_handle(profile.into_handle()))
}

/// Runs statements in order, without values.
pub async fn all(session: &Session, statements: &[&str]) -> Outcome {
    for statement in statements {
        session.query_unpaged(*statement, ()).await.map_err(|error| format!("{statement}: {error}"))?;
    }
    Ok(())
}

/// Makes an empty table and names it.
pub async fn table(session: &Session, name: &str, columns: &str) -> Result<String, Box<dyn Error>> {
    let full = format!("{KEYSPACE}.{name}");
    let drop = format!("DROP TABLE IF EXISTS {full}");
    all(session, &[&drop, &format!("CREATE TABLE {full} ({columns})")]).await?;
    Ok(full)
}

/// Fails unless both are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}").into())
    }
}
