//! EVENT, and the schema change, which is also a kind of RESULT (Cassandra's `transport.Event`).

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::WireError;
use crate::native::Version;
use crate::native::primitives::{Put, Reader};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $of:literal; $($(#[$variant_doc:meta])* $variant:ident = $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The value with a name, in any case.
            pub fn from_name(name: &str) -> Result<$name, WireError> {
                let found = $name::ALL.into_iter().find(|value| value.name().eq_ignore_ascii_case(name));
                found.ok_or_else(|| WireError::InvalidEnumValue { value: name.to_owned(), of: $of })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// The kinds of events a client can register for.
    EventType, "Type";
    /// A node joined, left or moved.
    TopologyChange = "TOPOLOGY_CHANGE";
    /// A node came up or went down.
    StatusChange = "STATUS_CHANGE";
    /// A keyspace or something in it was created, changed or dropped.
    SchemaChange = "SCHEMA_CHANGE";
    /// Since v4; some clients register for it, but no server sends it.
    TraceComplete = "TRACE_COMPLETE";
}

impl EventType {
    /// The first version with this kind.
    pub fn since(self) -> Version {
        match self {
            EventType::TraceComplete => Version::V4,
            EventType::TopologyChange | EventType::StatusChange | EventType::SchemaChange => Version::V3,
        }
    }
}

named! {
    /// A change of the ring.
    TopologyChange, "Change";
    /// A node joined.
    NewNode = "NEW_NODE";
    /// A node left.
    RemovedNode = "REMOVED_NODE";
    /// A node has new tokens.
    MovedNode = "MOVED_NODE";
}

named! {
    /// A change of a node's state.
    StatusChange, "Status";
    /// The node accepts clients.
    Up = "UP";
    /// The node does not accept clients.
    Down = "DOWN";
}

named! {
    /// The kind of a schema change.
    SchemaVerb, "Change";
    /// It was created.
    Created = "CREATED";
    /// It was altered.
    Updated = "UPDATED";
    /// It was dropped.
    Dropped = "DROPPED";
}

named! {
    /// The kinds of schema elements.
    SchemaKind, "Target";
    /// A keyspace.
    Keyspace = "KEYSPACE";
    /// A table, its indexes or a view.
    Table = "TABLE";
    /// A user-defined type.
    Type = "TYPE";
    /// A function.
    Function = "FUNCTION";
    /// An aggregate.
    Aggregate = "AGGREGATE";
}

/// A schema change, after which drivers read the schema again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange<'a> {
    /// The kind of change.
    pub verb: SchemaVerb,
    /// The keyspace that was changed, or that contains the changed element.
    pub keyspace: Cow<'a, str>,
    /// The changed element.
    pub target: SchemaTarget<'a>,
}

/// The element that was changed, inside its keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget<'a> {
    /// The keyspace itself.
    Keyspace,
    /// A table.
    Table(Cow<'a, str>),
    /// A user-defined type.
    Type(Cow<'a, str>),
    /// A function: name, types of its arguments in CQL.
    Function(Cow<'a, str>, Vec<Cow<'a, str>>),
    /// An aggregate: name, types of its arguments in CQL.
    Aggregate(Cow<'a, str>, Vec<Cow<'a, str>>),
}

impl SchemaTarget<'_> {
    fn kind(&self) -> SchemaKind {
        match self {
            SchemaTarget::Keyspace => SchemaKind::Keyspace,
            SchemaTarget::Table(_) => SchemaKind::Table,
            SchemaTarget::Type(_) => SchemaKind::Type,
            SchemaTarget::Function(..) => SchemaKind::Function,
            SchemaTarget::Aggregate(..) => SchemaKind::Aggregate,
        }
    }
}

impl<'a> SchemaChange<'a> {
    /// Appends the change. v3 has no functions: it gets an update of the keyspace instead, followed by an empty string,
    /// as Cassandra sends it.
    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) {
        let functions = matches!(self.target, SchemaTarget::Function(..) | SchemaTarget::Aggregate(..));
        if functions && version < Version::V4 {
            out.put_string(SchemaVerb::Updated.name());
            out.put_string(SchemaKind::Keyspace.name());
            out.put_string(&self.keyspace);
            return out.put_string("");
        }
        out.put_string(self.verb.name());
        out.put_string(self.target.kind().name());
        out.put_string(&self.keyspace);
        match &self.target {
            SchemaTarget::Keyspace => {}
            SchemaTarget::Table(name) | SchemaTarget::Type(name) => out.put_string(name),
            SchemaTarget::Function(name, arguments) | SchemaTarget::Aggregate(name, arguments) => {
                out.put_string(name);
                out.put_string_list(arguments);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let verb = SchemaVerb::from_name(reader.string()?)?;
        let kind = SchemaKind::from_name(reader.string()?)?;
        let keyspace = Cow::Borrowed(reader.string()?);
        let mut name = || reader.string().map(Cow::Borrowed);
        let target = match kind {
            SchemaKind::Keyspace => SchemaTarget::Keyspace,
            SchemaKind::Table => SchemaTarget::Table(name()?),
            SchemaKind::Type => SchemaTarget::Type(name()?),
            SchemaKind::Function => SchemaTarget::Function(name()?, read_arguments(reader)?),
            SchemaKind::Aggregate => SchemaTarget::Aggregate(name()?, read_arguments(reader)?),
        };
        Ok(SchemaChange { verb, keyspace, target })
    }
}

fn read_arguments<'a>(reader: &mut Reader<'a>) -> Result<Vec<Cow<'a, str>>, WireError> {
    Ok(reader.string_list()?.iter().map(Cow::Borrowed).collect())
}

/// An event that a server sends to the clients that registered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The ring changed at this node.
    Topology(TopologyChange, SocketAddr),
    /// This node came up or went down.
    Status(StatusChange, SocketAddr),
    /// The schema changed.
    Schema(SchemaChange<'a>),
}

impl<'a> Event<'a> {
    /// The kind a client must have registered for.
    pub fn event_type(&self) -> EventType {
        match self {
            Event::Topology(..) => EventType::TopologyChange,
            Event::Status(..) => EventType::StatusChange,
            Event::Schema(_) => EventType::SchemaChange,
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) {
        out.put_string(self.event_type().name());
        match self {
            Event::Topology(change, node) => {
                out.put_string(change.name());
                out.put_inet(*node);
            }
            Event::Status(change, node) => {
                out.put_string(change.name());
                out.put_inet(*node);
            }
            Event::Schema(change) => change.put(out, version),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        match EventType::from_name(reader.string()?)? {
            EventType::TopologyChange => {
                Ok(Event::Topology(TopologyChange::from_name(reader.string()?)?, reader.inet()?))
            }
            EventType::StatusChange => {
                Ok(Event::Status(StatusChange::from_name(reader.string()?)?, reader.inet()?))
            }
            EventType::SchemaChange => Ok(Event::Schema(SchemaChange::read(reader)?)),
            event @ EventType::TraceComplete => Err(WireError::EventTooNew { event, version }),
        }
    }
}
