//! The bodies of EXECUTE and BATCH, with values that are encoded already.
//!
//! Sections 4.1.6 and 4.1.7 of the native protocol, v4 and v5.

use crate::source::Write;
use helenus_cluster::NodeStatement;
use helenus_wire::native::{Consistency, Version};
use std::sync::Arc;

/// Flag of EXECUTE: values follow.
const VALUES: u8 = 0x01;
/// Kind of an unlogged batch, and of a prepared statement in it.
const UNLOGGED: u8 = 1;
const PREPARED: u8 = 1;

/// What every write waits for.
const CONSISTENCY: Consistency = Consistency::LocalQuorum;

fn put_short_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn put_flags(version: Version, flags: u8, out: &mut Vec<u8>) {
    match version >= Version::V5 {
        true => out.extend_from_slice(&u32::from(flags).to_be_bytes()),
        false => out.push(flags),
    }
}

fn put_values(write: &Write, now_s: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&write.values.count().to_be_bytes());
    write.values.put_into(now_s, out);
}

/// Appends the body of an EXECUTE that is sent at this second.
pub(super) fn execute(
    (version, statement): (Version, &Arc<NodeStatement>),
    write: &Write,
    now_s: i64,
    out: &mut Vec<u8>,
) {
    put_short_bytes(&statement.id, out);
    if version >= Version::V5 {
        put_short_bytes(statement.result_metadata_id.as_deref().unwrap_or_default(), out);
    }
    out.extend_from_slice(&(CONSISTENCY as u16).to_be_bytes());
    put_flags(version, VALUES, out);
    put_values(write, now_s, out);
}

/// Appends the body of a BATCH that is sent at this second.
pub(super) fn batch(
    (version, statements): (Version, &[Arc<NodeStatement>]),
    writes: &[Write],
    now_s: i64,
    out: &mut Vec<u8>,
) {
    out.push(UNLOGGED);
    out.extend_from_slice(&(writes.len() as u16).to_be_bytes());
    for (statement, write) in statements.iter().zip(writes) {
        out.push(PREPARED);
        put_short_bytes(&statement.id, out);
        put_values(write, now_s, out);
    }
    out.extend_from_slice(&(CONSISTENCY as u16).to_be_bytes());
    put_flags(version, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{StatementKind, Values};
    use helenus_wire::native::{Request, StatementRef, decode_request};

    #[test]
    fn bodies_are_read_by_the_servers_decoder() {
        let mut values = Values::default();
        values.put(b"key");
        values.put_unset();
        let write = Write { kind: StatementKind::Update, values };
        let statement = Arc::new(NodeStatement { id: vec![7; 16], result_metadata_id: Some(vec![8; 16]) });
        for version in [Version::V4, Version::V5] {
            let mut body = Vec::new();
            execute((version, &statement), &write, 0, &mut body);
            let read =
                decode_request(version, helenus_wire::native::Opcode::Execute, Default::default(), &body);
            let Request::Execute(read) = read.unwrap().request else { panic!("not an EXECUTE") };
            assert_eq!((read.id, read.parameters.values.len()), (&[7; 16][..], 2));
            assert_eq!(read.parameters.consistency, Consistency::LocalQuorum);
            body.clear();
            let statements = [Arc::clone(&statement), Arc::clone(&statement)];
            batch((version, &statements), &[write.clone(), write.clone()], 0, &mut body);
            let read =
                decode_request(version, helenus_wire::native::Opcode::Batch, Default::default(), &body);
            let Request::Batch(read) = read.unwrap().request else { panic!("not a BATCH") };
            let _ = StatementRef::Query("");
            assert_eq!(read.parameters.consistency, Consistency::LocalQuorum);
        }
    }
}
