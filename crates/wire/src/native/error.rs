//! ERROR responses: the codes, and the fields of each (specification section 9, Cassandra's `ErrorMessage`).
//!
//! Both halves use the same owned type, because errors are rare. Older versions do not have every code; encoding maps
//! those as `ErrorMessage.getBackwardsCompatibleException` does.

use std::net::IpAddr;

use super::primitives::{Put, Reader};
use super::{Consistency, Version};
use crate::{WireError, error_text};

macro_rules! codes {
    ($($variant:ident = $code:literal, $name:literal;)*) => {
        /// The codes of ERROR. `name` is the name in Cassandra's `ExceptionCode`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode {
            $(#[doc = $name] $variant = $code,)*
        }

        impl ErrorCode {
            /// All codes, by number.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// Cassandra's name for the code.
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }

            /// The code with a number.
            pub fn from_number(code: i32) -> Result<ErrorCode, WireError> {
                match code {
                    $($code => Ok(ErrorCode::$variant),)*
                    code => Err(WireError::UnknownErrorCode { code }),
                }
            }
        }
    };
}

codes! {
    Server = 0x0000, "SERVER_ERROR";
    Protocol = 0x000A, "PROTOCOL_ERROR";
    BadCredentials = 0x0100, "BAD_CREDENTIALS";
    Unavailable = 0x1000, "UNAVAILABLE";
    Overloaded = 0x1001, "OVERLOADED";
    IsBootstrapping = 0x1002, "IS_BOOTSTRAPPING";
    Truncate = 0x1003, "TRUNCATE_ERROR";
    WriteTimeout = 0x1100, "WRITE_TIMEOUT";
    ReadTimeout = 0x1200, "READ_TIMEOUT";
    ReadFailure = 0x1300, "READ_FAILURE";
    FunctionFailure = 0x1400, "FUNCTION_FAILURE";
    WriteFailure = 0x1500, "WRITE_FAILURE";
    CdcWriteFailure = 0x1600, "CDC_WRITE_FAILURE";
    CasWriteUnknown = 0x1700, "CAS_WRITE_UNKNOWN";
    Syntax = 0x2000, "SYNTAX_ERROR";
    Unauthorized = 0x2100, "UNAUTHORIZED";
    Invalid = 0x2200, "INVALID";
    Config = 0x2300, "CONFIG_ERROR";
    AlreadyExists = 0x2400, "ALREADY_EXISTS";
    Unprepared = 0x2500, "UNPREPARED";
}

impl ErrorCode {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }
}

macro_rules! write_types {
    ($($variant:ident, $name:literal;)*) => {
        /// The kind of write that failed or timed out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum WriteType {
            $(#[doc = $name] $variant,)*
        }

        impl WriteType {
            /// All kinds.
            pub const ALL: &'static [WriteType] = &[$(WriteType::$variant,)*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(WriteType::$variant => $name,)*
                }
            }
        }
    };
}

write_types! {
    Simple, "SIMPLE";
    Batch, "BATCH";
    UnloggedBatch, "UNLOGGED_BATCH";
    Counter, "COUNTER";
    BatchLog, "BATCH_LOG";
    Cas, "CAS";
    View, "VIEW";
    Cdc, "CDC";
}

/// Why one replica failed. Unknown codes become [`FailureReason::Unknown`], as in Cassandra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum FailureReason {
    /// Any other reason.
    Unknown = 0,
    /// More tombstones than `tombstone_failure_threshold`.
    ReadTooManyTombstones = 1,
    /// The replica did not answer in time.
    Timeout = 2,
    /// The replica has another schema.
    IncompatibleSchema = 3,
    /// The result was larger than the read size limit.
    ReadSize = 4,
    /// The replica is down.
    NodeDown = 5,
    /// The index is still being built.
    IndexNotAvailable = 6,
    /// The query needs more indexes than allowed.
    ReadTooManyIndexes = 7,
}

