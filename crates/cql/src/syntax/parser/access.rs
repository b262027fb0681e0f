//! Parses statements about roles, users, identities and permissions.

use super::super::ast::{
    AccessList, GrantPermissions, GrantRole, ListPermissions, ListRoles, Literal, Permission, Pos, Resource,
    RoleOption, RoleStatement, StatementKind, UserPassword, UserStatement,
};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;
use super::property::Names;

const QUOTED_USER: &str =
    "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
const QUOTED_IDENTITY: &str = "Quoted strings are are not supported for identity";
const TWO_PASSWORDS: &str = "Options 'password' and 'hashed password' are mutually exclusive";

fn permission_of(kind: Kind) -> Option<Permission> {
    Some(match kind {
        Kind::Create => Permission::Create,
        Kind::Alter => Permission::Alter,
        Kind::Drop => Permission::Drop,
        Kind::Select => Permission::Select,
        Kind::Modify => Permission::Modify,
        Kind::Authorize => Permission::Authorize,
        Kind::Describe => Permission::Describe,
        Kind::Execute => Permission::Execute,
        Kind::Unmask => Permission::Unmask,
        Kind::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}

/// The name of a resource in messages, and the permissions that it can have (`applicablePermissions`).
fn applicable(resource: &Resource<'_>) -> (&'static str, &'static [Permission]) {
    use Permission::{
        Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask,
    };
    match resource {
        Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::AllTables(_) => {
            ("DataResource", &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked])
        }
        Resource::Table(_) => {
            ("DataResource", &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked])
        }
        Resource::AllRoles => ("RoleResource", &[Create, Alter, Drop, Authorize, Describe]),
        Resource::Role(_) => ("RoleResource", &[Alter, Drop, Authorize, Describe]),
        Resource::AllFunctions | Resource::AllFunctionsIn(_) => {
            ("FunctionResource", &[Create, Alter, Drop, Authorize, Execute])
        }
        Resource::Function(..) => ("FunctionResource", &[Alter, Drop, Authorize, Execute]),
        Resource::AllMbeans | Resource::Mbean(_) | Resource::Mbeans(_) => {
            ("JMXResource", &[Authorize, Describe, Execute, Modify, Select])
        }
    }
}

