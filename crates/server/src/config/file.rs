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
    ///
    /// # Errors
    /// The line, if it is known, and what is wrong there.
    pub fn read(text: &str) -> Result<BTreeMap<String, Yaml>, (Option<usize>, String)> {
        match serde_saphyr::from_str::<Option<Yaml>>(text) {
            Ok(None | Some(Yaml::Null)) => Ok(BTreeMap::new()),
            Ok(Some(Yaml::Map(map))) => Ok(map),
            Ok(Some(_)) => {
                let is_content =
                    |line: &str| !matches!(line.trim().as_bytes().first(), None | Some(b'#' | b'-'));
                let first = text
                    .lines()
                    .position(is_content)
                    .or_else(|| text.lines().position(|line| !line.is_empty()));
                Err((first.map(|at| at + 1), format!("the file is not a list of keys; {EXPECTED}")))
            }
            Err(error) => Err(problem(text, &error)),
        }
    }

    /// The value as one text.
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

    /// The value as shown in errors. The values of a map are left out: a password may be among them, as where a line is indented that
    /// should not be.
    pub fn shown(&self) -> String {
        match self {
            Yaml::Null | Yaml::Scalar(_) => self.text(),
            Yaml::List(items) => {
                let items: Vec<_> = items.iter().map(Yaml::shown).collect();
                format!("[{}]", items.join(", "))
            }
            Yaml::Map(map) => {
                let value = |value: &Yaml| if *value == Yaml::Null { "null" } else { "..." };
                let entries: Vec<_> = map.iter().map(|(key, of)| format!("{key}: {}", value(of))).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

/// What a file has to look like.
const EXPECTED: &str =
    "each key begins a line, with a colon, a space and its value, as in cluster_name: Test";

/// The line and the text of an error of the parser. Its own texts speak of its inner states, so none of them is shown.
fn problem(text: &str, error: &serde_saphyr::Error) -> (Option<usize>, String) {
    use serde_saphyr::Error as E;
    let error = error.without_snippet();
    let line = error.location().and_then(|at| usize::try_from(at.line()).ok()).filter(|line| *line > 0);
    let problem = match error {
        E::DuplicateMappingKey { key: Some(key), .. } => format!("the key {key} is given twice; remove one"),
        E::DuplicateMappingKey { key: None, .. } => "a key is given twice; remove one".to_owned(),
        E::MultipleDocuments { .. } => {
            "a second document begins; a file has one, so remove the line ---".to_owned()
        }
        E::UnknownAnchor { .. } => "this alias (*NAME) has no anchor (&NAME) before it".to_owned(),
        E::Eof { .. } => "the file ends within a value; close its quotes and brackets".to_owned(),
        E::Budget { .. } | E::AliasReplayLimitExceeded { .. } | E::AliasExpansionLimitExceeded { .. } => {
            "the file is nested too deeply or too large".to_owned()
        }
        _ => return syntax(text, line),
    };
    (line, problem)
}

/// The likely cause of a text that is not YAML, found on the line of the error or the last line with content before it.
fn syntax(text: &str, line: Option<usize>) -> (Option<usize>, String) {
    let Some(line) = line else { return (None, format!("not YAML; {EXPECTED}")) };
    let before: Vec<(usize, &str)> =
        text.lines().take(line).enumerate().map(|(at, line)| (at + 1, line)).collect();
    let content =
        before.iter().rev().filter(|(_, line)| !matches!(line.trim().as_bytes().first(), None | Some(b'#')));
    let content: Vec<(usize, &str)> = content.take(2).copied().collect();
    // The parser may stop before the line that it does not understand.
    let next = text.lines().enumerate().skip(line).find(|(_, line)| !line.trim().is_empty());
    let next = next.map(|(at, line)| (at + 1, line));
    let tab = content
        .iter()
        .chain(&next)
        .find(|(_, line)| line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t'));
    if let Some((at, _)) = tab {
        return (Some(*at), "a tab indents this line; YAML takes spaces only".to_owned());
    }
    let open = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default();
        let count = |of: char| line.matches(of).count();
        let is_odd = |quote| count(quote) % 2 == 1;
        is_odd('"') || is_odd('\'') || count('[') != count(']') || count('{') != count('}')
    };
    if let Some((at, _)) = content.iter().find(|(_, line)| open(line)) {
        return (Some(*at), "a quote or bracket of this line is not closed, or not opened".to_owned());
    }
    let is_without_colon = |line: &str| {
        !line.contains(": ") && !line.trim_end().ends_with(':') && !line.trim().starts_with("- ")
    };
    if let Some((at, _)) = content.iter().find(|(_, line)| is_without_colon(line)) {
        return (
            Some(*at),
            // The line may be a key of PEM or a password, so it is not shown.
            format!("this line is neither a key with its value nor an item of a list; {EXPECTED}"),
        );
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    match content.as_slice() {
        [(at, last), (above_at, above)] if indent(last) != indent(above) => (
            Some(*at),
            format!(
                "this line is indented by {} spaces and line {above_at} by {}; keys and items that belong together have the \
                 same indent",
                indent(last),
                indent(above)
            ),
        ),
        _ => (Some(line), format!("not YAML; {EXPECTED}")),
    }
}

/// The number of the line with a top-level key.
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_content = |line: &&str| !matches!(line.trim().as_bytes().first(), None | Some(b'#' | b'-' | b'%'));
    let top = text.lines().find(is_content).map(indent)?;
    let has_key = |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        let rest = line.strip_prefix(key)?.trim_start_matches(['"', '\'']).trim_start();
        rest.starts_with(':').then_some(())
    };
    text.lines().position(|line| indent(line) == top && has_key(line).is_some()).map(|at| at + 1)
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
