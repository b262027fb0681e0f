//! Which watched tables have their changes recorded with the row before them.

use helenus_model::schema::Table;
use std::str::FromStr;

/// Tables by name: `keyspace.table`, or `keyspace` for all of its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowImages(Vec<(String, Option<String>)>);

/// Why a list of tables is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' names neither a table, as in shop.orders, nor a keyspace")]
pub struct RowImagesError {
    /// The part that is wrong.
    pub name: String,
}

impl RowImages {
    /// Whether no table is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether changes of a table are recorded so.
    pub fn wants(&self, table: &Table) -> bool {
        let is_named = |(keyspace, name): &(String, Option<String>)| {
            **keyspace == *table.keyspace && name.as_ref().is_none_or(|name| **name == *table.name)
        };
        table.options.cdc && self.0.iter().any(is_named)
    }
}

impl FromStr for RowImages {
    type Err = RowImagesError;

    /// Reads names with commas between them. Names are as the schema has them: in the case in which they were made.
    fn from_str(text: &str) -> Result<RowImages, RowImagesError> {
        let mut all = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (keyspace, table) = match name.split_once('.') {
                Some((keyspace, table)) => (keyspace, Some(table)),
                None => (name, None),
            };
            let is_good =
                |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_good(keyspace) || !table.is_none_or(is_good) {
                return Err(RowImagesError { name: name.to_owned() });
            }
            all.push((keyspace.to_owned(), table.map(str::to_owned)));
        }
        Ok(RowImages(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_and_keyspaces_are_read_and_others_refused() {
        assert!(RowImages::from_str("").is_ok_and(|images| images.is_empty()));
        let images = RowImages::from_str(" shop.orders, app ").unwrap();
        let named = |keyspace: &str, table: Option<&str>| (keyspace.to_owned(), table.map(str::to_owned));
        assert_eq!(images, RowImages(vec![named("shop", Some("orders")), named("app", None)]));
        for wrong in ["shop.", ".orders", "a.b.c", "a b", "*"] {
            let error = RowImages::from_str(&format!("app, {wrong}")).unwrap_err();
            assert_eq!(error.name, wrong);
        }
    }
}
