//! REGISTER: the kinds of events that a connection wants to get.

use crate::WireError;
use crate::native::primitives::{Put, Reader};
use crate::native::{EventType, Version};

/// A set of [`EventType`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventTypes(u8);

impl EventTypes {
    /// The set with `event` added.
    #[must_use]
    pub fn with(self, event: EventType) -> Self {
        EventTypes(self.0 | 1 << event as u8)
    }

    /// Whether `event` is in the set.
    pub fn contains(self, event: EventType) -> bool {
        self.0 & 1 << event as u8 != 0
    }

    /// The union of two sets, for a connection that registers again.
    #[must_use]
    pub fn and(self, other: EventTypes) -> Self {
        EventTypes(self.0 | other.0)
    }

    /// The members.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |event| self.contains(*event))
    }

    /// Reads the names of events, in any case, as Cassandra does.
    pub(crate) fn read(reader: &mut Reader<'_>, version: Version) -> Result<Self, WireError> {
        let mut events = EventTypes::default();
        for _ in 0..reader.short()? {
            let event = EventType::from_name(reader.string()?)?;
            if event.since() > version {
                return Err(WireError::EventTooNew { event, version });
            }
            events = events.with(event);
        }
        Ok(events)
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.put_short(self.iter().count() as u16);
        self.iter().for_each(|event| out.put_string(event.name()));
    }
}
