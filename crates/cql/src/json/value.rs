//! Converts JSON to a value of a type (each type's `fromJSONObject`).

use super::error::{Step, Unread};
use super::parse::parse;
use super::tree::{Entries, Json, shown};
use crate::cost;
use helenus_model::types::{
    ConstantKind, CqlType, TypeError, UserType, normalise_within, pack, parse_constant, parse_text,
    put_element, put_value,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Why JSON is not a value of a type.
#[derive(Debug)]
pub(crate) enum Mismatch {
    /// Cassandra's `MarshalException`, whose text callers embed in a sentence.
    Marshal(String),
    /// The complete text of an invalid request.
    Invalid(String),
    /// The request may not go on (`Step`).
    Stopped,
}

/// What reading values from JSON needs beside the JSON.
#[derive(Clone, Copy)]
pub(crate) struct JsonReading<'a> {
    /// The value of the timestamp `now`, milliseconds since the epoch.
    pub(crate) now_ms: i64,
    /// Called for each value.
    pub(crate) step: Step<'a>,
}

/// The most steps that are counted at once.
const STEPS_MAX: usize = 2_000_000;

impl JsonReading<'_> {
    /// Counts a step that takes so many bytes.
    fn takes(&self, bytes: usize) -> Value<()> {
        if (self.step)(bytes) { Ok(()) } else { Err(Mismatch::Stopped) }
    }

    /// Counts several steps. More than some seconds of them change nothing: the request has ended before.
    fn works(&self, steps: usize) -> Value<()> {
        (0..steps.min(STEPS_MAX)).try_for_each(|_| self.takes(0))
    }
}

impl From<String> for Mismatch {
    fn from(text: String) -> Mismatch {
        Mismatch::Marshal(text)
    }
}

impl From<TypeError> for Mismatch {
    fn from(error: TypeError) -> Mismatch {
        match error {
            TypeError::DurationText(error) => Mismatch::Invalid(error.to_string()),
            other => Mismatch::Marshal(other.to_string()),
        }
    }
}

type Value<T = Vec<u8>> = Result<T, Mismatch>;

/// The serialised value; collections and user-defined types in their frozen form.
///
/// # Errors
/// The JSON is of another kind, or its text is not a valid value; `step` ended the work.
pub(crate) fn from_json(ty: &CqlType, json: &Json, reading: JsonReading<'_>) -> Value {
    reading.takes(match json {
        // Its text, the number that it is, and the value.
        Json::String(text) | Json::Big(text) => 3 * text.len(),
        _ => 0,
    })?;
    if let (CqlType::Varint | CqlType::Decimal, Json::String(text) | Json::Big(text)) = (ty, json) {
        reading.works(cost::number_text(text))?;
        reading.takes(6 * text.len())?;
    }
    match ty {
        CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Tuple(_)
        | CqlType::Udt(_)
        | CqlType::Vector { .. } => from_parts(ty, json, reading),
        _ => from_simple(ty, json, reading.now_ms),
    }
}

