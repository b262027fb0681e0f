//! Reads `audit_logging_options`.
//!
//! Keys and their meaning are those of Cassandra's `AuditLogOptions`; an unknown key is an error, as there. The parameters
//! of FileAuditLogger are Helenus's own: Cassandra has them in its logback.xml.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::file::Yaml;
use super::settings::ConfigError;
use super::sub_options::{SubOption, class_and_parameters};
use super::value::{Kind, Value};
use crate::audit::{
    ARCHIVE_REFUSED, AuditFormat, AuditLogger, AuditOptions, FileParameters, ROLL_CYCLES, RollCycle,
    check_categories, tidy_list,
};

const KEY: &str = "audit_logging_options";
/// The keys, for the error of an unknown one.
const KEYS: &str = "enabled, logger, included_keyspaces, excluded_keyspaces, included_categories, excluded_categories, \
                    included_users, excluded_users, audit_logs_dir, archive_command, allow_nodetool_archive_command, \
                    roll_cycle, block, max_queue_weight, max_log_size, max_archive_retries";
const LOGGERS: &str = "class_name: FileAuditLogger, with or without parameters: format (text, json), max_file_size (50MiB), \
                       flush_period (100ms), sync (false)";

/// Reads the map.
///
/// # Errors
/// A key is unknown, or its value is not one that it takes; the log is on and its class is not FileAuditLogger.
pub fn audit_options(map: &BTreeMap<String, Yaml>) -> Result<AuditOptions, ConfigError> {
    let mut options = AuditOptions::default();
    for (key, value) in map {
        if *value != Yaml::Null {
            read(&mut options, key, value)?;
        }
    }
    if options.enabled {
        options.logger.file().map_err(|reason| ConfigError::WrongValue {
            name: format!("{KEY}.logger"),
            value: options.logger.class().to_owned(),
            allowed: format!("FileAuditLogger. {reason}"),
        })?;
    }
    Ok(options)
}

fn read(options: &mut AuditOptions, key: &str, value: &Yaml) -> Result<(), ConfigError> {
    let option = SubOption { map: KEY, key, value };
    let (wrong, text, boolean) =
        (|allowed: &str| option.wrong(allowed), || option.scalar(), || option.boolean());
    let number = |min: u64| match value.text().parse::<u64>() {
        Ok(number) if number >= min => Ok(number),
        _ => Err(wrong("a whole number of bytes")),
    };
    let names = || text().map(|names| tidy_list(&names));
    let categories = || {
        let names = names()?.to_uppercase();
        check_categories(&names).map_err(|reason| wrong(&reason))?;
        Ok::<String, ConfigError>(names)
    };
    match key {
        "enabled" => options.enabled = boolean()?,
        "logger" => options.logger = logger(value).ok_or_else(|| wrong(LOGGERS))?,
        "included_keyspaces" => options.keyspaces.included = names()?,
        "excluded_keyspaces" => options.keyspaces.excluded = names()?,
        "included_categories" => options.categories.included = categories()?,
        "excluded_categories" => options.categories.excluded = categories()?,
        "included_users" => options.users.included = names()?,
        "excluded_users" => options.users.excluded = names()?,
        "audit_logs_dir" => {
            options.directory = Some(PathBuf::from(text()?)).filter(|path| !path.as_os_str().is_empty())
        }
        "archive_command" if text()?.trim().is_empty() => {}
        "archive_command" => return Err(wrong(&format!("nothing. {ARCHIVE_REFUSED}"))),
        "allow_nodetool_archive_command" => {
            if boolean()? {
                return Err(wrong(&format!("false. {ARCHIVE_REFUSED}")));
            }
        }
        "roll_cycle" => {
            let cycle = RollCycle::of_name(&text()?.trim().to_uppercase());
            options.roll_cycle = cycle.ok_or_else(|| wrong(ROLL_CYCLES))?;
        }
        "block" => options.block = boolean()?,
        "max_queue_weight" => options.queue_bytes_max = number(1)?,
        "max_log_size" => options.log_bytes_max = number(1)?,
        "max_archive_retries" => {
            options.archive_retries_max = value.text().parse().map_err(|_| wrong("a whole number"))?;
        }
        _ => return Err(option.unknown(KEYS)),
    }
    Ok(())
}

