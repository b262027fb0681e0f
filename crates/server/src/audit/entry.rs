//! One event, and its line.
//!
//! The fields, their order and their separators are those of `AuditLogEntry.getLogString`. What Cassandra writes as it is
//! becomes one line here: a statement with a line break could forge the line of another event.

use std::net::{IpAddr, SocketAddr};

use helenus_cql::audit::EventType;
use uuid::Uuid;

use super::options::AuditFormat;
use crate::log::{on_one_line, time_text};

/// What a line takes besides the texts of its event, in bytes, at most.
const LINE_BYTES: usize = 320;

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'a> {
    /// What it is.
    pub event: EventType,
    /// The role; `None` before a login.
    pub user: Option<&'a str>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// When it began, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The batch that it is part of.
    pub batch: Option<Uuid>,
    /// The keyspace of its statement, or of the session.
    pub keyspace: Option<&'a str>,
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

/// The texts of a line that stay the same for many lines.
#[derive(Clone, Debug)]
pub struct LineTexts {
    /// `host_text` of this node.
    host: String,
    /// The second whose date is kept.
    second: i64,
    date: String,
}

impl LineTexts {
    /// The texts of a node.
    pub fn new(host: String) -> LineTexts {
        LineTexts { host, second: i64::MIN, date: String::new() }
    }

    /// The date and time of a second, as Cassandra's log has them.
    fn date(&mut self, second: i64) -> &str {
        if self.second != second {
            let text = time_text(second.saturating_mul(1_000_000));
            self.date = text.get(..19).unwrap_or(&text).replace('T', " ");
            self.second = second;
        }
        &self.date
    }
}

/// Appends a number without the cost of the formatting machinery; a busy server writes a million in a second.
fn push_number(number: u64, digits_min: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut count) = (number, 0);
    for digit in digits.iter_mut().rev() {
        if rest == 0 && count >= digits_min.max(1) {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
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

fn push_address(address: IpAddr, out: &mut Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                push_number(octet.into(), 1, out);
            }
        }
        address => out.extend_from_slice(java_address(address).as_bytes()),
    }
}

impl AuditEntry<'_> {
    /// The bytes that its line may take, but for characters that are written in a longer form.
    pub fn bytes_about(&self) -> usize {
        let of = |text: Option<&str>| text.map_or(0, str::len);
        LINE_BYTES + self.operation.len() + of(self.user) + of(self.keyspace) + of(self.scope)
    }

    /// Appends the line with its end.
    pub fn append(&self, format: AuditFormat, texts: &mut LineTexts, out: &mut Vec<u8>) {
        match format {
            AuditFormat::Text => self.append_text(texts, out),
            AuditFormat::Json => self.append_json(texts, out),
        }
    }

    fn append_text(&self, texts: &mut LineTexts, out: &mut Vec<u8>) {
        // The pattern of Cassandra's logback.xml: %-5level [%thread] %date{ISO8601} %F:%L - %msg%n
        out.extend_from_slice(b"INFO  [audit] ");
        out.extend_from_slice(texts.date(self.timestamp_ms.div_euclid(1000)).as_bytes());
        out.push(b',');
        push_number(self.timestamp_ms.rem_euclid(1000).unsigned_abs(), 3, out);
        out.extend_from_slice(b" FileAuditLogger.java:51 - user:");
        push_text(self.user.unwrap_or("null"), out);
        out.extend_from_slice(b"|host:/");
        out.extend_from_slice(texts.host.as_bytes());
        out.extend_from_slice(b"|source:/");
        match self.source {
            Some(source) => {
                push_address(source.ip(), out);
                if source.port() > 0 {
                    out.extend_from_slice(b"|port:");
                    push_number(source.port().into(), 1, out);
                }
            }
            None => out.extend_from_slice(b"0.0.0.0"),
        }
        out.extend_from_slice(b"|timestamp:");
        push_number(self.timestamp_ms.unsigned_abs(), 1, out);
        for text in ["|type:", self.event.name(), "|category:", self.event.category().name()] {
            out.extend_from_slice(text.as_bytes());
        }
        if let Some(batch) = self.batch {
            out.extend_from_slice(b"|batch:");
            out.extend_from_slice(batch.to_string().as_bytes());
        }
        for (name, value) in
            [("|ks:", self.keyspace), ("|scope:", self.scope), ("|operation:", Some(self.operation))]
        {
            if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
                out.extend_from_slice(name.as_bytes());
                push_text(value, out);
            }
        }
        out.push(b'\n');
    }

    fn append_json(&self, texts: &LineTexts, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"timestamp\":");
        push_number(self.timestamp_ms.unsigned_abs(), 1, out);
        let source = self.source.map(|source| source.ip().to_canonical().to_string());
        let batch = self.batch.map(|batch| batch.to_string());
        for (name, value) in [
            (",\"type\":", Some(self.event.name())),
            (",\"category\":", Some(self.event.category().name())),
            (",\"user\":", self.user),
            (",\"host\":", Some(&*texts.host)),
            (",\"source\":", source.as_deref()),
            (",\"batch\":", batch.as_deref()),
            (",\"ks\":", self.keyspace),
            (",\"scope\":", self.scope),
            (",\"operation\":", Some(self.operation)),
        ] {
            if let Some(value) = value {
                out.extend_from_slice(name.as_bytes());
                // Writing to a Vec cannot fail.
                let _ok = serde_json::to_writer(&mut *out, value);
            }
        }
        if let Some(source) = self.source {
            out.extend_from_slice(b",\"port\":");
            push_number(source.port().into(), 1, out);
        }
        out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(entry: &AuditEntry<'_>, format: AuditFormat) -> String {
        let mut out = Vec::new();
        entry.append(format, &mut LineTexts::new("127.0.0.1:7000".to_owned()), &mut out);
        String::from_utf8(out).unwrap()
    }

    const ENTRY: AuditEntry<'static> = AuditEntry {
        event: EventType::Update,
        user: Some("cassandra"),
        source: None,
        timestamp_ms: 1_795_792_974_337,
        batch: None,
        keyspace: Some("k"),
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
            user: None,
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
    fn addresses_are_written_as_java_writes_them() {
        assert_eq!(host_text("::1".parse().unwrap(), 7000), "[0:0:0:0:0:0:0:1]:7000");
        assert_eq!(java_address("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1");
    }
}
