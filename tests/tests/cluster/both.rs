//! The same calls of Thrift RPC to a gateway and to a local server, whose answers are compared.

use end_to_end::{Calls, is_result};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, ConsistencyLevel, Field, Map, Method, Reader, SlicePredicate,
    SliceRange, args,
};

/// The level of calls: of the cluster's nodes, not all may have the schema or the row yet.
pub const QUORUM: ConsistencyLevel = ConsistencyLevel::Quorum;

/// A connection to a gateway, and one to a local server.
pub struct Both {
    pub cluster: Calls,
    pub local: Calls,
}

impl Both {
    /// Asks both, whose answers must be the same, whatever they are.
    pub fn compared<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Vec<u8> {
        let (cluster, local) = self.answers(method, asked);
        let (cluster, local) = (in_order(method, cluster), in_order(method, local));
        if cluster != local {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(600).collect::<String>();
            panic!(
                "{method:?}: {} and {} bytes\ncluster: {:?}\nlocal: {:?}",
                cluster.len(),
                local.len(),
                text(&cluster),
                text(&local)
            );
        }
        cluster
    }

    /// The same, and no exception.
    pub fn same<'a>(&mut self, method: Method, asked: &impl Field<'a>) {
        let answer = self.compared(method, asked);
        assert!(is_result(&answer, method), "{method:?}: {}", String::from_utf8_lossy(&answer));
    }

    /// The same exception from both, with this text in it.
    pub fn refused<'a>(&mut self, method: Method, asked: &impl Field<'a>, why: &str) {
        let answer = self.compared(method, asked);
        let text = String::from_utf8_lossy(&answer);
        assert!(!is_result(&answer, method) && text.contains(why), "{method:?} without \"{why}\": {text}");
    }

    /// The answers of both.
    pub fn answers<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> (Vec<u8>, Vec<u8>) {
        (self.cluster.exchange(method, asked), self.local.exchange(method, asked))
    }
}

/// An answer with the entries of its map in the order of their keys: a map has none.
fn in_order(method: Method, answer: Vec<u8>) -> Vec<u8> {
    if !matches!(method, Method::MultigetSlice | Method::MultigetCount) || !is_result(&answer, method) {
        return answer;
    }
    let mut reader = Reader::new(result_of(&answer, method));
    let mut ordered = Vec::new();
    match method {
        Method::MultigetSlice => {
            let mut map = Map::<&[u8], Vec<ColumnOrSuperColumn<'_>>>::read(&mut reader).expect("a map");
            map.0.sort_by_key(|(key, _)| *key);
            map.write(&mut ordered);
        }
        Method::MultigetCount => {
            let mut map = Map::<&[u8], i32>::read(&mut reader).expect("a map");
            map.0.sort();
            map.write(&mut ordered);
        }
        _ => return answer,
    }
    ordered
}

/// The bytes of a result: what is behind the header and the field of the result.
pub fn result_of(answer: &[u8], method: Method) -> &[u8] {
    assert!(is_result(answer, method), "{method:?}: {}", String::from_utf8_lossy(answer));
    &answer[12 + method.name().len() + 3..]
}

/// A family without a super column.
pub fn parent(column_family: &str) -> ColumnParent<'_> {
    ColumnParent { column_family, super_column: None }
}

/// All columns, up to a number of them.
pub fn everything<'a>(count: i32) -> SlicePredicate<'a> {
    let slice_range = SliceRange { start: b"", finish: b"", reversed: false, count };
    SlicePredicate { column_names: None, slice_range: Some(slice_range) }
}

/// Inserts a column of a row at both.
pub fn insert(both: &mut Both, (column_family, key): (&str, &[u8]), (name, value): (&[u8], &[u8])) {
    let column = Column { name, value: Some(value), timestamp: Some(1_000), ttl: None };
    let column_parent = parent(column_family);
    both.same(Method::Insert, &args::Insert { key, column_parent, column, consistency_level: QUORUM });
}

/// Compares a row.
pub fn slice(both: &mut Both, (column_family, key): (&str, &[u8])) {
    let read = args::GetSlice {
        key,
        column_parent: parent(column_family),
        predicate: everything(100),
        consistency_level: QUORUM,
    };
    both.same(Method::GetSlice, &read);
}
