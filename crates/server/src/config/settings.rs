//! The settings of file and command line by key, without defaults, checked against the table of options.

use std::collections::BTreeMap;

use super::audit::audit_options;
use super::cassandra_keys::{Guarded, NoEffect, REFUSED_KEYS, names_without_effect, without_effect};
use super::encryption::encryption_options;
use super::file::{Yaml, line_of};
use super::options::{OPTIONS, OptionSpec, option};
use super::value::{Kind, Value};
use crate::similar;

/// Stands for a value in errors that may have a password.
pub(super) const HIDDEN: &str = "its value";

/// Why a configuration is refused. The text states what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not YAML, or not a map.
    #[error("{problem}")]
    Yaml {
        /// What is wrong, and what is expected.
        problem: String,
    },
    /// Another error, with its place.
    #[error("{place}: {error}")]
    At {
        /// File and line, or the option of the command line.
        place: String,
        /// What is wrong there.
        error: Box<ConfigError>,
    },
    /// A key that neither Helenus nor Cassandra 5.0 knows.
    #[error(
        "unknown key {key}; {}",
        nearest.map_or_else(|| "docs/book/options.md lists all keys".to_owned(), |key| format!("did you mean {key}?"))
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// The most similar known key.
        nearest: Option<&'static str>,
    },
    /// A value that the option does not take.
    #[error("{name}: {value} is not allowed; it takes {allowed}")]
    WrongValue {
        /// Key or flag.
        name: String,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Several data directories.
    #[error("data_file_directories: {count} directories are given; several are not built yet, give one")]
    SeveralDirectories {
        /// How many.
        count: usize,
    },
    /// A key that would reduce safety or widen access if it were ignored.
    #[error("{key}: {value} is not supported: {reason}; remove the key to go on without it")]
    Guarded {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is missing.
        reason: &'static str,
    },
    /// A key and its older name in one file.
    #[error("{old} is the earlier name of {key}; give one of them")]
    Twice {
        /// The older name.
        old: String,
        /// The key.
        key: &'static str,
    },
    /// An option that another one needs.
    #[error("{key} is not set: {reason}")]
    Missing {
        /// The option.
        key: &'static str,
        /// Who needs it, and what to give.
        reason: &'static str,
    },
    /// Options that contradict each other.
    #[error("{first} and {second} do not go together: {reason}")]
    Conflict {
        /// One option.
        first: &'static str,
        /// The other option.
        second: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A host name without an address.
    #[error("{key}: no address for {host}: {source}; give an IP address")]
    NoAddress {
        /// The key.
        key: &'static str,
        /// The name.
        host: String,
        /// Why.
        source: std::io::Error,
    },
}

impl ConfigError {
    /// The error without a value that stands on several lines of the file: YAML takes an indented line to the value before it, and that
    /// line may have a password.
    fn without_other_lines(mut self, file: &str) -> ConfigError {
        if let ConfigError::WrongValue { value, .. } | ConfigError::Guarded { value, .. } = &mut self {
            let is_one_scalar = !value.starts_with(['[', '{']);
            if is_one_scalar && !file.lines().any(|line| line.contains(&**value)) {
                HIDDEN.clone_into(value);
            }
        }
        self
    }
}

/// Values by key, from a file and the command line. The command line has precedence.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
    from_flags: BTreeMap<&'static str, Value>,
    /// Keys of the file without effect, sorted by name.
    pub without_effect: Vec<(String, NoEffect)>,
}

impl Settings {
    /// Sets a value from the command line.
    ///
    /// # Errors
    /// The option does not take the value.
    ///
    /// # Panics
    /// If there is no such option, because flags are made from the table.
    pub fn set_flag(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        let Some(option) = option(key) else { panic!("no option {key} in the table") };
        let name = option.flag.map_or_else(|| key.to_owned(), |flag| format!("--{flag}"));
        let value = parse_own(option, name, text)?;
        self.from_flags.insert(option.key, value);
        Ok(())
    }

    /// Sets a value from `KEY=VALUE`, with precedence over the file.
    ///
    /// # Errors
    /// No such key, or the option does not take the value.
    pub fn set_key(&mut self, text: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = text.split_once('=') else {
            let (name, value) = ("--set".to_owned(), HIDDEN.to_owned());
            return Err(ConfigError::WrongValue { name, value, allowed: "KEY=VALUE".to_owned() });
        };
        let Some(option) = option(key) else {
            let error = ConfigError::UnknownKey { nearest: nearest(key), key: key.to_owned() };
            return Err(ConfigError::At { place: "--set".to_owned(), error: Box::new(error) });
        };
        let value = parse_own(option, key.to_owned(), value)?;
        self.from_flags.insert(option.key, value);
        Ok(())
    }

