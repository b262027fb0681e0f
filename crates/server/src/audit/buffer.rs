//! The lines of one thread that are not in the queue yet.
//!
//! A thread that answers requests formats its lines here, without a lock, and hands them to the queue together before it
//! sends the answers. What lines have in common is formatted once: the head for all requests of a client in one
//! millisecond, the tail for all runs of a prepared statement.

use std::net::SocketAddr;
use std::sync::Arc;

use super::entry::{AuditEntry, AuditUser, DateText};
use super::filter::Filter;
use super::options::AuditFormat;

/// From this size on, lines are handed over before the poll ends.
pub(super) const HANDED_OVER_BYTES: usize = 64 << 10;
/// The longest tail that is kept.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// What lines are made by.
pub(super) struct LineSettings {
    pub format: AuditFormat,
    pub filter: Filter,
    /// `host_text` of this node.
    pub host: String,
}

/// The lines of one thread.
#[derive(Default)]
pub struct AuditBuffer {
    pub(super) lines: Vec<u8>,
    pub(super) count: u64,
    /// The bytes that were ever appended.
    appended: u64,
    /// Which of the log's settings these are; 0: none yet.
    pub(super) generation: u64,
    /// `None` if the log is off.
    pub(super) settings: Option<Arc<LineSettings>>,
    head: Head,
}

/// A formatted head and what it was made of.
#[derive(Default)]
struct Head {
    generation: u64,
    timestamp_ms: i64,
    source: Option<SocketAddr>,
    /// Who; the name of a role is in `role`.
    user: Option<AuditUser<'static>>,
    role: String,
    date: DateText,
    bytes: Vec<u8>,
}

/// The formatted tail of a prepared statement.
#[derive(Debug, Default)]
pub struct KeptTail(Option<(AuditFormat, Box<[u8]>)>);

impl AuditBuffer {
    /// Appends the line of an event that the filter has passed. `kept`: the place of its tail.
    pub(super) fn append(&mut self, entry: &AuditEntry<'_>, kept: Option<&mut KeptTail>) {
        let Some(settings) = &self.settings else { return };
        let (format, head, out) = (settings.format, &mut self.head, &mut self.lines);
        let before = out.len();
        if head.generation != self.generation || !head.is_of(entry) {
            head.renew(entry, self.generation, settings);
        }
        out.extend_from_slice(&head.bytes);
        match kept {
            None => entry.append_tail(format, out),
            Some(KeptTail(Some((of, tail)))) if *of == format => out.extend_from_slice(tail),
            Some(KeptTail(place)) => {
                let from = out.len();
                entry.append_tail(format, out);
                let tail = out.get(from..).filter(|tail| tail.len() <= TAIL_BYTES_MAX);
                *place = tail.map(|tail| (format, tail.into()));
            }
        }
        self.count += 1;
        self.appended += (out.len() - before) as u64;
    }

    /// The number of bytes that were ever appended, whether they are still here or not.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// Forgets the lines. A buffer that a long line made grow is not kept.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to(2 * HANDED_OVER_BYTES);
        self.count = 0;
    }
}

impl Head {
    #[inline]
    fn is_of(&self, entry: &AuditEntry<'_>) -> bool {
        self.timestamp_ms == entry.timestamp_ms
            && self.source == entry.source
            && match (self.user, entry.user) {
                (Some(AuditUser::Role(_)), AuditUser::Role(role)) => self.role == role,
                (user, other) => user == Some(other),
            }
    }

    fn renew(&mut self, entry: &AuditEntry<'_>, generation: u64, settings: &LineSettings) {
        self.generation = generation;
        self.timestamp_ms = entry.timestamp_ms;
        self.source = entry.source;
        self.role.clear();
        self.user = Some(match entry.user {
            AuditUser::Role(role) => {
                self.role.push_str(role);
                AuditUser::Role("")
            }
            AuditUser::Server => AuditUser::Server,
            AuditUser::AdminSocket => AuditUser::AdminSocket,
            AuditUser::Anonymous => AuditUser::Anonymous,
            AuditUser::Nobody => AuditUser::Nobody,
        });
        self.bytes.clear();
        entry.append_head(settings.format, &settings.host, &mut self.date, &mut self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::options::AuditOptions;
    use helenus_cql::audit::EventType;
    use helenus_host::sim::Machine;

    /// The line of an entry as a new buffer has it.
    fn line(settings: &Arc<LineSettings>, entry: &AuditEntry<'_>) -> Vec<u8> {
        let mut buffer =
            AuditBuffer { settings: Some(Arc::clone(settings)), generation: 1, ..AuditBuffer::default() };
        buffer.append(entry, None);
        buffer.lines
    }

    #[test]
    fn lines_are_the_same_whatever_the_buffer_has_kept() {
        let random = Machine::new(1).host().random;
        let filter = Filter::new(&AuditOptions::default());
        let settings = [AuditFormat::Text, AuditFormat::Json]
            .map(|format| Arc::new(LineSettings { format, filter: filter.clone(), host: "h".to_owned() }));
        let mut buffer = AuditBuffer::default();
        let mut tails = [KeptTail::default(), KeptTail::default(), KeptTail::default()];
        let long = format!("SELECT '{}'", "x".repeat(TAIL_BYTES_MAX));
        let statements = ["SELECT 1", "SELECT '\n|'", long.as_str()];
        let mut expected = Vec::new();
        for _ in 0..2000 {
            let mut draw = [0_u8; 6];
            random.fill(&mut draw);
            if draw[0] == 0 || buffer.settings.is_none() {
                buffer.settings = Some(Arc::clone(&settings[usize::from(draw[1] % 2)]));
                buffer.generation += 1;
            }
            let at = usize::from(draw[2] % 3);
            let entry = AuditEntry {
                event: EventType::Select,
                user: [AuditUser::Nobody, AuditUser::Role("a"), AuditUser::Role("b|c")]
                    [usize::from(draw[3] % 3)],
                source: (draw[4] % 8 > 0).then(|| SocketAddr::from(([127, 0, 0, draw[4] % 2], 7))),
                timestamp_ms: i64::from(draw[5] % 2),
                batch: None,
                keyspace: Some("k"),
                is_of_session: false,
                scope: Some("t"),
                operation: statements[at],
            };
            expected.extend(line(buffer.settings.as_ref().unwrap(), &entry));
            buffer.append(&entry, Some(&mut tails[at]));
        }
        assert_eq!(buffer.count, 2000);
        assert!(buffer.lines == expected);
    }
}
