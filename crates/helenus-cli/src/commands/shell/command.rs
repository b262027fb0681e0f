//! Parses the shell's own commands: those of cqlsh, and the backslash commands of psql as aliases.

use anyhow::{Result, anyhow, bail};
use helenus_wire::native::Consistency;

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Help(Vec<String>),
    Exit,
    Clear,
    /// `None` shows it, a value sets it.
    Consistency(Option<Consistency>),
    SerialConsistency(Option<Consistency>),
    /// `None` shows the switch.
    Switch(Switch, Option<bool>),
    Expand(Option<Expand>),
    /// `None` shows it; a number of rows also switches it on.
    Paging(Option<Paging>),
    Format(Option<String>),
    ShowVersion,
    ShowHost,
    ShowSession(String),
    Source(String),
    /// `None` shows it; an empty name ends the capture.
    Capture(Option<String>),
    Login {
        user: String,
        password: Option<String>,
    },
    Copy,
    History(Option<usize>),
    /// An alias of another statement.
    Means(String),
    Nothing,
}

/// A setting that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    Tracing,
    Timing,
}

impl Switch {
    pub fn name(self) -> &'static str {
        match self {
            Switch::Tracing => "TRACING",
            Switch::Timing => "TIMING",
        }
    }
}

/// The argument of EXPAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    Always,
    Never,
    /// If a table would be wider than the terminal.
    Automatic,
}

impl Expand {
    fn of(on: bool) -> Expand {
        if on { Expand::Always } else { Expand::Never }
    }
}

/// The argument of PAGING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    On,
    Off,
    Rows(i32),
}

/// Parses a statement as a command of the shell. `None` if it is a statement for the server.
///
/// # Errors
/// A malformed command.
pub fn read(statement: &str) -> Result<Option<Command>> {
    if let Some(rest) = statement.strip_prefix('\\') {
        return backslash(rest).map(Some);
    }
    let words = words(statement);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some((first, rest)) = texts.split_first() else { return Ok(Some(Command::Nothing)) };
    let lower = first.to_ascii_lowercase();
    Ok(Some(match (lower.as_str(), rest) {
        ("help" | "?", topics) => Command::Help(topics.iter().map(|&topic| topic.to_owned()).collect()),
        ("exit" | "quit", []) => Command::Exit,
        ("clear" | "cls", []) => Command::Clear,
        ("consistency", []) => Command::Consistency(None),
        ("consistency", [level]) => Command::Consistency(Some(consistency(level)?)),
        ("serial", [word]) if word.eq_ignore_ascii_case("consistency") => Command::SerialConsistency(None),
        ("serial", [word, level]) if word.eq_ignore_ascii_case("consistency") => {
            let level = consistency(level)?;
            if !level.is_serial() {
                bail!("SERIAL CONSISTENCY is SERIAL or LOCAL_SERIAL, not {level}");
            }
            Command::SerialConsistency(Some(level))
        }
        ("tracing", given) => Command::Switch(Switch::Tracing, switch("TRACING", given)?),
        ("expand", [word]) if word.eq_ignore_ascii_case("auto") => Command::Expand(Some(Expand::Automatic)),
        ("expand", given) => Command::Expand(switch("EXPAND", given)?.map(Expand::of)),
        ("timing", given) => Command::Switch(Switch::Timing, switch("TIMING", given)?),
        ("paging", []) => Command::Paging(None),
        ("paging", [given]) => Command::Paging(Some(paging(given)?)),
        ("format", []) => Command::Format(None),
        ("format", [name]) => Command::Format(Some((*name).to_owned())),
        ("show", given) => show(given)?,
        ("source", [_]) if words.get(1).is_some_and(|word| word.is_quoted) => {
            Command::Source(rest[0].to_owned())
        }
        ("source", _) => bail!("SOURCE takes a file's name between quotes: SOURCE 'schema.cql'"),
        ("capture", []) => Command::Capture(None),
        ("capture", [off])
            if off.eq_ignore_ascii_case("off") && words.get(1).is_some_and(|word| !word.is_quoted) =>
        {
            Command::Capture(Some(String::new()))
        }
        ("capture", [_]) if words.get(1).is_some_and(|word| word.is_quoted) => {
            Command::Capture(Some(rest[0].to_owned()))
        }
        ("capture", _) => bail!("CAPTURE takes a file's name between quotes, or OFF"),
        ("login", [user]) => Command::Login { user: (*user).to_owned(), password: None },
        ("login", [user, password]) => {
            Command::Login { user: (*user).to_owned(), password: Some((*password).to_owned()) }
        }
        ("login", _) => bail!("LOGIN takes a name and a password: LOGIN name 'password'"),
        ("copy", _) => Command::Copy,
        ("history", []) => Command::History(None),
        ("history", [count]) => match count.parse() {
            Ok(count) => Command::History(Some(count)),
            Err(_) => bail!("HISTORY takes a number of statements, not {count}"),
        },
        ("debug" | "unicode", _) => {
            bail!("{} is a command of cqlsh that this shell has not", first.to_uppercase())
        }
        (
            "exit" | "quit" | "clear" | "cls" | "consistency" | "serial" | "paging" | "format" | "history",
            _,
        ) => {
            bail!("Improper {first} command. HELP {} says how it is written", first.to_uppercase())
        }
        _ => return Ok(None),
    }))
}

