//! Statements about roles, identities and permissions in owned form, so that a prepared one can run any number of times.

use super::resource::{Resource, canonical_mbean};
use crate::analysis::{Scope, resolve_type};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{
    self, AccessList, GrantPermissions, Permission, RoleOption, RoleStatement, StatementKind, UserStatement,
};
use helenus_model::types::CqlType;
use std::fmt;

/// A password or its hash. Its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) Box<str>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("*******")
    }
}

/// The datacenters or networks to which a role's access is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Limits {
    /// None.
    All,
    /// To these.
    Only(Vec<Box<str>>),
}

/// The options of CREATE and ALTER ROLE or USER.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleOptions {
    pub(crate) password: Option<Secret>,
    pub(crate) hashed_password: Option<Secret>,
    /// `OPTIONS`, which Cassandra's role manager does not support: the limits of the role.
    pub(crate) options: Option<Vec<(Box<str>, Box<str>)>>,
    pub(crate) superuser: Option<bool>,
    pub(crate) login: Option<bool>,
    pub(crate) datacenters: Option<Limits>,
    pub(crate) cidrs: Option<Limits>,
}

/// CREATE or ALTER of a role.
#[derive(Clone, Debug)]
pub(crate) struct RoleChange {
    pub(crate) name: Box<str>,
    /// `IF NOT EXISTS` of CREATE, `IF EXISTS` of ALTER.
    pub(crate) guarded: bool,
    pub(crate) options: RoleOptions,
}

/// GRANT or REVOKE of permissions.
#[derive(Clone, Debug)]
pub(crate) struct PermissionChange {
    /// Those that the resource can have.
    pub(crate) permissions: Vec<Permission>,
    pub(crate) resource: Resource,
    pub(crate) role: Box<str>,
}

/// LIST PERMISSIONS.
#[derive(Clone, Debug)]
pub(crate) struct PermissionList {
    pub(crate) permissions: Vec<Permission>,
    pub(crate) resource: Option<Resource>,
    pub(crate) role: Option<Box<str>>,
    pub(crate) recursive: bool,
}

/// A statement. The forms with USER are those of roles.
#[derive(Clone, Debug)]
pub(crate) enum AccessStatement {
    CreateRole(RoleChange),
    AlterRole(RoleChange),
    DropRole { name: Box<str>, if_exists: bool },
    GrantRole { role: Box<str>, grantee: Box<str> },
    RevokeRole { role: Box<str>, grantee: Box<str> },
    Grant(PermissionChange),
    Revoke(PermissionChange),
    AddIdentity { identity: Box<str>, role: Box<str>, if_not_exists: bool },
    DropIdentity { identity: Box<str>, if_exists: bool },
    ListRoles { of: Option<Box<str>>, recursive: bool },
    ListUsers,
    ListPermissions(PermissionList),
}

impl AccessStatement {
    /// The owned form of a statement; `None` if it is about something else.
    ///
    /// # Errors
    /// The name of a table without a keyspace, in a session without one; a type that does not exist.
    pub(crate) fn of(kind: &StatementKind<'_>, scope: &Scope<'_>) -> Result<Option<AccessStatement>> {
        Ok(Some(match kind {
            StatementKind::CreateRole(role) => AccessStatement::CreateRole(of_role(role)),
            StatementKind::AlterRole(role) => AccessStatement::AlterRole(of_role(role)),
            // A user can log in; nothing else makes it differ from a role.
            StatementKind::CreateUser(user) => AccessStatement::CreateRole(of_user(user, Some(true))),
            StatementKind::AlterUser(user) => AccessStatement::AlterRole(of_user(user, None)),
            StatementKind::DropRole { name, if_exists } | StatementKind::DropUser { name, if_exists } => {
                AccessStatement::DropRole { name: owned(name), if_exists: *if_exists }
            }
            StatementKind::GrantRole(grant) => {
                AccessStatement::GrantRole { role: owned(&grant.role), grantee: owned(&grant.grantee) }
            }
            StatementKind::RevokeRole(grant) => {
                AccessStatement::RevokeRole { role: owned(&grant.role), grantee: owned(&grant.grantee) }
            }
            StatementKind::GrantPermissions(grant) => AccessStatement::Grant(of_grant(grant, scope)?),
            StatementKind::RevokePermissions(grant) => AccessStatement::Revoke(of_grant(grant, scope)?),
            StatementKind::AddIdentity { identity, role, if_not_exists } => AccessStatement::AddIdentity {
                identity: owned(identity),
                role: owned(role),
                if_not_exists: *if_not_exists,
            },
            StatementKind::DropIdentity { identity, if_exists } => {
                AccessStatement::DropIdentity { identity: owned(identity), if_exists: *if_exists }
            }
            StatementKind::ListRoles(list) => {
                AccessStatement::ListRoles { of: list.role.as_ref().map(owned), recursive: list.recursive }
            }
            StatementKind::ListUsers => AccessStatement::ListUsers,
            StatementKind::ListPermissions(list) => AccessStatement::ListPermissions(PermissionList {
                permissions: list.permissions.clone(),
                resource: list.resource.as_ref().map(|resource| resource_of(resource, scope)).transpose()?,
                role: list.role.as_ref().map(owned),
                recursive: list.recursive,
            }),
            _ => return Ok(None),
        }))
    }
}

