//! A whole statement.

use super::{
    AlterTable, AlterType, AlterView, Batch, CreateAggregate, CreateFunction, CreateIndex, CreateKeyspace,
    CreateTable, CreateTrigger, CreateType, CreateView, Delete, Describe, DropNamed, DropRoutine,
    DropTrigger, GrantPermissions, GrantRole, Ident, Insert, ListPermissions, ListRoles, Pos, Property,
    QualifiedName, RoleName, RoleStatement, Select, Update, UserStatement,
};

/// A statement and its bind markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The statement itself.
    pub kind: StatementKind<'a>,
    /// Its markers, in order of appearance in the text; a `Marker`'s index is an index into this list.
    pub markers: Vec<BindMarker<'a>>,
}

/// A bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindMarker<'a> {
    /// The name of `:name`; `None` for `?`.
    pub name: Option<Ident<'a>>,
    /// Its position.
    pub pos: Pos,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the statement it names")]
pub enum StatementKind<'a> {
    Select(Select<'a>),
    Insert(Insert<'a>),
    Update(Update<'a>),
    Delete(Delete<'a>),
    Batch(Batch<'a>),
    Use(Ident<'a>),
    Truncate(QualifiedName<'a>),
    Explain(Box<Explain<'a>>),
    Describe(Describe<'a>),
    CreateKeyspace(CreateKeyspace<'a>),
    AlterKeyspace { name: Ident<'a>, if_exists: bool, properties: Vec<Property<'a>> },
    DropKeyspace { name: Ident<'a>, if_exists: bool },
    CreateTable(CreateTable<'a>),
    AlterTable(AlterTable<'a>),
    DropTable(DropNamed<'a>),
    CreateType(CreateType<'a>),
    AlterType(AlterType<'a>),
    DropType(DropNamed<'a>),
    CreateIndex(CreateIndex<'a>),
    DropIndex(DropNamed<'a>),
    CreateView(CreateView<'a>),
    AlterView(AlterView<'a>),
    DropView(DropNamed<'a>),
    CreateTrigger(CreateTrigger<'a>),
    DropTrigger(DropTrigger<'a>),
    CreateFunction(CreateFunction<'a>),
    DropFunction(DropRoutine<'a>),
    CreateAggregate(CreateAggregate<'a>),
    DropAggregate(DropRoutine<'a>),
    GrantPermissions(GrantPermissions<'a>),
    RevokePermissions(GrantPermissions<'a>),
    ListPermissions(ListPermissions<'a>),
    GrantRole(GrantRole<'a>),
    RevokeRole(GrantRole<'a>),
    ListRoles(ListRoles<'a>),
    ListUsers,
    CreateRole(RoleStatement<'a>),
    AlterRole(RoleStatement<'a>),
    DropRole { name: RoleName<'a>, if_exists: bool },
    CreateUser(UserStatement<'a>),
    AlterUser(UserStatement<'a>),
    DropUser { name: RoleName<'a>, if_exists: bool },
    AddIdentity { identity: RoleName<'a>, role: RoleName<'a>, if_not_exists: bool },
    DropIdentity { identity: RoleName<'a>, if_exists: bool },
}

/// `EXPLAIN [ANALYZE] [FORMAT JSON] ...`, which Cassandra does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explain<'a> {
    /// `ANALYZE`: run the statement and count.
    pub analyze: bool,
    /// `FORMAT JSON`
    pub json: bool,
    /// A SELECT, INSERT, UPDATE, DELETE or BATCH.
    pub statement: StatementKind<'a>,
}
