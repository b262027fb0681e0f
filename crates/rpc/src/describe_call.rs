//! Describes calls and exceptions in words, for logs and counters.

use crate::context::Rpc;
use crate::session::Session;
use crate::statement::{subject as subject_of_cql2, text};
use helenus_cql::audit::{EventType, Subject};
use helenus_cql::backend::Backend;
use helenus_wire::thrift::{
    ApplicationFailure, Exception, Field, Message, MessageHead, Method, Reader, args,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest statement that is parsed for a log alone.
const PARSED_BYTES_MAX: usize = 16 << 10;

/// An exception sent to a client. `NotFoundException` is a normal answer and not counted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The kind of exception.
    pub kind: RefusedKind,
    /// The text, which may quote the client's values.
    pub text: String,
    /// Whether the client lacks a permission, or has not logged in, whatever the kind of exception.
    pub is_unauthorized: bool,
}

/// The exceptions of the interface and of the Thrift protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedKind {
    /// The request is invalid.
    InvalidRequest,
    /// The server is too busy.
    Unavailable,
    /// The operation did not finish in time.
    TimedOut,
    /// The login was refused.
    Authentication,
    /// The client lacks the permission.
    Authorization,
    /// The method does not exist.
    UnknownMethod,
    /// The message is not a call.
    InvalidMessageType,
    /// The arguments cannot be decoded.
    Protocol,
    /// The server failed.
    Internal,
}

impl RefusedKind {
    /// All of them.
    pub const ALL: [RefusedKind; 9] = [
        RefusedKind::InvalidRequest,
        RefusedKind::Unavailable,
        RefusedKind::TimedOut,
        RefusedKind::Authentication,
        RefusedKind::Authorization,
        RefusedKind::UnknownMethod,
        RefusedKind::InvalidMessageType,
        RefusedKind::Protocol,
        RefusedKind::Internal,
    ];

    /// The exception's name for clients: that of the interface, or of a kind of Thrift's `TApplicationException`.
    pub fn name(self) -> &'static str {
        match self {
            RefusedKind::InvalidRequest => "InvalidRequestException",
            RefusedKind::Unavailable => "UnavailableException",
            RefusedKind::TimedOut => "TimedOutException",
            RefusedKind::Authentication => "AuthenticationException",
            RefusedKind::Authorization => "AuthorizationException",
            RefusedKind::UnknownMethod => "UNKNOWN_METHOD",
            RefusedKind::InvalidMessageType => "INVALID_MESSAGE_TYPE",
            RefusedKind::Protocol => "PROTOCOL_ERROR",
            RefusedKind::Internal => "INTERNAL_ERROR",
        }
    }

    /// Whether the failure is the server's rather than the client's.
    pub fn is_servers(self) -> bool {
        matches!(self, RefusedKind::Unavailable | RefusedKind::TimedOut | RefusedKind::Internal)
    }
}

impl Refused {
    pub(crate) fn of_exception(exception: &Exception) -> Option<Refused> {
        let (kind, text) = match exception {
            Exception::NotFound => return None,
            Exception::InvalidRequest(why) => (RefusedKind::InvalidRequest, why.as_str()),
            Exception::Unavailable => (RefusedKind::Unavailable, "the server could not do it now"),
            Exception::TimedOut => (RefusedKind::TimedOut, "it failed, or did not come through in time"),
            Exception::Authentication(why) => (RefusedKind::Authentication, why.as_str()),
            Exception::Authorization(why) => (RefusedKind::Authorization, why.as_str()),
        };
        let is_unauthorized = kind == RefusedKind::Authorization;
        Some(Refused { kind, text: text.to_owned(), is_unauthorized })
    }

    /// The refusal of a call whose client may not make it.
    pub(crate) fn of_missing_permission(text: String) -> Refused {
        Refused { kind: RefusedKind::InvalidRequest, text, is_unauthorized: true }
    }

    pub(crate) fn of_failure(failure: ApplicationFailure, text: &str) -> Refused {
        let kind = match failure {
            ApplicationFailure::UnknownMethod => RefusedKind::UnknownMethod,
            ApplicationFailure::InvalidMessageType => RefusedKind::InvalidMessageType,
            ApplicationFailure::Internal => RefusedKind::Internal,
            ApplicationFailure::Protocol => RefusedKind::Protocol,
        };
        Refused { kind, text: text.to_owned(), is_unauthorized: false }
    }
}

