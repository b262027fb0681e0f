//! `scylla`: runs the server as ScyllaDB's image does, with the options of its entry point and `/etc/scylla/scylla.yaml`.
//!
//! The options are those of the image's documentation and of Testcontainers' modules for ScyllaDB. Those about processors,
//! disks, memory of the kernel and other nodes have no effect, which one line of the log says. Drivers find the second port
//! that they know, 19042, and the table `system.clients`.

use super::environment::Options;
use super::node::{self, Start};
use super::{place, seeds};
use crate::commands::serve;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;

/// Options with an effect, and the keys that they set.
const EFFECTIVE: [(&str, &str); 9] = [
    ("rpc-address", "rpc_address"),
    ("broadcast-rpc-address", "broadcast_rpc_address"),
    ("memory", "memory_limit"),
    ("cluster-name", "cluster_name"),
    ("authenticator", "authenticator"),
    ("authorizer", "authorizer"),
    ("native-transport-port", "native_transport_port"),
    ("native-shard-aware-transport-port", "native_shard_aware_transport_port"),
    ("workdir", "data"),
];

/// The port that drivers look for beside the usual one.
const SHARD_AWARE_PORT: &str = "19042";

/// Runs the server until a signal ends it.
///
/// # Errors
/// The configuration cannot be read; Alternator is asked for; those of the server.
pub fn run(words: &[OsString]) -> Result<()> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if words.iter().any(|word| word == "--version") {
        writeln!(std::io::stdout(), "{}", helenus_cql::virtual_table::RELEASE_VERSION)?;
        return Ok(());
    }
    let variable = |name: &str| std::env::var(name).ok();
    let folder = place::configuration(&variable);
    let file = place::file(&folder);
    let yaml = place::yaml(&folder)?;
    let mut options = options(&words, &yaml, &|| serve::outward_address().to_string())?;
    let is_allowed = variable(seeds::ALLOWED).is_some_and(|value| value == "true");
    if let Some((_, given)) = pairs(&words).iter().rfind(|(name, _)| name == "seeds") {
        options.notes.extend(seeds::check(("--seeds", given), &seeds::is_own, is_allowed)?);
    }
    options.add_own(&variable);
    options.let_in_without_logins(&yaml);
    node::serve(Start { data: place::data(&yaml, &folder), file, options })
}

/// What a command line means.
fn options(words: &[String], yaml: &str, own_address: &dyn Fn() -> String) -> Result<Options> {
    let given = pairs(words);
    if let Some((name, _)) = given.iter().find(|(name, _)| name.starts_with("alternator-")) {
        bail!("--{name}: DynamoDB's interface (Alternator) is not there; leave it out, and use CQL");
    }
    let mut options = Options::default();
    let mut set = |key, value: String| options.set.push((key, value));
    set("log_format", "cassandra".to_owned());
    set("rpc_address", "0.0.0.0".to_owned());
    let told = ["broadcast-address", "listen-address"]
        .iter()
        .find_map(|wanted| given.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.clone()));
    let told = told.filter(|address| !address.is_empty() && address != "0.0.0.0");
    set("broadcast_rpc_address", told.unwrap_or_else(own_address));
    if place::top_level(yaml, "native_shard_aware_transport_port").is_none() {
        set("native_shard_aware_transport_port", SHARD_AWARE_PORT.to_owned());
    }
    let mut without_effect = Vec::new();
    for (name, value) in &given {
        match EFFECTIVE.iter().find(|(known, _)| known == name) {
            Some((_, key)) => options.set.push((key, value.clone())),
            None => without_effect.push(format!("--{name}")),
        }
    }
    if !without_effect.is_empty() {
        options.notes.push(format!("without effect on this one node: {}", without_effect.join(", ")));
    }
    Ok(options)
}

/// The options with their values, in either form: `--name=value`, `--name value`, `--name`.
fn pairs(words: &[String]) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in words {
        match word.strip_prefix("--") {
            Some(option) => {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                pairs.push((name.to_owned(), value.to_owned()));
            }
            None => {
                if let Some((_, value)) = pairs.last_mut().filter(|(_, value)| value.is_empty()) {
                    value.clone_from(word);
                }
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, yaml: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        options(&words, yaml, &|| "172.17.0.2".to_owned())
    }

    fn value(options: &Options, key: &str) -> Option<String> {
        // The last one wins, as on the command line.
        options.set.iter().rfind(|(known, _)| *known == key).map(|(_, value)| value.clone())
    }

    #[test]
    fn the_command_lines_of_testcontainers_are_understood() {
        let found = of("--developer-mode=1 --overprovisioned=1 --smp=1 --memory=512M", "").unwrap();
        assert_eq!(value(&found, "memory_limit").as_deref(), Some("512M"));
        assert_eq!(value(&found, "native_shard_aware_transport_port").as_deref(), Some("19042"));
        assert_eq!(value(&found, "broadcast_rpc_address").as_deref(), Some("172.17.0.2"));
        assert_eq!(
            found.notes,
            ["without effect on this one node: --developer-mode, --overprovisioned, --smp"]
        );
        let found = of("--skip-wait-for-gossip-to-settle=0 --overprovisioned --smp 2 --cluster-name x", "");
        assert_eq!(value(&found.unwrap(), "cluster_name").as_deref(), Some("x"));
        let refused = of("--developer-mode=1 --alternator-port=8000", "").unwrap_err().to_string();
        assert!(refused.starts_with("--alternator-port: DynamoDB's interface"), "{refused}");
    }

    #[test]
    fn the_file_names_the_second_port_if_it_has_one() {
        let found = of("", "native_shard_aware_transport_port: 29042\n").unwrap();
        assert_eq!(value(&found, "native_shard_aware_transport_port"), None);
        let found = of("--broadcast-address 10.0.0.7 --rpc-address=127.0.0.1", "").unwrap();
        assert_eq!(value(&found, "broadcast_rpc_address").as_deref(), Some("10.0.0.7"));
        assert_eq!(value(&found, "rpc_address").as_deref(), Some("127.0.0.1"));
    }
}
