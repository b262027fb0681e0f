//! The kinds of options: the values they allow, and how their texts are parsed.
//!
//! Sizes and durations of Cassandra's keys are written as in Cassandra 5 (`DataStorageSpec`, `DurationSpec`): a whole
//! number and a unit, without a space. Flags, and keys that Cassandra does not have, take more forms
//! (`crate::quantity`).

use std::time::Duration;

use crate::address::Address;
use crate::quantity::{DURATION_FORMS, SIZE_FORMS, parse_duration, parse_size};
use helenus_tls::EncryptionOptions;

use crate::audit::AuditOptions;

/// What values an option allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size within limits.
    Size {
        /// The least number of bytes.
        min: u64,
        /// The greatest number of bytes.
        max: u64,
    },
    /// A time, with a lower limit.
    Duration {
        /// The least number of milliseconds.
        min_ms: u64,
    },
    /// Bytes a second.
    Rate,
    /// A whole number.
    Integer {
        /// The least number.
        min: i64,
        /// The greatest number.
        max: i64,
    },
    /// true or false.
    Boolean,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// One of some classes of Cassandra, with or without their package, or as the `class_name` of a map.
    Class(&'static [&'static str]),
    /// A file or directory.
    Path,
    /// A list of one directory, which must have this name.
    DirectoryNamed(&'static str),
    /// Any text.
    Text,
    /// A list of words; as text, separated by commas.
    Words,
    /// A host name or IP address.
    Host,
    /// An address to listen on.
    Listen {
        /// The port, if the address has none.
        port: u16,
    },
    /// `client_encryption_options`, a map.
    Encryption,
    /// `audit_logging_options`, a map.
    Audit,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bytes; of a rate, bytes a second.
    Size(u64),
    /// A time.
    Duration(Duration),
    /// A whole number.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
    /// A word, a path, a name, an address.
    Text(String),
    /// The options of TLS.
    Encryption(Box<EncryptionOptions>),
    /// The options of the audit log.
    Audit(Box<AuditOptions>),
}

/// The package of Cassandra's classes of access control.
const AUTH_PACKAGE: &str = "org.apache.cassandra.auth.";

/// Units of sizes.
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
/// Units of durations, in nanoseconds. A unit precedes any shorter one that it ends with.
const DURATIONS: [(&str, u64); 8] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

impl Kind {
    /// Parses the value of a flag, or of a key that Cassandra does not have: as `parse`, and sizes and durations in the
    /// forms of `crate::quantity`.
    pub fn parse_own(self, text: &str) -> Option<Value> {
        match self {
            Kind::Size { min, max } => {
                let bytes = parse_size(text).ok()?;
                (min..=max).contains(&bytes).then_some(Value::Size(bytes))
            }
            Kind::Duration { min_ms } => {
                let time = parse_duration(text).ok()?;
                (time >= Duration::from_millis(min_ms)).then_some(Value::Duration(time))
            }
            Kind::Rate => parse_size(text.strip_suffix("/s").unwrap_or(text)).ok().map(Value::Size),
            other => other.parse(text),
        }
    }

