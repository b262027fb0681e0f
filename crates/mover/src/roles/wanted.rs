//! Compares the roles of both sides: which statements make the target's as they are here, and what cannot be.
//!
//! A role that the target has and the move has not made is never changed. If it is the same, what it may do here is granted to it;
//! if not, it is left alone. A role that the move has made follows the one here, to its end.

use super::role::{Role, Roles};
use helenus_engine::is_system_keyspace;
use helenus_model::types::quote_identifier;
use std::collections::{BTreeMap, BTreeSet};

/// The role that a new cluster has. It is not moved.
pub(super) const DEFAULT_ROLE: &str = "cassandra";
/// The first version that takes the hash of a password.
const TAKES_HASHES: (u32, u32) = (4, 1);
/// Permissions that are newer, with their first version.
const NEWER_PERMISSIONS: [(&str, (u32, u32)); 2] = [("UNMASK", (5, 0)), ("SELECT_MASKED", (5, 0))];

/// What the target knows of roles.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) version: (u32, u32),
    /// Whether roles can be limited to data centers.
    pub(super) limits_datacenters: bool,
    pub(super) datacenters: BTreeSet<String>,
}

impl Facts {
    /// Whether the target knows a permission.
    fn know(&self, permission: &str) -> bool {
        let is_newer = |(name, since): &(&str, (u32, u32))| *name == permission && self.version < *since;
        !NEWER_PERMISSIONS.iter().any(is_newer)
    }
}

/// A statement, with the text that may be shown: without the hash.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) text: String,
    pub(super) shown: String,
}

/// What is to be done with roles.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Statements, in order.
    pub(super) steps: Vec<Step>,
    /// Why nothing can be moved.
    pub(crate) problems: Vec<String>,
    /// What is not moved, or otherwise than it is here.
    pub(crate) notes: Vec<String>,
    /// The roles of the target that the move has made, or is about to.
    pub(super) made: BTreeSet<String>,
}

impl Wanted {
    /// The statements as they may be shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| &*step.shown)
    }

    fn run(&mut self, text: String) {
        self.steps.push(Step { shown: text.clone(), text });
    }
}

/// Compares both sides. `made`: the roles that the move has made there; `tables`: what is moved, as keyspace and name.
pub(super) fn wanted(
    (here, there): (&Roles, &Roles),
    made: &BTreeSet<String>,
    tables: &BTreeSet<(String, String)>,
    facts: &Facts,
) -> Wanted {
    let mut wanted = Wanted { made: made.clone(), ..Wanted::default() };
    if facts.version < TAKES_HASHES {
        let (major, minor) = facts.version;
        wanted.problems.push(format!(
            "the target's version {major}.{minor} takes no HASHED PASSWORD, which came with 4.1: make the roles there, and leave --roles out"
        ));
        return wanted;
    }
    let mut comparison = Comparison { here, there, tables, facts, left: BTreeSet::new(), wanted };
    comparison.roles();
    comparison.memberships();
    comparison.permissions();
    comparison.gone();
    comparison.wanted
}

struct Comparison<'a> {
    here: &'a Roles,
    there: &'a Roles,
    tables: &'a BTreeSet<(String, String)>,
    facts: &'a Facts,
    /// Roles of the target that are others, and stay as they are.
    left: BTreeSet<&'a str>,
    wanted: Wanted,
}

impl<'a> Comparison<'a> {
    /// The roles that are moved: name, here, there.
    fn moved(&self) -> Vec<(&'a str, &'a Role, Option<&'a Role>)> {
        let is_moved = |name: &str| name != DEFAULT_ROLE && !self.left.contains(name);
        let of = self.here.iter().filter(|(name, _)| is_moved(name));
        of.map(|(name, role)| (name.as_str(), role, self.there.get(name))).collect()
    }

    fn is_made(&self, name: &str) -> bool {
        self.wanted.made.contains(name)
    }

