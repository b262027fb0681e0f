//! Reads the options inside a map of the configuration file: `client_encryption_options` and `audit_logging_options`.

use std::collections::BTreeMap;

use super::file::Yaml;
use super::settings::{ConfigError, HIDDEN};
use super::value::{Kind, Value};

/// One option of such a map.
#[derive(Clone, Copy)]
pub struct SubOption<'a> {
    /// The key of the map.
    pub map: &'static str,
    /// The option's own key.
    pub key: &'a str,
    /// Its value.
    pub value: &'a Yaml,
}

impl SubOption<'_> {
    /// The error of a value that the option does not take. It shows no password and no key.
    pub fn wrong(&self, allowed: &str) -> ConfigError {
        let is_of_tls = self.map == "client_encryption_options";
        let is_scalar = matches!(self.value, Yaml::Null | Yaml::Scalar(_));
        let is_secret =
            is_of_tls && !is_scalar || self.key.contains("password") || self.key == "ssl_context_factory";
        ConfigError::WrongValue {
            name: format!("{}.{}", self.map, self.key),
            value: if is_secret { HIDDEN.to_owned() } else { self.value.shown() },
            allowed: allowed.to_owned(),
        }
    }

    /// The error of a key that the map does not have.
    pub fn unknown(&self, keys: &str) -> ConfigError {
        ConfigError::WrongValue {
            name: self.map.to_owned(),
            value: self.key.to_owned(),
            allowed: format!("the keys {keys}"),
        }
    }

    /// A text.
    pub fn scalar(&self) -> Result<String, ConfigError> {
        match self.value {
            Yaml::Scalar(text) => Ok(text.clone()),
            _ => Err(self.wrong("a text")),
        }
    }

    /// true or false.
    pub fn boolean(&self) -> Result<bool, ConfigError> {
        match Kind::Boolean.parse(&self.value.text()) {
            Some(Value::Boolean(yes)) => Ok(yes),
            _ => Err(self.wrong("true or false")),
        }
    }
}

/// A class, or `class_name` and `parameters`, each of which may be in a list of one (`ParameterizedClass`).
pub fn class_and_parameters(value: &Yaml) -> Option<(String, Option<&BTreeMap<String, Yaml>>)> {
    let (class, parameters) = match value {
        Yaml::Scalar(class) => return Some((class.clone(), None)),
        Yaml::Map(map) => (map.get("class_name")?.text(), map.get("parameters")),
        Yaml::List(items) => match items.as_slice() {
            [one] => return class_and_parameters(one),
            _ => return None,
        },
        Yaml::Null => return None,
    };
    let parameters = match parameters {
        Some(Yaml::Map(map)) => Some(map),
        Some(Yaml::List(items)) => match items.as_slice() {
            [Yaml::Map(map)] => Some(map),
            [] => None,
            _ => return None,
        },
        Some(Yaml::Scalar(_)) => return None,
        Some(Yaml::Null) | None => None,
    };
    Some((class, parameters))
}
