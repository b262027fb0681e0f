//! The change that a statement makes to one column, typed (`Operation` and its kinds).

use super::prepare::Reads;
use crate::analysis::{Markers, Receiver, Scope, Term, existing_column, term_text};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{self, Assignment, AssignmentKind, DeleteTarget, Ident};
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, UserType};
use std::sync::Arc;

/// One change of one column.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) column: ColumnId,
    /// The type of the column, for splitting values of several cells.
    pub(super) ty: CqlType,
    pub(super) action: Action,
    /// When a column of this name was dropped; `i64::MIN` if none was. Data with this timestamp or an older one is
    /// invisible, so it is not written.
    pub(super) dropped_us: i64,
}

/// The kinds of changes of a column.
#[derive(Debug)]
pub(super) enum Action {
    /// A column of one cell gets this value; null deletes it.
    Set(Term),
    /// A multi-cell column is replaced whole.
    Replace(Term),
    /// Elements are added: to the end of a list, to a set, to a map.
    Append(Term),
    /// Elements are prepended to a list.
    Prepend(Term),
    /// An entry of a map gets a value; null deletes it.
    PutEntry(Term, Term),
    /// Elements are removed from a set, or entries from a map by their keys.
    Discard(Term),
    /// A field of a user-defined type, by its path, gets a value; null deletes it.
    SetField([u8; 2], Term),
    /// The element of a list at an index, which is read first, gets a value; null deletes it.
    SetIndex(Term, Term),
    /// Elements of a list, which is read first, are removed by their values.
    DiscardValues(Term),
    /// The element of a list at an index, which is read first, is deleted.
    DeleteIndex(Term),
    /// A number is added to the present one, or a text appended; in conditional statements only.
    Add(Term),
    /// A counter is increased or decreased by this value.
    Count(Term, Direction),
    /// The column is deleted whole.
    Delete,
    /// One element of a set or entry of a map is deleted.
    DeleteElement(Term),
    /// One field of a user-defined type is deleted.
    DeleteField([u8; 2]),
}

/// Whether a counter is increased or decreased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Action {
    /// Whether it depends on the present value (`Operation.requiresRead`). Counters are read by the engine instead.
    fn reads(&self) -> bool {
        matches!(
            self,
            Action::SetIndex(..) | Action::DiscardValues(_) | Action::DeleteIndex(_) | Action::Add(_)
        )
    }
}

/// The operations of a statement, regular and static ones separately, each in column order.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) regular: Vec<Operation>,
    pub(super) statics: Vec<Operation>,
}

impl Operations {
    /// Which rows must be read before the operations.
    pub(super) fn reads(&self) -> Reads {
        let any = |operations: &[Operation]| operations.iter().any(|operation| operation.action.reads());
        Reads { regulars: any(&self.regular), statics: any(&self.statics) }
    }

    /// Whether any operation appends or prepends elements to a list.
    pub(super) fn add_to_lists(&self) -> bool {
        let adds = |operation: &Operation| match operation.action {
            Action::Append(_) => matches!(operation.ty, CqlType::List { .. }),
            Action::Prepend(_) => true,
            _ => false,
        };
        self.regular.iter().chain(&self.statics).any(adds)
    }

    pub(super) fn add(&mut self, table: &Table, column: &Column, action: Action) {
        let dropped_us = table.dropped.get(&column.name).map_or(i64::MIN, |dropped| dropped.dropped_us);
        let operation = Operation { column: column.id, ty: column.ty.clone(), action, dropped_us };
        let list = if column.kind == ColumnKind::Static { &mut self.statics } else { &mut self.regular };
        list.push(operation);
    }

