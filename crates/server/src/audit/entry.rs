//! One event, and its line.
//!
//! The fields, their order and their separators are those of `AuditLogEntry.getLogString`. What Cassandra writes as it is
//! becomes one line here: a statement with a line break could forge the line of another event.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use helenus_cql::audit::EventType;
use uuid::Uuid;

use super::options::AuditFormat;
use crate::log::{on_one_line, time_text};

/// The longest name that is written, bytes. Names of roles have no limit, and those of failed logins are a stranger's.
const NAME_BYTES_MAX: usize = 256;
/// The most that is written about a login, or about another request of a client that has not logged in, bytes: the text of its
/// refusal, with the name of its role.
pub(super) const LOGIN_BYTES_MAX: usize = NAME_BYTES_MAX + 128;

/// Who has made an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditUser<'a> {
    /// A role.
    Role(&'a str),
    /// The server, or a program that it runs.
    Server,
    /// Whoever may use the admin socket.
    AdminSocket,
    /// A client where nobody logs in (`AuthenticatedUser.ANONYMOUS_USERNAME`).
    Anonymous,
    /// A client before its login.
    Nobody,
}

impl<'a> AuditUser<'a> {
    /// The role, or who it is without one.
    pub fn of(role: Option<&'a str>, without: AuditUser<'a>) -> AuditUser<'a> {
        role.map_or(without, AuditUser::Role)
    }

    /// The name in the log; `None` for nobody. No role is called as the server's own names are: their first character is escaped,
    /// as a backslash is.
    pub fn name(self) -> Option<Cow<'a, str>> {
        Some(match self {
            AuditUser::Server => Cow::Borrowed("(server)"),
            AuditUser::AdminSocket => Cow::Borrowed("(admin socket)"),
            AuditUser::Anonymous => Cow::Borrowed("anonymous"),
            AuditUser::Nobody => return None,
            AuditUser::Role(role) => {
                let is_taken = matches!(role, "anonymous" | "null") || role.contains(['(', '\\']);
                let Some(first) = role.chars().next().filter(|_| is_taken) else {
                    return Some(cut_name(role));
                };
                let rest = role.get(first.len_utf8()..).unwrap_or_default();
                let rest = rest.replace('\\', "\\u{5c}").replace('(', "\\u{28}");
                Cow::Owned(cut_name(&format!("{}{rest}", first.escape_unicode())).into_owned())
            }
        })
    }
}

/// A name that is not too long.
fn cut_name(name: &str) -> Cow<'_, str> {
    cut(name, NAME_BYTES_MAX)
}

/// The beginning of a text that may be too long.
pub(crate) fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.len() <= bytes_max {
        true => Cow::Borrowed(text),
        false => {
            Cow::Owned(format!("{}...", text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()))
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'a> {
    /// What it is.
    pub event: EventType,
    /// Who has made it.
    pub user: AuditUser<'a>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// When it began, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The batch that it is part of.
    pub batch: Option<Uuid>,
    /// The keyspace of its statement, or of the session.
    pub keyspace: Option<&'a str>,
    /// Whether the keyspace is only the session's: then it says nothing about the statement, and excludes nothing.
    pub is_of_session: bool,
    /// The table or other object of its statement.
    pub scope: Option<&'a str>,
    /// The statement, and for a failure the error, without passwords.
    pub operation: &'a str,
}

/// An address as Java writes it: IPv6 without abbreviations.
pub fn java_address(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => address.segments().map(|segment| format!("{segment:x}")).join(":"),
    }
}

/// Address and port of this node as Cassandra writes them.
pub fn host_text(address: IpAddr, port: u16) -> String {
    let text = java_address(address);
    if text.contains(':') { format!("[{text}]:{port}") } else { format!("{text}:{port}") }
}

/// The date and time of a second, as Cassandra's log has them, kept for the next line.
#[derive(Debug, Default)]
pub struct DateText {
    second: Option<i64>,
    text: String,
}

impl DateText {
    fn of(&mut self, second: i64) -> &str {
        if self.second != Some(second) {
            let text = time_text(second.saturating_mul(1_000_000));
            self.text = text.get(..19).unwrap_or(&text).replace('T', " ");
            self.second = Some(second);
        }
        &self.text
    }
}

/// Appends a number without the cost of the formatting machinery.
fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut count) = (number, 0);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - count..).unwrap_or_default());
}

/// Appends a text on one line.
fn push_text(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(on_one_line(text, usize::MAX).as_bytes());
    }
}