fn logger(value: &Yaml) -> Option<AuditLogger> {
    let (class, parameters) = class_and_parameters(value)?;
    let mut file = FileParameters::default();
    for (key, value) in parameters.into_iter().flatten() {
        let text = value.text();
        match key.as_str() {
            "format" => {
                file.format = match text.to_ascii_lowercase().as_str() {
                    "text" => AuditFormat::Text,
                    "json" => AuditFormat::Json,
                    _ => return None,
                }
            }
            "max_file_size" => match (Kind::Size { min: 1 << 10, max: u64::MAX }).parse(&text)? {
                Value::Size(bytes) => file.file_bytes_max = bytes,
                _ => return None,
            },
            "flush_period" => match (Kind::Duration { min_ms: 0 }).parse(&text)? {
                Value::Duration(period) => file.flush_period = period,
                _ => return None,
            },
            "sync" => match Kind::Boolean.parse(&text)? {
                Value::Boolean(yes) => file.sync = yes,
                _ => return None,
            },
            // Other loggers have parameters of their own.
            _ if class.ends_with("FileAuditLogger") => return None,
            _ => {}
        }
    }
    Some(AuditLogger::of_class(&class, file))
}

/// The options as `system_views.settings` shows them (`AuditLogOptions.toString`).
pub fn audit_text(options: &AuditOptions) -> String {
    let AuditOptions { enabled, logger, keyspaces, categories, users, directory, roll_cycle, block, .. } =
        options;
    let directory = directory.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    format!(
        "AuditLogOptions{{enabled={enabled}, logger='{}', included_keyspaces='{}', excluded_keyspaces='{}', \
         included_categories='{}', excluded_categories='{}', included_users='{}', excluded_users='{}', \
         audit_logs_dir='{directory}', archive_command='', roll_cycle='{}', block={block}, max_queue_weight={}, \
         max_log_size={}, max_archive_retries={}}}",
        logger.class(),
        keyspaces.included,
        keyspaces.excluded,
        categories.included,
        categories.excluded,
        users.included,
        users.excluded,
        roll_cycle.name(),
        options.queue_bytes_max,
        options.log_bytes_max,
        options.archive_retries_max,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<AuditOptions, String> {
        audit_options(&Yaml::read(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn cassandras_own_section_is_read() {
        let text = "enabled: false\nlogger:\n  - class_name: BinAuditLogger\nroll_cycle: HOURLY\nblock: true\n\
                    max_queue_weight: 268435456\nmax_log_size: 17179869184\narchive_command:\nmax_archive_retries: 10\n";
        assert_eq!(options(text), Ok(AuditOptions::default()));
        let text = "enabled: true\nlogger: {class_name: org.apache.cassandra.audit.FileAuditLogger, parameters: [{format: json, \
                    max_file_size: 1MiB, flush_period: 0ms, sync: true}]}\nincluded_categories: dml, ddl\nexcluded_users: a , b\n";
        let found = options(text).unwrap();
        assert_eq!((&*found.categories.included, &*found.users.excluded), ("DML,DDL", "a,b"));
        assert!(found.logger.file().is_ok_and(|file| file.format == AuditFormat::Json && file.sync));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_words() {
        for (text, words) in [
            ("enabled: true", "ask for FileAuditLogger"),
            ("enabled: true\nlogger: org.apache.cassandra.audit.BinAuditLogger", "Chronicle"),
            ("enabled: true\nlogger: NoOpAuditLogger", "enabled: false"),
            ("enabled: true\nlogger: com.acme.Logger", "there is no logger Logger"),
            ("logger: {class_name: FileAuditLogger, parameters: {colour: red}}", "max_file_size"),
            ("included_categories: DML,NONE", "category NONE not found"),
            ("archive_command: /bin/move %path", "Helenus runs no commands"),
            ("roll_cycle: YEARLY", "MINUTELY, HOURLY"),
            ("enable: true", "audit_logs_dir"),
            ("max_log_size: -1", "a whole number"),
        ] {
            let refusal = options(text).unwrap_err();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }
}