/// What is known of the text of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextParse {
    /// Whether it is a statement. If not, nobody knows which part of it is a secret.
    pub is_statement: bool,
    /// Whether its values may be secrets: it, or a part of it, is on a table of roles and rights.
    pub has_secret_values: bool,
}

/// A call in the form that logs show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDescription {
    /// Whether `text` is a CQL statement, with its literals.
    pub is_statement: bool,
    /// The statement; for other calls, the method's name and the column families.
    pub text: String,
    /// The key of a call on one row, in hexadecimal.
    pub key: Option<String>,
    /// What it is about, for the audit log.
    pub subject: Subject,
    /// Whether `text` is a statement that could be parsed, and what logs may show of it. These are known of the text alone: the
    /// subject is that of the call, which may only prepare the text.
    pub parse: TextParse,
    /// The role of its session; `None` before a login.
    pub role: Option<Arc<str>>,
}

impl Rpc {
    /// Describes the call of a message, or states that the message is not a call.
    #[cold]
    pub fn describe(&self, message: &Message<'_>, session: &Session) -> CallDescription {
        let mut reader = Reader::new(message.bytes);
        let method = MessageHead::read(&mut reader).ok().and_then(|head| Method::of_name(head.name));
        let role = session.identity.role.clone();
        let Some(method) = method else {
            let text = "a message that is no call".to_owned();
            let subject = Subject::bare(EventType::RequestFailure);
            let parse = TextParse::default();
            return CallDescription { is_statement: false, text, key: None, subject, parse, role };
        };
        // A stranger's call is not looked at more closely than its refusal did: a compressed statement may be a thousand times
        // as long as its message, and whatever is written of it takes the log's room.
        if self.has_logins() && role.is_none() && method != Method::Login {
            let subject = Subject::bare(event_of(method));
            return CallDescription {
                is_statement: false,
                text: method.name().to_owned(),
                key: None,
                subject,
                parse: TextParse::default(),
                role,
            };
        }
        if let Some(text) = self.statement_of(method, reader.clone()) {
            let (subject, parse) = self.subject_of_statement(method, &text, session);
            return CallDescription { is_statement: true, text, key: None, subject, parse, role };
        }
        let subject = subject_of_call(method, reader.clone(), session);
        let (families, key) = about(method, reader);
        let keyspace = session.keyspace.as_deref().unwrap_or_default();
        let families: Vec<String> = families.iter().map(|family| format!("{keyspace}.{family}")).collect();
        let name = method.name();
        let text =
            if families.is_empty() { name.to_owned() } else { format!("{name} of {}", families.join(", ")) };
        CallDescription { is_statement: false, text, key, subject, parse: TextParse::default(), role }
    }

    /// What a statement is about in its call, and what its text alone says.
    fn subject_of_statement(&self, method: Method, text: &str, session: &Session) -> (Subject, TextParse) {
        let keyspace = session.keyspace.as_deref();
        let found = match method {
            Method::ExecuteCqlQuery | Method::PrepareCqlQuery | Method::ExecutePreparedCqlQuery => {
                subject_of_cql2(text, keyspace)
            }
            _ => match self.storage.local() {
                Some(local) => local.subject(text, keyspace).map(|found| (*found).clone()),
                None => {
                    let parse = parse_of_elsewhere(text);
                    return (Subject::bare(event_of(method)), parse);
                }
            },
        };
        let parse = TextParse {
            is_statement: found.is_some(),
            has_secret_values: found.as_ref().is_some_and(Subject::has_secret_values),
        };
        let subject = found.unwrap_or(Subject::bare(event_of(method)));
        let subject = match method {
            // Nothing of a batch has been done.
            Method::PrepareCqlQuery | Method::PrepareCql3Query => {
                Subject { event: EventType::PrepareStatement, parts: Box::default(), ..subject }
            }
            _ => subject,
        };
        (subject, parse)
    }

