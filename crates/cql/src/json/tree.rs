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

    /// The result of Java's `toString`. Of arrays and objects it is cut at about `SHOWN_BYTES_MAX`: it is for errors.
    pub(crate) fn java_text(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Boolean(value) => value.to_string(),
            Json::Int(value) => value.to_string(),
            Json::Long(value) => value.to_string(),
            Json::Big(text) | Json::String(text) => text.clone(),
            Json::Double(value) => to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes())),
            Json::List(items) => {
                format!("[{}]", listed(items.iter().map(Json::java_text)))
            }
            Json::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}={}", value.java_text()));
                format!("{{{}}}", listed(entries))
            }
        }
    }
}

/// The bytes of an array or an object in an error after which the rest is left out.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// Texts with commas between them.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for text in texts {
        out.push_str(if out.is_empty() { "" } else { ", " });
        out.push_str(shown(&text));
        if out.len() > SHOWN_BYTES_MAX {
            out.push_str(", ..");
            break;
        }
    }
    out
}

/// The beginning of a text, for errors: a client's document may have megabytes.
pub(crate) fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX)).unwrap_or(text)
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

    /// The bytes that `put` takes for an entry of this key: its copies, and lists that double.
    pub(super) fn room_for(&self, key: &str) -> usize {
        let doubles = self.slots.len() == self.slots.capacity();
        let place = size_of::<Option<(String, V)>>() + 2 * size_of::<(String, usize)>();
        2 * key.len() + if doubles { 2 * (self.slots.len() + HASHED_FROM) * place } else { 0 }
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
