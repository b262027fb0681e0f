//! The properties after WITH, as texts and maps (`PropertyDefinitions`).

use crate::error::{CqlError, Result};
use crate::syntax::SyntaxError;
use crate::syntax::ast::{Property, PropertyValue};
use std::collections::BTreeMap;

/// The properties of one statement.
pub(super) struct Properties {
    values: BTreeMap<String, Value>,
}

enum Value {
    Text(String),
    Map(BTreeMap<String, String>),
}

/// An error that Cassandra reports as a syntax error although the grammar accepts the text.
pub(super) fn syntax_error(message: String) -> CqlError {
    CqlError::Syntax(SyntaxError { line: 0, column: -1, offset: 0, message })
}

impl Properties {
    /// The properties of a statement.
    pub(super) fn new(properties: &[Property<'_>]) -> Properties {
        let value = |value: &PropertyValue<'_>| match value {
            PropertyValue::Literal(literal) => Value::Text(literal.text.to_string()),
            PropertyValue::Word(word, _) => Value::Text(word.to_string()),
            PropertyValue::Map(pairs, _) => {
                Value::Map(pairs.iter().map(|(k, v)| (k.text.to_string(), v.text.to_string())).collect())
            }
        };
        let values = properties.iter().map(|p| (p.name.as_str().to_owned(), value(&p.value))).collect();
        Properties { values }
    }

    /// Removes entries from a property that is a map, and the property itself if none is left.
    pub(super) fn take_from_map(
        &mut self,
        name: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, String)> {
        let Some(Value::Map(map)) = self.values.get_mut(name) else { return Vec::new() };
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(map).into_iter().partition(|(key, _)| wanted(key));
        *map = left.into_iter().collect();
        if map.is_empty() && !taken.is_empty() {
            self.values.remove(name);
        }
        taken
    }

    /// Rejects names that are not in `known`.
    pub(super) fn check_names(&self, known: &[&str]) -> Result<()> {
        match self.values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(syntax_error(format!("Unknown property '{name}'"))),
            None => Ok(()),
        }
    }

    /// Whether a property is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Map(_)) => {
                Err(syntax_error(format!("Invalid value for property '{name}'. It should be a string")))
            }
        }
    }

    pub(super) fn map(&self, name: &str) -> Result<Option<&BTreeMap<String, String>>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map)),
            Some(Value::Text(_)) => {
                Err(syntax_error(format!("Invalid value for property '{name}'. It should be a map.")))
            }
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(Some(true)),
            "0" | "false" | "no" => Ok(Some(false)),
            _ => Err(syntax_error(format!(
                "Invalid boolean value {text} for '{name}'. Positive values can be '1', 'true' or 'yes'. Negative \
                 values can be '0', 'false' or 'no'."
            ))),
        }
    }

    pub(super) fn int(&self, name: &str) -> Result<Option<i32>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| syntax_error(format!("Invalid integer value {text} for '{name}'")))
    }

    pub(super) fn double(&self, name: &str) -> Result<Option<f64>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parsed = text.trim().parse().map(Some);
        parsed.map_err(|_| syntax_error(format!("Invalid double value {text} for '{name}'")))
    }
}
