//! Statements about roles, users and permissions.

use super::{DataType, FunctionName, Ident, Literal, Pos, QualifiedName, RoleName};

/// A permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// `CREATE`
    Create,
    /// `ALTER`
    Alter,
    /// `DROP`
    Drop,
    /// `SELECT`
    Select,
    /// `MODIFY`
    Modify,
    /// `AUTHORIZE`
    Authorize,
    /// `DESCRIBE`
    Describe,
    /// `EXECUTE`
    Execute,
    /// `UNMASK`
    Unmask,
    /// `SELECT_MASKED`
    SelectMasked,
}

impl Permission {
    /// Every permission, in Cassandra's order; the meaning of `ALL PERMISSIONS`.
    pub const ALL: [Permission; 10] = [
        Permission::Create,
        Permission::Alter,
        Permission::Drop,
        Permission::Select,
        Permission::Modify,
        Permission::Authorize,
        Permission::Describe,
        Permission::Execute,
        Permission::Unmask,
        Permission::SelectMasked,
    ];

    /// The permission's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Permission::Create => "CREATE",
            Permission::Alter => "ALTER",
            Permission::Drop => "DROP",
            Permission::Select => "SELECT",
            Permission::Modify => "MODIFY",
            Permission::Authorize => "AUTHORIZE",
            Permission::Describe => "DESCRIBE",
            Permission::Execute => "EXECUTE",
            Permission::Unmask => "UNMASK",
            Permission::SelectMasked => "SELECT_MASKED",
        }
    }
}

/// The object of a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// `ALL KEYSPACES`
    AllKeyspaces,
    /// `KEYSPACE ks`
    Keyspace(Ident<'a>),
    /// `[TABLE] ks.t`
    Table(QualifiedName<'a>),
    /// `ALL TABLES IN KEYSPACE ks`
    AllTables(Ident<'a>),
    /// `ALL ROLES`
    AllRoles,
    /// `ROLE r`
    Role(RoleName<'a>),
    /// `ALL FUNCTIONS`
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE ks`
    AllFunctionsIn(Ident<'a>),
    /// `FUNCTION f(int, text)`
    Function(FunctionName<'a>, Vec<DataType<'a>>),
    /// `ALL MBEANS`
    AllMbeans,
    /// `MBEAN 'name'`
    Mbean(Literal<'a>),
    /// `MBEANS 'pattern'`
    Mbeans(Literal<'a>),
}

/// `GRANT .. ON .. TO ..` and `REVOKE .. ON .. FROM ..`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPermissions<'a> {
    /// The permissions, in order and each once; all ten for ALL. Those that the resource cannot have are included.
    pub permissions: Vec<Permission>,
    /// Their object.
    pub resource: Resource<'a>,
    /// The role that gets or loses them.
    pub role: RoleName<'a>,
}

/// `GRANT role TO role` and `REVOKE role FROM role`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRole<'a> {
    /// The role that is granted.
    pub role: RoleName<'a>,
    /// The role that gets or loses it.
    pub grantee: RoleName<'a>,
}

/// `LIST ALL PERMISSIONS ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPermissions<'a> {
    /// The permissions, in order and each once; all ten for ALL.
    pub permissions: Vec<Permission>,
    /// `ON`
    pub resource: Option<Resource<'a>>,
    /// `OF`
    pub role: Option<RoleName<'a>>,
    /// False for `NORECURSIVE`.
    pub recursive: bool,
}

/// `LIST ROLES ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRoles<'a> {
    /// `OF`
    pub role: Option<RoleName<'a>>,
    /// False for `NORECURSIVE`.
    pub recursive: bool,
}

/// `CREATE ROLE ...` and `ALTER ROLE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleStatement<'a> {
    /// Its name.
    pub name: RoleName<'a>,
    /// `IF NOT EXISTS` of CREATE, `IF EXISTS` of ALTER.
    pub guarded: bool,
    /// `WITH`; without duplicates.
    pub options: Vec<RoleOption<'a>>,
}

/// One option of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleOption<'a> {
    /// `PASSWORD = '..'`
    Password(Literal<'a>),
    /// `HASHED PASSWORD = '..'`
    HashedPassword(Literal<'a>),
    /// `OPTIONS = {..}`
    Options(Vec<(Literal<'a>, Literal<'a>)>, Pos),
    /// `SUPERUSER = ..`
    Superuser(bool),
    /// `LOGIN = ..`
    Login(bool),
    /// `ACCESS TO [ALL] DATACENTERS ..`
    Datacenters(AccessList<'a>),
    /// `ACCESS FROM [ALL] CIDRS ..`
    Cidrs(AccessList<'a>),
}

/// The datacenters or networks to which a role's access is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessList<'a> {
    /// `ALL`
    All,
    /// `{'a', 'b'}`, at least one.
    Only(Vec<Literal<'a>>),
}

/// `CREATE USER ...` and `ALTER USER ...`, the older forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserStatement<'a> {
    /// The user's name.
    pub name: RoleName<'a>,
    /// `IF NOT EXISTS` of CREATE, `IF EXISTS` of ALTER.
    pub guarded: bool,
    /// `WITH [HASHED] PASSWORD '..'`
    pub password: Option<UserPassword<'a>>,
    /// `SUPERUSER` or `NOSUPERUSER`, if given.
    pub superuser: Option<bool>,
}

/// A user's password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPassword<'a> {
    /// `HASHED`
    pub hashed: bool,
    /// The password or its hash.
    pub text: Literal<'a>,
}