fn from_simple(ty: &CqlType, json: &Json, now_ms: i64) -> Value {
    let text = |text: &str| match parse_text(ty, text) {
        Ok(bytes) => Ok(bytes),
        Err(TypeError::Now) => Ok(now_ms.to_be_bytes().to_vec()),
        Err(error) => Err(error.into()),
    };
    let expected = |what: &str| {
        Err(Mismatch::Marshal(format!(
            "Expected {what}, but got a {}: {}",
            json.class(),
            shown(&json.java_text())
        )))
    };
    match (ty, json) {
        (CqlType::Blob, json) => from_blob(json),
        (CqlType::Decimal, json) => {
            let text = json.java_text();
            let refused =
                || format!("Value '{}' is not a valid representation of a decimal value", shown(&text));
            parse_text(ty, &text).map_err(|_| refused().into())
        }
        (CqlType::Varint, json) => {
            let text = json.java_text();
            let refused =
                || format!("Value '{}' is not a valid representation of a varint value", shown(&text));
            let bytes = parse_text(ty, &text).ok().filter(|bytes| !bytes.is_empty());
            bytes.ok_or_else(|| refused().into())
        }
        (CqlType::Empty, Json::String(empty)) if empty.is_empty() => Ok(Vec::new()),
        (CqlType::Empty, Json::String(other)) => Err(format!("'{}' is not empty", shown(other)).into()),
        (CqlType::Empty, other) => {
            Err(format!("Expected an empty string, but got: {}", shown(&other.java_text())).into())
        }
        (_, Json::String(string)) => text(string),
        (
            CqlType::TinyInt | CqlType::SmallInt,
            Json::Int(_) | Json::Long(_) | Json::Big(_) | Json::Double(_),
        ) => text(&json.java_text()),
        (CqlType::Int, Json::Int(value)) => Ok(value.to_be_bytes().to_vec()),
        (CqlType::BigInt, Json::Int(value)) => Ok(i64::from(*value).to_be_bytes().to_vec()),
        (CqlType::BigInt | CqlType::Timestamp, Json::Long(value)) => Ok(value.to_be_bytes().to_vec()),
        (CqlType::Boolean, Json::Boolean(value)) => Ok(vec![u8::from(*value)]),
        (CqlType::Double, Json::Int(_) | Json::Long(_) | Json::Big(_) | Json::Double(_)) => {
            parse_constant(ty, ConstantKind::Float, &json.java_text()).map_err(Mismatch::from)
        }
        (CqlType::Float, Json::Double(value)) => Ok((*value as f32).to_be_bytes().to_vec()),
        (CqlType::Float, Json::Int(_) | Json::Long(_) | Json::Big(_)) => text(&json.java_text()),
        _ => expected(match ty {
            CqlType::Ascii => "an ascii string",
            CqlType::Text => "a UTF-8 string",
            CqlType::Int => "an int value",
            CqlType::BigInt | CqlType::Counter => "a bigint value",
            CqlType::SmallInt => "a short value",
            CqlType::TinyInt => "a byte value",
            CqlType::Boolean => "a boolean value",
            CqlType::Double => "a double value",
            CqlType::Float => "a float value",
            CqlType::Timestamp => "a long or a datestring representation of a timestamp value",
            CqlType::Date => "a string representation of a date value",
            CqlType::Time => "a string representation of a time value",
            CqlType::Duration => "a string representation of a duration",
            CqlType::Inet => "a string representation of an inet value",
            CqlType::TimeUuid => "a string representation of a timeuuid",
            CqlType::Uuid => "a string representation of a uuid",
            _ => "another value",
        }),
    }
}

fn from_blob(json: &Json) -> Value {
    let refused = |why: String| {
        Mismatch::Marshal(format!(
            "Value '{}' is not a valid blob representation: {why}",
            shown(&json.java_text())
        ))
    };
    let Json::String(text) = json else {
        let package = if matches!(json, Json::List(_) | Json::Map(_)) { "java.util" } else { "java.lang" };
        let class = match json {
            Json::Big(_) => "java.math.BigInteger".to_owned(),
            other => format!("{package}.{}", other.class()),
        };
        return Err(refused(format!(
            "class {class} cannot be cast to class java.lang.String ({class} and java.lang.String are in module java.base of loader 'bootstrap')"
        )));
    };
    match text.strip_prefix("0x") {
        Some(digits) => parse_text(&CqlType::Blob, digits).map_err(|error| refused(error.to_string())),
        None => Err(refused(format!("String representation of blob is missing 0x prefix: {}", shown(text)))),
    }
}

fn from_parts(ty: &CqlType, json: &Json, reading: JsonReading<'_>) -> Value {
    // A collection may be given as a string that contains JSON; as a key of a map it always is.
    let inner;
    let json = match json {
        Json::String(text) => {
            inner = parse(text, reading.step).map_err(|error| match error {
                Unread::Invalid(error) => {
                    Mismatch::Marshal(format!("Error decoding JSON string: {}", error.message()))
                }
                Unread::Stopped => Mismatch::Stopped,
            })?;
            &inner
        }
        other => other,
    };
    let expected = |what: &str| {
        Err(Mismatch::Marshal(format!(
            "Expected {what}, but got a {}: {}",
            json.class(),
            shown(&json.java_text())
        )))
    };
    let mut out = Vec::new();
    match (ty, json) {
        (CqlType::List { element, .. }, Json::List(items)) => {
            let values = elements(element, items, "list", reading)?;
            pack(values.len(), values.iter().map(|value| Some(&**value)), &mut out);
        }
        (CqlType::Set { element, .. }, Json::List(items)) => {
            let values = elements(element, items, "set", reading)?;
            pack(values.len(), values.iter().map(|value| Some(&**value)), &mut out);
        }
        (CqlType::Vector { element, dimension }, Json::List(items)) => {
            if items.len() != *dimension as usize {
                return Err(format!(
                    "List had incorrect size: expected {dimension} but given {}; {}",
                    items.len(),
                    shown(&json.java_text())
                )
                .into());
            }
            for value in elements(element, items, "list", reading)? {
                put_element(element, &value, &mut out);
            }
        }
        (CqlType::Tuple(types), Json::List(items)) => {
            let count = types.len();
            if items.len() > count {
                return Err(format!(
                    "Tuple contains extra items (expected {count}): {}",
                    shown(&json.java_text())
                )
                .into());
            }
            if items.len() < count {
                return Err(format!(
                    "Tuple is missing items (expected {count}): {}",
                    shown(&json.java_text())
                )
                .into());
            }
            for (ty, item) in types.iter().zip(items) {
                put_value(nullable(ty, item, reading)?.as_deref(), &mut out);
            }
        }
        (CqlType::Map { key, value, .. }, Json::Map(entries)) => {
            reading.takes(entries.len() * 2 * size_of::<Vec<u8>>())?;
            let mut values = Vec::with_capacity(entries.len() * 2);
            for (name, found) in entries {
                if *found == Json::Null {
                    return Err("Invalid null value in map".to_owned().into());
                }
                values.push(from_json(key, &Json::String(name.clone()), reading)?);
                values.push(from_json(value, found, reading)?);
            }
            reading.takes(values.iter().map(|value: &Vec<u8>| value.len() + PACKED_BYTES).sum())?;
            pack(entries.len(), values.iter().map(|value| Some(&**value)), &mut out);
        }
        (CqlType::Udt(udt), Json::Map(entries)) => fields(udt, entries, reading, &mut out)?,
        (CqlType::Set { .. }, _) => return expected("a list (representing a set)"),
        (CqlType::Tuple(_), _) => return expected("a list representation of a tuple"),
        (CqlType::Map { .. } | CqlType::Udt(_), _) => return expected("a map"),
        _ => return expected("a list"),
    }
    let (once, times) = cost::sorting_of_numbers(ty, &out);
    reading.works(once.saturating_mul(times))?;
    let mut may = |bytes, steps| reading.takes(bytes).and_then(|()| reading.works(steps)).is_ok();
    let sorted = match normalise_within(ty, &out, &mut may) {
        None => return Err(Mismatch::Stopped),
        Some(Cow::Owned(sorted)) => Some(sorted),
        Some(Cow::Borrowed(_)) => None,
    };
    Ok(sorted.unwrap_or(out))
}

