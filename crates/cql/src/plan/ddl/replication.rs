//! The replication of a keyspace: strategies and their options (`ReplicationParams`, `SimpleStrategy`,
//! `NetworkTopologyStrategy`). One server holds every replica; the settings matter to drivers and to a later move to a
//! cluster.

use super::java_class;
use crate::error::{CqlError, Result};
use helenus_engine::is_system_keyspace;
use std::collections::BTreeMap;

const PACKAGE: &str = "org.apache.cassandra.locator.";
const CLASS: &str = "class";
const FACTOR: &str = "replication_factor";

fn config<T>(message: String) -> Result<T> {
    Err(CqlError::Config(message))
}

/// The stored form of the replication that a statement gives. `previous` is the current one of a keyspace that is
/// altered; `datacenter` is the server's own.
pub(super) fn replication(
    given: &BTreeMap<String, String>,
    previous: &BTreeMap<String, String>,
    keyspace: &str,
    datacenter: &str,
) -> Result<BTreeMap<String, String>> {
    let mut options = given.clone();
    let Some(class) = options.remove(CLASS) else {
        return config("Missing replication strategy class".into());
    };
    let class = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
    let mut previous = previous.clone();
    previous.remove(CLASS);
    match class.strip_prefix(PACKAGE) {
        Some("SimpleStrategy") => {
            let factor = previous.remove(FACTOR).unwrap_or_else(|| "1".into());
            options.entry(FACTOR.into()).or_insert(factor);
            check_simple(&options, keyspace)?;
        }
        Some("NetworkTopologyStrategy") => {
            prepare_datacenters(&mut options, previous, datacenter);
            check_datacenters(&options)?;
        }
        Some("LocalStrategy") => {
            return Err(CqlError::Invalid(
                "Unable to use given strategy class: LocalStrategy is reserved for internal use.".into(),
            ));
        }
        Some("OldNetworkTopologyStrategy") => {
            return config(
                "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. The keyspace \
                 strategy should be switch to NetworkTopologyStrategy"
                    .into(),
            );
        }
        Some("AbstractReplicationStrategy") => {
            return config("Error constructing replication strategy class".into());
        }
        _ => {
            let base = "locator.AbstractReplicationStrategy";
            return Err(java_class::refused(&class, "replication strategy", base));
        }
    }
    options.insert(CLASS.into(), class);
    Ok(options)
}

fn check_simple(options: &BTreeMap<String, String>, keyspace: &str) -> Result<()> {
    let factor = options.get(FACTOR).map_or("", String::as_str);
    check_factor(factor)?;
    match options.keys().find(|name| *name != FACTOR) {
        Some(name) => config(format!(
            "Unrecognized strategy option {{{name}}} passed to SimpleStrategy for keyspace {keyspace}"
        )),
        None => Ok(()),
    }
}

/// `replication_factor` applies to every datacenter that is not named.
fn prepare_datacenters(
    options: &mut BTreeMap<String, String>,
    previous: BTreeMap<String, String>,
    datacenter: &str,
) {
    if options.is_empty() {
        let factor = previous.get(FACTOR).cloned().unwrap_or_else(|| "1".into());
        options.insert(FACTOR.into(), factor);
    }
    if let Some(factor) = options.remove(FACTOR) {
        // Cassandra stops here if the factor is not a number, and then reports that the datacenters are missing.
        let Ok(factor) = factor_of(&factor) else { return };
        for (name, value) in previous.into_iter().filter(|(name, _)| name != FACTOR) {
            options.entry(name).or_insert(value);
        }
        options.entry(datacenter.into()).or_insert(factor.to_string());
    }
    options.retain(|_, factor| factor != "0");
}

/// Any datacenter may be named, so that a schema from a cluster can be created unchanged; this one server holds every
/// replica of each. (Cassandra knows its datacenters and rejects others.)
fn check_datacenters(options: &BTreeMap<String, String>) -> Result<()> {
    // In another case it does not mean all datacenters, and no datacenter may have this name.
    if options.keys().any(|name| name.eq_ignore_ascii_case(FACTOR)) {
        return config(format!(
            "{FACTOR} should not appear as an option at construction time for NetworkTopologyStrategy"
        ));
    }
    for factor in options.values() {
        check_factor(factor)?;
    }
    if options.is_empty() {
        return config("Configuration for at least one datacenter must be present".into());
    }
    Ok(())
}

fn check_factor(text: &str) -> Result<()> {
    factor_of(text).map(drop)
}

/// The number of replicas of a factor, which may name transient replicas if they are none, as in `3/0`
/// (`ReplicationFactor.fromString`).
fn factor_of(text: &str) -> Result<i32> {
    let number = |text: &str| match text.parse::<i32>() {
        Ok(number) => Ok(number),
        Err(_) => config(format!("For input string: \"{text}\"")),
    };
    let (replicas, transient) = match text.contains('/') {
        false => (number(text)?, 0),
        // Parts that are empty at the end do not count (`String.split`).
        true => match text.trim_end_matches('/').split('/').collect::<Vec<_>>()[..] {
            [replicas, transient] => (number(replicas)?, number(transient)?),
            _ => return config("Replication factor format is <replicas> or <replicas>/<transient>".into()),
        },
    };
    match (replicas, transient) {
        (0.., 0) => Ok(replicas),
        (_, 0) => config(format!("Replication factor must be non-negative, found {replicas}")),
        _ => config("Transient replication is not enabled on this node".into()),
    }
}

/// The number of replicas of a keyspace, over all its datacenters.
fn replicas(replication: &BTreeMap<String, String>) -> i64 {
    let factors = replication.iter().filter(|(name, _)| *name != CLASS);
    factors.filter_map(|(_, factor)| factor_of(factor).ok()).map(i64::from).sum()
}

/// The warning for an ALTER that increases the number of replicas.
pub(super) fn more_replicas(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Option<String> {
    let text =
        "When increasing replication factor you need to run a full (-full) repair to distribute the data.";
    (replicas(before) < replicas(after)).then(|| text.to_owned())
}

/// The warning if there are more replicas than nodes. There is none for datacenters without nodes
/// nor for Cassandra's own keyspaces (`NetworkTopologyStrategy.maybeWarnOnOptions`).
pub(super) fn too_many_replicas(
    replication: &BTreeMap<String, String>,
    keyspace: &str,
    datacenter: &str,
) -> Option<String> {
    let mut factors = replication.iter().filter(|(name, _)| *name == FACTOR || *name == datacenter);
    let (name, factor) = factors.next()?;
    let factor = factor_of(factor).ok().filter(|factor| *factor > 1 && !is_system_keyspace(keyspace))?;
    let text = format!(
        "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes 1"
    );
    Some(if name == FACTOR { text } else { format!("{text} for datacenter {name}") })
}
