//! The format of a line of the log.
//!
//! The message is a sentence with everything that a person needs. The fields repeat it for programs, in JSON only.

use helenus_model::types::write_instant;
use serde_json::{Map, Value};

use super::sanitize::{TEXT_BYTES_MAX, bounded, on_one_line};

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A failure that needs attention.
    Error,
    /// Something is refused or slow, or soon will be.
    Warn,
    /// The work of the server: flushes, compactions, changes of the schema.
    Info,
    /// Mistakes of clients, connections that come and go.
    Debug,
}

impl Level {
    /// All levels, the most severe first.
    pub const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    /// The name, as in the option.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }

    /// The level with a name.
    pub fn of_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The name in terminal colours, padded to the widest.
    fn coloured(self) -> &'static str {
        match self {
            Level::Error => "\x1b[31mERROR\x1b[0m",
            Level::Warn => "\x1b[33mWARN \x1b[0m",
            Level::Info => "\x1b[32mINFO \x1b[0m",
            Level::Debug => "\x1b[2mDEBUG\x1b[0m",
        }
    }

    fn plain(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warn => "WARN ",
            Level::Info => "INFO ",
            Level::Debug => "DEBUG",
        }
    }
}

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text {
        /// With the colours of a terminal.
        coloured: bool,
    },
    /// One JSON object a line.
    Json,
    /// The form of Cassandra's default logback pattern, for tools that read its log:
    /// `%-5level [%thread] %date{ISO8601} %F:%L - %msg%n`. The event stands in place of the source's line.
    Cassandra,
}

/// An entry for the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The event in one word that programs can search: `flushed`.
    pub event: &'static str,
    /// The event as a sentence.
    pub message: String,
    /// The facts of the message, for programs.
    pub fields: Map<String, Value>,
}

impl Entry {
    /// An entry without fields.
    pub fn new(event: &'static str, message: impl Into<String>) -> Entry {
        Entry { event, message: message.into(), fields: Map::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Entry {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// Formats a line, including its end.
pub(super) fn line(format: Format, wall_us: i64, level: Level, entry: &Entry) -> String {
    let time = time_text(wall_us);
    let Entry { event, message, fields } = entry;
    match format {
        Format::Text { coloured } => {
            let level = if coloured { level.coloured() } else { level.plain() };
            // One entry is one line, whatever it contains.
            let message = on_one_line(message.trim_end(), TEXT_BYTES_MAX);
            format!("{time} {level} {event}: {message}\n")
        }
        Format::Cassandra => {
            let date = time.trim_end_matches('Z').replace('T', " ").replace('.', ",");
            let message = on_one_line(message.trim_end(), TEXT_BYTES_MAX);
            format!("{} [main] {date} {event} - {message}\n", level.plain())
        }
        Format::Json => {
            let mut object = Map::new();
            let head =
                [("time", time.as_str()), ("level", level.name()), ("event", event), ("message", message)];
            for (name, value) in head {
                object.insert(name.to_owned(), bounded(&value.into()));
            }
            object.extend(fields.iter().map(|(name, value)| (name.clone(), bounded(value))));
            let mut text = Value::Object(object).to_string();
            text.push('\n');
            text
        }
    }
}

/// Formats a time in UTC, to the millisecond.
pub(crate) fn time_text(wall_us: i64) -> String {
    let ms = wall_us.div_euclid(1000);
    let mut text = String::with_capacity(24);
    // `write_instant` omits a fraction of zero; here the columns must align.
    write_instant(ms.div_euclid(1000), 0, &mut text);
    text.pop();
    text.push_str(&format!(".{:03}Z", ms.rem_euclid(1000)));
    text
}

/// Formats nanoseconds for people.
pub(crate) fn duration_text(ns: u64) -> String {
    match ns {
        ..1_000_000 => format!("{} us", ns / 1000),
        1_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_US: i64 = 1_735_732_800_005_000;

    #[test]
    fn a_line_for_people_is_one_line_with_everything_in_it() {
        let entry = Entry::new("flushed", "k.t: 3 MiB\nin 7 ms").with("bytes", 3);
        let text = line(Format::Text { coloured: false }, NOON_US, Level::Info, &entry);
        assert_eq!(text, "2025-01-01T12:00:00.005Z INFO  flushed: k.t: 3 MiB in 7 ms\n");
    }

    #[test]
    fn a_line_in_cassandras_form_has_its_level_thread_and_date() {
        let entry = Entry::new("CassandraDaemon.java:744", "Startup complete");
        let text = line(Format::Cassandra, NOON_US, Level::Info, &entry);
        assert_eq!(
            text,
            "INFO  [main] 2025-01-01 12:00:00,005 CassandraDaemon.java:744 - Startup complete\n"
        );
    }

    #[test]
    fn a_line_of_json_is_an_object_with_the_fields_in_it() {
        let entry = Entry::new("flushed", "a \"b\"\n").with("bytes", 3).with("table", "t");
        let text = line(Format::Json, NOON_US, Level::Warn, &entry);
        assert_eq!(text.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["time"], "2025-01-01T12:00:00.005Z");
        assert_eq!(
            (&value["level"], &value["event"], &value["bytes"]),
            (&"warn".into(), &"flushed".into(), &3.into())
        );
    }
}