impl FailureReason {
    fn from_code(code: u16) -> FailureReason {
        match code {
            1 => FailureReason::ReadTooManyTombstones,
            2 => FailureReason::Timeout,
            3 => FailureReason::IncompatibleSchema,
            4 => FailureReason::ReadSize,
            5 => FailureReason::NodeDown,
            6 => FailureReason::IndexNotAvailable,
            7 => FailureReason::ReadTooManyIndexes,
            _ => FailureReason::Unknown,
        }
    }
}

/// The replicas that failed: their addresses since v5, their number before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failures {
    /// The addresses and reasons. A v3 or v4 client gets their number.
    Replicas(Vec<(IpAddr, FailureReason)>),
    /// The number of replicas, as a v4 client reads it. In v5, which needs addresses, it is written as an empty map.
    Count(i32),
}

impl Failures {
    fn count(&self) -> i32 {
        match self {
            Failures::Replicas(replicas) => i32::try_from(replicas.len()).unwrap_or(i32::MAX),
            Failures::Count(count) => *count,
        }
    }
}

/// The progress of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Consistency level of the request.
    pub consistency: Consistency,
    /// Replicas that answered.
    pub received: i32,
    /// Replicas whose answer was needed.
    pub block_for: i32,
}

/// The fields of an error besides its text; they determine the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorDetail {
    /// A code without fields, for all codes that have no variant below.
    Plain(ErrorCode),
    /// Not enough replicas are alive.
    Unavailable {
        /// Consistency level of the request.
        consistency: Consistency,
        /// Replicas that must be alive.
        required: i32,
        /// Replicas known to be alive.
        alive: i32,
    },
    /// A write was not acknowledged in time.
    WriteTimeout {
        /// The progress.
        progress: Progress,
        /// The kind of write.
        write_type: WriteType,
        /// v5 and [`WriteType::Cas`] only: the rounds lost to other writers.
        contentions: Option<u16>,
    },
    /// A read was not answered in time.
    ReadTimeout {
        /// The progress.
        progress: Progress,
        /// Whether the replica that was asked for data answered.
        data_present: bool,
    },
    /// A read failed on a replica.
    ReadFailure {
        /// The progress.
        progress: Progress,
        /// The replicas that failed.
        failures: Failures,
        /// Whether the replica that was asked for data answered.
        data_present: bool,
    },
    /// A write failed on a replica.
    WriteFailure {
        /// The progress.
        progress: Progress,
        /// The replicas that failed.
        failures: Failures,
        /// The kind of write.
        write_type: WriteType,
    },
    /// A user-defined function threw an exception.
    FunctionFailure {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        function: String,
        /// Types of its arguments, in CQL.
        argument_types: Vec<String>,
    },
    /// A conditional write of unknown outcome; a CAS write timeout before v5.
    CasWriteUnknown {
        /// The progress.
        progress: Progress,
    },
    /// The keyspace or table exists already.
    AlreadyExists {
        /// Keyspace.
        keyspace: String,
        /// Table; empty if the error is about the keyspace.
        table: String,
    },
    /// The id of an EXECUTE or BATCH is unknown, so the client must prepare the statement again.
    Unprepared {
        /// The id.
        id: Vec<u8>,
    },
}

impl ErrorDetail {
    /// The code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            ErrorDetail::Plain(code) => *code,
            ErrorDetail::Unavailable { .. } => ErrorCode::Unavailable,
            ErrorDetail::WriteTimeout { .. } => ErrorCode::WriteTimeout,
            ErrorDetail::ReadTimeout { .. } => ErrorCode::ReadTimeout,
            ErrorDetail::ReadFailure { .. } => ErrorCode::ReadFailure,
            ErrorDetail::WriteFailure { .. } => ErrorCode::WriteFailure,
            ErrorDetail::FunctionFailure { .. } => ErrorCode::FunctionFailure,
            ErrorDetail::CasWriteUnknown { .. } => ErrorCode::CasWriteUnknown,
            ErrorDetail::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            ErrorDetail::Unprepared { .. } => ErrorCode::Unprepared,
        }
    }
}

/// An ERROR response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// Text for people; drivers match parts of it.
    pub message: String,
    /// Code and fields.
    pub detail: ErrorDetail,
}

