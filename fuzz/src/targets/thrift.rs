//! The old RPC interface: messages found in a stream, their heads, and every call's arguments.

use helenus_wire::thrift::{
    Call, Column, ColumnParent, ConsistencyLevel, Field, Framing, Limits, Map, MessageHead, Method, Mutation,
    Reader, Reply, args, begin_call, end_message, next_message,
};

/// Limits small enough that both are met.
const LIMITS: Limits = Limits { frame: 1 << 16, message: 1 << 16 };

pub fn corpus() -> Vec<Vec<u8>> {
    let level = ConsistencyLevel::One;
    let parent = || ColumnParent { column_family: "Standard1", super_column: None };
    let column = || Column { name: b"name", value: Some(b"value"), timestamp: Some(1), ttl: Some(5) };
    let mut insert = Vec::new();
    let at = begin_call(Method::Insert, 1, &mut insert);
    args::Insert { key: b"key", column_parent: parent(), column: column(), consistency_level: level }
        .write(&mut insert);
    end_message(at, &mut insert);
    let mut batch = Vec::new();
    let at = begin_call(Method::BatchMutate, 2, &mut batch);
    let mutation = Mutation {
        column_or_supercolumn: Some(helenus_wire::thrift::ColumnOrSuperColumn {
            column: Some(column()),
            super_column: None,
            counter_column: None,
            counter_super_column: None,
        }),
        deletion: None,
    };
    let families = Map(vec![("Standard1", vec![mutation])]);
    args::BatchMutate { mutation_map: Map(vec![(&b"key"[..], families)]), consistency_level: level }
        .write(&mut batch);
    end_message(at, &mut batch);
    let unframed = insert.get(4..).unwrap_or_default().to_vec();
    vec![[insert.clone(), batch.clone()].concat(), insert, batch, unframed]
}

/// Messages, one after the other, as a connection finds them.
pub fn run(bytes: &[u8]) {
    let (mut rest, mut framing) = (bytes, None);
    while let Ok(Some(message)) = next_message(rest, framing, LIMITS) {
        framing = Some(message.framing);
        read(message.bytes, message.framing);
        rest = rest.get(message.size..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
    }
}

fn read(bytes: &[u8], framing: Framing) {
    let mut reader = Reader::new(bytes);
    let Ok(head) = MessageHead::read(&mut reader) else { return };
    let at = reader.rest();
    let Some(method) = Method::of_name(head.name) else { return };
    again::<args::Insert<'_>>(at);
    again::<args::GetSlice<'_>>(at);
    again::<args::MultigetSlice<'_>>(at);
    again::<args::GetRangeSlices<'_>>(at);
    again::<args::BatchMutate<'_>>(at);
    again::<args::WithKsDef<'_>>(at);
    again::<args::GetMultiSlice<'_>>(at);
    let mut out = Vec::new();
    Reply::begin(Call { method, number: head.number, framing }, &mut out).end(&mut out);
}

/// What can be read is written, and read to the same.
fn again<'a, T: Field<'a> + std::fmt::Debug + Same>(bytes: &'a [u8]) {
    if let Ok(value) = T::read(&mut Reader::new(bytes)) {
        let mut written = Vec::new();
        value.write(&mut written);
        assert!(T::is_read(&written), "what was written cannot be read: {value:?}");
    }
}

/// Whether bytes of its own can be read as it.
trait Same {
    fn is_read(bytes: &[u8]) -> bool;
}

macro_rules! same {
    ($($name:ident)*) => {$(
        impl Same for args::$name<'_> {
            fn is_read(bytes: &[u8]) -> bool {
                args::$name::read(&mut Reader::new(bytes)).is_ok()
            }
        }
    )*};
}

same! { Insert GetSlice MultigetSlice GetRangeSlices BatchMutate WithKsDef GetMultiSlice }
