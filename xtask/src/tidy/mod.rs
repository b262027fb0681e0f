//! The rules of the house that no compiler knows. Each file here is one rule or a few of one kind; each breach is one
//! line: `path:line: what is wrong; what to do`.
//!
//! - `arrows`: a crate uses only the floors under it, and the library's face drags in no server.
//! - `files`: sizes, names, heads, `mod.rs` without logic, notes of work left without a reason.
//! - `machine`: files, clocks and threads are named in `host` only.
//! - `manifest`: every dependency stands in the workspace table with its reason.
//! - `modules`: the top-level modules of a crate use each other in one direction only.
//! - `parameters`: a tuple is no way round the limit of parameters.
//! - `paths`: what the documents point at exists.
//! - `prints`: nothing panics because a reader of the output is gone; texts have no runs of blanks.

mod arrows;
mod files;
mod machine;
mod manifest;
mod modules;
mod parameters;
mod paths;
mod prints;
mod source;
mod tokens;

use std::time::Instant;

pub use source::Source;

use crate::root;
use crate::run::in_seconds;

/// Checks every rule and reports all breaches at once.
pub fn run() -> Result<(), String> {
    let begin = Instant::now();
    println!("tidy ...");
    let root = root();
    let sources = source::tracked(&root)?;
    let mut breaches = Vec::new();
    breaches.extend(arrows::check(&root, &sources)?);
    breaches.extend(files::check(&root, &sources)?);
    breaches.extend(machine::check(&sources));
    breaches.extend(manifest::check(&root)?);
    breaches.extend(modules::check(&root, &sources)?);
    breaches.extend(parameters::check(&sources));
    breaches.extend(paths::check(&root, &sources));
    breaches.extend(prints::check(&sources));
    if breaches.is_empty() {
        println!("tidy: ok, {} files, {}", sources.len(), in_seconds(begin.elapsed()));
        return Ok(());
    }
    for breach in &breaches {
        println!("  {breach}");
    }
    Err(format!("tidy: {} breaches of the rules in xtask/src/tidy", breaches.len()))
}