    fn statement_of(&self, method: Method, mut reader: Reader<'_>) -> Option<String> {
        let reader = &mut reader;
        match method {
            Method::ExecuteCql3Query => {
                let asked = args::Cql3Query::read(reader).ok()?;
                text(asked.query, asked.compression).ok()
            }
            Method::ExecuteCqlQuery | Method::PrepareCqlQuery | Method::PrepareCql3Query => {
                let asked = args::CqlQuery::read(reader).ok()?;
                text(asked.query, asked.compression).ok()
            }
            Method::ExecutePreparedCql3Query => {
                let asked = args::PreparedCql3::read(reader).ok()?;
                let id = self.prepared.id_of(asked.item_id)?;
                self.storage.local()?.prepared(&id).ok()?.map(|statement| statement.query.to_string())
            }
            Method::ExecutePreparedCqlQuery => {
                let asked = args::PreparedCql::read(reader).ok()?;
                self.prepared.text_of(asked.item_id).map(|text| text.to_string())
            }
            _ => None,
        }
    }
}

/// What is known of the text of a CQL 3 statement that runs elsewhere. One that is long counts as none: its syntax tree would take a
/// multiple of its memory.
fn parse_of_elsewhere(text: &str) -> TextParse {
    let is_statement = text.len() <= PARSED_BYTES_MAX && helenus_cql::syntax::parse(text).is_ok();
    TextParse {
        is_statement,
        has_secret_values: is_statement && helenus_cql::syntax::has_secret_values(text),
    }
}

/// What a call does, in the terms of the audit log. Cassandra's audit log came after this interface had gone; the types
/// are those of the statements that do the same.
fn event_of(method: Method) -> EventType {
    match method {
        Method::Login => EventType::LoginSuccess,
        Method::SetKeyspace => EventType::UseKeyspace,
        Method::Get
        | Method::GetSlice
        | Method::GetCount
        | Method::MultigetSlice
        | Method::MultigetCount
        | Method::GetRangeSlices
        | Method::GetPagedSlice
        | Method::GetIndexedSlices
        | Method::GetMultiSlice => EventType::Select,
        Method::Insert | Method::Add | Method::Cas => EventType::Update,
        Method::BatchMutate | Method::AtomicBatchMutate => EventType::Batch,
        Method::Remove | Method::RemoveCounter => EventType::Delete,
        Method::Truncate => EventType::Truncate,
        Method::SystemAddColumnFamily => EventType::CreateTable,
        Method::SystemDropColumnFamily => EventType::DropTable,
        Method::SystemUpdateColumnFamily => EventType::AlterTable,
        Method::SystemAddKeyspace => EventType::CreateKeyspace,
        Method::SystemDropKeyspace => EventType::DropKeyspace,
        Method::SystemUpdateKeyspace => EventType::AlterKeyspace,
        Method::PrepareCqlQuery | Method::PrepareCql3Query => EventType::PrepareStatement,
        // The text of these is not known, or it is not a statement.
        Method::ExecuteCqlQuery
        | Method::ExecuteCql3Query
        | Method::ExecutePreparedCqlQuery
        | Method::ExecutePreparedCql3Query => EventType::RequestFailure,
        Method::SetCqlVersion
        | Method::DescribeSchemaVersions
        | Method::DescribeClusterName
        | Method::DescribeVersion
        | Method::DescribeRing
        | Method::DescribeLocalRing
        | Method::DescribeTokenMap
        | Method::DescribePartitioner
        | Method::DescribeSnitch
        | Method::DescribeKeyspaces
        | Method::DescribeKeyspace
        | Method::DescribeSplits
        | Method::DescribeSplitsEx
        | Method::TraceNextQuery => EventType::Describe,
    }
}

/// The subject of a call that is not a statement.
fn subject_of_call(method: Method, reader: Reader<'_>, session: &Session) -> Subject {
    let event = event_of(method);
    let in_use = session.keyspace.as_deref().map(Box::from);
    let mut named = reader.clone();
    let (keyspace, scope): (Option<Box<str>>, Option<Box<str>>) = match method {
        Method::SetKeyspace
        | Method::SystemDropKeyspace
        | Method::DescribeKeyspace
        | Method::DescribeRing
        | Method::DescribeLocalRing => {
            (args::OfKeyspace::read(&mut named).ok().map(|asked| asked.keyspace.into()), None)
        }
        Method::SystemAddKeyspace | Method::SystemUpdateKeyspace => {
            (args::WithKsDef::read(&mut named).ok().map(|asked| (*asked.ks_def.name).into()), None)
        }
        Method::SystemAddColumnFamily | Method::SystemUpdateColumnFamily => {
            match args::WithCfDef::read(&mut named) {
                Ok(asked) => (Some((*asked.cf_def.keyspace).into()), Some((*asked.cf_def.name).into())),
                Err(_) => (in_use, None),
            }
        }
        Method::SystemDropColumnFamily => {
            (in_use, args::OfColumnFamily::read(&mut named).ok().map(|asked| asked.column_family.into()))
        }
        Method::Login => (None, None),
        _ => {
            let (families, _) = about(method, reader);
            let families: Vec<String> = families.into_iter().collect();
            (in_use, (!families.is_empty()).then(|| families.join(",").into()))
        }
    };
    Subject { keyspace, scope, ..Subject::bare(event) }
}

