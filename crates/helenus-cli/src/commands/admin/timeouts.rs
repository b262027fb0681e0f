//! `gettimeout`, `settimeout`, `getlogginglevels`, `setlogginglevel`.

use super::requests::{Server, unexpected};
use anyhow::{Context, Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest, LogLevelChoice, TimeoutKind};
use std::io::{Write, stdout};

/// The timeout types of nodetool, in its spelling.
const TYPES: &str = "read, range, write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, \
                     internodestreaminguser, misc (general rpc_timeout_in_ms)";

/// The only logger, with Cassandra's name for the root logger.
const ROOT: &str = "ROOT";
/// The components that `setlogginglevel` accepts in Cassandra besides class names.
const COMPONENTS: [&str; 6] = ["bootstrap", "compaction", "repair", "streaming", "cql", "ring"];

fn kind(word: &str) -> Result<TimeoutKind> {
    Ok(match word {
        "read" => TimeoutKind::Read,
        "range" => TimeoutKind::Range,
        "write" => TimeoutKind::Write,
        "counterwrite" | "cascontention" => {
            bail!("{word}: counters and conditions have the timeout of writes here: give write")
        }
        "truncate" => bail!("truncate: TRUNCATE has no timeout here, it ends by itself"),
        "misc" => bail!("misc: requests have the timeouts read, range and write here, and no other"),
        "internodeconnect" | "internodeuser" | "internodestreaminguser" => {
            bail!("{word}: there is no other node to connect to")
        }
        _ => bail!("Timeout type requires one of ({TYPES})"),
    })
}

/// `gettimeout` (`GetTimeout.java`).
///
/// # Errors
/// No server answers; Helenus has no such timeout.
pub fn gettimeout(server: &Server, word: &str) -> Result<()> {
    // What counters and conditions have is that of writes.
    let of = if matches!(word, "counterwrite" | "cascontention") { "write" } else { word };
    let request = AdminRequest::Timeout { kind: kind(of)?, set_ms: None };
    let AdminAnswer::TimeoutMs(ms) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&serde_json::json!({ "type": word, "timeout_ms": ms }));
    }
    writeln!(stdout(), "Current timeout for type {word}: {ms} ms")?;
    Ok(())
}

/// `settimeout` (`SetTimeout.java`).
///
/// # Errors
/// No server answers; Helenus has no such timeout; the value is too short.
pub fn settimeout(server: &Server, word: &str, value: &str) -> Result<()> {
    let ms: i64 = value.parse().with_context(|| format!("{value} is no number of milliseconds"))?;
    let kind = kind(word)?;
    let Ok(ms) = u64::try_from(ms) else { bail!("timeout must be non-negative") };
    super::maintenance::done(server, &AdminRequest::Timeout { kind, set_ms: Some(ms) })
}

/// `getlogginglevels` (`GetLoggingLevels.java`).
///
/// # Errors
/// No server answers.
pub fn getlogginglevels(server: &Server) -> Result<()> {
    let AdminAnswer::LogLevel(level) = server.request(&AdminRequest::LogLevel { set: None })? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&serde_json::json!({ ROOT: level.to_uppercase() }));
    }
    let mut out = stdout().lock();
    writeln!(out, "\n{:<50}{:>10}", "Logger Name", "Log Level")?;
    writeln!(out, "{ROOT:<50}{:>10}", level.to_uppercase())?;
    Ok(())
}

/// `setlogginglevel` (`SetLoggingLevel.java`).
///
/// # Errors
/// No server answers; no such logger or level.
pub fn setlogginglevel(server: &Server, logger: Option<&str>, level: Option<&str>) -> Result<()> {
    if let Some(logger) = logger.filter(|logger| !logger.eq_ignore_ascii_case(ROOT)) {
        let what = if COMPONENTS.contains(&logger) { "component" } else { "logger" };
        bail!("there is one log here and no {what} {logger:?} of it: give ROOT");
    }
    let choice = match level.map(str::to_lowercase) {
        None => LogLevelChoice::AsStarted,
        Some(level) if ["error", "warn", "info", "debug", "off"].contains(&level.as_str()) => {
            LogLevelChoice::Level(level)
        }
        Some(level) => bail!("there is no level {level:?}: give error, warn, info, debug or off"),
    };
    let AdminAnswer::LogLevel(_) = server.request(&AdminRequest::LogLevel { set: Some(choice) })? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&serde_json::json!({ "done": true }));
    }
    Ok(())
}
