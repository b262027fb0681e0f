//! Statements of schema files that other versions of Cassandra and other makers write: which of them an import passes over, and
//! which types they lack.
//!
//! `schema_text` reads the files. What is passed over leaves a note: the data is imported all the same. What cannot be passed over,
//! such as a statement that is no statement of a schema, ends the import before anything has changed.

use crate::plan::ddl::LeftOut;
use crate::syntax::ast::{DataType, DataTypeKind, StatementKind, TableChange};
use helenus_lexer::lexer::Lexer;
use helenus_lexer::token::Kind;
use helenus_model::types::{CqlType, UserType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Beginnings of statements of other makers, which the grammar does not have.
const FOREIGN: [&[&str]; 8] = [
    &["CREATE", "SERVICE"],
    &["CREATE", "SERVICE_LEVEL"],
    &["ALTER", "SERVICE"],
    &["ATTACH", "SERVICE"],
    &["ATTACH", "SERVICE_LEVEL"],
    &["CREATE", "SEARCH"],
    &["ALTER", "SEARCH"],
    &["COMMENT", "ON"],
];

/// Whether a text is a statement of another maker.
pub(super) fn is_foreign(statement: &str) -> bool {
    FOREIGN.iter().any(|words| {
        let mut found = statement.split_whitespace();
        words.iter().all(|word| found.next().is_some_and(|found| found.eq_ignore_ascii_case(word)))
    })
}

/// What a statement makes that is not imported, if it makes such a thing.
pub(super) fn passed_over(kind: &StatementKind<'_>) -> Option<&'static str> {
    use StatementKind as K;
    match kind {
        K::CreateFunction(_) | K::DropFunction(_) => Some("functions"),
        K::CreateAggregate(_) | K::DropAggregate(_) => Some("aggregates"),
        K::CreateTrigger(_) | K::DropTrigger(_) => Some("triggers"),
        K::CreateView(_) | K::AlterView(_) | K::DropView(_) => Some("materialized views"),
        K::GrantPermissions(_) | K::RevokePermissions(_) | K::GrantRole(_) | K::RevokeRole(_) => {
            Some("grants")
        }
        K::CreateRole(_) | K::AlterRole(_) | K::DropRole { .. } => Some("roles"),
        K::CreateUser(_) | K::AlterUser(_) | K::DropUser { .. } => Some("roles"),
        _ => None,
    }
}

/// The keyspace and name of each user-defined type that a statement names.
pub(super) fn types_of(kind: &StatementKind<'_>, keyspace: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut add = |ty: &DataType<'_>| collect(ty, keyspace, &mut found);
    match kind {
        StatementKind::CreateTable(create) => create.columns.iter().for_each(|column| add(&column.data_type)),
        StatementKind::CreateType(create) => create.fields.iter().for_each(|(_, ty)| add(ty)),
        StatementKind::AlterTable(alter) => {
            if let TableChange::Add { columns, .. } = &alter.change {
                columns.iter().for_each(|column| add(&column.data_type));
            }
        }
        _ => {}
    }
    found
}

fn collect(ty: &DataType<'_>, keyspace: &str, found: &mut BTreeSet<(String, String)>) {
    match &ty.kind {
        DataTypeKind::List(ty)
        | DataTypeKind::Set(ty)
        | DataTypeKind::Vector(ty, _)
        | DataTypeKind::Frozen(ty) => {
            collect(ty, keyspace, found);
        }
        DataTypeKind::Map(pair) => {
            collect(&pair.0, keyspace, found);
            collect(&pair.1, keyspace, found);
        }
        DataTypeKind::Tuple(parts) => parts.iter().for_each(|part| collect(part, keyspace, found)),
        DataTypeKind::User(name) => {
            let keyspace = name.keyspace.as_ref().map_or(keyspace, |keyspace| keyspace.as_str());
            found.insert((keyspace.to_owned(), name.name.as_str().to_owned()));
        }
        DataTypeKind::Native(_) | DataTypeKind::Custom(_) => {}
    }
}

/// What was passed over, by its description, with the names that it concerns.
#[derive(Debug, Default)]
pub(super) struct PassedOver(BTreeMap<String, Vec<String>>);

/// The most names in a note.
const NAMES_MAX: usize = 5;

impl PassedOver {
    /// Something of this description was passed over.
    pub(super) fn add(&mut self, what: impl Into<String>, name: impl Into<String>) {
        self.0.entry(what.into()).or_default().push(name.into());
    }

    /// Options of a table or keyspace were left out.
    pub(super) fn options(&mut self, of: &str, left_out: Vec<LeftOut>) {
        for LeftOut { option, problem } in left_out {
            let what = match problem {
                None => format!("left out, as there is no such option here: {option}"),
                Some(problem) => format!("left out, and the default taken: {option} ({problem})"),
            };
            self.add(what, of);
        }
    }

    /// A note for each description.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(what, names)| {
            let first: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
            let more = names.len().saturating_sub(NAMES_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{what}: {}{more}", first.join(", "))
        })
    }
}