    /// Sorts them by column; those of one column keep their order. Called once all have been added.
    pub(super) fn arrange(&mut self) {
        self.regular.sort_by_key(|operation| operation.column);
        self.statics.sort_by_key(|operation| operation.column);
    }
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// Types the assignment of a whole column: `c = term` or a value of INSERT.
pub(super) fn set_value(
    table: &Table,
    column: &Column,
    value: &ast::Term<'_>,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Action> {
    let term = Term::prepare(value, &Receiver::of_column(table, column), scope, markers)?;
    if column.ty == CqlType::Counter {
        return invalid(format!(
            "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
            column.name
        ));
    }
    Ok(if column.ty.is_multi_cell() { Action::Replace(term) } else { Action::Set(term) })
}

/// Types one assignment of an UPDATE; `is_conditional` is whether the statement has conditions.
pub(super) fn assign(
    (table, is_conditional): (&Table, bool),
    assignment: &Assignment<'_>,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<(Arc<str>, Action)> {
    let column = existing_column(table, &assignment.column)?;
    let name = &column.name;
    if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return invalid(format!("PRIMARY KEY part {name} found in SET part"));
    }
    let receiver = Receiver::of_column(table, column);
    let ty = &column.ty;
    let action = match &assignment.kind {
        AssignmentKind::Set(value) => set_value(table, column, value, scope, markers)?,
        AssignmentKind::Add(value) => {
            let text = format!("{name} = {name} + {}", term_text(value));
            let addition = check_addable(column, &text, is_conditional)?;
            let prepared = Term::prepare(value, &receiver, scope, markers);
            let term = prepared.map_err(|error| match ty {
                CqlType::Map { .. } => CqlError::Invalid(format!(
                    "Value for a map addition has to be a map, but was: '{}'",
                    term_text(value)
                )),
                _ => error,
            })?;
            addition.action(term)
        }
        AssignmentKind::Subtract(value) => {
            let text = format!("{name} = {name} - {}", term_text(value));
            check_subtractable(column, &text)?;
            subtract(&receiver, value, scope, markers)?
        }
        AssignmentKind::Prepend(value) => {
            let term = Term::prepare(value, &receiver, scope, markers)?;
            let text = format!("{name} = {} - {name}", term_text(value));
            match ty {
                CqlType::List { frozen: false, .. } => Action::Prepend(term),
                CqlType::List { .. } => {
                    return invalid(format!("Invalid operation ({text}) for frozen list column {name}"));
                }
                _ => return invalid(format!("Invalid operation ({text}) for non list column {name}")),
            }
        }
        AssignmentKind::SetElement(key, value) => set_element(&receiver, key, value, scope, markers)?,
        AssignmentKind::SetField(field, value) => {
            let text = format!("{name}.{} = {}", field.as_str(), term_text(value));
            let CqlType::Udt(udt) = ty else {
                return invalid(format!("Invalid operation ({text}) for non-UDT column {name}"));
            };
            if udt.frozen {
                return invalid(format!("Invalid operation ({text}) for frozen UDT column {name}"));
            }
            let (path, ty) = field_of(udt, name, field)?;
            let receiver = receiver.part(format!("{name}.{}", field.as_str()), ty.clone());
            Action::SetField(path, Term::prepare(value, &receiver, scope, markers)?)
        }
    };
    Ok((name.clone(), action))
}

/// The meaning of `+` for a column.
enum Addition {
    Append,
    Count,
    Add,
}

impl Addition {
    fn action(&self, term: Term) -> Action {
        match self {
            Addition::Append => Action::Append(term),
            Addition::Count => Action::Count(term, Direction::Up),
            Addition::Add => Action::Add(term),
        }
    }
}

/// The meaning of `+` for a column, or an error. Numbers and texts are added to only in conditional statements.
fn check_addable(column: &Column, text: &str, is_conditional: bool) -> Result<Addition> {
    let name = &column.name;
    let ty = &column.ty;
    match ty {
        CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
            if *frozen {
                return invalid(format!("Invalid operation ({text}) for frozen collection column {name}"));
            }
            Ok(Addition::Append)
        }
        CqlType::Tuple(_) | CqlType::Udt(_) => {
            invalid(format!("Invalid operation ({text}) for tuple column {name}"))
        }
        CqlType::Counter => Ok(Addition::Count),
        _ if !is_conditional => invalid(format!("Invalid operation ({text}) for non counter column {name}")),
        _ if is_addable(ty) => Ok(Addition::Add),
        _ => invalid(format!("Invalid operation ({text}) for non-numeric and non-text type {name}")),
    }
}

/// Whether Cassandra's type is a `NumberType` or `StringType`.
fn is_addable(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Varint
            | CqlType::Float
            | CqlType::Double
            | CqlType::Decimal
            | CqlType::Ascii
            | CqlType::Text
    )
}

fn check_subtractable(column: &Column, text: &str) -> Result<()> {
    let name = &column.name;
    match &column.ty {
        CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
            if *frozen {
                return invalid(format!("Invalid operation ({text}) for frozen collection column {name}"));
            }
            Ok(())
        }
        CqlType::Counter => Ok(()),
        _ => invalid(format!("Invalid operation ({text}) for non counter column {name}")),
    }
}