    /// Parses a value as Cassandra does; `None` if it is not allowed.
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            Kind::Size { min, max } => {
                let bytes = with_unit(text, &SIZES)?;
                (min..=max).contains(&bytes).then_some(Value::Size(bytes))
            }
            Kind::Duration { min_ms } => {
                let time = Duration::from_nanos(with_unit(text, &DURATIONS)?);
                (time >= Duration::from_millis(min_ms)).then_some(Value::Duration(time))
            }
            Kind::Rate => with_unit(text.strip_suffix("/s")?, &SIZES).map(Value::Size),
            Kind::Integer { min, max } => {
                let number = text.parse().ok().filter(|number| (min..=max).contains(number))?;
                Some(Value::Integer(number))
            }
            Kind::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(Value::Boolean(true)),
                "false" | "no" | "off" => Some(Value::Boolean(false)),
                _ => None,
            },
            Kind::Choice(words) => {
                // YAML reads `off` and `on` as truth values.
                let text = match text {
                    "false" => "off",
                    "true" => "on",
                    text => text,
                };
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text))?;
                Some(Value::Text((*word).to_owned()))
            }
            Kind::Class(names) => {
                let short = text.strip_prefix(AUTH_PACKAGE).unwrap_or(text);
                names.contains(&short).then(|| Value::Text(short.to_owned()))
            }
            Kind::DirectoryNamed(name) => {
                let path = std::path::Path::new(text);
                (path.file_name()? == name).then(|| Value::Text(text.to_owned()))
            }
            Kind::Listen { .. } => text.parse::<Address>().ok().map(|_| Value::Text(text.to_owned())),
            // A map is read by `encryption` or `audit`.
            Kind::Encryption | Kind::Audit => None,
            Kind::Words => Some(Value::Text(text.to_owned())),
            Kind::Path | Kind::Text | Kind::Host => (!text.is_empty()).then(|| Value::Text(text.to_owned())),
        }
    }

    /// The values that `parse_own` allows.
    pub fn allowed_own(self) -> String {
        let at_least = |forms: &str, min: Option<String>| match min {
            Some(min) => format!("{forms}, at least {min}"),
            None => forms.to_owned(),
        };
        match self {
            Kind::Size { min, max: u64::MAX } => at_least(SIZE_FORMS, (min > 0).then(|| size_text(min))),
            Kind::Size { min, max } => format!("{SIZE_FORMS}, {} to {}", size_text(min), size_text(max)),
            Kind::Duration { min_ms } => {
                at_least(DURATION_FORMS, (min_ms > 0).then(|| format!("{min_ms}ms")))
            }
            Kind::Rate => "a rate such as 16M/s".to_owned(),
            other => other.allowed(),
        }
    }

    /// The values that `parse` allows, for errors, help and docs.
    pub fn allowed(self) -> String {
        match self {
            Kind::Size { min, max } => {
                let example = "a size such as 16MiB (B, KiB, MiB, GiB)";
                match (min, max) {
                    (0, u64::MAX) => example.to_owned(),
                    (min, u64::MAX) => format!("{example}, at least {}", size_text(min)),
                    (min, max) => format!("{example}, {} to {}", size_text(min), size_text(max)),
                }
            }
            Kind::Duration { min_ms: 0 } => "a duration such as 10s (d, h, m, s, ms)".to_owned(),
            Kind::Duration { min_ms } => {
                format!("a duration such as 10s (d, h, m, s, ms), at least {min_ms}ms")
            }
            Kind::Rate => "a rate such as 16MiB/s (B/s, KiB/s, MiB/s, GiB/s)".to_owned(),
            Kind::Integer { min, max: i64::MAX } => format!("a whole number, at least {min}"),
            Kind::Integer { min, max } => format!("a whole number, {min} to {max}"),
            Kind::Boolean => "true or false".to_owned(),
            Kind::Choice(words) | Kind::Class(words) => words.join(", "),
            Kind::Path => "a path".to_owned(),
            Kind::DirectoryNamed(name) => {
                format!(
                    "one directory whose name is {name}: Helenus keeps its data in DIR/data and DIR/commitlog"
                )
            }
            Kind::Text => "a text".to_owned(),
            Kind::Words => "a list of words".to_owned(),
            Kind::Encryption => "a map of Cassandra's options of TLS".to_owned(),
            Kind::Audit => "a map of Cassandra's options of the audit log".to_owned(),
            Kind::Host => "a host name or an IP address".to_owned(),
            Kind::Listen { port } => {
                format!(
                    "HOST, HOST:PORT or :PORT, such as localhost:{port} or [::1]:{port}; port 0 picks a free one"
                )
            }
        }
    }

    /// The placeholder shown in help.
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Size { .. } => "SIZE",
            Kind::Duration { .. } => "DURATION",
            Kind::Rate => "RATE",
            Kind::Integer { .. } => "N",
            Kind::Boolean => "BOOL",
            Kind::Choice(_) => "MODE",
            Kind::Class(_) => "CLASS",
            Kind::Path | Kind::DirectoryNamed(_) => "PATH",
            Kind::Text => "TEXT",
            Kind::Words => "WORDS",
            Kind::Host => "HOST",
            Kind::Listen { .. } => "HOST[:PORT]",
            Kind::Encryption | Kind::Audit => "MAP",
        }
    }
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, factor) = units.iter().find_map(|(unit, factor)| {
        let digits = text.strip_suffix(unit)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then_some((digits, factor))
    })?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Formats a number of bytes in the largest unit that is exact.
pub fn size_text(bytes: u64) -> String {
    let exact = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    let (unit, factor) = SIZES.iter().find(exact).unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_read_as_cassandra_reads_them() {
        let size = Kind::Size { min: 0, max: u64::MAX };
        for (text, bytes) in [("16MiB", 16 << 20), ("1GiB", 1 << 30), ("10KiB", 10_240), ("7B", 7), ("0B", 0)]
        {
            assert_eq!(size.parse(text), Some(Value::Size(bytes)));
        }
        for text in ["16", "16MB", "16 MiB", "-1B", "1.5GiB", "MiB", "", "99999999999GiB"] {
            assert_eq!(size.parse(text), None, "{text}");
        }
        let duration = Kind::Duration { min_ms: 0 };
        for (text, ms) in
            [("10s", 10_000), ("5ms", 5), ("2m", 120_000), ("3h", 10_800_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration.parse(text), Some(Value::Duration(Duration::from_millis(ms))));
        }
        for text in ["10", "10 s", "10sec", "s", "-1s"] {
            assert_eq!(duration.parse(text), None, "{text}");
        }
    }

    #[test]
    fn bounds_hold() {
        assert_eq!(Kind::Size { min: 1024, max: 4096 }.parse("1B"), None);
        assert_eq!(Kind::Integer { min: 0, max: 65535 }.parse("70000"), None);
        assert_eq!(Kind::Duration { min_ms: 10 }.parse("9ms"), None);
        assert_eq!(Kind::Choice(&["batch", "group"]).parse("GROUP"), Some(Value::Text("group".into())));
        assert_eq!(Kind::Choice(&["off", "on"]).parse("false"), Some(Value::Text("off".into())));
        assert_eq!(Kind::Choice(&["batch"]).parse("false"), None);
        assert_eq!(Kind::DirectoryNamed("data").parse("/x/data"), Some(Value::Text("/x/data".into())));
        assert_eq!(Kind::DirectoryNamed("data").parse("/x/files"), None);
    }
}
