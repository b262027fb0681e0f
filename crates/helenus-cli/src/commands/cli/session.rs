//! The state of the client while a script runs: connection, keyspace in use, assumed types.

use super::ast::Statement;
use super::values::{class_of, comparator};
use crate::commands::access::Access;
use crate::commands::client::{RpcClient, nothing};
use crate::commands::passwords::Login;
use anyhow::{Context, Result, bail};
use helenus_rpc::Comparator;
use helenus_wire::thrift::{CfDef, ConsistencyLevel, Field, KsDef, Method, Text, args};
use std::collections::HashMap;

/// The types that the parts of a family are parsed and printed with.
#[derive(Clone, Debug)]
pub(super) struct FamilyTypes {
    pub(super) is_super: bool,
    pub(super) counts: bool,
    pub(super) keys: Comparator,
    pub(super) names: Comparator,
    pub(super) subnames: Comparator,
    pub(super) values: Comparator,
    /// The types of declared columns, by serialised column name.
    pub(super) columns: Vec<(Vec<u8>, Comparator)>,
}

impl FamilyTypes {
    fn of(definition: &CfDef<'_>) -> Result<FamilyTypes> {
        let class = |name: &Option<Text<'_>>| comparator(name.as_deref().unwrap_or("BytesType"));
        let mut columns = Vec::new();
        for column in definition.column_metadata.iter().flatten() {
            columns.push((column.name.to_vec(), comparator(&column.validation_class)?));
        }
        Ok(FamilyTypes {
            is_super: definition.column_type.as_deref() == Some("Super"),
            counts: definition
                .default_validation_class
                .as_deref()
                .is_some_and(|class| class.ends_with("CounterColumnType")),
            keys: class(&definition.key_validation_class)?,
            names: class(&definition.comparator_type)?,
            subnames: class(&definition.subcomparator_type)?,
            values: class(&definition.default_validation_class)?,
            columns,
        })
    }

    /// The type of the value of the column `name`.
    pub(super) fn value(&self, name: &[u8]) -> &Comparator {
        let declared = self.columns.iter().find(|(known, _)| known == name);
        declared.map_or(&self.values, |(_, ty)| ty)
    }

    /// The type of column names.
    pub(super) fn column(&self) -> &Comparator {
        if self.is_super { &self.subnames } else { &self.names }
    }
}

/// A connected client.
pub(super) struct CliSession {
    pub(super) client: RpcClient,
    pub(super) keyspace: Option<String>,
    pub(super) level: ConsistencyLevel,
    /// The types that ASSUME has set: by family, the part and its type.
    assumed: HashMap<String, Vec<(String, Comparator)>>,
}

impl CliSession {
    /// Connects to the server.
    pub(super) fn open(address: &str, access: Access<'_>) -> Result<CliSession> {
        Ok(CliSession {
            client: RpcClient::open(address, access)?,
            keyspace: None,
            level: ConsistencyLevel::One,
            assumed: HashMap::new(),
        })
    }

    /// Runs a statement. Returns false if it ends the script.
    pub(super) fn run(&mut self, statement: &Statement) -> Result<bool> {
        match statement {
            Statement::Quit => return Ok(false),
            Statement::Nothing => {}
            Statement::Use(keyspace, login) => {
                if let Some((user, password)) = login {
                    self.client.log_in(&Login { user: user.clone(), password: password.clone() })?;
                }
                self.use_keyspace(keyspace)?;
                say!("Authenticated to keyspace: {keyspace}")?;
            }
            Statement::Keyspace(is_new, name, options) => self.keyspace(*is_new, name, options)?,
            Statement::Family(is_new, name, options) => self.family(*is_new, name, options)?,
            Statement::DropKeyspace(name) => self.drop(Method::SystemDropKeyspace, name)?,
            Statement::DropFamily(name) => self.drop(Method::SystemDropColumnFamily, name)?,
            Statement::DropIndex(place) => self.drop_index(place)?,
            Statement::Set(path, value, ttl) => self.set(path, value, *ttl)?,
            Statement::Get(path, ty, limit) => self.get(path, ty.as_deref(), *limit)?,
            Statement::GetWhere(family, conditions, limit) => self.get_where(family, conditions, *limit)?,
            Statement::Delete(path) => self.delete(path)?,
            Statement::Count(path) => self.count(path)?,
            Statement::Increment(path, by) => self.increment(path, *by)?,
            Statement::List { .. } => self.list(statement)?,
            Statement::Truncate(family) => {
                let asked = args::OfColumnFamily { column_family: family };
                self.client.call::<i32>(Method::Truncate, |out| asked.write(out))?;
                say!("{family} truncated.")?;
            }
            Statement::Assume(family, part, ty) => self.assume(family, part, ty)?,
            Statement::Consistency(level) => self.set_level(level)?,
            Statement::ShowVersion => self.print(Method::DescribeVersion)?,
            Statement::ShowClusterName => self.print(Method::DescribeClusterName)?,
            Statement::ShowKeyspaces => self.show_keyspaces()?,
            Statement::DescribeCluster => self.describe_cluster()?,
            Statement::Describe(name) => self.describe(name.as_deref())?,
        }
        Ok(true)
    }