/// Finds the definition of a type that schema files do not give, by keyspace and name.
pub(super) type TypeLookup<'a> = dyn FnMut(&str, &str) -> Option<Arc<UserType>> + 'a;

/// Of a type in a file and the type of the same name here: the one here if it has all fields of the file's, as after ALTER TYPE.
pub(super) fn later_of(
    in_files: Option<Arc<UserType>>,
    here: Option<Arc<UserType>>,
) -> Option<Arc<UserType>> {
    let (Some(found), Some(present)) = (&in_files, &here) else { return in_files.or(here) };
    if has_fields_of(present, found) { here } else { in_files }
}

/// Whether a type begins with all fields of another, whose values it can then read. Fields are compared as frozen, as their values
/// are: texts mark them as frozen, or do not, depending on the column in which the type stood.
pub(super) fn has_fields_of(later: &UserType, earlier: &UserType) -> bool {
    earlier.fields.len() <= later.fields.len()
        && earlier.fields.iter().zip(&later.fields).all(|((name, ty), (other, later))| {
            name == other && ty.freeze().to_string() == later.freeze().to_string()
        })
}

/// The keyspace and name of each user-defined type that the fields of a type name.
pub(super) fn types_within(ty: &UserType, keyspace: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    ty.fields.iter().for_each(|(_, field)| collect_within(field, keyspace, &mut found));
    found
}

fn collect_within(ty: &CqlType, keyspace: &str, found: &mut BTreeSet<(String, String)>) {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            collect_within(element, keyspace, found);
        }
        CqlType::Map { key, value, .. } => {
            collect_within(key, keyspace, found);
            collect_within(value, keyspace, found);
        }
        CqlType::Tuple(parts) => parts.iter().for_each(|part| collect_within(part, keyspace, found)),
        CqlType::Udt(udt) => _ = found.insert((keyspace.to_owned(), udt.name.to_string())),
        _ => {}
    }
}

/// Marks a user-defined type in a field of another one, or in a collection or tuple of such a field, as frozen: up to 3.0 it
/// always was, and needed no mark.
pub(super) fn freeze_inner_types(ty: &mut DataType<'_>) {
    match &mut ty.kind {
        DataTypeKind::List(inner) | DataTypeKind::Set(inner) | DataTypeKind::Vector(inner, _) => {
            freeze_inner_types(inner);
        }
        DataTypeKind::Map(pair) => {
            freeze_inner_types(&mut pair.0);
            freeze_inner_types(&mut pair.1);
        }
        DataTypeKind::Tuple(parts) => parts.iter_mut().for_each(freeze_inner_types),
        DataTypeKind::User(name) => {
            let inner = DataType { kind: DataTypeKind::User(name.clone()), pos: ty.pos };
            ty.kind = DataTypeKind::Frozen(inner.into());
        }
        DataTypeKind::Frozen(_) | DataTypeKind::Native(_) | DataTypeKind::Custom(_) => {}
    }
}

/// A statement of an index with the equal sign that Cassandra 3.x leaves out: it writes `WITH OPTIONS { .. }`
/// (`ColumnFamilyStoreCQLHelper.toCQL`). `None` if nothing has to be put in.
pub(super) fn with_equal_sign(statement: &str) -> Option<String> {
    let mut lexer = Lexer::new(statement);
    let mut last = [Kind::Eof; 2];
    let mut is_first = true;
    loop {
        let token = lexer.next_token().ok()?;
        if std::mem::take(&mut is_first) && token.kind != Kind::Create || token.kind == Kind::Eof {
            return None;
        }
        if last == [Kind::With, Kind::Options] && token.kind == Kind::LBrace {
            let (before, after) = statement.split_at_checked(token.start as usize)?;
            return Some(format!("{before}= {after}"));
        }
        last = [last[1], token.kind];
    }
}
