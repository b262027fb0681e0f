//! The objects of permissions: how tables and messages name them, and from which they inherit.
//!
//! Source: `DataResource`, `RoleResource`, `FunctionResource` and `JMXResource`.

use crate::syntax::ast::Permission;
use helenus_engine::is_system_keyspace;
use helenus_model::schema::Schema;
use helenus_model::types::CqlType;
use std::fmt;

/// The object of a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// All keyspaces.
    AllKeyspaces,
    /// A keyspace with its tables.
    Keyspace(Box<str>),
    /// All tables of a keyspace.
    AllTables(Box<str>),
    /// A table: its keyspace and name.
    Table(Box<str>, Box<str>),
    /// All roles.
    AllRoles,
    /// A role.
    Role(Box<str>),
    /// All functions.
    AllFunctions,
    /// The functions of a keyspace.
    FunctionsIn(Box<str>),
    /// A function or aggregate: its keyspace, its name, the types of its arguments.
    Function(Box<str>, Box<str>, Vec<CqlType>),
    /// All MBeans.
    AllMbeans,
    /// The MBeans of a name or pattern, in canonical form.
    Mbean(Box<str>),
}

impl Resource {
    /// The table of this name.
    pub(crate) fn table(keyspace: &str, table: &str) -> Resource {
        Resource::Table(keyspace.into(), table.into())
    }

    /// The name in `system_auth.role_permissions`.
    pub(crate) fn name(&self) -> String {
        match self {
            Resource::AllKeyspaces => "data".to_owned(),
            Resource::Keyspace(keyspace) => format!("data/{keyspace}"),
            Resource::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Resource::Table(keyspace, table) => format!("data/{keyspace}/{table}"),
            Resource::AllRoles => "roles".to_owned(),
            Resource::Role(role) => format!("roles/{role}"),
            Resource::AllFunctions => "functions".to_owned(),
            Resource::FunctionsIn(keyspace) => format!("functions/{keyspace}"),
            Resource::Function(keyspace, function, arguments) => {
                let classes: Vec<String> = arguments.iter().map(CqlType::class_name).collect();
                format!("functions/{keyspace}/{function}[{}]", classes.join("^"))
            }
            Resource::AllMbeans => "mbean".to_owned(),
            Resource::Mbean(name) => format!("mbean/{name}"),
        }
    }

    /// The resource of a name in `system_auth.role_permissions`; `None` if it is not one.
    pub(crate) fn of_name(name: &str) -> Option<Resource> {
        let (kind, rest) = match name.split_once('/') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (name, None),
        };
        Some(match (kind, rest) {
            ("data", None) => Resource::AllKeyspaces,
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Resource::Keyspace(rest.into()),
                Some((keyspace, "*")) => Resource::AllTables(keyspace.into()),
                Some((keyspace, table)) => Resource::table(keyspace, table),
            },
            ("roles", None) => Resource::AllRoles,
            ("roles", Some(role)) => Resource::Role(role.into()),
            ("functions", None) => Resource::AllFunctions,
            ("functions", Some(rest)) => match rest.split_once('/') {
                None => Resource::FunctionsIn(rest.into()),
                Some((keyspace, signature)) => {
                    let (function, classes) = signature.strip_suffix(']')?.split_once('[')?;
                    let classes = classes.split('^').filter(|class| !class.is_empty());
                    let types = classes.map(CqlType::from_class_name).collect::<Result<Vec<_>, _>>().ok()?;
                    Resource::Function(keyspace.into(), function.into(), types)
                }
            },
            ("mbean", None) => Resource::AllMbeans,
            ("mbean", Some(name)) => Resource::Mbean(name.into()),
            _ => return None,
        })
    }

    /// The resource from which it inherits.
    pub(crate) fn parent(&self) -> Option<Resource> {
        match self {
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMbeans => {
                None
            }
            Resource::Keyspace(_) => Some(Resource::AllKeyspaces),
            Resource::AllTables(keyspace) => Some(Resource::Keyspace(keyspace.clone())),
            Resource::Table(keyspace, _) => Some(Resource::AllTables(keyspace.clone())),
            Resource::Role(_) => Some(Resource::AllRoles),
            Resource::FunctionsIn(_) => Some(Resource::AllFunctions),
            Resource::Function(keyspace, ..) => Some(Resource::FunctionsIn(keyspace.clone())),
            Resource::Mbean(_) => Some(Resource::AllMbeans),
        }
    }

    /// It and those from which it inherits, nearest first.
    fn chain(&self) -> Vec<Resource> {
        std::iter::successors(Some(self.clone()), Resource::parent).collect()
    }

    /// It and those on which a permission to it may have been granted, nearest first. What is granted on all keyspaces does not
    /// count for those of the system (`ClientState.ensurePermission`). Every check of a permission asks for these, and LIST
    /// PERMISSIONS shows these.
    pub(crate) fn granted_on(&self) -> Vec<Resource> {
        let is_of_system = self.data_keyspace().is_some_and(is_system_keyspace);
        self.chain().into_iter().filter(|part| !is_of_system || *part != Resource::AllKeyspaces).collect()
    }

    /// Whether it is data of the keyspace of roles and permissions. Whoever changes that may do everything.
    pub(crate) fn is_access_data(&self) -> bool {
        self.data_keyspace() == Some("system_auth")
    }

    /// The permissions that it can have, in order.
    pub(crate) fn applicable(&self) -> &'static [Permission] {
        use Permission::{
            Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask,
        };
        match self {
            Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::AllTables(_) => {
                &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]
            }
            Resource::Table(..) => &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
            Resource::AllRoles => &[Create, Alter, Drop, Authorize, Describe],
            Resource::Role(_) => &[Alter, Drop, Authorize, Describe],
            Resource::AllFunctions | Resource::FunctionsIn(_) => &[Create, Alter, Drop, Authorize, Execute],
            Resource::Function(..) => &[Alter, Drop, Authorize, Execute],
            Resource::AllMbeans | Resource::Mbean(_) => &[Select, Modify, Authorize, Describe, Execute],
        }
    }

    /// The keyspace of data, if it is data of one.
    pub(crate) fn data_keyspace(&self) -> Option<&str> {
        match self {
            Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::Table(keyspace, _) => {
                Some(keyspace)
            }
            _ => None,
        }
    }

    /// Whether it exists. There are no user functions. Of MBeans, which this server does not have, the names of
    /// Cassandra and the JVM pass, so that scripts of grants can be run.
    pub(crate) fn exists(&self, schema: &Schema, has_role: impl FnOnce(&str) -> bool) -> bool {
        match self {
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMbeans => {
                true
            }
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::FunctionsIn(keyspace) => schema.keyspaces.contains_key(&**keyspace),
            Resource::Table(keyspace, table) => schema.table(keyspace, table).is_some(),
            Resource::Role(role) => has_role(role),
            Resource::Function(..) => false,
            Resource::Mbean(name) => {
                ["org.apache.cassandra", "java.", "com.sun.management", "ch.qos.logback"]
                    .iter()
                    .any(|domain| name.starts_with(domain))
                    || name.starts_with('*')
            }
        }
    }
}

