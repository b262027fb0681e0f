//! Suggests a name that exists in place of one that the server does not know.
//!
//! The server's errors have Cassandra's texts, which drivers and their tests read, so the suggestion is the shell's own. It
//! knows the texts of Helenus and of Cassandra 3.0 to 5.0.

use super::catalog::Keyspace;
use helenus_model::types::quote_identifier;
use helenus_server::similar::nearest;
use std::collections::BTreeMap;

type Keyspaces = BTreeMap<String, Keyspace>;

/// What an unknown name would be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Keyspace,
    Table,
    Column,
}

/// The texts before an unknown name.
const BEFORE: [(&str, Kind); 9] = [
    ("Undefined column name ", Kind::Column),
    ("Column with name ", Kind::Column),
    ("Unknown column ", Kind::Column),
    ("Unknown identifier ", Kind::Column),
    ("unconfigured table ", Kind::Table),
    ("unconfigured columnfamily ", Kind::Table),
    ("Table ", Kind::Table),
    ("table ", Kind::Table),
    ("eyspace ", Kind::Keyspace),
];
/// Words of which one stands in each of these errors.
const UNKNOWN: [&str; 6] = [
    "does not exist",
    "doesn't exist",
    "Undefined column",
    "unconfigured",
    "Unknown column",
    "Unknown identifier",
];

/// The question to ask after an error, if a similar name exists. `current` is the keyspace of unqualified names.
pub fn suggestion(
    error: &str,
    statement: &str,
    keyspaces: &Keyspaces,
    current: Option<&str>,
) -> Option<String> {
    if !UNKNOWN.iter().any(|words| error.contains(words)) {
        return None;
    }
    let (kind, rest) = BEFORE.iter().find_map(|(before, kind)| Some((*kind, error.split_once(before)?.1)))?;
    let unknown = first_name(rest);
    let (of, name) = unknown.split_once('.').map_or((None, unknown.as_str()), |(of, name)| (Some(of), name));
    let keyspace = of.or_else(|| qualifier(statement, name)).or(current);
    let meant = match kind {
        Kind::Keyspace => quoted(nearest(&unknown, keyspaces.keys().map(String::as_str))?),
        Kind::Table => table(name, keyspace, keyspaces)?,
        Kind::Column => {
            // The table stands in the error, or else anywhere in the statement.
            let in_error = rest.split_once("table ").map(|(_, table)| first_name(table));
            let columns = columns(in_error.as_deref(), statement, (keyspaces, current))?;
            quoted(nearest(name, columns.into_iter())?)
        }
    };
    Some(format!("did you mean {meant}?"))
}

/// The name as statements have it.
fn quoted(name: &str) -> String {
    quote_identifier(name).into_owned()
}

/// A table of the keyspace with a similar name, or one of the same name in another keyspace.
fn table(name: &str, keyspace: Option<&str>, keyspaces: &Keyspaces) -> Option<String> {
    let here = keyspace.and_then(|keyspace| keyspaces.get(keyspace));
    let similar = here.and_then(|here| nearest(name, here.tables.keys().map(String::as_str)));
    let elsewhere = || {
        let (keyspace, _) = keyspaces.iter().find(|(_, found)| found.tables.contains_key(name))?;
        Some(format!("{}.{}", quote_identifier(keyspace), quote_identifier(name)))
    };
    similar.map(quoted).or_else(elsewhere)
}

fn columns<'k>(
    in_error: Option<&str>,
    statement: &str,
    (keyspaces, current): (&'k Keyspaces, Option<&str>),
) -> Option<Vec<&'k str>> {
    let is_named = |keyspace: &str, table: &str| match in_error {
        Some(named) => named == table || named.split_once('.') == Some((keyspace, table)),
        None => {
            let is_here = current == Some(keyspace) || statement.contains(&format!("{keyspace}."));
            is_here && words(statement).any(|word| word == table)
        }
    };
    let tables = keyspaces.iter().flat_map(|(keyspace, found)| {
        found.tables.iter().map(move |(name, columns)| (keyspace.as_str(), name.as_str(), columns))
    });
    // The keyspace in use wins over others with a table of this name.
    let mut fitting: Vec<_> = tables.filter(|(keyspace, table, _)| is_named(keyspace, table)).collect();
    fitting.sort_by_key(|(keyspace, ..)| current != Some(keyspace));
    fitting.first().map(|(.., columns)| columns.iter().map(|column| column.name.as_str()).collect())
}