fn subtract(
    receiver: &Receiver,
    value: &ast::Term<'_>,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Action> {
    match &receiver.ty {
        CqlType::List { .. } => Ok(Action::DiscardValues(Term::prepare(value, receiver, scope, markers)?)),
        CqlType::Counter => {
            Ok(Action::Count(Term::prepare(value, receiver, scope, markers)?, Direction::Down))
        }
        CqlType::Map { key, .. } => {
            let keys = CqlType::Set { element: key.clone(), frozen: true };
            let spec = Receiver { ty: keys, ..receiver.clone() };
            let term = Term::prepare(value, &spec, scope, markers).map_err(|_| {
                CqlError::Invalid(format!(
                    "Value for a map substraction has to be a set, but was: '{}'",
                    term_text(value)
                ))
            })?;
            Ok(Action::Discard(term))
        }
        _ => Ok(Action::Discard(Term::prepare(value, receiver, scope, markers)?)),
    }
}

fn set_element(
    receiver: &Receiver,
    key: &ast::Term<'_>,
    value: &ast::Term<'_>,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Action> {
    let name = &receiver.name;
    let text = format!("{name}[{}] = {}", term_text(key), term_text(value));
    match &receiver.ty {
        CqlType::List { frozen: true, .. }
        | CqlType::Set { frozen: true, .. }
        | CqlType::Map { frozen: true, .. } => {
            invalid(format!("Invalid operation ({text}) for frozen collection column {name}"))
        }
        CqlType::List { element, .. } => {
            let index = receiver.part(format!("idx({name})"), CqlType::Int);
            let element = receiver.part(format!("value({name})"), (**element).clone());
            let index = Term::prepare(key, &index, scope, markers)?;
            Ok(Action::SetIndex(index, Term::prepare(value, &element, scope, markers)?))
        }
        CqlType::Set { .. } => invalid(format!("Invalid operation ({text}) for set column {name}")),
        CqlType::Map { key: key_type, value: value_type, .. } => {
            let key_spec = receiver.part(format!("key({name})"), (**key_type).clone());
            let value_spec = receiver.part(format!("value({name})"), (**value_type).clone());
            let key = Term::prepare(key, &key_spec, scope, markers)?;
            Ok(Action::PutEntry(key, Term::prepare(value, &value_spec, scope, markers)?))
        }
        _ => invalid(format!("Invalid operation ({text}) for non collection column {name}")),
    }
}

/// Types one target of a DELETE.
pub(super) fn delete(
    table: &Table,
    target: &DeleteTarget<'_>,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<(Arc<str>, Action)> {
    let (DeleteTarget::Column(name) | DeleteTarget::Element(name, _) | DeleteTarget::Field(name, _)) = target;
    let column = existing_column(table, name)?;
    let name = &column.name;
    if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return invalid(format!("Invalid identifier {name} for deletion (should not be a PRIMARY KEY part)"));
    }
    let action = match target {
        DeleteTarget::Column(_) => Action::Delete,
        DeleteTarget::Element(_, element) => {
            let receiver = Receiver::of_column(table, column);
            let spec = match &column.ty {
                CqlType::List { frozen: true, .. }
                | CqlType::Set { frozen: true, .. }
                | CqlType::Map { frozen: true, .. } => {
                    return invalid(format!(
                        "Invalid deletion operation for frozen collection column {name}"
                    ));
                }
                CqlType::List { .. } => receiver.part(format!("idx({name})"), CqlType::Int),
                CqlType::Set { element, .. } => receiver.part(format!("value({name})"), (**element).clone()),
                CqlType::Map { key, .. } => receiver.part(format!("key({name})"), (**key).clone()),
                _ => {
                    return invalid(format!("Invalid deletion operation for non collection column {name}"));
                }
            };
            let element = Term::prepare(element, &spec, scope, markers)?;
            match &column.ty {
                CqlType::List { .. } => Action::DeleteIndex(element),
                _ => Action::DeleteElement(element),
            }
        }
        DeleteTarget::Field(_, field) => {
            let CqlType::Udt(udt) = &column.ty else {
                return invalid(format!("Invalid field deletion operation for non-UDT column {name}"));
            };
            if udt.frozen {
                return invalid(format!("Frozen UDT column {name} does not support field deletions"));
            }
            Action::DeleteField(field_of(udt, name, field)?.0)
        }
    };
    Ok((name.clone(), action))
}

/// A field's cell path, which is its index in two bytes, and its type.
fn field_of<'u>(udt: &'u UserType, column: &str, field: &Ident<'_>) -> Result<([u8; 2], &'u CqlType)> {
    let found = udt.fields.iter().enumerate().find(|(_, (name, _))| **name == *field.name);
    match found {
        Some((index, (_, ty))) => Ok(((index as u16).to_be_bytes(), ty)),
        None => invalid(format!("UDT column {column} does not have a field named {}", field.as_str())),
    }
}
