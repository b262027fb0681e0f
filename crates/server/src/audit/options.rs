//! The options of the audit log (`AuditLogOptions`, `BinLogOptions`), with those of the file logger.

use std::path::PathBuf;
use std::time::Duration;

use helenus_cql::audit::Category;

/// How often files are rolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollCycle {
    /// `MINUTELY`.
    Minutely,
    /// `HOURLY`, `FAST_HOURLY`, `LARGE_HOURLY` and so on: Chronicle's cycles of an hour differ in the sizes of its index.
    Hourly,
    /// `DAILY`, `LARGE_DAILY` and so on.
    Daily,
}

/// The names of the cycles, for errors.
pub const ROLL_CYCLES: &str = "MINUTELY, HOURLY, DAILY, LARGE_DAILY, XLARGE_DAILY, HUGE_DAILY";

impl RollCycle {
    /// The cycle of a name.
    pub fn of_name(name: &str) -> Option<RollCycle> {
        match name {
            "MINUTELY" => Some(RollCycle::Minutely),
            "HOURLY" | "FAST_HOURLY" | "LARGE_HOURLY" => Some(RollCycle::Hourly),
            "DAILY" | "FAST_DAILY" | "LARGE_DAILY" | "XLARGE_DAILY" | "HUGE_DAILY" => Some(RollCycle::Daily),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RollCycle::Minutely => "MINUTELY",
            RollCycle::Hourly => "HOURLY",
            RollCycle::Daily => "DAILY",
        }
    }

    /// The number of the period of a time in microseconds since 1970.
    pub fn period(self, wall_us: i64) -> i64 {
        let seconds = match self {
            RollCycle::Minutely => 60,
            RollCycle::Hourly => 3600,
            RollCycle::Daily => 86_400,
        };
        wall_us.div_euclid(seconds * 1_000_000)
    }
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// Those of `FileAuditLogger`, behind the prefix of Cassandra's logback pattern.
    Text,
    /// One JSON object a line.
    Json,
}

/// Parameters of the file logger, which Cassandra has in its logback.xml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileParameters {
    /// `format`.
    pub format: AuditFormat,
    /// `max_file_size`: the size from which a file is rolled, bytes.
    pub file_bytes_max: u64,
    /// `flush_period`: how long a line may wait in memory. Failed logins, refusals, DDL and DCL do not wait.
    pub flush_period: Duration,
    /// `sync`: whether lines are synced to the disk after they are written.
    pub sync: bool,
}

impl Default for FileParameters {
    fn default() -> FileParameters {
        FileParameters {
            format: AuditFormat::Text,
            file_bytes_max: 50 << 20,
            flush_period: Duration::from_millis(100),
            sync: false,
        }
    }
}

/// The class that writes the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditLogger {
    /// `FileAuditLogger`.
    File(FileParameters),
    /// A class of Cassandra that Helenus does not have, by its simple name. Nothing is written while the log is off.
    Other(String),
}

/// What to say to who asks for Cassandra's binary log.
pub const BINARY_REFUSED: &str = "BinAuditLogger, which is Cassandra's default, writes binary files of Chronicle Queue, and Helenus does not: \
                                  ask for FileAuditLogger, which writes a line of text for each event (logger: [{class_name: \
                                  FileAuditLogger}])";

impl AuditLogger {
    /// The logger of a class, with or without its package.
    pub fn of_class(class: &str, file: FileParameters) -> AuditLogger {
        match class.rsplit('.').next().unwrap_or_default() {
            "FileAuditLogger" => AuditLogger::File(file),
            other => AuditLogger::Other(other.to_owned()),
        }
    }

    /// The simple name of its class.
    pub fn class(&self) -> &str {
        match self {
            AuditLogger::File(_) => "FileAuditLogger",
            AuditLogger::Other(class) => class,
        }
    }

    /// The parameters of the file logger.
    ///
    /// # Errors
    /// It is another class; the text says what to do.
    pub fn file(&self) -> Result<&FileParameters, String> {
        match self {
            AuditLogger::File(parameters) => Ok(parameters),
            AuditLogger::Other(class) if class == "BinAuditLogger" => Err(BINARY_REFUSED.to_owned()),
            AuditLogger::Other(class) if class == "NoOpAuditLogger" => {
                Err("NoOpAuditLogger would write nothing: set enabled: false instead".to_owned())
            }
            AuditLogger::Other(class) => {
                Err(format!("there is no logger {class}: FileAuditLogger is the only one"))
            }
        }
    }
}

/// The options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// Whether the log is on.
    pub enabled: bool,
    /// What writes it.
    pub logger: AuditLogger,
    /// Keyspaces in and out, separated by commas.
    pub keyspaces: InOut,
    /// Categories in and out.
    pub categories: InOut,
    /// Roles in and out.
    pub users: InOut,
    /// The folder of the files; `None`: `audit` in the data directory.
    pub directory: Option<PathBuf>,
    /// How often files are rolled.
    pub roll_cycle: RollCycle,
    /// Whether a request waits when the queue is full; otherwise its line is lost.
    pub block: bool,
    /// The most bytes that wait to be written.
    pub queue_bytes_max: u64,
    /// The most bytes of rolled files; the oldest are removed.
    pub log_bytes_max: u64,
    /// Kept for `getauditlog`: archive commands are not run.
    pub archive_retries_max: i64,
}