    /// Switches to a keyspace.
    pub(super) fn use_keyspace(&mut self, keyspace: &str) -> Result<()> {
        let asked = args::OfKeyspace { keyspace };
        self.client.call::<i32>(Method::SetKeyspace, |out| asked.write(out))?;
        self.keyspace = Some(keyspace.to_owned());
        Ok(())
    }

    /// The keyspace in use.
    pub(super) fn used(&self) -> Result<String> {
        self.keyspace.clone().context("Not authenticated to a working keyspace: begin with `use <keyspace>;`")
    }

    fn print(&mut self, method: Method) -> Result<()> {
        let text = self.client.call::<&str>(method, nothing)?.unwrap_or_default();
        say!("{text}")?;
        Ok(())
    }

    /// Fetches the definition of a family and passes it to `take`.
    pub(super) fn definition<R>(
        &mut self,
        family: &str,
        take: impl FnOnce(CfDef<'_>) -> Result<R>,
    ) -> Result<R> {
        let used = self.used()?;
        let asked = args::OfKeyspace { keyspace: &used };
        let keyspace = self.client.call::<KsDef<'_>>(Method::DescribeKeyspace, |out| asked.write(out))?;
        let families = keyspace.into_iter().flat_map(|keyspace| keyspace.cf_defs);
        match families.into_iter().find(|definition| definition.name == family) {
            Some(definition) => take(definition),
            None => bail!("{family} not found in current keyspace."),
        }
    }

    /// The types of a family, as defined and as assumed.
    pub(super) fn types(&mut self, family: &str) -> Result<FamilyTypes> {
        let mut types = self.definition(family, |definition| FamilyTypes::of(&definition))?;
        for (part, ty) in self.assumed.get(family).into_iter().flatten() {
            let place = match part.as_str() {
                "keys" => &mut types.keys,
                "comparator" => &mut types.names,
                "sub_comparator" => &mut types.subnames,
                _ => &mut types.values,
            };
            *place = ty.clone();
        }
        Ok(types)
    }

    fn assume(&mut self, family: &str, part: &str, ty: &str) -> Result<()> {
        if !["keys", "comparator", "sub_comparator", "validator"].contains(&part) {
            bail!("'{part}' is invalid. Available: keys, comparator, sub_comparator, validator");
        }
        let ty = comparator(&class_of(ty))?;
        self.assumed.entry(family.to_owned()).or_default().push((part.to_owned(), ty));
        say!("Assumption for column family '{family}' added successfully.")?;
        Ok(())
    }

    fn set_level(&mut self, level: &str) -> Result<()> {
        self.level = match level.to_ascii_uppercase().as_str() {
            "ONE" => ConsistencyLevel::One,
            "TWO" => ConsistencyLevel::Two,
            "THREE" => ConsistencyLevel::Three,
            "QUORUM" => ConsistencyLevel::Quorum,
            "LOCAL_QUORUM" => ConsistencyLevel::LocalQuorum,
            "EACH_QUORUM" => ConsistencyLevel::EachQuorum,
            "LOCAL_ONE" => ConsistencyLevel::LocalOne,
            "ALL" => ConsistencyLevel::All,
            "ANY" => ConsistencyLevel::Any,
            _ => bail!(
                "'{level}' is invalid. Available: ONE, TWO, THREE, QUORUM, LOCAL_QUORUM, EACH_QUORUM, LOCAL_ONE, ALL, ANY"
            ),
        };
        say!("Consistency level is set to '{}'.", level.to_ascii_uppercase())?;
        Ok(())
    }
}