/// The column families of a call, and its key if it has one.
fn about(method: Method, mut reader: Reader<'_>) -> (BTreeSet<String>, Option<String>) {
    let reader = &mut reader;
    let one = |family: &str, key: Option<&[u8]>| {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect();
        (BTreeSet::from([family.to_owned()]), key.map(hex))
    };
    let found = match method {
        Method::Get => {
            args::Get::read(reader).map(|asked| one(asked.column_path.column_family, Some(asked.key)))
        }
        Method::GetSlice | Method::GetCount => {
            args::GetSlice::read(reader).map(|asked| one(asked.column_parent.column_family, Some(asked.key)))
        }
        Method::MultigetSlice | Method::MultigetCount => {
            args::MultigetSlice::read(reader).map(|asked| one(asked.column_parent.column_family, None))
        }
        Method::GetRangeSlices => {
            args::GetRangeSlices::read(reader).map(|asked| one(asked.column_parent.column_family, None))
        }
        Method::GetIndexedSlices => {
            args::GetIndexedSlices::read(reader).map(|asked| one(asked.column_parent.column_family, None))
        }
        Method::GetPagedSlice => {
            args::GetPagedSlice::read(reader).map(|asked| one(asked.column_family, None))
        }
        Method::GetMultiSlice => args::GetMultiSlice::read(reader).map(|asked| {
            let family = asked.request.column_parent.as_ref().map(|parent| parent.column_family);
            family.map(|family| one(family, asked.request.key)).unwrap_or_default()
        }),
        Method::DescribeSplits | Method::DescribeSplitsEx => {
            args::DescribeSplits::read(reader).map(|asked| one(asked.column_family, None))
        }
        Method::Insert => {
            args::Insert::read(reader).map(|asked| one(asked.column_parent.column_family, Some(asked.key)))
        }
        Method::Add => {
            args::Add::read(reader).map(|asked| one(asked.column_parent.column_family, Some(asked.key)))
        }
        Method::Remove => {
            args::Remove::read(reader).map(|asked| one(asked.column_path.column_family, Some(asked.key)))
        }
        Method::Cas => args::Cas::read(reader).map(|asked| one(asked.column_family, Some(asked.key))),
        Method::RemoveCounter => {
            args::RemoveCounter::read(reader).map(|asked| one(asked.path.column_family, Some(asked.key)))
        }
        Method::BatchMutate | Method::AtomicBatchMutate => args::BatchMutate::read(reader).map(|asked| {
            let of_rows = asked.mutation_map.0.iter().flat_map(|(_, families)| families.0.iter());
            (of_rows.map(|(family, _)| (*family).to_owned()).collect(), None)
        }),
        Method::Truncate => args::OfColumnFamily::read(reader).map(|asked| one(asked.column_family, None)),
        // Calls about no family, those whose subject is found elsewhere, and statements, whose text says what they are about.
        Method::Login
        | Method::SetKeyspace
        | Method::DescribeSchemaVersions
        | Method::DescribeKeyspaces
        | Method::DescribeClusterName
        | Method::DescribeVersion
        | Method::DescribeRing
        | Method::DescribeLocalRing
        | Method::DescribeTokenMap
        | Method::DescribePartitioner
        | Method::DescribeSnitch
        | Method::DescribeKeyspace
        | Method::TraceNextQuery
        | Method::SystemAddColumnFamily
        | Method::SystemDropColumnFamily
        | Method::SystemUpdateColumnFamily
        | Method::SystemAddKeyspace
        | Method::SystemDropKeyspace
        | Method::SystemUpdateKeyspace
        | Method::SetCqlVersion
        | Method::ExecuteCqlQuery
        | Method::ExecuteCql3Query
        | Method::PrepareCqlQuery
        | Method::PrepareCql3Query
        | Method::ExecutePreparedCqlQuery
        | Method::ExecutePreparedCql3Query => return (BTreeSet::new(), None),
    };
    found.unwrap_or_default()
}