    fn roles(&mut self) {
        if self.here.contains_key(DEFAULT_ROLE) {
            let text = format!("the role {DEFAULT_ROLE} is not moved: the target has its own");
            self.wanted.notes.push(text);
        }
        for name in self.here.keys().filter(|name| !can_be_made(name)) {
            self.left.insert(name);
            self.wanted.notes.push(format!(
                "the role {name} is not moved: Cassandra cannot make or drop one with ' in its name; make one with another name here"
            ));
        }
        for (name, role, there) in self.moved() {
            match there {
                None => {
                    self.wanted.made.insert(name.to_owned());
                    self.wanted.steps.push(step("CREATE ROLE IF NOT EXISTS", name, role));
                }
                Some(there) if self.is_made(name) => {
                    if !differences(role, there).is_empty() {
                        self.wanted.steps.push(step("ALTER ROLE", name, role));
                    }
                }
                Some(there) => match &*differences(role, there) {
                    [] => {
                        let text = format!("the role {name} is at the target already, and is the same");
                        self.wanted.notes.push(text);
                    }
                    differences => {
                        self.left.insert(name);
                        self.wanted.notes.push(format!(
                            "the role {name} is at the target already, with {}: it stays as it is there, and gets no permissions",
                            differences.join(" and ")
                        ));
                    }
                },
            }
        }
        for (name, role, there) in self.moved() {
            self.datacenters(name, role, there);
        }
    }

    fn datacenters(&mut self, name: &str, role: &Role, there: Option<&Role>) {
        let before = there.map(|there| &there.datacenters);
        if role.datacenters.is_empty() || before == Some(&role.datacenters) {
            return;
        }
        let unknown: Vec<&str> =
            role.datacenters.difference(&self.facts.datacenters).map(String::as_str).collect();
        let why = match (self.facts.limits_datacenters, &*unknown) {
            (false, _) => "its network_authorizer lets all roles in everywhere".to_owned(),
            (true, []) => {
                let names: Vec<String> = role.datacenters.iter().map(|name| literal(name)).collect();
                let names = names.join(", ");
                let text =
                    format!("ALTER ROLE {} WITH ACCESS TO DATACENTERS {{{names}}}", quote_identifier(name));
                return self.wanted.run(text);
            }
            (true, unknown) => format!("it has no data center {}", unknown.join(" or ")),
        };
        let text = format!("the role {name} is not limited to data centers at the target: {why}");
        self.wanted.notes.push(text);
    }

    fn memberships(&mut self) {
        for (name, role, there) in self.moved() {
            let none = BTreeSet::new();
            let before = there.map_or(&none, |there| &there.member_of);
            for of in role.member_of.difference(before) {
                if self.left.contains(of.as_str()) || of == DEFAULT_ROLE {
                    let text = format!(
                        "the role {name} does not become a member of {of}, which is another role at the target"
                    );
                    self.wanted.notes.push(text);
                } else if self.here.contains_key(of) {
                    self.wanted.run(format!("GRANT {} TO {}", quote_identifier(of), quote_identifier(name)));
                }
            }
            if !self.is_made(name) {
                continue;
            }
            for of in before.difference(&role.member_of) {
                self.wanted.run(format!("REVOKE {} FROM {}", quote_identifier(of), quote_identifier(name)));
            }
        }
    }

    fn permissions(&mut self) {
        let mut not_moved: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        let mut in_all = Vec::new();
        for (name, role, there) in self.moved() {
            let (of, none) = (quote_identifier(name), BTreeSet::new());
            for (resource, permissions) in &role.permissions {
                let object = match self.object(resource) {
                    Ok(object) => object,
                    Err(why) => {
                        not_moved.entry((name, why)).or_default().push(resource);
                        continue;
                    }
                };
                if resource == "data" {
                    in_all.push(name);
                }
                let before = there.and_then(|there| there.permissions.get(resource)).unwrap_or(&none);
                let facts = self.facts;
                for permission in permissions.difference(before).filter(|name| facts.know(name)) {
                    self.wanted.run(format!("GRANT {permission} ON {object} TO {of}"));
                }
            }
            let nothing = BTreeMap::new();
            let before = there.filter(|_| self.is_made(name)).map_or(&nothing, |there| &there.permissions);
            for (resource, permissions) in before {
                let Ok(object) = self.object(resource) else { continue };
                let now = role.permissions.get(resource).unwrap_or(&none);
                for permission in permissions.difference(now) {
                    self.wanted.run(format!("REVOKE {permission} ON {object} FROM {of}"));
                }
            }
        }
        for ((name, why), resources) in not_moved {
            let text = format!("permissions of {name} on {} are not moved: {why}", resources.join(", "));
            self.wanted.notes.push(text);
        }
        if !in_all.is_empty() {
            let names = in_all.join(", ");
            let text =
                format!("permissions of {names} on all keyspaces hold for what else the target has, too");
            self.wanted.notes.push(text);
        }
    }