/// Appends a name on one line. The names of roles may have any character; one that ends the field could forge another.
fn push_name(name: &str, out: &mut Vec<u8>) {
    let name = &*cut_name(name);
    match name.contains('|') {
        true => push_text(&name.replace('|', "\\u{7c}"), out),
        false => push_text(name, out),
    }
}

fn push_address(address: IpAddr, out: &mut Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                push_number(octet.into(), out);
            }
        }
        address => out.extend_from_slice(java_address(address).as_bytes()),
    }
}

impl AuditEntry<'_> {
    /// Appends the first part of the line: when, who and from where. It is the same for all requests of a client in one
    /// millisecond. `host`: `host_text` of this node.
    pub fn append_head(&self, format: AuditFormat, host: &str, date: &mut DateText, out: &mut Vec<u8>) {
        match format {
            AuditFormat::Text => self.append_head_text(host, date, out),
            AuditFormat::Json => self.append_head_json(host, out),
        }
    }

    /// Appends the second part of the line, with its end: what was asked for. It is the same each time that a prepared
    /// statement is run.
    pub fn append_tail(&self, format: AuditFormat, out: &mut Vec<u8>) {
        match format {
            AuditFormat::Text => self.append_tail_text(out),
            AuditFormat::Json => self.append_tail_json(out),
        }
    }

    fn append_head_text(&self, host: &str, date: &mut DateText, out: &mut Vec<u8>) {
        // The pattern of Cassandra's logback.xml: %-5level [%thread] %date{ISO8601} %F:%L - %msg%n
        out.extend_from_slice(b"INFO  [audit] ");
        out.extend_from_slice(date.of(self.timestamp_ms.div_euclid(1000)).as_bytes());
        out.push(b',');
        let ms = self.timestamp_ms.rem_euclid(1000);
        out.extend([ms / 100, ms / 10 % 10, ms % 10].map(|digit| b'0' + digit as u8));
        out.extend_from_slice(b" FileAuditLogger.java:51 - user:");
        push_name(self.user.name().as_deref().unwrap_or("null"), out);
        out.extend_from_slice(b"|host:/");
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(b"|source:/");
        match self.source {
            Some(source) => {
                push_address(source.ip(), out);
                if source.port() > 0 {
                    out.extend_from_slice(b"|port:");
                    push_number(source.port().into(), out);
                }
            }
            None => out.extend_from_slice(b"0.0.0.0"),
        }
        out.extend_from_slice(b"|timestamp:");
        push_number(self.timestamp_ms.unsigned_abs(), out);
    }

    fn append_tail_text(&self, out: &mut Vec<u8>) {
        for text in ["|type:", self.event.name(), "|category:", self.event.category().name()] {
            out.extend_from_slice(text.as_bytes());
        }
        if let Some(batch) = self.batch {
            out.extend_from_slice(b"|batch:");
            out.extend_from_slice(
                batch.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).as_bytes(),
            );
        }
        let is_there = |value: &&str| !value.trim().is_empty();
        for (name, value) in [("|ks:", self.keyspace), ("|scope:", self.scope)] {
            if let Some(value) = value.filter(is_there) {
                out.extend_from_slice(name.as_bytes());
                push_name(value, out);
            }
        }
        if is_there(&self.operation) {
            out.extend_from_slice(b"|operation:");
            push_text(&self.shown_operation(), out);
        }
        out.push(b'\n');
    }

    fn shown_operation(&self) -> Cow<'_, str> {
        match self.event {
            EventType::LoginError | EventType::LoginSuccess => cut(self.operation, LOGIN_BYTES_MAX),
            _ => Cow::Borrowed(self.operation),
        }
    }

    fn append_head_json(&self, host: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"timestamp\":");
        push_number(self.timestamp_ms.unsigned_abs(), out);
        let source = self.source.map(|source| source.ip().to_canonical().to_string());
        let user = self.user.name();
        let of = [
            (",\"user\":", user.as_deref()),
            (",\"host\":", Some(host)),
            (",\"source\":", source.as_deref()),
        ];
        push_members(&of, out);
        if let Some(source) = self.source {
            out.extend_from_slice(b",\"port\":");
            push_number(source.port().into(), out);
        }
    }

    fn append_tail_json(&self, out: &mut Vec<u8>) {
        let batch = self.batch.map(|batch| batch.to_string());
        let (keyspace, scope) = (self.keyspace.map(cut_name), self.scope.map(cut_name));
        let operation = self.shown_operation();
        let of = [
            (",\"type\":", Some(self.event.name())),
            (",\"category\":", Some(self.event.category().name())),
            (",\"batch\":", batch.as_deref()),
            (",\"ks\":", keyspace.as_deref()),
            (",\"scope\":", scope.as_deref()),
            (",\"operation\":", Some(&*operation)),
        ];
        push_members(&of, out);
        out.extend_from_slice(b"}\n");
    }
}