/// Names that are included and excluded, each list separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InOut {
    /// Included; empty for all.
    pub included: String,
    /// Excluded, even if included.
    pub excluded: String,
}

impl Default for AuditOptions {
    /// Cassandra's defaults.
    fn default() -> AuditOptions {
        AuditOptions {
            enabled: false,
            logger: AuditLogger::Other("BinAuditLogger".to_owned()),
            keyspaces: InOut {
                included: String::new(),
                excluded: "system,system_schema,system_virtual_schema".to_owned(),
            },
            categories: InOut::default(),
            users: InOut::default(),
            directory: None,
            roll_cycle: RollCycle::Hourly,
            block: true,
            queue_bytes_max: 256 << 20,
            log_bytes_max: 16 << 30,
            archive_retries_max: 10,
        }
    }
}

/// What `enableauditlog` sets; `None` leaves the configured value.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditOverrides {
    /// The logger's class.
    pub logger: Option<String>,
    /// Keyspaces in.
    pub included_keyspaces: Option<String>,
    /// Keyspaces out.
    pub excluded_keyspaces: Option<String>,
    /// Categories in.
    pub included_categories: Option<String>,
    /// Categories out.
    pub excluded_categories: Option<String>,
    /// Roles in.
    pub included_users: Option<String>,
    /// Roles out.
    pub excluded_users: Option<String>,
    /// How often files are rolled.
    pub roll_cycle: Option<String>,
    /// Whether requests wait for a full queue.
    pub block: Option<bool>,
    /// The most bytes that wait.
    pub max_queue_weight: Option<u64>,
    /// The most bytes of rolled files.
    pub max_log_size: Option<u64>,
    /// Refused: no command is run.
    pub archive_command: Option<String>,
    /// Kept.
    pub max_archive_retries: Option<i64>,
}

impl AuditOptions {
    /// These options with some values replaced, and enabled.
    ///
    /// # Errors
    /// A value is not allowed; the text says what is.
    pub fn with(&self, overrides: &AuditOverrides) -> Result<AuditOptions, String> {
        let mut options = AuditOptions { enabled: true, ..self.clone() };
        if let Some(class) = overrides.logger.as_deref().map(str::trim).filter(|class| !class.is_empty()) {
            let parameters = self.logger.file().cloned().unwrap_or_default();
            options.logger = AuditLogger::of_class(class, parameters);
        }
        let upper = overrides.included_categories.as_deref().map(str::to_uppercase);
        let upper_out = overrides.excluded_categories.as_deref().map(str::to_uppercase);
        for (list, given) in [
            (&mut options.keyspaces.included, &overrides.included_keyspaces),
            (&mut options.keyspaces.excluded, &overrides.excluded_keyspaces),
            (&mut options.categories.included, &upper),
            (&mut options.categories.excluded, &upper_out),
            (&mut options.users.included, &overrides.included_users),
            (&mut options.users.excluded, &overrides.excluded_users),
        ] {
            // Cassandra takes no empty list from its tool.
            if let Some(names) = given.as_deref().map(tidy_list).filter(|names| !names.is_empty()) {
                *list = names;
            }
        }
        if let Some(name) = &overrides.roll_cycle {
            let cycle = RollCycle::of_name(&name.trim().to_uppercase());
            options.roll_cycle =
                cycle.ok_or_else(|| format!("roll_cycle: {name}: it is one of {ROLL_CYCLES}"))?;
        }
        if overrides.archive_command.as_deref().is_some_and(|command| !command.is_empty()) {
            return Err(ARCHIVE_REFUSED.to_owned());
        }
        options.block = overrides.block.unwrap_or(options.block);
        options.queue_bytes_max = overrides.max_queue_weight.unwrap_or(options.queue_bytes_max);
        options.log_bytes_max = overrides.max_log_size.unwrap_or(options.log_bytes_max);
        options.archive_retries_max = overrides.max_archive_retries.unwrap_or(options.archive_retries_max);
        check_categories(&options.categories.included)?;
        check_categories(&options.categories.excluded)?;
        Ok(options)
    }
}

/// What to say to who wants rolled files archived.
pub const ARCHIVE_REFUSED: &str = "archive_command: Helenus runs no commands. Rolled files keep their names, audit-TIME.log: let a job of the \
                                   system move them";

/// A list without spaces and empty names.
pub fn tidy_list(names: &str) -> String {
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(",")
}

/// Checks the names of categories.
///
/// # Errors
/// One is none.
pub fn check_categories(names: &str) -> Result<(), String> {
    for name in names.split(',').filter(|name| !name.is_empty()) {
        if !Category::ALL.iter().any(|known| known.name() == name) {
            let known: Vec<_> = Category::ALL.iter().map(|known| known.name()).collect();
            return Err(format!(
                "category {name} not found in org.apache.cassandra.audit.AuditLogEntryCategory: {}",
                known.join(", ")
            ));
        }
    }
    Ok(())
}
