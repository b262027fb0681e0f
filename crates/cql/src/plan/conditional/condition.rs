//! The typed IF clause (`ColumnCondition.Raw.prepare`, `Conditions`).

use crate::analysis::{Markers, Receiver, Scope, Term, existing_column, references_duration};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{self, Comparison, Guard, InValues};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The conditions of one statement.
#[derive(Debug, Default)]
pub(crate) enum Conditions {
    /// There is no IF.
    #[default]
    None,
    /// `IF NOT EXISTS`
    NotExists,
    /// `IF EXISTS`
    Exists,
    /// Conditions on columns: those on regular columns first, then those on static ones, each in the order of the text.
    Columns(Vec<Condition>),
}

impl Conditions {
    /// Types the IF clause of an UPDATE or DELETE.
    pub(crate) fn prepare(
        guard: &Guard<'_>,
        has_timestamp: bool,
        (table, scope): (&Table, &Scope<'_>),
        markers: &mut Markers,
    ) -> Result<Conditions> {
        let conditions = match guard {
            Guard::None => return Ok(Conditions::None),
            Guard::Exists => return Ok(Conditions::Exists),
            Guard::Conditions(conditions) => conditions,
        };
        if has_timestamp {
            return Err(custom_timestamp());
        }
        let mut typed = Vec::with_capacity(conditions.len());
        for condition in conditions {
            typed.push(Condition::prepare(condition, (table, scope), markers)?);
        }
        typed.sort_by_key(Condition::is_static);
        Ok(Conditions::Columns(typed))
    }

    /// Whether there is no IF.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Conditions::None)
    }

    /// Whether any condition is on a static column.
    pub(crate) fn asks_statics(&self) -> bool {
        self.columns().iter().any(Condition::is_static)
    }

    /// Whether any condition is on a regular column.
    pub(crate) fn asks_regulars(&self) -> bool {
        self.columns().iter().any(|condition| !condition.is_static())
    }

    /// The conditions on columns.
    pub(crate) fn columns(&self) -> &[Condition] {
        match self {
            Conditions::Columns(conditions) => conditions,
            _ => &[],
        }
    }

    /// Makes the checks that apply to every conditional statement, whatever its conditions.
    pub(crate) fn check(&self, table: &Table, has_timestamp: bool) -> Result<()> {
        if self.is_none() {
            return Ok(());
        }
        if table.is_counter() {
            return invalid("Conditional updates are not supported on counter tables".into());
        }
        if has_timestamp { Err(custom_timestamp()) } else { Ok(()) }
    }
}

fn custom_timestamp() -> CqlError {
    CqlError::Invalid("Cannot provide custom timestamp for conditional updates".into())
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// A condition on a column or a part of one.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The column.
    pub(crate) column: Column,
    /// The part of the column that is compared.
    pub(super) target: Target,
    /// The comparison; IN compares each value for equality.
    pub(super) comparison: Comparison,
    /// The values it is compared with.
    pub(super) values: Values,
}

/// The part of a column that a condition is on.
#[derive(Debug)]
pub(super) enum Target {
    /// All of it.
    Whole,
    /// The element of a list at this index, or of a map under this key.
    Element(Term),
    /// The field of a user-defined type: its index and its type.
    Field(usize, CqlType),
}

/// The values that a condition compares with.
#[derive(Debug)]
pub(super) enum Values {
    /// One value.
    One(Term),
    /// `IN (a, b)`
    In(Vec<Term>),
    /// `IN ?`
    InMarker(Term),
}

impl Condition {
    /// Whether it is CONTAINS or CONTAINS KEY.
    pub(super) fn contains(&self) -> bool {
        matches!(self.comparison, Comparison::Contains | Comparison::ContainsKey)
    }

    /// Whether it is on a static column.
    pub(crate) fn is_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }

    fn prepare(
        condition: &ast::Condition<'_>,
        (table, scope): (&Table, &Scope<'_>),
        markers: &mut Markers,
    ) -> Result<Condition> {
        let column = existing_column(table, &condition.column)?;
        if column.ty == CqlType::Counter {
            return invalid("Conditions on counters are not supported".into());
        }
        let comparison = match &condition.test {
            ast::Test::Compare(comparison, _) => *comparison,
            ast::Test::In(_) => Comparison::Equal,
        };
        let receiver = Receiver::of_column(table, column);
        let (place, receiver) = match (&condition.element, &condition.field) {
            (Some(element), _) => element_of(&receiver, element, comparison, scope, markers)?,
            (None, Some(field)) => field_of(&receiver, field.as_str(), comparison)?,
            (None, None) => {
                check_order(&receiver.ty, comparison)?;
                (Target::Whole, receiver)
            }
        };
        let values = values(&condition.test, &receiver, scope, markers)?;
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return invalid(format!("PRIMARY KEY column '{}' cannot have IF conditions", column.name));
        }
        Ok(Condition { column: column.clone(), target: place, comparison, values })
    }
}

