//! The subject of a statement, as an audit log names it: its type, and the keyspace and object that it is about.
//!
//! `plan::subject` finds the subject of a parsed statement; the server's audit log writes it. Source: the package
//! `org.apache.cassandra.audit`.

use crate::syntax::is_access_table;

/// The type of an audited event (`AuditLogEntryType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the event it names")]
pub enum EventType {
    Select,
    Update,
    Delete,
    Truncate,
    CreateKeyspace,
    AlterKeyspace,
    DropKeyspace,
    CreateTable,
    DropTable,
    PrepareStatement,
    DropTrigger,
    CreateIndex,
    DropIndex,
    Grant,
    Revoke,
    CreateType,
    DropAggregate,
    AlterView,
    CreateView,
    DropRole,
    CreateFunction,
    AlterTable,
    Batch,
    CreateAggregate,
    DropView,
    DropType,
    DropFunction,
    AlterRole,
    CreateTrigger,
    ListRoles,
    ListPermissions,
    AlterType,
    CreateRole,
    CreateIdentity,
    DropIdentity,
    UseKeyspace,
    Describe,
    RequestFailure,
    LoginError,
    UnauthorizedAttempt,
    LoginSuccess,
}

/// The category of an audited event (`AuditLogEntryCategory`), by which a log includes and excludes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the category it names")]
pub enum Category {
    Query,
    Dml,
    Ddl,
    Dcl,
    Other,
    Auth,
    Error,
    Prepare,
}

impl Category {
    /// All categories, in Cassandra's order.
    pub const ALL: [Category; 8] = [
        Category::Query,
        Category::Dml,
        Category::Ddl,
        Category::Dcl,
        Category::Other,
        Category::Auth,
        Category::Error,
        Category::Prepare,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Category::Query => "QUERY",
            Category::Dml => "DML",
            Category::Ddl => "DDL",
            Category::Dcl => "DCL",
            Category::Other => "OTHER",
            Category::Auth => "AUTH",
            Category::Error => "ERROR",
            Category::Prepare => "PREPARE",
        }
    }
}

impl EventType {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            EventType::Select => "SELECT",
            EventType::Update => "UPDATE",
            EventType::Delete => "DELETE",
            EventType::Truncate => "TRUNCATE",
            EventType::CreateKeyspace => "CREATE_KEYSPACE",
            EventType::AlterKeyspace => "ALTER_KEYSPACE",
            EventType::DropKeyspace => "DROP_KEYSPACE",
            EventType::CreateTable => "CREATE_TABLE",
            EventType::DropTable => "DROP_TABLE",
            EventType::PrepareStatement => "PREPARE_STATEMENT",
            EventType::DropTrigger => "DROP_TRIGGER",
            EventType::CreateIndex => "CREATE_INDEX",
            EventType::DropIndex => "DROP_INDEX",
            EventType::Grant => "GRANT",
            EventType::Revoke => "REVOKE",
            EventType::CreateType => "CREATE_TYPE",
            EventType::DropAggregate => "DROP_AGGREGATE",
            EventType::AlterView => "ALTER_VIEW",
            EventType::CreateView => "CREATE_VIEW",
            EventType::DropRole => "DROP_ROLE",
            EventType::CreateFunction => "CREATE_FUNCTION",
            EventType::AlterTable => "ALTER_TABLE",
            EventType::Batch => "BATCH",
            EventType::CreateAggregate => "CREATE_AGGREGATE",
            EventType::DropView => "DROP_VIEW",
            EventType::DropType => "DROP_TYPE",
            EventType::DropFunction => "DROP_FUNCTION",
            EventType::AlterRole => "ALTER_ROLE",
            EventType::CreateTrigger => "CREATE_TRIGGER",
            EventType::ListRoles => "LIST_ROLES",
            EventType::ListPermissions => "LIST_PERMISSIONS",
            EventType::AlterType => "ALTER_TYPE",
            EventType::CreateRole => "CREATE_ROLE",
            EventType::CreateIdentity => "CREATE_IDENTITY",
            EventType::DropIdentity => "DROP_IDENTITY",
            EventType::UseKeyspace => "USE_KEYSPACE",
            EventType::Describe => "DESCRIBE",
            EventType::RequestFailure => "REQUEST_FAILURE",
            EventType::LoginError => "LOGIN_ERROR",
            EventType::UnauthorizedAttempt => "UNAUTHORIZED_ATTEMPT",
            EventType::LoginSuccess => "LOGIN_SUCCESS",
        }
    }

    /// Its category.
    pub fn category(self) -> Category {
        match self {
            EventType::Select => Category::Query,
            EventType::Update | EventType::Delete | EventType::Batch => Category::Dml,
            EventType::PrepareStatement => Category::Prepare,
            EventType::Grant
            | EventType::Revoke
            | EventType::DropRole
            | EventType::AlterRole
            | EventType::ListRoles
            | EventType::ListPermissions
            | EventType::CreateRole
            | EventType::CreateIdentity
            | EventType::DropIdentity => Category::Dcl,
            EventType::UseKeyspace | EventType::Describe => Category::Other,
            EventType::RequestFailure => Category::Error,
            EventType::LoginError | EventType::UnauthorizedAttempt | EventType::LoginSuccess => {
                Category::Auth
            }
            EventType::Truncate
            | EventType::CreateKeyspace
            | EventType::AlterKeyspace
            | EventType::DropKeyspace
            | EventType::CreateTable
            | EventType::DropTable
            | EventType::DropTrigger
            | EventType::CreateIndex
            | EventType::DropIndex
            | EventType::CreateType
            | EventType::DropAggregate
            | EventType::AlterView
            | EventType::CreateView
            | EventType::CreateFunction
            | EventType::AlterTable
            | EventType::CreateAggregate
            | EventType::DropView
            | EventType::DropType
            | EventType::DropFunction
            | EventType::CreateTrigger
            | EventType::AlterType => Category::Ddl,
        }
    }
}

/// The subject of a statement (`AuditLogContext`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The type of the statement.
    pub event: EventType,
    /// The keyspace that it is about. For permissions, the parent of their resource.
    pub keyspace: Option<Box<str>>,
    /// The table or other object that it is about.
    pub scope: Option<Box<str>>,
    /// The statements of a BATCH, in order; none for other statements.
    pub parts: Box<[Part]>,
}

/// A statement in a BATCH, as an audit log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The type of the statement.
    pub event: EventType,
    /// Its keyspace.
    pub keyspace: Option<Box<str>>,
    /// Its table.
    pub scope: Option<Box<str>>,
    /// Where its text begins and ends in that of the BATCH, bytes.
    pub place: (usize, usize),
}

impl Part {
    /// Whether its values may be secrets: it is on a table of roles and rights.
    pub fn has_secret_values(&self) -> bool {
        is_of_access(self.keyspace.as_deref(), self.scope.as_deref())
    }
}

/// Whether an object is a table of roles and rights. One without a keyspace counts as one by its name alone: the statement fails, and its
/// text shows what was meant for that table.
fn is_of_access(keyspace: Option<&str>, scope: Option<&str>) -> bool {
    is_access_table(keyspace, scope.unwrap_or_default())
}

impl Subject {
    /// Whether its values may be secrets: it, or a part of it, is on a table of roles and rights.
    pub fn has_secret_values(&self) -> bool {
        is_of_access(self.keyspace.as_deref(), self.scope.as_deref())
            || self.parts.iter().any(Part::has_secret_values)
    }

    /// The subject of something that is about no object.
    pub fn bare(event: EventType) -> Subject {
        Subject { event, keyspace: None, scope: None, parts: Box::default() }
    }
}