fn owned(name: &ast::RoleName<'_>) -> Box<str> {
    name.name.as_ref().into()
}

fn limits(list: &AccessList<'_>) -> Limits {
    match list {
        AccessList::All => Limits::All,
        AccessList::Only(names) => Limits::Only(names.iter().map(|name| name.text.as_ref().into()).collect()),
    }
}

fn of_role(role: &RoleStatement<'_>) -> RoleChange {
    let mut options = RoleOptions::default();
    let secret = |text: &ast::Literal<'_>| Some(Secret(text.text.as_ref().into()));
    for option in &role.options {
        match option {
            RoleOption::Password(text) => options.password = secret(text),
            RoleOption::HashedPassword(text) => options.hashed_password = secret(text),
            RoleOption::Options(pairs, _) => {
                let text = |text: &ast::Literal<'_>| Box::from(text.text.as_ref());
                options.options = Some(pairs.iter().map(|(name, value)| (text(name), text(value))).collect());
            }
            RoleOption::Superuser(yes) => options.superuser = Some(*yes),
            RoleOption::Login(yes) => options.login = Some(*yes),
            RoleOption::Datacenters(list) => options.datacenters = Some(limits(list)),
            RoleOption::Cidrs(list) => options.cidrs = Some(limits(list)),
        }
    }
    RoleChange { name: owned(&role.name), guarded: role.guarded, options }
}

fn of_user(user: &UserStatement<'_>, login: Option<bool>) -> RoleChange {
    let mut options = RoleOptions { login, superuser: user.superuser, ..RoleOptions::default() };
    if let Some(password) = &user.password {
        let secret = Some(Secret(password.text.text.as_ref().into()));
        match password.hashed {
            true => options.hashed_password = secret,
            false => options.password = secret,
        }
    }
    RoleChange { name: owned(&user.name), guarded: user.guarded, options }
}

fn of_grant(grant: &GrantPermissions<'_>, scope: &Scope<'_>) -> Result<PermissionChange> {
    let resource = resource_of(&grant.resource, scope)?;
    let applicable = resource.applicable();
    let permissions = grant.permissions.iter().copied().filter(|asked| applicable.contains(asked)).collect();
    Ok(PermissionChange { permissions, resource, role: owned(&grant.role) })
}

/// The resource that a statement names.
///
/// # Errors
/// The name of a table without a keyspace, in a session without one; a type that does not exist.
pub(crate) fn resource_of(resource: &ast::Resource<'_>, scope: &Scope<'_>) -> Result<Resource> {
    let text = |name: &ast::Ident<'_>| Box::<str>::from(name.as_str());
    Ok(match resource {
        ast::Resource::AllKeyspaces => Resource::AllKeyspaces,
        ast::Resource::Keyspace(name) => Resource::Keyspace(text(name)),
        ast::Resource::Table(name) => Resource::table(scope.keyspace_of(name)?, name.name.as_str()),
        ast::Resource::AllTables(name) => Resource::AllTables(text(name)),
        ast::Resource::AllRoles => Resource::AllRoles,
        ast::Resource::Role(name) => Resource::Role(owned(name)),
        ast::Resource::AllFunctions => Resource::AllFunctions,
        ast::Resource::AllFunctionsIn(name) => Resource::FunctionsIn(text(name)),
        ast::Resource::Function(name, arguments) => {
            let Some(keyspace) = &name.keyspace else {
                return Err(CqlError::Invalid(
                    "In this context function name must be explictly qualified by a keyspace".to_owned(),
                ));
            };
            let types: Result<Vec<CqlType>> =
                arguments.iter().map(|ty| resolve_type(ty, keyspace.as_str(), scope)).collect();
            Resource::Function(text(keyspace), text(&name.name), types?)
        }
        ast::Resource::AllMbeans => Resource::AllMbeans,
        ast::Resource::Mbean(name) | ast::Resource::Mbeans(name) => {
            Resource::Mbean(canonical_mbean(&name.text).into())
        }
    })
}