impl From<&WireError> for ErrorMessage {
    fn from(error: &WireError) -> Self {
        ErrorMessage { message: error.to_string(), detail: ErrorDetail::Plain(error.code()) }
    }
}

impl ErrorMessage {
    /// An error without fields. `code` must be one without fields, because clients read the fields of the others.
    pub fn plain(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorMessage { message: message.into(), detail: ErrorDetail::Plain(code) }
    }

    /// Appends the body in the form for clients of `version`.
    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) {
        match self.for_version(version) {
            Some(older) => older.put_as_is(out, version),
            None => self.put_as_is(out, version),
        }
    }

    /// The error that replaces this one in `version`, with Cassandra's text for that case.
    fn for_version(&self, version: Version) -> Option<ErrorMessage> {
        let timed_out = |progress: &Progress, detail| {
            let message = format!("Operation timed out - received only {} responses.", progress.received);
            Some(ErrorMessage { message, detail })
        };
        let v3 = version < Version::V4;
        match &self.detail {
            ErrorDetail::ReadFailure { progress, data_present, .. } if v3 => {
                let detail = ErrorDetail::ReadTimeout { progress: *progress, data_present: *data_present };
                timed_out(progress, detail)
            }
            ErrorDetail::WriteFailure { progress, write_type, .. } if v3 => {
                let write_type = *write_type;
                timed_out(
                    progress,
                    ErrorDetail::WriteTimeout { progress: *progress, write_type, contentions: None },
                )
            }
            ErrorDetail::FunctionFailure { .. } | ErrorDetail::Plain(ErrorCode::CdcWriteFailure) if v3 => {
                let message = format!("ERROR {}: {}", self.detail.code().name(), self.message);
                Some(ErrorMessage::plain(ErrorCode::Invalid, message))
            }
            ErrorDetail::WriteTimeout { progress, contentions: Some(_), .. }
            | ErrorDetail::CasWriteUnknown { progress }
                if version < Version::V5 =>
            {
                let detail = ErrorDetail::WriteTimeout {
                    progress: *progress,
                    write_type: WriteType::Cas,
                    contentions: None,
                };
                timed_out(progress, detail)
            }
            _ => None,
        }
    }

    fn put_as_is(&self, out: &mut Vec<u8>, version: Version) {
        out.put_int(self.detail.code().number());
        out.put_string(&error_text(&self.message));
        match &self.detail {
            ErrorDetail::Plain(_) => {}
            ErrorDetail::Unavailable { consistency, required, alive } => {
                out.put_consistency(*consistency);
                out.put_int(*required);
                out.put_int(*alive);
            }
            ErrorDetail::WriteTimeout { progress, write_type, contentions } => {
                put_progress(out, progress);
                out.put_string(write_type.name());
                if let (Version::V5, Some(contentions)) = (version, contentions) {
                    out.put_short(*contentions);
                }
            }
            ErrorDetail::ReadTimeout { progress, data_present } => {
                put_progress(out, progress);
                out.put_byte(u8::from(*data_present));
            }
            ErrorDetail::ReadFailure { progress, failures, data_present } => {
                put_progress(out, progress);
                put_failures(out, failures, version);
                out.put_byte(u8::from(*data_present));
            }
            ErrorDetail::WriteFailure { progress, failures, write_type } => {
                put_progress(out, progress);
                put_failures(out, failures, version);
                out.put_string(write_type.name());
            }
            ErrorDetail::FunctionFailure { keyspace, function, argument_types } => {
                out.put_string(keyspace);
                out.put_string(function);
                out.put_string_list(argument_types);
            }
            ErrorDetail::CasWriteUnknown { progress } => put_progress(out, progress),
            ErrorDetail::AlreadyExists { keyspace, table } => {
                out.put_string(keyspace);
                out.put_string(table);
            }
            ErrorDetail::Unprepared { id } => out.put_short_bytes(id),
        }
    }

    /// Reads a body.
    pub(crate) fn read(reader: &mut Reader<'_>, version: Version) -> Result<ErrorMessage, WireError> {
        let code = ErrorCode::from_number(reader.int()?)?;
        let message = reader.string()?.to_owned();
        let detail = match code {
            ErrorCode::Unavailable => ErrorDetail::Unavailable {
                consistency: reader.consistency()?,
                required: reader.int()?,
                alive: reader.int()?,
            },
            ErrorCode::WriteTimeout => {
                let (progress, write_type) = (read_progress(reader)?, read_write_type(reader)?);
                let has_contentions =
                    version >= Version::V5 && write_type == WriteType::Cas && !reader.rest().is_empty();
                let contentions = if has_contentions { Some(reader.short()?) } else { None };
                ErrorDetail::WriteTimeout { progress, write_type, contentions }
            }
            ErrorCode::ReadTimeout => ErrorDetail::ReadTimeout {
                progress: read_progress(reader)?,
                data_present: reader.byte()? != 0,
            },
            ErrorCode::ReadFailure => ErrorDetail::ReadFailure {
                progress: read_progress(reader)?,
                failures: read_failures(reader, version)?,
                data_present: reader.byte()? != 0,
            },
            ErrorCode::WriteFailure => ErrorDetail::WriteFailure {
                progress: read_progress(reader)?,
                failures: read_failures(reader, version)?,
                write_type: read_write_type(reader)?,
            },
            ErrorCode::FunctionFailure => ErrorDetail::FunctionFailure {
                keyspace: reader.string()?.to_owned(),
                function: reader.string()?.to_owned(),
                argument_types: reader.string_list()?.iter().map(str::to_owned).collect(),
            },
            ErrorCode::CasWriteUnknown => ErrorDetail::CasWriteUnknown { progress: read_progress(reader)? },
            ErrorCode::AlreadyExists => ErrorDetail::AlreadyExists {
                keyspace: reader.string()?.to_owned(),
                table: reader.string()?.to_owned(),
            },
            ErrorCode::Unprepared => ErrorDetail::Unprepared { id: reader.short_bytes()?.to_vec() },
            code => ErrorDetail::Plain(code),
        };
        Ok(ErrorMessage { message, detail })
    }
}