fn push_members(members: &[(&str, Option<&str>)], out: &mut Vec<u8>) {
    for (name, value) in members {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            // Writing to a Vec cannot fail.
            let _ok = serde_json::to_writer(&mut *out, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(entry: &AuditEntry<'_>, format: AuditFormat) -> String {
        let mut out = Vec::new();
        entry.append_head(format, "127.0.0.1:7000", &mut DateText::default(), &mut out);
        entry.append_tail(format, &mut out);
        String::from_utf8(out).unwrap()
    }

    const ENTRY: AuditEntry<'static> = AuditEntry {
        event: EventType::Update,
        user: AuditUser::Role("cassandra"),
        source: None,
        timestamp_ms: 1_795_792_974_337,
        batch: None,
        keyspace: Some("k"),
        is_of_session: false,
        scope: Some("t"),
        operation: "UPDATE k.t SET v = 'x\ny|z' WHERE p = 1",
    };

    #[test]
    fn a_line_has_cassandras_fields_and_is_one_line() {
        let source = Some("127.0.0.1:58330".parse().unwrap());
        assert_eq!(
            line(&AuditEntry { source, ..ENTRY }, AuditFormat::Text),
            "INFO  [audit] 2026-11-27 15:22:54,337 FileAuditLogger.java:51 - user:cassandra|host:/127.0.0.1:7000\
             |source:/127.0.0.1|port:58330|timestamp:1795792974337|type:UPDATE|category:DML|ks:k|scope:t\
             |operation:UPDATE k.t SET v = 'x y|z' WHERE p = 1\n"
        );
        let failed = AuditEntry {
            event: EventType::LoginError,
            user: AuditUser::Nobody,
            keyspace: None,
            scope: Some(" "),
            operation: "LOGIN FAILURE",
            ..ENTRY
        };
        assert!(line(&failed, AuditFormat::Text).ends_with(
            "user:null|host:/127.0.0.1:7000|source:/0.0.0.0|timestamp:1795792974337|type:LOGIN_ERROR|category:AUTH\
             |operation:LOGIN FAILURE\n"
        ));
    }

    #[test]
    fn a_line_of_json_keeps_the_statement_as_it_is() {
        let text = line(&ENTRY, AuditFormat::Json);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((value["operation"].as_str(), text.matches('\n').count()), (Some(ENTRY.operation), 1));
        assert_eq!((&value["type"], &value["ks"]), (&"UPDATE".into(), &"k".into()));
    }

    #[test]
    fn no_name_forges_a_field_or_a_line() {
        let entry = AuditEntry {
            user: AuditUser::Role("a|type:GRANT\nINFO"),
            scope: Some("roles/x|operation:y"),
            ..ENTRY
        };
        let text = line(&entry, AuditFormat::Text);
        assert!(text.contains("user:a\\u{7c}type:GRANT INFO|host:"), "{text}");
        assert!(text.contains("|scope:roles/x\\u{7c}operation:y|operation:UPDATE"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn no_role_is_called_as_the_server_is_and_no_name_is_long() {
        let own = [AuditUser::Server, AuditUser::AdminSocket, AuditUser::Anonymous, AuditUser::Nobody];
        for format in [AuditFormat::Text, AuditFormat::Json] {
            let head = |user| line(&AuditEntry { user, ..ENTRY }, format);
            let own = own.map(head);
            let roles = [
                "(server)",
                "(admin socket)",
                "anonymous",
                "null",
                " (server)",
                "\\u{28}server)",
                "\u{200b}(server)",
                "(server",
            ];
            let roles = roles.map(|role| head(AuditUser::Role(role)));
            for (at, role) in roles.iter().enumerate() {
                assert!(!own.contains(role) && !role.contains("(server"), "{role}");
                assert!(!roles[..at].contains(role), "{role}");
            }
            let long = "é".repeat(30_000);
            let user = AuditUser::Role(&long);
            let failed = AuditEntry {
                event: EventType::LoginError,
                user,
                scope: Some(&long),
                keyspace: Some(&long),
                operation: &long,
                ..ENTRY
            };
            let text = line(&failed, format);
            assert!(text.len() < 8 * NAME_BYTES_MAX, "{}", text.len());
        }
    }

    #[test]
    fn addresses_are_written_as_java_writes_them() {
        assert_eq!(host_text("::1".parse().unwrap(), 7000), "[0:0:0:0:0:0:0:1]:7000");
        assert_eq!(java_address("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1");
    }
}
