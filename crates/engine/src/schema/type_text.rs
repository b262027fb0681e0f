//! Converts types to and from their text in `system_schema`: `frozen<map<text, blob>>`, `vector<float, 3>`,
//! `'java.class'`.

use helenus_model::types::{CqlType, UserType};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A type's text in `system_schema`. If the CQL name would be read as another type, it is the class in quotes.
/// Cassandra writes a `DateType` as `timestamp`, and reads it as that from its next start on; the two types sort times
/// before 1970 differently.
pub fn type_text(ty: &CqlType, keyspace: &str, types: &BTreeMap<Arc<str>, Arc<UserType>>) -> String {
    let text = ty.to_string();
    match parse_type(&text, keyspace, types) {
        Some(read) if read.is_stored_as(ty) => text,
        _ => format!("'{}'", ty.class_name()),
    }
}

/// Parses a type's text. `types` are the user-defined types of `keyspace`. `None` if the text is not a type.
pub fn parse_type(text: &str, keyspace: &str, types: &BTreeMap<Arc<str>, Arc<UserType>>) -> Option<CqlType> {
    let mut parser = Parser { rest: text, keyspace, types };
    let ty = parser.ty(false)?;
    parser.rest.trim().is_empty().then_some(ty)
}

struct Parser<'a> {
    rest: &'a str,
    keyspace: &'a str,
    types: &'a BTreeMap<Arc<str>, Arc<UserType>>,
}

impl Parser<'_> {
    fn ty(&mut self, frozen: bool) -> Option<CqlType> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix('\'') {
            let (class, after) = rest.split_once('\'')?;
            self.rest = after;
            return Some(CqlType::from_class_name(class).unwrap_or_else(|_| CqlType::Custom(class.into())));
        }
        let name = self.name()?;
        if !self.take('<') {
            return scalar(&name).or_else(|| self.user_type(&name, frozen));
        }
        let ty = match &*name.to_ascii_lowercase() {
            "frozen" => self.ty(true)?,
            "list" => CqlType::List { element: self.shared()?, frozen },
            "set" => CqlType::Set { element: self.shared()?, frozen },
            "map" => {
                let key = self.shared()?;
                self.take(',').then_some(())?;
                CqlType::Map { key, value: self.shared()?, frozen }
            }
            "tuple" => {
                let mut fields = vec![self.ty(true)?];
                while self.take(',') {
                    fields.push(self.ty(true)?);
                }
                CqlType::Tuple(fields.into())
            }
            "vector" => {
                // The element of a vector is not frozen implicitly: it is what it is declared as.
                let element = self.ty(false)?.into();
                self.take(',').then_some(())?;
                CqlType::Vector { element, dimension: self.name()?.parse().ok()? }
            }
            _ => return None,
        };
        self.take('>').then_some(ty)
    }

    fn shared(&mut self) -> Option<Arc<CqlType>> {
        // An element of a collection is a single value, so it is frozen even if not written so.
        self.ty(true).map(Arc::new)
    }

    fn user_type(&self, name: &str, frozen: bool) -> Option<CqlType> {
        let found = self.types.get(name)?;
        debug_assert_eq!(&*found.keyspace, self.keyspace);
        let ty = CqlType::Udt(Arc::new(UserType { frozen: false, ..(**found).clone() }));
        Some(if frozen { ty.freeze() } else { ty })
    }

    fn name(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        if let Some(quoted) = self.rest.strip_prefix('"') {
            let mut name = String::new();
            let mut rest = quoted;
            loop {
                let (part, after) = rest.split_once('"')?;
                name.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        rest = more;
                    }
                    None => {
                        self.rest = after;
                        return Some(name);
                    }
                }
            }
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then(|| name.to_string())
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn scalar(name: &str) -> Option<CqlType> {
    Some(match &*name.to_ascii_lowercase() {
        "ascii" => CqlType::Ascii,
        "bigint" => CqlType::BigInt,
        "blob" => CqlType::Blob,
        "boolean" => CqlType::Boolean,
        "counter" => CqlType::Counter,
        "date" => CqlType::Date,
        "decimal" => CqlType::Decimal,
        "double" => CqlType::Double,
        "duration" => CqlType::Duration,
        "empty" => CqlType::Empty,
        "float" => CqlType::Float,
        "inet" => CqlType::Inet,
        "int" => CqlType::Int,
        "smallint" => CqlType::SmallInt,
        "text" | "varchar" => CqlType::Text,
        "time" => CqlType::Time,
        "timestamp" => CqlType::Timestamp,
        "timeuuid" => CqlType::TimeUuid,
        "tinyint" => CqlType::TinyInt,
        "uuid" => CqlType::Uuid,
        "varint" => CqlType::Varint,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_types_are_read_and_nonsense_is_not() {
        let read = |text| parse_type(text, "ks", &BTreeMap::new());
        let blob_map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Blob.into(), frozen: true };
        assert_eq!(read("frozen<map<text, blob>>"), Some(blob_map.clone()));
        assert_eq!(
            read("list<frozen<map<text, blob>>>"),
            Some(CqlType::List { element: blob_map.into(), frozen: false })
        );
        assert_eq!(
            read("vector<float, 3>"),
            Some(CqlType::Vector { element: CqlType::Float.into(), dimension: 3 })
        );
        for nonsense in ["", "nothing", "list<", "list<int", "map<int>", "int int", "frozen<>", "\"open"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
