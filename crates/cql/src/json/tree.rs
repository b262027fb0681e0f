//! A parsed JSON text, with the types of Jackson's Java values.

use helenus_model::types::{CqlType, to_cql_literal};
use std::collections::HashMap;

/// A parsed JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// A number without fraction that fits 32 bits, in Java an `Integer`.
    Int(i32),
    /// An integer that fits 64 bits, in Java a `Long`.
    Long(i64),
    /// A larger integer, as written.
    Big(String),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// A string.
    String(String),
    /// An array.
    List(Vec<Json>),
    /// An object: its entries in the order in which their keys first occurred.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// The simple name of the Java class of Jackson's value.
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

    /// The result of Java's `toString`.
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

/// The entries of an object, by key. A repeated key keeps its position and gets the new value.
pub(super) struct Entries<V> {
    /// In the order in which the keys first occurred; a removed entry leaves a hole.
    slots: Vec<Option<(String, V)>>,
    /// The index of each key, from `HASHED_FROM` entries on.
    by_key: HashMap<String, usize>,
}

/// The number of entries from which keys are looked up by hash instead of one by one.
const HASHED_FROM: usize = 8;

impl<V> Entries<V> {
    pub(super) fn new() -> Entries<V> {
        Entries { slots: Vec::new(), by_key: HashMap::new() }
    }

    fn place_of(&self, key: &str) -> Option<usize> {
        if self.slots.len() <= HASHED_FROM {
            return self.slots.iter().position(|entry| entry.as_ref().is_some_and(|(known, _)| known == key));
        }
        self.by_key.get(key).copied()
    }

    /// Adds an entry, or replaces the value of an existing key.
    pub(super) fn put(&mut self, key: String, value: V) {
        if let Some(known) = self.place_of(&key).and_then(|at| self.slots.get_mut(at)?.as_mut()) {
            known.1 = value;
            return;
        }
        if self.slots.len() == HASHED_FROM {
            let known = self.slots.iter().enumerate();
            self.by_key =
                known.filter_map(|(at, entry)| entry.as_ref().map(|(key, _)| (key.clone(), at))).collect();
        }
        if self.slots.len() >= HASHED_FROM {
            self.by_key.insert(key.clone(), self.slots.len());
        }
        self.slots.push(Some((key, value)));
    }

    /// Removes an entry and returns its value.
    pub(super) fn take(&mut self, key: &str) -> Option<V> {
        let at = self.place_of(key)?;
        self.by_key.remove(key);
        self.slots.get_mut(at)?.take().map(|(_, value)| value)
    }

    /// The entries in order.
    pub(super) fn into_vec(self) -> Vec<(String, V)> {
        self.slots.into_iter().flatten().collect()
    }
}