fn show(given: &[&str]) -> Result<Command> {
    let lower: Vec<String> = given.iter().map(|word| word.to_ascii_lowercase()).collect();
    match lower.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["version"] => Ok(Command::ShowVersion),
        ["host"] => Ok(Command::ShowHost),
        ["session", id] => Ok(Command::ShowSession(id.to_owned())),
        ["replicas", ..] => {
            bail!(
                "SHOW REPLICAS is not supported: this shell keeps no ring. `nodetool getendpoints` answers it"
            )
        }
        _ => bail!("SHOW takes VERSION, HOST or SESSION <id>"),
    }
}

fn consistency(name: &str) -> Result<Consistency> {
    let found = Consistency::ALL.iter().find(|level| level.to_string().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let names: Vec<String> = Consistency::ALL.iter().map(ToString::to_string).collect();
        anyhow!("there is no consistency level {name}; there are {}", names.join(", "))
    })
}

fn switch(name: &str, given: &[&str]) -> Result<Option<bool>> {
    match given {
        [] => Ok(None),
        [word] if word.eq_ignore_ascii_case("on") => Ok(Some(true)),
        [word] if word.eq_ignore_ascii_case("off") => Ok(Some(false)),
        _ => bail!("{name} takes ON, OFF or nothing"),
    }
}

fn paging(given: &str) -> Result<Paging> {
    match given.parse::<i32>() {
        Ok(rows) if rows > 0 => Ok(Paging::Rows(rows)),
        _ if given.eq_ignore_ascii_case("on") => Ok(Paging::On),
        _ if given.eq_ignore_ascii_case("off") => Ok(Paging::Off),
        _ => bail!("PAGING takes ON, OFF or a number of rows"),
    }
}

/// Parses a command of psql.
fn backslash(text: &str) -> Result<Command> {
    let text = text.trim().trim_end_matches(';');
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    Ok(match (name, rest) {
        ("q", "") => Command::Exit,
        ("?" | "h" | "help", _) => Command::Help(rest.split_whitespace().map(str::to_owned).collect()),
        ("l", "") => Command::Means("DESCRIBE KEYSPACES".to_owned()),
        ("d" | "dt", "") => Command::Means("DESCRIBE TABLES".to_owned()),
        ("d" | "dt", name) => Command::Means(format!("DESCRIBE TABLE {name}")),
        ("dn", "") => Command::Means("DESCRIBE KEYSPACES".to_owned()),
        ("dT", "") => Command::Means("DESCRIBE TYPES".to_owned()),
        ("dT", name) => Command::Means(format!("DESCRIBE TYPE {name}")),
        ("c", name) if !name.is_empty() => Command::Means(format!("USE {name}")),
        ("conninfo", "") => Command::ShowHost,
        ("x", _) => Command::Expand(toggled(rest)?.map(Expand::of)),
        ("timing", _) => Command::Switch(Switch::Timing, toggled(rest)?),
        ("i", file) if !file.is_empty() => Command::Source(file.trim_matches('\'').to_owned()),
        ("o", file) => Command::Capture(Some(file.trim_matches('\'').to_owned())),
        ("s", "") => Command::History(None),
        _ => bail!("there is no command \\{name}; HELP lists those that there are"),
    })
}

/// The argument of a psql switch. Without an argument it switches on. It does not toggle, as psql does, because
/// `Switch` with `None` already means to show the setting.
fn toggled(rest: &str) -> Result<Option<bool>> {
    match rest {
        "" | "on" | "ON" => Ok(Some(true)),
        "off" | "OFF" => Ok(Some(false)),
        other => bail!("on or off, not {other}"),
    }
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text without its quotes.
    pub text: String,
    /// Whether the word was quoted.
    pub is_quoted: bool,
}

/// Splits a command into words. A text in single quotes and a name in double quotes is one word.
pub fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '\'' | '"' => between_quotes(rest, first),
            '(' | ')' | ',' | '=' | ';' | '?' => (Word { text: first.to_string(), is_quoted: false }, 1),
            _ => {
                let end = rest.find(|letter: char| letter.is_whitespace() || "()=,;'\"".contains(letter));
                let end = end.unwrap_or(rest.len());
                (Word { text: rest.get(..end).unwrap_or_default().to_owned(), is_quoted: false }, end)
            }
        };
        if word.is_quoted || word.text != ";" {
            words.push(word);
        }
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    words
}

/// Reads a quoted text, in which a doubled quote means one quote. Returns it with its length including quotes.
fn between_quotes(text: &str, quote: char) -> (Word, usize) {
    let mut word = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            word.push(letter);
        } else if letters.peek().is_some_and(|(_, next)| *next == quote) {
            word.push(quote);
            letters.next();
        } else {
            return (Word { text: word, is_quoted: true }, at + 1);
        }
    }
    (Word { text: word, is_quoted: true }, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cqlshs_commands_are_read_in_any_case() {
        assert_eq!(read("select 1").unwrap(), None);
        assert_eq!(read("Expand ON").unwrap(), Some(Command::Expand(Some(Expand::Always))));
        assert_eq!(read("expand auto").unwrap(), Some(Command::Expand(Some(Expand::Automatic))));
        assert_eq!(read("paging 50").unwrap(), Some(Command::Paging(Some(Paging::Rows(50)))));
        assert_eq!(read("SOURCE 'it''s'").unwrap(), Some(Command::Source("it's".to_owned())));
        assert_eq!(read("capture off").unwrap(), Some(Command::Capture(Some(String::new()))));
        assert_eq!(
            read("consistency quorum").unwrap(),
            Some(Command::Consistency(Some(Consistency::Quorum)))
        );
        assert_eq!(
            read("\\d feed.timeline").unwrap(),
            Some(Command::Means("DESCRIBE TABLE feed.timeline".to_owned()))
        );
        for wrong in ["consistency most", "tracing maybe", "source x", "show replicas 1", "\\nope"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
