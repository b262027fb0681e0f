//! The limits of a role: the names and values of `OPTIONS` of CREATE and ALTER ROLE.
//!
//! Cassandra's grammar has `OPTIONS` for the options of a role manager (`IRoleManager.Option.OPTIONS`), and its own role manager takes
//! none. A limit is the role's own; those of roles that are granted to it do not count.

use std::time::Duration;

/// The limits of a role; `None` for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleLimits {
    /// Sessions of the native protocol and of RPC, and requests of HTTP with a login.
    pub connections_max: Option<u64>,
    /// Requests in flight.
    pub requests_max: Option<u64>,
    /// Bytes of requests in flight.
    pub request_bytes_max: Option<u64>,
    /// Bytes of the answers that its statements make at a time.
    pub memory_max: Option<u64>,
    /// The time of a statement.
    pub statement_timeout: Option<Duration>,
}

/// The kind of an option's values.
#[derive(Clone, Copy)]
enum Kind {
    Count,
    /// Bytes, and the least number.
    Size(u64),
    Time,
}

/// The options, in the order of documents.
const OPTIONS: [(&str, Kind); 5] = [
    ("connections_max", Kind::Count),
    ("requests_max", Kind::Count),
    ("request_bytes_max", Kind::Size(1 << 10)),
    ("memory_max", Kind::Size(64 << 10)),
    ("statement_timeout", Kind::Time),
];

/// Units of sizes.
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
/// Units of times, in milliseconds. `ms` comes before `s`, which it ends with.
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// The least time of a statement. Below it nothing would be answered.
const TIME_MIN_MS: u64 = 10;

impl RoleLimits {
    /// The names of all options.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, _)| *name)
    }

    /// Sets an option from its text; an empty one removes the limit.
    ///
    /// # Errors
    /// There is no such option, or it does not take the value; what it takes.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some((name, kind)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = RoleLimits::names().collect();
            return Err(format!("unknown option {name} of a role; there are {}", names.join(", ")));
        };
        let value =
            match text.trim() {
                "" => None,
                text => Some(kind.parse(text).ok_or_else(|| {
                    format!("{name} of a role takes {}, or '' for no limit", kind.allowed())
                })?),
            };
        match *name {
            "connections_max" => self.connections_max = value,
            "requests_max" => self.requests_max = value,
            "request_bytes_max" => self.request_bytes_max = value,
            "memory_max" => self.memory_max = value,
            _ => self.statement_timeout = value.map(Duration::from_millis),
        }
        Ok(())
    }

    /// The options that are set, with their values.
    pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
        let time = self.statement_timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let values = [self.connections_max, self.requests_max, self.request_bytes_max, self.memory_max, time];
        let set = OPTIONS.iter().zip(values).filter_map(|(option, value)| Some((option, value?)));
        set.map(|((name, kind), value)| (*name, kind.text(value))).collect()
    }
}

impl Kind {
    fn parse(self, text: &str) -> Option<u64> {
        let with_unit = |units: &[(&str, u64)]| {
            let (number, unit) =
                units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), *unit)))?;
            number.parse::<u64>().ok()?.checked_mul(unit)
        };
        match self {
            Kind::Count => text.parse().ok().filter(|count| *count > 0),
            Kind::Size(min) => with_unit(&SIZES).filter(|bytes| *bytes >= min),
            Kind::Time => with_unit(&TIMES).filter(|ms| *ms >= TIME_MIN_MS),
        }
    }

    fn allowed(self) -> String {
        match self {
            Kind::Count => "a whole number from 1 on".to_owned(),
            Kind::Size(min) => {
                format!("a size such as 16MiB (B, KiB, MiB, GiB), at least {}", self.text(min))
            }
            Kind::Time => format!("a time such as 10s (ms, s, m, h), at least {TIME_MIN_MS}ms"),
        }
    }

    /// A value with the largest unit in which it is whole.
    fn text(self, value: u64) -> String {
        let with_unit = |units: &[(&str, u64)]| {
            let whole = |(_, unit): &&(&str, u64)| value.is_multiple_of(*unit);
            let (name, unit) =
                units.iter().filter(whole).max_by_key(|(_, unit)| *unit).copied().unwrap_or(("", 1));
            format!("{}{name}", value / unit)
        };
        match self {
            Kind::Count => value.to_string(),
            Kind::Size(_) => with_unit(&SIZES),
            Kind::Time => with_unit(&TIMES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_takes_its_kind_and_shows_it_again() {
        let mut limits = RoleLimits::default();
        let given = [
            ("connections_max", "10"),
            ("requests_max", "7"),
            ("request_bytes_max", "16MiB"),
            ("memory_max", "100KiB"),
            ("statement_timeout", "1500ms"),
        ];
        for (name, text) in given {
            limits.set(name, text).unwrap();
        }
        let texts: Vec<(&str, String)> = given.map(|(name, text)| (name, text.to_owned())).to_vec();
        assert_eq!(limits.texts(), texts);
        limits.set("statement_timeout", " 120 s ").unwrap();
        assert_eq!(limits.statement_timeout, Some(Duration::from_secs(120)));
        assert_eq!(limits.texts()[4].1, "2m");
        for name in RoleLimits::names() {
            for wrong in [
                "0",
                "-1",
                "x",
                "1.5",
                "9ms",
                "10 parsecs",
                "99999999999999999999",
                "18446744073709551615GiB",
                "1B",
            ] {
                let refused = limits.clone().set(name, wrong).unwrap_err();
                assert!(refused.contains(name) && refused.contains("''"), "{wrong}: {refused}");
            }
            limits.set(name, "").unwrap();
        }
        assert_eq!(limits, RoleLimits::default());
        assert!(limits.set("conections_max", "1").unwrap_err().contains("connections_max, requests_max"));
    }
}
