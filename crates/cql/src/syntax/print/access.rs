//! Prints statements about roles, users and permissions.

use super::super::ast::{
    AccessList, GrantPermissions, GrantRole, ListPermissions, ListRoles, Permission, Resource, RoleName,
    RoleOption, RoleStatement, UserStatement,
};
use super::printer::Printer;

impl Printer<'_> {
    /// A role's name, always as a string: a string is accepted everywhere and may be empty.
    pub(super) fn role_name(&mut self, role: &RoleName<'_>) {
        self.string(&role.name);
    }

    fn permissions(&mut self, permissions: &[Permission]) {
        match permissions == Permission::ALL {
            true => self.push("ALL PERMISSIONS"),
            false => self.joined(permissions, ", ", |printer, permission| printer.push(permission.as_str())),
        }
    }

    fn resource(&mut self, resource: &Resource<'_>) {
        self.push(match resource {
            Resource::AllKeyspaces => "ALL KEYSPACES",
            Resource::Keyspace(_) => "KEYSPACE ",
            Resource::Table(_) => "TABLE ",
            Resource::AllTables(_) => "ALL TABLES IN KEYSPACE ",
            Resource::AllRoles => "ALL ROLES",
            Resource::Role(_) => "ROLE ",
            Resource::AllFunctions => "ALL FUNCTIONS",
            Resource::AllFunctionsIn(_) => "ALL FUNCTIONS IN KEYSPACE ",
            Resource::Function(..) => "FUNCTION ",
            Resource::AllMbeans => "ALL MBEANS",
            Resource::Mbean(_) => "MBEAN ",
            Resource::Mbeans(_) => "MBEANS ",
        });
        match resource {
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::AllFunctionsIn(keyspace) => {
                self.ident(keyspace);
            }
            Resource::Table(table) => self.qualified(table),
            Resource::Role(role) => self.role_name(role),
            Resource::Function(name, arguments) => {
                self.function_name(name);
                self.enclosed("(", arguments, ")", Self::data_type);
            }
            Resource::Mbean(name) | Resource::Mbeans(name) => self.literal(name),
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMbeans => {}
        }
    }

    pub(super) fn grant_permissions(&mut self, verb: &str, grant: &GrantPermissions<'_>, connective: &str) {
        self.push(verb);
        self.permissions(&grant.permissions);
        self.push(" ON ");
        self.resource(&grant.resource);
        self.push(connective);
        self.role_name(&grant.role);
    }

    pub(super) fn grant_role(&mut self, verb: &str, grant: &GrantRole<'_>, connective: &str) {
        self.push(verb);
        self.role_name(&grant.role);
        self.push(connective);
        self.role_name(&grant.grantee);
    }

    fn listed_of(&mut self, role: Option<&RoleName<'_>>, recursive: bool) {
        if let Some(role) = role {
            self.push(" OF ");
            self.role_name(role);
        }
        self.push_if(!recursive, " NORECURSIVE");
    }

    pub(super) fn list_permissions(&mut self, list: &ListPermissions<'_>) {
        self.push("LIST ");
        self.permissions(&list.permissions);
        if let Some(resource) = &list.resource {
            self.push(" ON ");
            self.resource(resource);
        }
        self.listed_of(list.role.as_ref(), list.recursive);
    }

    pub(super) fn list_roles(&mut self, list: &ListRoles<'_>) {
        self.push("LIST ROLES");
        self.listed_of(list.role.as_ref(), list.recursive);
    }

    pub(super) fn role(&mut self, role: &RoleStatement<'_>) {
        self.role_name(&role.name);
        self.push_if(!role.options.is_empty(), " WITH ");
        self.joined(&role.options, " AND ", Self::role_option);
    }

    fn role_option(&mut self, option: &RoleOption<'_>) {
        match option {
            RoleOption::Password(text) => {
                self.push("PASSWORD = ");
                self.literal(text);
            }
            RoleOption::HashedPassword(text) => {
                self.push("HASHED PASSWORD = ");
                self.literal(text);
            }
            RoleOption::Options(pairs, _) => {
                self.push("OPTIONS = ");
                self.literal_map(pairs);
            }
            RoleOption::Superuser(yes) => self.push(&format!("SUPERUSER = {yes}")),
            RoleOption::Login(yes) => self.push(&format!("LOGIN = {yes}")),
            RoleOption::Datacenters(list) => self.access("ACCESS TO ", list, "DATACENTERS"),
            RoleOption::Cidrs(list) => self.access("ACCESS FROM ", list, "CIDRS"),
        }
    }

    fn access(&mut self, verb: &str, list: &AccessList<'_>, word: &str) {
        self.push(verb);
        self.push_if(*list == AccessList::All, "ALL ");
        self.push(word);
        if let AccessList::Only(names) = list {
            self.enclosed(" {", names, "}", Self::literal);
        }
    }

    pub(super) fn user(&mut self, user: &UserStatement<'_>) {
        self.role_name(&user.name);
        if let Some(password) = &user.password {
            self.push(if password.hashed { " WITH HASHED PASSWORD " } else { " WITH PASSWORD " });
            self.literal(&password.text);
        }
        match user.superuser {
            Some(true) => self.push(" SUPERUSER"),
            Some(false) => self.push(" NOSUPERUSER"),
            None => {}
        }
    }
}