fn element_of(
    receiver: &Receiver,
    element: &ast::Term<'_>,
    comparison: Comparison,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<(Target, Receiver)> {
    let name = &receiver.name;
    let (key, value) = match &receiver.ty {
        CqlType::List { element, .. } => (receiver.part(format!("idx({name})"), CqlType::Int), element),
        CqlType::Map { key, value, .. } => (receiver.part(format!("key({name})"), (**key).clone()), value),
        CqlType::Set { .. } => {
            return invalid(format!("Invalid element access syntax for set column {name}"));
        }
        _ => return invalid(format!("Invalid element access syntax for non-collection column {name}")),
    };
    let value = receiver.part(format!("value({name})"), (**value).clone());
    check_order(&value.ty, comparison)?;
    Ok((Target::Element(Term::prepare(element, &key, scope, markers)?), value))
}

fn field_of(receiver: &Receiver, field: &str, comparison: Comparison) -> Result<(Target, Receiver)> {
    let name = &receiver.name;
    let CqlType::Udt(udt) = &receiver.ty else {
        return invalid(format!("Invalid field access syntax for non-UDT column {name}"));
    };
    let found = udt.fields.iter().enumerate().find(|(_, (known, _))| **known == *field);
    let Some((index, (_, ty))) = found else {
        return invalid(format!("Unknown field {field} for column {name}"));
    };
    let spec = receiver.part(format!("{name}.{field}"), ty.clone());
    check_order(&spec.ty, comparison)?;
    Ok((Target::Field(index, ty.clone()), spec))
}

fn values(
    test: &ast::Test<'_>,
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Values> {
    let name = &receiver.name;
    match test {
        ast::Test::In(InValues::Marker(marker)) => {
            let list = CqlType::List { element: Arc::new(receiver.ty.clone()), frozen: true };
            let spec = receiver.part(format!("in({name})"), list);
            Ok(Values::InMarker(Term::prepare(&ast::Term::Marker(*marker), &spec, scope, markers)?))
        }
        ast::Test::In(InValues::List(terms)) => {
            let typed = terms.iter().map(|term| Term::prepare(term, receiver, scope, markers));
            Ok(Values::In(typed.collect::<Result<_>>()?))
        }
        ast::Test::Compare(comparison, value) => {
            let part = match (comparison, &receiver.ty) {
                (Comparison::ContainsKey, CqlType::Map { key, .. }) => {
                    receiver.part(format!("key({name})"), (**key).clone())
                }
                (Comparison::ContainsKey, _) => {
                    return invalid(format!("Cannot use CONTAINS KEY on non-map column {name}"));
                }
                (
                    Comparison::Contains,
                    CqlType::List { element, .. }
                    | CqlType::Set { element, .. }
                    | CqlType::Map { value: element, .. },
                ) => receiver.part(format!("value({name})"), (**element).clone()),
                (Comparison::Contains, _) => {
                    return invalid(format!("Cannot use CONTAINS on non-collection column {name}"));
                }
                _ => receiver.clone(),
            };
            Ok(Values::One(Term::prepare(value, &part, scope, markers)?))
        }
    }
}

/// Rejects order comparisons of types without an order (`validateOperationOnDurations`).
fn check_order(ty: &CqlType, comparison: Comparison) -> Result<()> {
    let is_slice = matches!(
        comparison,
        Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual
    );
    if !is_slice || !references_duration(ty) {
        return Ok(());
    }
    let what = match ty {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => "collections",
        CqlType::Udt(_) | CqlType::Tuple(_) => "tuples",
        _ => {
            let sign = comparison.as_str();
            return invalid(format!("Slice conditions ( {sign} ) are not supported on durations"));
        }
    };
    invalid(format!("Slice conditions are not supported on {what} containing durations"))
}