fn elements(ty: &CqlType, items: &[Json], what: &str, reading: JsonReading<'_>) -> Value<Vec<Vec<u8>>> {
    let one = |item: &Json| match item {
        Json::Null => Err(format!("Invalid null element in {what}").into()),
        item => from_json(ty, item, reading),
    };
    reading.takes(items.len() * size_of::<Vec<u8>>())?;
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(one(item)?);
    }
    // They are packed next.
    reading.takes(values.iter().map(|value| value.len() + PACKED_BYTES).sum())?;
    Ok(values)
}

/// The bytes of a value in a collection or vector besides its own, at most.
const PACKED_BYTES: usize = 9;

fn nullable(ty: &CqlType, json: &Json, reading: JsonReading<'_>) -> Value<Option<Vec<u8>>> {
    match json {
        Json::Null => Ok(None),
        json => from_json(ty, json, reading).map(Some),
    }
}

fn fields(
    udt: &UserType,
    entries: &[(String, Json)],
    reading: JsonReading<'_>,
    out: &mut Vec<u8>,
) -> Value<()> {
    reading.takes(room_to_fold(entries))?;
    let entries = fold_case(entries.iter().map(|(key, value)| (key.clone(), value)).collect());
    let by_key: HashMap<&str, &Json> = entries.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let mut found = 0;
    for (name, ty) in &udt.fields {
        let given = by_key.get(&**name).copied().unwrap_or(&Json::Null);
        found += usize::from(*given != Json::Null);
        put_value(nullable(ty, given, reading)?.as_deref(), out);
    }
    if found != entries.len() {
        let fields: HashSet<&str> = udt.fields.iter().map(|(name, _)| &**name).collect();
        if let Some((key, _)) = entries.iter().find(|(key, _)| !fields.contains(key.as_str())) {
            let text = format!("Unknown field '{key}' in value of user defined type {}", udt.name);
            return Err(text.into());
        }
    }
    Ok(())
}

/// The bytes that `fold_case` takes for these entries, and a map of them by key.
pub(crate) fn room_to_fold<V>(entries: &[(String, V)]) -> usize {
    const ENTRY_BYTES: usize = 256;
    entries.iter().map(|(key, _)| 4 * key.len() + ENTRY_BYTES).sum()
}

/// Treats keys as names: quoted ones lose their quotes, others become lower case (`JsonUtils.handleCaseSensitivity`).
pub(crate) fn fold_case<V>(entries: Vec<(String, V)>) -> Vec<(String, V)> {
    let keys: Vec<String> = entries.iter().map(|(key, _)| key.clone()).collect();
    let mut folded = Entries::new();
    entries.into_iter().for_each(|(key, value)| folded.put(key, value));
    for key in keys {
        let name = match key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(quoted) => quoted.to_owned(),
            None => key.to_lowercase(),
        };
        if name != key
            && let Some(value) = folded.take(&key)
        {
            folded.put(name, value);
        }
    }
    folded.into_vec()
}
