//! Completion: the words that may follow the text before the cursor.

use super::super::catalog::{Keyspace, Table};
use super::super::copy::OPTION_NAMES;
use super::super::help;
use super::super::interpreter::expand_home;
use super::super::statement::take_apart;
use super::keywords;
use helenus_model::types::quote_identifier;
use std::collections::BTreeMap;

/// A possible completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub shown: String,
    pub inserted: String,
}

type Keyspaces = BTreeMap<String, Keyspace>;

/// The offset where the word under the cursor begins, and the candidates to replace it.
pub fn completions(
    line: &str,
    pos: usize,
    keyspaces: &Keyspaces,
    current: Option<&str>,
) -> (usize, Vec<Candidate>) {
    let before = line.get(..pos).unwrap_or(line);
    let begin = take_apart(before)
        .open
        .unwrap_or_else(|| before.trim_end().len().max(before.rfind(';').map_or(0, |at| at + 1)));
    let statement = before.get(begin..).unwrap_or_default();
    if let Some(start) = open_text(statement) {
        let typed = statement.get(start..).unwrap_or_default();
        let takes_file = tokens(statement.get(..start - 1).unwrap_or_default());
        let found = match takes_file.first().map(|word| word.to_ascii_uppercase()).as_deref() {
            Some("SOURCE" | "CAPTURE" | "COPY") => files(typed),
            _ => Vec::new(),
        };
        return (begin + start, found);
    }
    let partial_at = partial_start(statement);
    let partial = statement.get(partial_at..).unwrap_or_default();
    let words_before = tokens(statement.get(..partial_at).unwrap_or_default());
    let whole = tokens(line.get(begin..).unwrap_or_default());
    let scene = Scene { words: &words_before, whole: &whole, keyspaces, current };
    let mut found: Vec<Candidate> =
        scene.offers().into_iter().filter_map(|offer| offer.fits(partial)).collect();
    found.sort_by(|a, b| a.shown.cmp(&b.shown));
    found.dedup();
    (begin + partial_at, found)
}

/// The offset behind the quote of an unclosed text, if there is one.
fn open_text(statement: &str) -> Option<usize> {
    let quotes: Vec<usize> = statement.match_indices('\'').map(|(at, _)| at).collect();
    match quotes.len() % 2 {
        0 => None,
        _ => quotes.last().map(|at| at + 1),
    }
}

/// The offset of the word that the statement ends with.
fn partial_start(statement: &str) -> usize {
    let tail = statement.trim_end_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
    tail.strip_suffix(['"', '\\']).map_or(tail.len(), str::len)
}

/// Splits a text into words and single punctuation characters.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => rest.get(1..).and_then(|inner| inner.find(first)).map_or(rest.len(), |end| end + 2),
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        found.push(rest.get(..length).unwrap_or_default().to_owned());
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    found
}

/// A word that may be offered.
enum Offer {
    Keyword(&'static str),
    /// A name, and the text inserted right after it.
    Name(String, &'static str),
}

impl Offer {
    fn fits(self, partial: &str) -> Option<Candidate> {
        match self {
            Offer::Keyword(word) => {
                let begins =
                    word.get(..partial.len()).is_some_and(|start| start.eq_ignore_ascii_case(partial));
                let is_lower =
                    !partial.is_empty() && partial.chars().all(|letter| !letter.is_ascii_uppercase());
                let word = if is_lower { word.to_ascii_lowercase() } else { word.to_owned() };
                let tail =
                    if word.ends_with(|last: char| last.is_alphanumeric() || last == ')') { " " } else { "" };
                begins.then(|| Candidate { inserted: format!("{word}{tail}"), shown: word })
            }
            Offer::Name(name, tail) => {
                let written = quote_identifier(&name).into_owned();
                let plain = partial.trim_start_matches('"');
                let begins = written.starts_with(partial)
                    || !plain.is_empty() && name.to_lowercase().starts_with(&plain.to_lowercase());
                begins.then(|| Candidate { inserted: format!("{written}{tail}"), shown: written })
            }
        }
    }
}

/// The statement around the cursor.
struct Scene<'s> {
    /// The words before the word under the cursor.
    words: &'s [String],
    /// The words of the whole statement.
    whole: &'s [String],
    keyspaces: &'s Keyspaces,
    current: Option<&'s str>,
}

impl Scene<'_> {
    fn word(&self, back: usize) -> String {
        let at = self.words.len().checked_sub(back);
        at.and_then(|at| self.words.get(at)).map(|word| word.to_ascii_uppercase()).unwrap_or_default()
    }

