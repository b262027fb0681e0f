//! The tree of a parsed statement.
//!
//! The tree borrows from the statement's text where possible. Positions are ignored when trees are compared, so two
//! texts with the same meaning compare equal.

mod access;
mod describe;
mod modify;
mod name;
mod relation;
mod routine;
mod schema;
mod select;
mod statement;
mod term;
mod types;

pub use access::{
    AccessList, GrantPermissions, GrantRole, ListPermissions, ListRoles, Permission, Resource, RoleOption,
    RoleStatement, UserPassword, UserStatement,
};
pub use describe::{Describe, DescribeWhat};
pub use modify::{
    Assignment, AssignmentKind, Batch, BatchItem, BatchKind, Delete, DeleteTarget, Guard, Insert, InsertData,
    Update, Using,
};
pub use name::{FunctionName, Ident, Pos, QualifiedName, RoleName};
pub use relation::{Comparison, Condition, InValues, Relation, RelationKind, Test};
pub use routine::{CreateAggregate, CreateFunction, DropRoutine};
pub use schema::{
    AlterTable, AlterType, AlterView, ColumnDef, CreateIndex, CreateKeyspace, CreateTable, CreateTrigger,
    CreateType, CreateView, DropNamed, DropTrigger, IndexTarget, IndexTargetKind, Mask, PrimaryKey, Property,
    PropertyValue, TableChange, TableOptions, TypeChange,
};
pub use select::{Ordering, PathStep, Select, Selectable, Selector, Selectors, TimeFunction};
pub use statement::{BindMarker, Explain, Statement, StatementKind};
pub use term::{ArithmeticOperator, FunctionCall, Literal, LiteralKind, Marker, Term};
pub use types::{DataType, DataTypeKind, Native};
