//! CREATE, ALTER and DROP KEYSPACE.

use super::change::DdlSettings;
use super::properties::Properties;
use super::replication::replication;
use crate::error::{CqlError, Result};
use crate::syntax::ast::{CreateKeyspace, Property};
use helenus_model::schema::{Keyspace, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

fn checked(properties: &[Property<'_>]) -> Result<Properties> {
    let properties = Properties::new(properties);
    properties.check_names(&["durable_writes", "replication"])?;
    if properties.map("replication")?.is_some_and(|map| !map.is_empty() && !map.contains_key("class")) {
        return Err(CqlError::Config("Missing replication strategy class".into()));
    }
    Ok(properties)
}

/// CREATE KEYSPACE.
pub(super) fn create(
    statement: &CreateKeyspace<'_>,
    schema: &mut Schema,
    settings: &DdlSettings,
) -> Result<()> {
    let properties = checked(&statement.properties)?;
    if !properties.has("replication") {
        return Err(CqlError::Invalid("Missing mandatory option 'replication'".into()));
    }
    let name: Arc<str> = statement.name.as_str().into();
    if schema.keyspaces.contains_key(&name) {
        if statement.if_not_exists {
            return Ok(());
        }
        return Err(CqlError::AlreadyExists {
            keyspace: name.to_string(),
            table: String::new(),
            message: format!("Cannot add existing keyspace \"{name}\""),
        });
    }
    let durable_writes = properties.boolean("durable_writes")?.unwrap_or(true);
    let given = properties.map("replication")?.cloned().unwrap_or_default();
    let replication = replication(&given, &BTreeMap::new(), &name, &settings.datacenter)?;
    let keyspace = Keyspace {
        name: name.clone(),
        durable_writes,
        replication,
        tables: BTreeMap::new(),
        types: BTreeMap::new(),
    };
    schema.keyspaces.insert(name, Arc::new(keyspace));
    Ok(())
}

/// ALTER KEYSPACE.
pub(super) fn alter(
    (name, if_exists): (&str, bool),
    properties: &[Property<'_>],
    schema: &mut Schema,
    settings: &DdlSettings,
) -> Result<()> {
    let properties = checked(properties)?;
    let Some(present) = schema.keyspaces.get_mut(name) else { return missing(name, if_exists) };
    let mut keyspace = Keyspace::clone(present);
    if let Some(durable_writes) = properties.boolean("durable_writes")? {
        keyspace.durable_writes = durable_writes;
    }
    if let Some(given) = properties.map("replication")?.filter(|map| map.contains_key("class")) {
        keyspace.replication = replication(given, &keyspace.replication, name, &settings.datacenter)?;
    }
    *present = Arc::new(keyspace);
    Ok(())
}

/// DROP KEYSPACE.
pub(super) fn drop(name: &str, if_exists: bool, schema: &mut Schema) -> Result<()> {
    match schema.keyspaces.remove(name) {
        Some(_) => Ok(()),
        None => missing(name, if_exists),
    }
}

fn missing(name: &str, if_exists: bool) -> Result<()> {
    if if_exists { Ok(()) } else { Err(CqlError::Invalid(format!("Keyspace '{name}' doesn't exist"))) }
}
