//! CREATE, ALTER and DROP of keyspaces, tables, types, indexes, views and triggers.

use std::borrow::Cow;

use super::{DataType, FunctionName, Ident, Literal, Pos, QualifiedName, Relation, Selectors, Term};

/// `name = value` after WITH. No name is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// Its value.
    pub value: PropertyValue<'a>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue<'a> {
    /// A constant.
    Literal(Literal<'a>),
    /// An unreserved word, as written.
    Word(Cow<'a, str>, Pos),
    /// `{'a': 'b', ...}`, possibly empty. No key is repeated.
    Map(Vec<(Literal<'a>, Literal<'a>)>, Pos),
}

/// `CREATE KEYSPACE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateKeyspace<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `WITH`, at least one.
    pub properties: Vec<Property<'a>>,
}

/// `CREATE TABLE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTable<'a> {
    /// Its name.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The columns as written; names may repeat.
    pub columns: Vec<ColumnDef<'a>>,
    /// Every PRIMARY KEY given, with a column or separately. A valid statement has exactly one.
    pub primary_keys: Vec<PrimaryKey<'a>>,
    /// `WITH`
    pub options: TableOptions<'a>,
}

/// A column of CREATE TABLE or ALTER TABLE ADD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDef<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// Its type.
    pub data_type: DataType<'a>,
    /// `STATIC`
    pub is_static: bool,
    /// `MASKED WITH`
    pub mask: Option<Mask<'a>>,
}

/// A function that masks a column's values for users who may not see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask<'a> {
    /// `MASKED WITH DEFAULT`
    Default,
    /// `MASKED WITH f(a, b)`
    Function(FunctionName<'a>, Vec<Term<'a>>),
}

/// `PRIMARY KEY ((a, b), c)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryKey<'a> {
    /// The columns of the partition key, at least one.
    pub partition: Vec<Ident<'a>>,
    /// The clustering columns.
    pub clustering: Vec<Ident<'a>>,
    /// Its position.
    pub pos: Pos,
}

/// The options after the WITH of a table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions<'a> {
    /// The ordinary properties.
    pub properties: Vec<Property<'a>>,
    /// `COMPACT STORAGE`
    pub compact_storage: bool,
    /// `CLUSTERING ORDER BY`: columns, each with whether it descends, in order; names may repeat.
    pub clustering_order: Vec<(Ident<'a>, bool)>,
}

/// `ALTER TABLE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterTable<'a> {
    /// The table.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The change.
    pub change: TableChange<'a>,
}

/// The changes of ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange<'a> {
    /// `ALTER column TYPE type`, which Cassandra rejects for any table.
    Retype(Ident<'a>, DataType<'a>),
    /// `ALTER column MASKED WITH ..` or `DROP MASKED`.
    Mask {
        /// The column.
        column: Ident<'a>,
        /// `IF EXISTS`
        if_exists: bool,
        /// The new mask; `None` for DROP.
        mask: Option<Mask<'a>>,
    },
    /// `ADD a int` or `ADD (a int, b text)`.
    Add {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The columns, at least one.
        columns: Vec<ColumnDef<'a>>,
    },
    /// `DROP a` or `DROP (a, b)`.
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// The columns, at least one.
        columns: Vec<Ident<'a>>,
        /// `USING TIMESTAMP`, microseconds.
        timestamp_us: Option<i64>,
    },
    /// `RENAME a TO b AND ..`, at least one.
    Rename {
        /// `IF EXISTS`
        if_exists: bool,
        /// Old and new names.
        names: Vec<(Ident<'a>, Ident<'a>)>,
    },
    /// `DROP COMPACT STORAGE`
    DropCompactStorage,
    /// `WITH`, at least one.
    Properties(Vec<Property<'a>>),
}

/// `CREATE TYPE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateType<'a> {
    /// Its name.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its fields, at least one; names may repeat.
    pub fields: Vec<(Ident<'a>, DataType<'a>)>,
}

/// `ALTER TYPE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterType<'a> {
    /// The type.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The change.
    pub change: TypeChange<'a>,
}

/// The changes of ALTER TYPE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeChange<'a> {
    /// `ALTER field TYPE type`, which Cassandra rejects for any type.
    Retype(Ident<'a>, DataType<'a>),
    /// `ADD [IF NOT EXISTS] field type`
    Add {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The field.
        field: Ident<'a>,
        /// Its type.
        data_type: DataType<'a>,
    },
    /// `RENAME [IF EXISTS] a TO b AND ..`, at least one.
    Rename {
        /// `IF EXISTS`
        if_exists: bool,
        /// Old and new names.
        names: Vec<(Ident<'a>, Ident<'a>)>,
    },
}

/// `CREATE [CUSTOM] INDEX ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex<'a> {
    /// `CUSTOM`
    pub custom: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name, if given.
    pub name: Option<Ident<'a>>,
    /// The table.
    pub table: QualifiedName<'a>,
    /// The indexed columns, possibly none.
    pub targets: Vec<IndexTarget<'a>>,
    /// `USING 'class'`
    pub using: Option<Literal<'a>>,
    /// `WITH`
    pub properties: Vec<Property<'a>>,
}

/// An indexed column or part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget<'a> {
    /// The part of it.
    pub kind: IndexTargetKind,
    /// The column.
    pub column: Ident<'a>,
}

/// The part of a column that is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexTargetKind {
    /// Just `c`.
    Simple,
    /// `VALUES(c)`
    Values,
    /// `KEYS(c)`
    Keys,
    /// `ENTRIES(c)`
    Entries,
    /// `FULL(c)`
    Full,
}

/// `CREATE MATERIALIZED VIEW ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateView<'a> {
    /// Its name.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The selected columns.
    pub selectors: Selectors<'a>,
    /// The base table.
    pub base: QualifiedName<'a>,
    /// `WHERE`
    pub filter: Vec<Relation<'a>>,
    /// Its key.
    pub primary_key: PrimaryKey<'a>,
    /// `WITH`; never COMPACT STORAGE.
    pub options: TableOptions<'a>,
}

/// `ALTER MATERIALIZED VIEW ... WITH ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterView<'a> {
    /// The view.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The properties, at least one.
    pub properties: Vec<Property<'a>>,
}

/// `CREATE TRIGGER ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTrigger<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING 'class'`
    pub class: Literal<'a>,
}

/// `DROP TRIGGER ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTrigger<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table.
    pub table: QualifiedName<'a>,
}

/// DROP of an object with a qualified name: a table, type, index or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropNamed<'a> {
    /// Its name.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`
    pub if_exists: bool,
}