    /// Reads all keys of a file's text. `file` is its name for errors.
    ///
    /// # Errors
    /// The first problem.
    pub fn read_yaml(&mut self, file: &str, text: &str) -> Result<(), ConfigError> {
        let at = |line: Option<usize>, error| {
            let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
            ConfigError::At { place, error: Box::new(error) }
        };
        let yaml = |(line, problem)| at(line, ConfigError::Yaml { problem });
        for (key, value) in Yaml::read(text).map_err(yaml)? {
            self.take(&key, &value)
                .map_err(|error| at(line_of(text, &key), error.without_other_lines(text)))?;
        }
        Ok(())
    }

    fn take(&mut self, key: &str, value: &Yaml) -> Result<(), ConfigError> {
        if refuse_guarded(key, value)? {
            return Ok(());
        }
        let is_old = |option: &&OptionSpec| option.old.iter().any(|(old, _)| *old == key);
        let old = OPTIONS.iter().find(is_old);
        let Some(found) = option(key).or(old) else {
            let Some(why) = without_effect(key) else {
                return Err(ConfigError::UnknownKey { key: key.to_owned(), nearest: nearest(key) });
            };
            self.without_effect.push((key.to_owned(), why));
            return Ok(());
        };
        if let (Kind::Encryption, Yaml::Map(map)) = (found.kind, value) {
            let options = Value::Encryption(Box::new(encryption_options(map)?));
            self.values.insert(found.key, options);
            return Ok(());
        }
        if let (Kind::Audit, Yaml::Map(map)) = (found.kind, value) {
            self.values.insert(found.key, Value::Audit(Box::new(audit_options(map)?)));
            return Ok(());
        }
        if found.key == "cidr_authorizer" {
            self.take_parameters(value)?;
        }
        let text = match value {
            // In Cassandra, a key without a value means the default.
            Yaml::Null => return Ok(()),
            Yaml::List(items) if found.key == "data_file_directories" => match items.as_slice() {
                [] => return Ok(()),
                [Yaml::Scalar(one)] => one.clone(),
                [other] => return Err(wrong(found, key.to_owned(), other.shown())),
                several => return Err(ConfigError::SeveralDirectories { count: several.len() }),
            },
            Yaml::Scalar(text) => text.clone(),
            Yaml::List(items) if found.kind == Kind::Words => {
                items.iter().map(Yaml::text).collect::<Vec<_>>().join(",")
            }
            Yaml::Map(_) | Yaml::List(_) if matches!(found.kind, Kind::Class(_)) => {
                class_name(value).ok_or_else(|| wrong(found, key.to_owned(), value.shown()))?
            }
            Yaml::List(_) | Yaml::Map(_) => return Err(wrong(found, key.to_owned(), value.shown())),
        };
        if found.key == "authenticator"
            && let Some(validator) = parameter(value, "validator_class_name")
        {
            let (key, name) = ("certificate_validator", "authenticator.parameters.validator_class_name");
            if let Some(option) = option(key) {
                self.values.insert(option.key, parse(option, name.to_owned(), &validator)?);
            }
        }
        let unit = found.old.iter().find(|(old, _)| *old == key).map(|(_, unit)| *unit);
        let with_unit = match unit {
            Some("") => text,
            Some(unit) if text.bytes().all(|byte| byte.is_ascii_digit()) => format!("{text}{unit}"),
            Some(unit) => {
                return Err(ConfigError::WrongValue {
                    name: key.to_owned(),
                    value: text,
                    allowed: format!("a whole number of {unit}; its newer name is {}", found.key),
                });
            }
            None => text,
        };
        let value = match found.is_own() {
            true => parse_own(found, key.to_owned(), &with_unit)?,
            false => parse(found, key.to_owned(), &with_unit)?,
        };
        if self.values.insert(found.key, value).is_some() {
            let old = found.old.iter().map(|(old, _)| (*old).to_owned()).next().unwrap_or_default();
            return Err(ConfigError::Twice { old, key: found.key });
        }
        Ok(())
    }

