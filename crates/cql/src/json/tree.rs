//! What a JSON text says, as Jackson's Java values.

use helenus_model::types::{CqlType, to_cql_literal};

/// What a text says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// A number without fraction that fits 32 bits, in Java an `Integer`.
    Int(i32),
    /// One that fits 64 bits, in Java a `Long`.
    Long(i64),
    /// A greater one, as written.
    Big(String),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// A string.
    String(String),
    /// An array.
    List(Vec<Json>),
    /// An object: its keys in the order in which they came first.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// The simple name of the Java class that Jackson reads this as.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Boolean(_) => "Boolean",
            Json::Int(_) => "Integer",
            Json::Long(_) => "Long",
            Json::Big(_) => "BigInteger",
            Json::Double(_) => "Double",
            Json::String(_) => "String",
            Json::List(_) => "ArrayList",
            Json::Map(_) => "LinkedHashMap",
        }
    }

    /// What Java's `toString` gives.
    pub(crate) fn java_text(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Boolean(value) => value.to_string(),
            Json::Int(value) => value.to_string(),
            Json::Long(value) => value.to_string(),
            Json::Big(text) | Json::String(text) => text.clone(),
            Json::Double(value) => to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes())),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(Json::java_text).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Map(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key}={}", value.java_text())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

/// Adds an entry; a key that is known keeps its place and gets the new value.
pub(super) fn put(entries: &mut Vec<(String, Json)>, key: String, value: Json) {
    match entries.iter_mut().find(|(known, _)| *known == key) {
        Some(known) => known.1 = value,
        None => entries.push((key, value)),
    }
}