    fn first(&self) -> String {
        self.words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default()
    }

    fn offers(&self) -> Vec<Offer> {
        let keywords =
            |words: &[&'static str]| words.iter().map(|word| Offer::Keyword(word)).collect::<Vec<_>>();
        let (first, second, last, before) = (self.first(), self.nth(1), self.word(1), self.word(2));
        match (first.as_str(), last.as_str()) {
            ("", _) => return keywords(keywords::STATEMENTS),
            (_, ".") => return self.in_keyspace(&before),
            ("COPY", "FROM" | "TO") => return keywords(&["STDIN", "STDOUT"]),
            ("COPY", "WITH" | "AND") => return keywords(OPTION_NAMES),
            ("CONSISTENCY", "CONSISTENCY") | ("SERIAL", "CONSISTENCY") => return keywords(keywords::LEVELS),
            ("SERIAL", _) => return keywords(&["CONSISTENCY"]),
            ("TRACING" | "EXPAND" | "TIMING" | "PAGING", _) => return keywords(keywords::SWITCH),
            ("CAPTURE", _) => return keywords(&["OFF"]),
            ("SHOW", _) => return keywords(keywords::SHOWN),
            ("FORMAT", _) => return keywords(keywords::FORMATS),
            ("HELP", _) => return help::topics().map(Offer::Keyword).collect(),
            ("USE", _) | (_, "KEYSPACE") => return self.all_keyspaces(""),
            ("DESCRIBE" | "DESC", "DESCRIBE" | "DESC") => {
                let mut offers = keywords(keywords::DESCRIBE);
                offers.extend(self.tables());
                return offers;
            }
            (_, "FROM" | "INTO" | "TABLE" | "COLUMNFAMILY" | "TRUNCATE" | "COPY" | "UPDATE") => {
                return self.tables();
            }
            ("CREATE", "ON") => return self.tables(),
            (_, "TYPE") => return self.types(),
            (_, "INDEX") => return self.indexes(),
            ("CREATE", "CREATE") => return keywords(keywords::CREATE),
            ("DROP", "DROP") => return keywords(keywords::DROP),
            ("ALTER", "ALTER") => return keywords(keywords::ALTER),
            ("BEGIN", "BEGIN") => return keywords(keywords::BEGIN),
            ("EXPLAIN", "EXPLAIN" | "ANALYZE" | "JSON") => return keywords(keywords::EXPLAINED),
            ("INSERT", "INSERT") => return keywords(&["INTO"]),
            ("CREATE" | "ALTER", "WITH" | "AND") if second == "KEYSPACE" => {
                return keywords(keywords::KEYSPACE_OPTIONS);
            }
            ("CREATE" | "ALTER", "WITH" | "AND") => return keywords(keywords::TABLE_OPTIONS),
            (_, "SELECT" | "DISTINCT") => {
                let mut offers = keywords(keywords::SELECTED);
                offers.extend(self.columns());
                return offers;
            }
            (_, "WHERE" | "AND" | "SET" | "BY" | "IF" | "(" | ",") if first != "CREATE" => {
                return self.columns();
            }
            _ => {}
        }
        self.following(&first, &second)
    }

    fn nth(&self, at: usize) -> String {
        self.words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default()
    }

    /// Keywords that may appear at any later position of a statement.
    fn following(&self, first: &str, second: &str) -> Vec<Offer> {
        // EXPLAIN and BEGIN contain other statements; the last word that begins a statement determines the kind.
        let inner = self.words.iter().rev().map(|word| word.to_ascii_uppercase());
        let inner = inner.filter(|word| ["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&word.as_str()));
        let kind = if matches!(first, "EXPLAIN" | "BEGIN") { inner.take(1).next() } else { None };
        let words: &[&'static str] = match (kind.as_deref().unwrap_or(first), second) {
            ("SELECT", _) => keywords::AFTER_SELECT,
            ("INSERT", _) => keywords::AFTER_INSERT,
            ("UPDATE", _) => keywords::AFTER_UPDATE,
            ("DELETE", _) => keywords::AFTER_DELETE,
            ("ALTER", "TABLE") if self.words.len() < 6 => keywords::ALTER_TABLE,
            ("CREATE" | "ALTER", "TABLE" | "TYPE") => {
                let mut offers: Vec<Offer> =
                    keywords::TYPES.iter().map(|word| Offer::Keyword(word)).collect();
                offers.extend(keywords::AFTER_CREATE.iter().map(|word| Offer::Keyword(word)));
                offers.extend(self.types());
                return offers;
            }
            ("CREATE" | "ALTER", _) => keywords::AFTER_CREATE,
            ("DROP", _) => &["IF EXISTS"],
            ("COPY", _) => &["FROM", "TO", "WITH"],
            _ => &[],
        };
        words.iter().map(|word| Offer::Keyword(word)).collect()
    }

    fn all_keyspaces(&self, tail: &'static str) -> Vec<Offer> {
        self.keyspaces.keys().map(|name| Offer::Name(name.clone(), tail)).collect()
    }

    fn of_current<'k>(&'k self, names: impl Fn(&'k Keyspace) -> Vec<String>) -> Vec<Offer> {
        let keyspace = self.current.and_then(|name| self.keyspaces.get(name));
        let mut offers = self.all_keyspaces(".");
        offers.extend(keyspace.map(names).unwrap_or_default().into_iter().map(|name| Offer::Name(name, " ")));
        offers
    }

    fn tables(&self) -> Vec<Offer> {
        let mut offers = self.of_current(|keyspace| keyspace.tables.keys().cloned().collect());
        if matches!(self.first().as_str(), "CREATE" | "DROP") {
            offers.push(Offer::Keyword(if self.first() == "DROP" { "IF EXISTS" } else { "IF NOT EXISTS" }));
        }
        offers
    }

    fn types(&self) -> Vec<Offer> {
        self.of_current(|keyspace| keyspace.types.clone())
    }

    fn indexes(&self) -> Vec<Offer> {
        self.of_current(|keyspace| keyspace.indexes.clone())
    }

    /// The names in a keyspace, offered after `name.`.
    fn in_keyspace(&self, name: &str) -> Vec<Offer> {
        let found = self.keyspaces.iter().find(|(keyspace, _)| {
            keyspace.eq_ignore_ascii_case(name) || name.trim_matches('"') == keyspace.as_str()
        });
        let Some((_, keyspace)) = found else { return Vec::new() };
        let kind = self.word(3);
        let names: Vec<String> = match kind.as_str() {
            "TYPE" => keyspace.types.clone(),
            "INDEX" => keyspace.indexes.clone(),
            _ => keyspace.tables.keys().cloned().collect(),
        };
        names.into_iter().map(|name| Offer::Name(name, " ")).collect()
    }

    /// The columns of the statement's table, or of all tables of the keyspace if it names none.
    fn columns(&self) -> Vec<Offer> {
        let of = |table: &Table| {
            table.iter().map(|column| Offer::Name(column.name.clone(), "")).collect::<Vec<_>>()
        };
        match self.table() {
            Some(table) => of(table),
            None => {
                let keyspace = self.current.and_then(|name| self.keyspaces.get(name));
                keyspace.into_iter().flat_map(|keyspace| keyspace.tables.values()).flat_map(of).collect()
            }
        }
    }

    fn table(&self) -> Option<&Table> {
        let is_before = |word: &String| {
            ["FROM", "INTO", "UPDATE", "TABLE", "ON", "COPY"]
                .iter()
                .any(|before| before.eq_ignore_ascii_case(word))
        };
        let at = self.whole.iter().position(is_before)?;
        let name = |at: usize| {
            let word = self.whole.get(at)?;
            Some(match word.strip_prefix('"') {
                Some(quoted) => quoted.trim_end_matches('"').to_owned(),
                None => word.to_lowercase(),
            })
        };
        let (keyspace, table) = match self.whole.get(at + 2).map(String::as_str) {
            Some(".") => (name(at + 1)?, name(at + 3)?),
            _ => (self.current?.to_owned(), name(at + 1)?),
        };
        self.keyspaces.get(&keyspace)?.tables.get(&table)
    }
}

/// Files and folders whose path begins with `typed`.
fn files(typed: &str) -> Vec<Candidate> {
    let (folder, begin) = typed.rsplit_once('/').map_or(("", typed), |(folder, begin)| (folder, begin));
    let shown_folder = if typed.contains('/') { format!("{folder}/") } else { String::new() };
    let at = if shown_folder.is_empty() { "./".to_owned() } else { shown_folder.clone() };
    let Ok(entries) = std::fs::read_dir(expand_home(&at)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(begin) && (begin.starts_with('.') || !name.starts_with('.')) {
            let tail = if entry.path().is_dir() { "/" } else { "'" };
            let inserted = format!("{shown_folder}{name}{tail}");
            found.push(Candidate { shown: format!("{name}{}", tail.trim_end_matches('\'')), inserted });
        }
    }
    found.sort_by(|a, b| a.shown.cmp(&b.shown));
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::catalog::{Column, Role};
    use super::*;

    fn column(name: &str) -> Column {
        Column { name: name.to_owned(), role: Role::Regular, position: -1, ty: "int".to_owned() }
    }

    fn offered(line: &str) -> Vec<String> {
        let mut feed = Keyspace::default();
        feed.tables.insert("timeline".to_owned(), vec![column("user"), column("at"), column("Mixed")]);
        feed.tables.insert("totals".to_owned(), vec![column("count")]);
        let keyspaces =
            BTreeMap::from([("feed".to_owned(), feed), ("system".to_owned(), Keyspace::default())]);
        let pos = line.find('|').unwrap();
        let text = line.replace('|', "");
        completions(&text, pos, &keyspaces, Some("feed")).1.into_iter().map(|found| found.inserted).collect()
    }

    #[test]
    fn what_follows_depends_on_what_stands_before() {
        assert_eq!(offered("SEL|"), ["SELECT "]);
        assert_eq!(offered("sel|"), ["select "]);
        assert_eq!(offered("SELECT * FROM t|"), ["timeline ", "totals "]);
        assert_eq!(offered("SELECT * FROM s|"), ["system."]);
        assert_eq!(offered("SELECT * FROM feed.ti|"), ["timeline "]);
        assert_eq!(offered("SELECT | FROM totals").last().unwrap(), "count");
        assert_eq!(offered("SELECT * FROM timeline WHERE |"), ["\"Mixed\"", "at", "user"]);
        assert_eq!(offered("INSERT INTO timeline (user, a|"), ["at"]);
        assert_eq!(offered("UPDATE timeline SET u|"), ["user"]);
        assert_eq!(offered("USE fe|"), ["feed"]);
        assert_eq!(offered("DESCRIBE TABLE to|"), ["totals "]);
        assert_eq!(offered("CONSISTENCY LOCAL_Q|"), ["LOCAL_QUORUM "]);
        assert_eq!(offered("SELECT 1; TRUNCATE ti|"), ["timeline "]);
        assert!(offered("SELECT * FROM timeline WHERE user = 'S|").is_empty());
    }
}
