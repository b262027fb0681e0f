//! INSERT JSON: an INSERT of all columns whose values come from one text (`Json`).
//!
//! The statement becomes `INSERT (every column) VALUES (?, ?, ..)` with markers that clients do not see, one for each
//! column of the text. A constant text is parsed once. A bound text is parsed when the first column is bound, and the
//! result is kept for the other columns, in the execution (`BoundValues::document`).

use super::markers::Markers;
use super::term::Term;
use super::values::{Bindings, Bound};
use crate::budget::{RequestBudget, room_for};
use crate::error::{CqlError, Result};
use crate::json::{
    Json, JsonReading, Mismatch, ParseError, Unread, fold_case, from_json, parse, room_to_fold, shown,
};
use crate::request::BoundValue;
use crate::scope::Receiver;
use crate::syntax::ast::{self, Ident};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A row as JSON: its columns, and the source of the text.
#[derive(Debug)]
pub struct JsonRow {
    source: Source,
    columns: Vec<(Arc<str>, CqlType)>,
    /// The value of columns that the text does not contain.
    default: Value,
}

/// The document that an execution has read last. It belongs to the execution, not to the statement, which stays prepared
/// for long and would keep the memory of its last document as long.
#[derive(Clone, Debug)]
pub(super) struct ReadDocument {
    /// The address of its `JsonRow`, and the marker of its text.
    of: (usize, u16),
    values: Arc<[Value]>,
}

#[derive(Debug)]
enum Source {
    /// The values of a constant text.
    Values(Arc<[Value]>),
    /// The number of the marker of a bound text.
    Marker(u16),
}

/// A column's value.
#[derive(Clone, Debug)]
enum Value {
    Bytes(Vec<u8>),
    Null,
    Unset,
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

/// The columns and values of the INSERT for an INSERT JSON. `value` is a string or a marker.
///
/// # Errors
/// A constant text that is not JSON, or not a row of the table; those of `RequestBudget::step`.
pub(crate) fn json_columns(
    (value, default_unset): (&ast::Term<'_>, bool),
    table: &Table,
    markers: &mut Markers,
    work: &RequestBudget<'_>,
) -> Result<(Vec<Ident<'static>>, Vec<ast::Term<'static>>)> {
    let all =
        table.partition_key.iter().chain(&table.clustering).chain(&table.statics).chain(&table.regulars);
    let mut row = JsonRow {
        source: Source::Values(Arc::new([])),
        columns: all.map(|column| (column.name.clone(), column.ty.clone())).collect(),
        default: if default_unset { Value::Unset } else { Value::Null },
    };
    row.source = match value {
        ast::Term::Marker(marker) => {
            markers.add(*marker, &Receiver::named(table, "[json]", CqlType::Text));
            match u16::try_from(marker.index) {
                Ok(index) => Source::Marker(index),
                Err(_) => return invalid("Too many markers(?). markers must be at most 65535"),
            }
        }
        ast::Term::Literal(text) => Source::Values(row.read(&text.text, 0, work)?),
        _ => return invalid("INSERT JSON takes a string or a bind marker"),
    };
    let row = Arc::new(row);
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (index, (name, _)) in row.columns.iter().enumerate() {
        names.push(Ident { name: Cow::Owned(name.to_string()), pos: value.pos() });
        values.push(ast::Term::Marker(markers.add_own(Term::Json(row.clone(), index), value.pos())));
    }
    Ok((names, values))
}

impl JsonRow {
    /// Whether the text is a bind marker.
    pub(super) fn has_marker(&self) -> bool {
        matches!(self.source, Source::Marker(_))
    }

    /// The value of a column in one request.
    ///
    /// # Errors
    /// A bound text that is not JSON, or not a row of the table.
    pub(super) fn bind<'a>(&self, column: usize, bindings: &Bindings<'a>) -> Result<Bound<'a>> {
        let values = match &self.source {
            Source::Values(values) => values.clone(),
            Source::Marker(index) => {
                let BoundValue::Bytes(bytes) = bindings.values.get(*index) else {
                    return invalid("Got null for INSERT JSON values");
                };
                self.read_once((bytes, *index), bindings)?
            }
        };
        Ok(match values.get(column) {
            Some(Value::Bytes(bytes)) => {
                room_for(bytes.len())?;
                Bound::Bytes(Cow::Owned(bytes.clone()))
            }
            Some(Value::Unset) => Bound::Unset,
            Some(Value::Null) | None => Bound::Null,
        })
    }

    /// The values of a bound text. All columns of a row are bound one after the other, and read it once.
    fn read_once(&self, (bytes, marker): (&[u8], u16), bindings: &Bindings<'_>) -> Result<Arc<[Value]>> {
        let of = (std::ptr::from_ref(self).addr(), marker);
        let mut last = bindings.values.document().lock();
        if let Some(last) = last.as_ref().filter(|last| last.of == of) {
            return Ok(last.values.clone());
        }
        // Before the next is read, so that there is one at a time.
        *last = None;
        let Ok(text) = std::str::from_utf8(bytes) else {
            return invalid("String didn't validate. (column [json])");
        };
        let now_ms = bindings.calls.now_us.div_euclid(1000);
        let values = self.read(text, now_ms, bindings.calls.work)?;
        *last = Some(ReadDocument { of, values: values.clone() });
        Ok(values)
    }

    /// Parses a text to one value for each column (`Json.parseJson`).
    fn read(&self, text: &str, now_ms: i64, work: &RequestBudget<'_>) -> Result<Arc<[Value]>> {
        let step = |bytes| work.goes_on(bytes);
        let reading = JsonReading { now_ms, step: &step };
        let undecodable = |error: ParseError| {
            let error = error.java_text();
            CqlError::Invalid(format!(
                "Could not decode JSON string as a map: {error}. (String was: {})",
                shown(text)
            ))
        };
        let parsed = parse(text, &step).map_err(|error| match error {
            Unread::Invalid(error) => undecodable(error),
            Unread::Stopped => work.interrupted(),
        });
        let mut entries = match parsed? {
            Json::Map(entries) => {
                room_for(room_to_fold(&entries))?;
                fold_case(entries)
            }
            Json::Null => return invalid("Got null for INSERT JSON values"),
            other => return Err(undecodable(ParseError::no_object(&other))),
        };
        let by_key: HashMap<String, usize> =
            entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        let mut unknown = by_key.len();
        let mut values = Vec::with_capacity(self.columns.len());
        for (name, ty) in &self.columns {
            let Some((_, found)) = by_key.get(&**name).and_then(|at| entries.get_mut(*at)) else {
                values.push(self.default.clone());
                continue;
            };
            unknown -= 1;
            values.push(match std::mem::replace(found, Json::Null) {
                Json::Null => Value::Null,
                json => Value::Bytes(from_json(ty, &json, reading).map_err(|mismatch| match mismatch {
                    Mismatch::Stopped => work.interrupted(),
                    Mismatch::Invalid(text) => CqlError::Invalid(text),
                    Mismatch::Marshal(text) => {
                        CqlError::Invalid(format!("Error decoding JSON value for {name}: {text}"))
                    }
                })?),
            });
        }
        if unknown == 0 {
            return Ok(values.into());
        }
        let known: HashSet<&str> = self.columns.iter().map(|(name, _)| &**name).collect();
        match entries.iter().find(|(key, _)| !known.contains(key.as_str())) {
            Some((key, _)) => invalid(format!("JSON values map contains unrecognized column: {key}")),
            None => Ok(values.into()),
        }
    }
}