    /// The object of a permission, as a statement names it; otherwise why it is not moved.
    fn object(&self, resource: &str) -> Result<String, &'static str> {
        let (kind, rest) =
            resource.split_once('/').map_or((resource, None), |(kind, rest)| (kind, Some(rest)));
        match (kind, rest) {
            ("data", None) => Ok("ALL KEYSPACES".to_owned()),
            ("data", Some(rest)) => self.data(rest),
            ("roles", None) => Ok("ALL ROLES".to_owned()),
            ("roles", Some(role)) if role == DEFAULT_ROLE || self.left.contains(role) => {
                Err("the role is another one at the target")
            }
            ("roles", Some(role)) if self.here.contains_key(role) => {
                Ok(format!("ROLE {}", quote_identifier(role)))
            }
            ("roles", Some(_)) => Err("the role is not there any more"),
            ("functions", None) => Ok("ALL FUNCTIONS".to_owned()),
            ("functions", Some(keyspace)) if self.has_keyspace(keyspace) => {
                Ok(format!("ALL FUNCTIONS IN KEYSPACE {}", quote_identifier(keyspace)))
            }
            ("functions", Some(_)) => Err("their keyspace is not moved, or they are on a single function"),
            _ => Err("they concern a node itself"),
        }
    }

    fn data(&self, name: &str) -> Result<String, &'static str> {
        let (keyspace, table) =
            name.split_once('/').map_or((name, None), |(keyspace, table)| (keyspace, Some(table)));
        if is_system_keyspace(keyspace) {
            return Err("they are on tables of the server itself");
        }
        if !self.has_keyspace(keyspace) {
            return Err("their keyspace is not moved");
        }
        let quoted = quote_identifier(keyspace);
        match table {
            None => Ok(format!("KEYSPACE {quoted}")),
            Some("*") => Ok(format!("ALL TABLES IN KEYSPACE {quoted}")),
            Some(table) if self.tables.contains(&(keyspace.to_owned(), table.to_owned())) => {
                Ok(format!("TABLE {quoted}.{}", quote_identifier(table)))
            }
            Some(_) => Err("their table is not moved"),
        }
    }

    fn has_keyspace(&self, name: &str) -> bool {
        self.tables.iter().any(|(keyspace, _)| keyspace == name)
    }

    /// Roles that the move has made, and that were dropped here since.
    fn gone(&mut self) {
        let gone = self.wanted.made.iter().filter(|name| !self.here.contains_key(*name));
        let gone = gone.filter(|name| self.there.contains_key(*name) && can_be_made(name));
        let gone: Vec<String> = gone.cloned().collect();
        for name in gone {
            self.wanted.run(format!("DROP ROLE IF EXISTS {}", quote_identifier(&name)));
        }
    }
}

/// Whether Cassandra can make a role: its statements about data centers have the name as it is between quotes
/// (`CassandraNetworkAuthorizer.setRoleDatacenters`, `drop`).
fn can_be_made(name: &str) -> bool {
    !name.contains('\'')
}

/// What is different between a role and the one of this name at the target, in words.
pub(super) fn differences(here: &Role, there: &Role) -> Vec<&'static str> {
    let words = [
        (here.hash != there.hash, "another password"),
        (here.can_login && !there.can_login, "LOGIN = false"),
        (!here.can_login && there.can_login, "LOGIN = true"),
        (here.is_superuser && !there.is_superuser, "SUPERUSER = false"),
        (!here.is_superuser && there.is_superuser, "SUPERUSER = true"),
    ];
    words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
}

/// A statement that gives a role the attributes that it has here.
fn step(verb: &str, name: &str, role: &Role) -> Step {
    let text = |hash: Option<String>| {
        let hash = hash.map_or(String::new(), |hash| format!("HASHED PASSWORD = {hash} AND "));
        format!(
            "{verb} {} WITH {hash}LOGIN = {} AND SUPERUSER = {}",
            quote_identifier(name),
            role.can_login,
            role.is_superuser
        )
    };
    Step {
        text: text(role.hash.as_deref().map(literal)),
        shown: text(role.hash.as_ref().map(|_| "'...'".to_owned())),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests;