fn put_progress(out: &mut Vec<u8>, progress: &Progress) {
    out.put_consistency(progress.consistency);
    out.put_int(progress.received);
    out.put_int(progress.block_for);
}

fn read_progress(reader: &mut Reader<'_>) -> Result<Progress, WireError> {
    Ok(Progress { consistency: reader.consistency()?, received: reader.int()?, block_for: reader.int()? })
}

fn put_failures(out: &mut Vec<u8>, failures: &Failures, version: Version) {
    let replicas: &[(IpAddr, FailureReason)] = match failures {
        _ if version < Version::V5 => return out.put_int(failures.count()),
        Failures::Replicas(replicas) => replicas,
        Failures::Count(_) => &[],
    };
    out.put_int(failures_len(replicas));
    for (address, reason) in replicas {
        out.put_inet_addr(*address);
        out.put_short(*reason as u16);
    }
}

fn failures_len(replicas: &[(IpAddr, FailureReason)]) -> i32 {
    i32::try_from(replicas.len()).unwrap_or(i32::MAX)
}

fn read_failures(reader: &mut Reader<'_>, version: Version) -> Result<Failures, WireError> {
    let count = reader.int()?;
    if version < Version::V5 {
        return Ok(Failures::Count(count));
    }
    if count < 0 {
        return Err(WireError::NegativeCount { count, of: "failed replicas" });
    }
    let mut replicas = Vec::new();
    for _ in 0..count {
        replicas.push((reader.inet_addr()?, FailureReason::from_code(reader.short()?)));
    }
    Ok(Failures::Replicas(replicas))
}

fn read_write_type(reader: &mut Reader<'_>) -> Result<WriteType, WireError> {
    let name = reader.string()?;
    let found = WriteType::ALL.iter().find(|write_type| write_type.name() == name);
    found.copied().ok_or_else(|| WireError::InvalidEnumValue { value: name.to_owned(), of: "WriteType" })
}