/// A pattern or name of MBeans with its properties sorted (`ObjectName.getCanonicalName`).
pub(crate) fn canonical_mbean(name: &str) -> String {
    let Some((domain, properties)) = name.split_once(':') else { return name.to_owned() };
    let mut properties: Vec<&str> = properties.split(',').collect();
    // The pattern `*` of further properties comes last.
    properties.sort_by_key(|property| (*property == "*", *property));
    format!("{domain}:{}", properties.join(","))
}

impl fmt::Display for Resource {
    /// The form in messages and in the answers of LIST PERMISSIONS.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::AllKeyspaces => f.write_str("<all keyspaces>"),
            Resource::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Resource::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Resource::Table(keyspace, table) => write!(f, "<table {keyspace}.{table}>"),
            Resource::AllRoles => f.write_str("<all roles>"),
            Resource::Role(role) => write!(f, "<role {role}>"),
            Resource::AllFunctions => f.write_str("<all functions>"),
            Resource::FunctionsIn(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Resource::Function(keyspace, function, arguments) => {
                let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                write!(f, "<function {keyspace}.{function}({})>", types.join(", "))
            }
            Resource::AllMbeans => f.write_str("<all mbeans>"),
            Resource::Mbean(name) => write!(f, "<mbean {name}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_found_again_by_its_name() {
        let resources = [
            Resource::AllKeyspaces,
            Resource::Keyspace("ks".into()),
            Resource::AllTables("ks".into()),
            Resource::table("ks", "t/x"),
            Resource::AllRoles,
            Resource::Role("a/b".into()),
            Resource::AllFunctions,
            Resource::FunctionsIn("ks".into()),
            Resource::Function("ks".into(), "f".into(), vec![CqlType::Int, CqlType::Text]),
            Resource::Function("ks".into(), "f".into(), Vec::new()),
            Resource::AllMbeans,
            Resource::Mbean("a:b=c".into()),
        ];
        for resource in resources {
            assert_eq!(Resource::of_name(&resource.name()), Some(resource.clone()), "{resource}");
        }
        let function = Resource::Function("ks".into(), "f".into(), vec![CqlType::Int]);
        assert_eq!(function.name(), "functions/ks/f[org.apache.cassandra.db.marshal.Int32Type]");
        assert_eq!(function.to_string(), "<function ks.f(int)>");
        for wrong in ["", "x", "functions/ks/f", "functions/ks/f[x", "functions/ks/f[no.such(]"] {
            assert_eq!(Resource::of_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_table_inherits_from_its_keyspace_and_from_all() {
        let names: Vec<String> = Resource::table("ks", "t").chain().iter().map(Resource::name).collect();
        assert_eq!(names, ["data/ks/t", "data/ks/*", "data/ks", "data"]);
    }

    #[test]
    fn what_is_granted_on_all_keyspaces_is_not_granted_on_those_of_the_system() {
        let keyspaces = ["system", "system_schema", "system_auth", "system_traces", "system_distributed"];
        for keyspace in keyspaces.into_iter().chain(["system_views", "system_virtual_schema"]) {
            let of = [
                Resource::table(keyspace, "t"),
                Resource::AllTables(keyspace.into()),
                Resource::Keyspace(keyspace.into()),
            ];
            for resource in of {
                assert!(!resource.granted_on().contains(&Resource::AllKeyspaces), "{resource}");
                assert_eq!(resource.granted_on().first(), Some(&resource));
            }
        }
        assert!(Resource::table("ks", "t").granted_on().contains(&Resource::AllKeyspaces));
        assert_eq!(Resource::AllKeyspaces.granted_on(), [Resource::AllKeyspaces]);
    }

    #[test]
    fn the_properties_of_an_mbean_are_sorted() {
        assert_eq!(canonical_mbean("d:type=B,name=A,*"), "d:name=A,type=B,*");
        assert_eq!(canonical_mbean("d:*"), "d:*");
    }
}