/// The name at the begin of a text, qualified or not, without its quotes.
fn first_name(text: &str) -> String {
    let is_part = |letter: &char| letter.is_alphanumeric() || "_.'\"".contains(*letter);
    let name: String = text.chars().take_while(is_part).filter(|letter| !"'\"".contains(*letter)).collect();
    name.trim_end_matches('.').to_owned()
}

/// The keyspace that a statement names before a table.
fn qualifier<'s>(statement: &'s str, table: &str) -> Option<&'s str> {
    let mut words = words(statement).peekable();
    while let Some(word) = words.next() {
        let is_before = words.peek().is_some_and(|next| next.eq_ignore_ascii_case(table));
        if is_before && statement.contains(&format!("{word}.")) {
            return Some(word);
        }
    }
    None
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::catalog::{Column, Role};
    use super::*;

    fn keyspaces() -> Keyspaces {
        let column = |name: &str| Column {
            name: name.to_owned(),
            role: Role::Regular,
            position: 0,
            ty: "text".to_owned(),
        };
        let mut feed = Keyspace::default();
        feed.tables.insert("timeline".to_owned(), ["user", "at", "event"].map(column).to_vec());
        feed.tables.insert("Mixed".to_owned(), vec![column("Key")]);
        let mut shop = Keyspace::default();
        shop.tables.insert("orders".to_owned(), ["id", "total"].map(column).to_vec());
        BTreeMap::from([("feed".to_owned(), feed), ("shop".to_owned(), shop)])
    }

    #[test]
    fn a_name_that_exists_is_suggested_for_each_kind_of_name() {
        for (error, statement, current, meant) in [
            ("table timelin does not exist", "SELECT * FROM feed.timelin", None, "timeline"),
            ("table timelin does not exist", "SELECT * FROM timelin", Some("feed"), "timeline"),
            ("unconfigured table tmieline", "SELECT * FROM feed.tmieline", None, "timeline"),
            ("Table 'feed.timelines' doesn't exist", "DROP TABLE feed.timelines", None, "timeline"),
            ("table mixed does not exist", "SELECT * FROM feed.mixed", None, "\"Mixed\""),
            ("table orders does not exist", "SELECT * FROM orders", Some("feed"), "shop.orders"),
            ("keyspace feeed does not exist", "SELECT * FROM feeed.timeline", None, "feed"),
            ("Keyspace 'shopp' doesn't exist", "DROP KEYSPACE shopp", None, "shop"),
            (
                "Undefined column name evnt in table feed.timeline",
                "SELECT evnt FROM feed.timeline",
                None,
                "event",
            ),
            ("Undefined column name evnt", "SELECT evnt FROM feed.timeline", None, "event"),
            ("Unknown identifier totl", "UPDATE orders SET totl = 1", Some("shop"), "total"),
            (
                "Undefined column name key in table feed.\"Mixed\"",
                "SELECT key FROM feed.\"Mixed\"",
                None,
                "\"Key\"",
            ),
        ] {
            let found = suggestion(error, statement, &keyspaces(), current);
            assert_eq!(found, Some(format!("did you mean {meant}?")), "{error}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_other_errors_and_other_words() {
        for (error, statement) in [
            ("table zebra does not exist", "SELECT * FROM feed.zebra"),
            ("Undefined column name zebra in table feed.timeline", "SELECT zebra FROM feed.timeline"),
            ("Some partition key parts are missing: user", "INSERT INTO feed.timeline (at) VALUES (1)"),
            ("Role evnt doesn't exist", "DROP ROLE evnt"),
            ("", ""),
            ("table ", ""),
            ("table  does not exist", ""),
        ] {
            assert_eq!(suggestion(error, statement, &keyspaces(), Some("feed")), None, "{error}");
        }
    }
}
