//! The differential test runner: the same statements to Cassandra 5.0.9 and to Helenus, every answer compared.
//!
//! | module | what it is |
//! |---|---|
//! | `connection`, `answer` | a client over the repository's own codec, and what it was told |
//! | `compare` | what counts as a difference |
//! | `script` | hand-written scripts: statements, and directives in comments |
//! | `role` | the role that the statements are run as |
//! | `run` | one step of a script on both servers: unprepared, prepared, paged |
//! | `accepted` | the differences that `docs/conformance.md` lists with their reason |
//! | `generate` | random schemas and statements from a seed |
//! | `rounds`, `shrink` | generated tables, one after the other, and the least that still fails |
//! | `states` | paging states that come back with another statement |
//! | `server` | a `helenus serve` process, which the end-to-end tests use too |
//!
//! `README.md` beside `Cargo.toml` says how to write a script.

pub mod accepted;
mod answer;
mod compare;
mod connection;
pub mod generate;
pub mod role;
pub mod rounds;
pub mod run;
pub mod script;
pub mod server;
mod shrink;
pub mod states;

pub use answer::{Answer, Outcome};
pub use connection::Connection;

use std::path::PathBuf;

/// The root of the repository.
pub fn root() -> PathBuf {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// The path in the environment variable `name`, or `default` under the target directory.
pub fn configured(name: &str, default: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir));
    std::env::var_os(name).map_or_else(|| target.join(default), PathBuf::from)
}

/// The hand-written scripts, sorted.
///
/// # Errors
/// Their folder cannot be read.
pub fn scripts() -> std::io::Result<Vec<PathBuf>> {
    scripts_in("scripts")
}

/// Those about rights, which are run as a role alone, sorted.
///
/// # Errors
/// Their folder cannot be read.
pub fn scripts_of_rights() -> std::io::Result<Vec<PathBuf>> {
    scripts_in("rights")
}

fn scripts_in(folder: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/conformance").join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "cql") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
