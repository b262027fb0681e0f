//! Reads YAML as Cassandra's configuration uses it: a map of scalars, lists and maps, with every scalar as text.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yaml {
    /// Nothing after the colon, or `null`.
    Null,
    /// A scalar as text: `true`, `16`, `10s`.
    Scalar(String),
    /// A list.
    List(Vec<Yaml>),
    /// A map.
    Map(BTreeMap<String, Yaml>),
}

impl Yaml {
    /// Parses a file's text. A file of nothing but comments is an empty map.
    pub fn read(text: &str) -> Result<BTreeMap<String, Yaml>, serde_saphyr::Error> {
        let map: Option<BTreeMap<String, Yaml>> = serde_saphyr::from_str(text)?;
        Ok(map.unwrap_or_default())
    }

    /// The value as shown in errors.
    pub fn text(&self) -> String {
        match self {
            Yaml::Null => "null".to_owned(),
            Yaml::Scalar(text) => text.clone(),
            Yaml::List(items) => {
                let items: Vec<_> = items.iter().map(Yaml::text).collect();
                format!("[{}]", items.join(", "))
            }
            Yaml::Map(map) => {
                let entries: Vec<_> =
                    map.iter().map(|(key, value)| format!("{key}: {}", value.text())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Yaml, D::Error> {
        deserializer.deserialize_any(AnyYaml)
    }
}

struct AnyYaml;

impl<'de> Visitor<'de> for AnyYaml {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        Yaml::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Yaml, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Yaml::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(Yaml::Map(map))
    }
}