impl<'a> Parser<'a, '_> {
    /// Every statement that begins with GRANT (`to`) or REVOKE. A word that can be both a role and a permission is a
    /// permission if ON, PERMISSION or a comma follows.
    pub(super) fn grant_or_revoke(&mut self, to: bool) -> Parsed<StatementKind<'a>> {
        let connective = if to { Kind::To } else { Kind::From };
        let first = self.look(1);
        let next = self.look(2).kind;
        let is_role = match first.kind {
            Kind::String => true,
            kind if !kind.is_name() && kind != Kind::QMark => false,
            kind => (kind != Kind::All && permission_of(kind).is_none()) || next == connective,
        };
        if !is_role && first.kind != Kind::All && permission_of(first.kind).is_none() {
            return Err(self.no_viable_ahead(first));
        }
        self.advance()?;
        if is_role {
            let role = self.role_name()?;
            self.expect(connective)?;
            let grant = GrantRole { role, grantee: self.role_name()? };
            return Ok(if to { StatementKind::GrantRole(grant) } else { StatementKind::RevokeRole(grant) });
        }
        let pos = self.pos();
        let permissions = self.permissions()?;
        self.expect(Kind::On)?;
        let resource = self.resource()?;
        self.expect(connective)?;
        let role = self.role_name()?;
        let (name, allowed) = applicable(&resource);
        if !permissions.iter().any(|permission| allowed.contains(permission)) {
            let message = format!("Resource type {name} does not support any of the requested permissions");
            return Err(self.rule(pos, message));
        }
        let grant = GrantPermissions { permissions, resource, role };
        Ok(match to {
            true => StatementKind::GrantPermissions(grant),
            false => StatementKind::RevokePermissions(grant),
        })
    }

    /// `permissionOrAll`
    fn permissions(&mut self) -> Parsed<Vec<Permission>> {
        if self.eat(Kind::All)? {
            self.eat(Kind::Permissions)?;
            return Ok(Permission::ALL.to_vec());
        }
        let mut permissions = self.list(|parser| {
            let Some(permission) = permission_of(parser.kind()) else {
                return Err(parser.mismatched("set null"));
            };
            parser.advance()?;
            parser.eat(Kind::Permission)?;
            Ok(permission)
        })?;
        permissions.sort_unstable();
        permissions.dedup();
        Ok(permissions)
    }

    /// `resource`
    fn resource(&mut self) -> Parsed<Resource<'a>> {
        let first = self.kind();
        if !matches!(
            first,
            Kind::All | Kind::Keyspace | Kind::Role | Kind::Function | Kind::Mbean | Kind::Mbeans
        ) {
            return self.table_resource();
        }
        let next = self.look(1);
        match first {
            Kind::All => {
                let resource = match next.kind {
                    Kind::Keyspaces => Resource::AllKeyspaces,
                    Kind::Roles => Resource::AllRoles,
                    Kind::Mbeans => Resource::AllMbeans,
                    Kind::Tables | Kind::Functions => {
                        self.advance()?;
                        return self.all_in(next.kind);
                    }
                    _ => return self.table_resource(),
                };
                self.advance()?;
                self.advance()?;
                Ok(resource)
            }
            Kind::Keyspace => {
                self.advance()?;
                Ok(Resource::Keyspace(self.keyspace_name()?))
            }
            Kind::Role if next.kind.is_name() || matches!(next.kind, Kind::String | Kind::QMark) => {
                self.advance()?;
                Ok(Resource::Role(self.role_name()?))
            }
            Kind::Function if next.kind.is_name() || next.kind.is_function_name() => {
                self.advance()?;
                let name = self.function_name()?;
                Ok(Resource::Function(name, self.argument_types()?))
            }
            Kind::Mbean if next.kind == Kind::String => {
                self.advance()?;
                Ok(Resource::Mbean(self.jmx_name(false)?))
            }
            Kind::Mbeans if next.kind == Kind::String => {
                self.advance()?;
                Ok(Resource::Mbeans(self.jmx_name(true)?))
            }
            _ => self.table_resource(),
        }
    }

    /// `TABLES IN KEYSPACE ks` and `FUNCTIONS [IN KEYSPACE ks]`, after ALL.
    fn all_in(&mut self, word: Kind) -> Parsed<Resource<'a>> {
        self.advance()?;
        if word == Kind::Functions && self.kind() != Kind::In {
            return Ok(Resource::AllFunctions);
        }
        self.expect_all(&[Kind::In, Kind::Keyspace])?;
        let keyspace = self.keyspace_name()?;
        Ok(match word {
            Kind::Tables => Resource::AllTables(keyspace),
            _ => Resource::AllFunctionsIn(keyspace),
        })
    }

    fn table_resource(&mut self) -> Parsed<Resource<'a>> {
        self.eat(Kind::Columnfamily)?;
        Ok(Resource::Table(self.table_name()?))
    }

    /// The name of MBeans: `domain:key=value,...`. It checks `canonicalizeObjectName` as far as that is possible
    /// without Java.
    fn jmx_name(&mut self, plural: bool) -> Parsed<Literal<'a>> {
        let name = self.string()?;
        let text = &*name.text;
        let properties = text.split_once(':').map(|(_, properties)| properties);
        let valid = properties.is_some_and(|properties| properties == "*" || properties.contains('='));
        let message = if text.is_empty() {
            "Empty JMX object name supplied".to_owned()
        } else if text == "*:*" {
            "Please use ALL MBEANS instead of wildcard pattern".to_owned()
        } else if !valid {
            format!("{text} is not a valid JMX object name")
        } else if plural && !text.contains(['*', '?']) {
            format!("Plural form used, but non-pattern JMX object name specified ({text})")
        } else {
            return Ok(name);
        };
        Err(self.rule(name.pos, message))
    }

    /// Every statement that begins with LIST.
    pub(super) fn list_statement(&mut self) -> Parsed<StatementKind<'a>> {
        let next = self.look(1);
        match next.kind {
            Kind::Users => {
                self.expect_all(&[Kind::List, Kind::Users])?;
                Ok(StatementKind::ListUsers)
            }
            Kind::Roles => {
                self.expect_all(&[Kind::List, Kind::Roles])?;
                let role = if self.eat(Kind::Of)? { Some(self.role_name()?) } else { None };
                let recursive = !self.eat(Kind::Norecursive)?;
                Ok(StatementKind::ListRoles(ListRoles { role, recursive }))
            }
            kind if kind == Kind::All || permission_of(kind).is_some() => {
                self.expect(Kind::List)?;
                let permissions = self.permissions()?;
                let resource = if self.eat(Kind::On)? { Some(self.resource()?) } else { None };
                let role = if self.eat(Kind::Of)? { Some(self.role_name()?) } else { None };
                let recursive = !self.eat(Kind::Norecursive)?;
                Ok(StatementKind::ListPermissions(ListPermissions { permissions, resource, role, recursive }))
            }
            _ => Err(self.no_viable_ahead(next)),
        }
    }

    /// The rest of CREATE ROLE and ALTER ROLE.
    pub(super) fn role(&mut self, create: bool) -> Parsed<RoleStatement<'a>> {
        let guarded = if create { self.if_not_exists()? } else { self.if_exists()? };
        let name = self.role_name()?;
        let mut options = Vec::new();
        if self.eat(Kind::With)? {
            let mut names = Names::default();
            loop {
                let pos = self.pos();
                let option = self.role_option()?;
                self.check_role_option(&option, &mut names, pos)?;
                self.add_role_option(option, &mut options, pos)?;
                if !self.eat(Kind::And)? {
                    break;
                }
            }
        }
        let has = |wanted: fn(&RoleOption<'a>) -> bool| options.iter().any(wanted);
        if has(|option| matches!(option, RoleOption::Password(_)))
            && has(|option| matches!(option, RoleOption::HashedPassword(_)))
        {
            return Err(self.rule(name.pos, TWO_PASSWORDS));
        }
        Ok(RoleStatement { name, guarded, options })
    }

    fn check_role_option(&self, option: &RoleOption<'a>, names: &mut Names, pos: Pos) -> Parsed<()> {
        let name = match option {
            RoleOption::Password(_) => "PASSWORD",
            RoleOption::HashedPassword(_) => "HASHED_PASSWORD",
            RoleOption::Options(..) => "OPTIONS",
            RoleOption::Superuser(_) => "SUPERUSER",
            RoleOption::Login(_) => "LOGIN",
            // These may be given again: see `add_role_option`.
            RoleOption::Datacenters(_) | RoleOption::Cidrs(_) => return Ok(()),
        };
        match names.add(name) {
            true => Ok(()),
            false => Err(self.rule(pos, format!("Multiple definition for property '{name}'"))),
        }
    }

    /// Adds an option. Lists of datacenters or CIDR groups that are given again are joined, but ALL goes with no other
    /// list (`DCPermissions.Builder`, `CIDRPermissions.Builder`).
    fn add_role_option(
        &self,
        option: RoleOption<'a>,
        options: &mut Vec<RoleOption<'a>>,
        pos: Pos,
    ) -> Parsed<()> {
        let lists = options.iter_mut().find_map(|earlier| match (earlier, &option) {
            (RoleOption::Datacenters(earlier), RoleOption::Datacenters(new)) => Some(("DCs", earlier, new)),
            (RoleOption::Cidrs(earlier), RoleOption::Cidrs(new)) => Some(("CIDR Groups", earlier, new)),
            _ => None,
        });
        let reason = match lists {
            None => {
                options.push(option);
                return Ok(());
            }
            Some((_, AccessList::All, AccessList::All)) => return Ok(()),
            Some((_, AccessList::Only(earlier), AccessList::Only(new))) => {
                earlier.extend(new.iter().cloned());
                return Ok(());
            }
            Some((_, AccessList::All, AccessList::Only(_))) => "All has been set".to_owned(),
            Some((what, AccessList::Only(_), AccessList::All)) => format!("{what} have already been set"),
        };
        let statement = self.text();
        let text =
            format!("Failed parsing statement: [{statement}] reason: IllegalArgumentException {reason}");
        Err(self.rule(pos, text))
    }

    /// `roleOption`
    fn role_option(&mut self) -> Parsed<RoleOption<'a>> {
        match self.kind() {
            Kind::Password => {
                self.expect_all(&[Kind::Password, Kind::Equal])?;
                Ok(RoleOption::Password(self.string()?))
            }
            Kind::Hashed => {
                self.expect_all(&[Kind::Hashed, Kind::Password, Kind::Equal])?;
                Ok(RoleOption::HashedPassword(self.string()?))
            }
            Kind::Options => {
                self.expect_all(&[Kind::Options, Kind::Equal])?;
                let pos = self.pos();
                Ok(RoleOption::Options(self.property_map()?, pos))
            }
            Kind::Superuser => Ok(RoleOption::Superuser(self.role_flag()?)),
            Kind::Login => Ok(RoleOption::Login(self.role_flag()?)),
            Kind::Access => self.access_option(),
            _ => Err(self.no_viable()),
        }
    }

    fn role_flag(&mut self) -> Parsed<bool> {
        self.advance()?;
        self.expect(Kind::Equal)?;
        let token = self.expect(Kind::Bool)?;
        Ok(self.raw(token).eq_ignore_ascii_case("true"))
    }

    fn access_option(&mut self) -> Parsed<RoleOption<'a>> {
        let first = self.advance()?;
        let words = match self.kind() {
            Kind::To => Kind::Datacenters,
            Kind::From => Kind::Cidrs,
            _ => return Err(self.no_viable_since(first)),
        };
        self.advance()?;
        let list = if self.kind() == Kind::All {
            self.advance()?;
            self.expect(words)?;
            AccessList::All
        } else {
            if self.kind() != words {
                return Err(self.no_viable_since(first));
            }
            self.advance()?;
            self.expect(Kind::LBrace)?;
            let names = self.list(Self::string)?;
            self.expect(Kind::RBrace)?;
            AccessList::Only(names)
        };
        Ok(match words {
            Kind::Datacenters => RoleOption::Datacenters(list),
            _ => RoleOption::Cidrs(list),
        })
    }

    /// The rest of CREATE USER and ALTER USER.
    pub(super) fn user(&mut self, create: bool) -> Parsed<UserStatement<'a>> {
        let guarded = if create { self.if_not_exists()? } else { self.if_exists()? };
        let name = self.plain_role_name(QUOTED_USER)?;
        let mut password = None;
        if self.eat(Kind::With)? {
            let hashed = match self.kind() {
                Kind::Hashed => self.eat(Kind::Hashed)?,
                Kind::Password => false,
                _ => return Err(self.no_viable()),
            };
            self.expect(Kind::Password)?;
            password = Some(UserPassword { hashed, text: self.string()? });
        }
        let superuser = match self.kind() {
            Kind::Superuser => Some(true),
            Kind::Nosuperuser => Some(false),
            _ => None,
        };
        if superuser.is_some() {
            self.advance()?;
        }
        Ok(UserStatement { name, guarded, password, superuser })
    }

    /// The rest of DROP USER.
    pub(super) fn drop_user(&mut self) -> Parsed<StatementKind<'a>> {
        let if_exists = self.if_exists()?;
        Ok(StatementKind::DropUser { name: self.plain_role_name(QUOTED_USER)?, if_exists })
    }

    /// `addIdentityStatement`
    pub(super) fn add_identity(&mut self) -> Parsed<StatementKind<'a>> {
        self.expect_all(&[Kind::Add, Kind::Identity])?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.plain_role_name(QUOTED_IDENTITY)?;
        self.expect_all(&[Kind::To, Kind::Role])?;
        let role = self.plain_role_name(QUOTED_IDENTITY)?;
        Ok(StatementKind::AddIdentity { identity, role, if_not_exists })
    }

    /// The rest of DROP IDENTITY.
    pub(super) fn drop_identity(&mut self) -> Parsed<StatementKind<'a>> {
        let if_exists = self.if_exists()?;
        Ok(StatementKind::DropIdentity { identity: self.plain_role_name(QUOTED_IDENTITY)?, if_exists })
    }
}