    /// Takes the parameters of `cidr_authorizer`, which are keys of their own here.
    fn take_parameters(&mut self, value: &Yaml) -> Result<(), ConfigError> {
        for (key, value) in parameters(value).into_iter().flatten() {
            match key.as_str() {
                "cidr_authorizer_mode"
                | "cidr_checks_for_superusers"
                | "cidr_groups_cache_refresh_interval" => self.take(key, value)?,
                // The groups of an address are found each time.
                "ip_cache_max_size" => {}
                _ => {
                    return Err(ConfigError::WrongValue {
                        name: "cidr_authorizer".to_owned(),
                        value: key.clone(),
                        allowed: "the parameters cidr_authorizer_mode, cidr_checks_for_superusers, \
                                  cidr_groups_cache_refresh_interval, ip_cache_max_size"
                            .to_owned(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The value of `key`, if one was given.
    pub fn get(&self, key: &str) -> Option<&Value> {
        debug_assert!(option(key).is_some(), "no option {key} in the table");
        self.from_flags.get(key).or_else(|| self.values.get(key))
    }

    /// The keys whose values differ from those of another reading.
    pub fn differences(&self, other: &Settings) -> Vec<&'static str> {
        let keys = OPTIONS.iter().map(|option| option.key);
        keys.filter(|key| self.get(key) != other.get(key)).collect()
    }

    /// Takes the value of `key`, or its absence, from another reading.
    pub fn take_over(&mut self, key: &'static str, other: &Settings) {
        let take = |to: &mut BTreeMap<&'static str, Value>, from: &BTreeMap<&'static str, Value>| {
            match from.get(key) {
                Some(value) => to.insert(key, value.clone()),
                None => to.remove(key),
            };
        };
        take(&mut self.values, &other.values);
        take(&mut self.from_flags, &other.from_flags);
    }

    /// Whether `key` was given on the command line.
    pub(super) fn has_flag(&self, key: &str) -> bool {
        self.from_flags.contains_key(key)
    }
}

/// Parses the value of a flag or of a key of our own.
fn parse_own(option: &OptionSpec, name: String, text: &str) -> Result<Value, ConfigError> {
    let wrong = || {
        let value = if option.kind == Kind::Encryption { HIDDEN } else { text };
        ConfigError::WrongValue { name, value: value.to_owned(), allowed: option.kind.allowed_own() }
    };
    option.kind.parse_own(text).ok_or_else(wrong)
}

pub(super) fn parse(option: &OptionSpec, name: String, text: &str) -> Result<Value, ConfigError> {
    option.kind.parse(text).ok_or_else(|| wrong(option, name, text.to_owned()))
}

fn wrong(option: &OptionSpec, name: String, value: String) -> ConfigError {
    let allowed = if option.is_own() { option.kind.allowed_own() } else { option.kind.allowed() };
    // Nothing of `client_encryption_options` is shown: passwords of key stores are among its values.
    let value = if option.kind == Kind::Encryption { HIDDEN.to_owned() } else { value };
    ConfigError::WrongValue { name, value, allowed }
}

/// The class of a map `class_name`, `parameters`, or of a list of one such map (`ParameterizedClass`).
fn class_name(value: &Yaml) -> Option<String> {
    match value {
        Yaml::Map(map) => map.get("class_name").map(Yaml::text),
        Yaml::List(items) => match items.as_slice() {
            [one] => class_name(one),
            _ => None,
        },
        Yaml::Null | Yaml::Scalar(_) => None,
    }
}

/// A parameter of such a map, whose parameters are a map or a list of one.
fn parameter(value: &Yaml, name: &str) -> Option<String> {
    parameters(value)?.get(name).map(Yaml::text)
}

/// The parameters of a class, which may be a map or a list of one.
fn parameters(value: &Yaml) -> Option<&BTreeMap<String, Yaml>> {
    match value {
        Yaml::Map(map) => match map.get("parameters")? {
            Yaml::Map(parameters) => Some(parameters),
            Yaml::List(items) => match items.as_slice() {
                [Yaml::Map(parameters)] => Some(parameters),
                _ => None,
            },
            Yaml::Null | Yaml::Scalar(_) => None,
        },
        Yaml::List(items) => items.first().and_then(parameters),
        Yaml::Null | Yaml::Scalar(_) => None,
    }
}

/// Refuses a guarded key with a value that is not harmless; returns whether the key is guarded.
fn refuse_guarded(key: &str, value: &Yaml) -> Result<bool, ConfigError> {
    let mut is_guarded = false;
    for guarded in REFUSED_KEYS {
        let (name, field) = guarded.key.split_once('.').map_or((guarded.key, None), |(k, f)| (k, Some(f)));
        if name != key {
            continue;
        }
        is_guarded = true;
        let value = match (field, value) {
            (Some(field), Yaml::Map(map)) => map.get(field).unwrap_or(&Yaml::Null),
            (_, value) => value,
        };
        check_guarded(guarded, value)?;
    }
    Ok(is_guarded)
}

fn check_guarded(guarded: &'static Guarded, value: &Yaml) -> Result<(), ConfigError> {
    // `authenticator: X` and `authenticator: {class_name: X}` are equivalent.
    let class = class_name(value);
    let text = match value {
        Yaml::Null => return Ok(()),
        other => class.clone().unwrap_or_else(|| other.text()),
    };
    let lower = text.to_ascii_lowercase();
    let last = lower.rsplit('.').next().unwrap_or_default();
    if guarded.harmless.contains(&last) {
        return Ok(());
    }
    Err(ConfigError::Guarded {
        key: guarded.key,
        value: class.unwrap_or_else(|| value.shown()),
        reason: guarded.reason,
    })
}

/// The known key that was probably meant.
fn nearest(key: &str) -> Option<&'static str> {
    let guarded = REFUSED_KEYS.iter().map(|guarded| guarded.key.split('.').next().unwrap_or_default());
    let old = OPTIONS.iter().flat_map(|option| option.old.iter().map(|(old, _)| *old));
    let known = OPTIONS.iter().map(|option| option.key).chain(guarded).chain(old);
    similar::nearest(key, known.chain(names_without_effect().map(|(name, _)| name)))
}
