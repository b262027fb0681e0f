//! The values that tables hold: of each type a few, written down in the type's order with their bytes.
//!
//! A value is its place in the list of its type, so that comparing values is comparing places, whatever the type: the
//! judge needs to know nothing about encodings.

use std::sync::Arc;

/// The values of one type, ascending.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The type's name in CQL.
    pub(crate) cql: String,
    /// Literal and serialised form.
    pub(crate) values: Vec<(String, Arc<[u8]>)>,
}

impl Pool {
    fn new(cql: &str, values: Vec<(String, Vec<u8>)>) -> Pool {
        Pool {
            cql: cql.into(),
            values: values.into_iter().map(|(text, bytes)| (text, bytes.into())).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn literal(&self, value: u8) -> &str {
        &self.values[value as usize].0
    }

    pub(crate) fn bytes(&self, value: u8) -> &Arc<[u8]> {
        &self.values[value as usize].1
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn named(values: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    values.iter().map(|(text, bytes)| ((*text).to_owned(), bytes.to_vec())).collect()
}

fn texts(values: &[&str]) -> Vec<(String, Vec<u8>)> {
    values.iter().map(|text| (format!("'{}'", text.replace('\'', "''")), text.as_bytes().to_vec())).collect()
}

/// A component with its length, as tuples and collections have it; null is -1.
fn sized(bytes: Option<&[u8]>) -> Vec<u8> {
    match bytes {
        None => (-1_i32).to_be_bytes().to_vec(),
        Some(bytes) => [&(bytes.len() as i32).to_be_bytes()[..], bytes].concat(),
    }
}

fn int(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Texts of some kilobytes, so that partitions have blocks and an index over them.
pub(crate) fn long_texts() -> Pool {
    let text = |n: u32| {
        let mut x = n;
        let noise = |x: &mut u32| {
            *x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (*x >> 16) as u8 % 26)
        };
        format!("{n}{}", (0..300 * (n % 8 + 1)).map(|_| noise(&mut x)).collect::<String>())
    };
    Pool::new("text", texts(&(0..8).map(text).collect::<Vec<_>>().iter().map(|t| &t[..]).collect::<Vec<_>>()))
}

/// Small numbers, many of them: clusterings of wide partitions.
pub(crate) fn many_ints(count: i32) -> Pool {
    Pool::new("int", (0..count).map(|n| (n.to_string(), int(n))).collect())
}

/// Every type that keys may have.
pub(crate) fn pools() -> Vec<Pool> {
    let ints = [i32::MIN, -256, -1, 0, 1, 127, 128, i32::MAX];
    let longs = [i64::MIN, -1, 0, 1, 1 << 32, i64::MAX];
    let blobs: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"\x01", b"a", b"\xff", b"\xff\xff"];
    let uuids = [
        "00000000-0000-4000-8000-000000000000",
        "0123abcd-0000-4000-8000-00000000ffff",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
    ];
    let uuid = |text: &str| {
        let digits: Vec<u8> =
            text.bytes().filter_map(|b| (b as char).to_digit(16)).map(|d| d as u8).collect();
        (text.to_owned(), digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<u8>>())
    };
    // Of time UUIDs the time decides first, and its lowest bits come first in the text.
    let time_uuids = [
        "ffffffff-0000-1000-8000-000000000001",
        "00000000-0001-1000-8000-000000000001",
        "00000000-0000-1001-8000-000000000001",
        "00000000-0000-1001-8000-000000000002",
    ];
    vec![
        Pool::new("int", ints.iter().map(|n| (n.to_string(), int(*n))).collect()),
        Pool::new("text", texts(&["", "a", "a\0", "a\0b", "aa", "b", "it's", "\u{e9}", "\u{ffff}"])),
        Pool::new("blob", blobs.iter().map(|bytes| (hex(bytes), bytes.to_vec())).collect()),
        Pool::new("bigint", longs.iter().map(|n| (n.to_string(), n.to_be_bytes().to_vec())).collect()),
        Pool::new("boolean", named(&[("false", &[0]), ("true", &[1])])),
        Pool::new("tinyint", named(&[("-128", &[0x80]), ("-1", &[0xff]), ("0", &[0]), ("127", &[0x7f])])),
        Pool::new("smallint", named(&[("-300", &[0xfe, 0xd4]), ("0", &[0, 0]), ("300", &[1, 0x2c])])),
        Pool::new(
            "double",
            [-1e300_f64, -1.5, 0.0, 1e-9, 1.0, 1e10]
                .iter()
                .map(|n| (format!("{n:?}"), n.to_be_bytes().to_vec()))
                .collect(),
        ),
        Pool::new(
            "varint",
            named(&[
                ("-18446744073709551616", &[0xff, 0, 0, 0, 0, 0, 0, 0, 0]),
                ("-129", &[0xff, 0x7f]),
                ("-1", &[0xff]),
                ("0", &[0]),
                ("1", &[1]),
                ("128", &[0, 0x80]),
                ("18446744073709551616", &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
            ]),
        ),
        Pool::new(
            "decimal",
            named(&[
                ("-10.5", &[0, 0, 0, 1, 0x97]),
                ("-0.001", &[0, 0, 0, 3, 0xff]),
                ("0", &[0, 0, 0, 0, 0]),
                ("0.02", &[0, 0, 0, 2, 2]),
                ("1", &[0, 0, 0, 0, 1]),
                ("1.5", &[0, 0, 0, 1, 15]),
                ("100", &[0, 0, 0, 0, 100]),
            ]),
        ),
        Pool::new(
            "timestamp",
            longs[1..4].iter().map(|n| (n.to_string(), n.to_be_bytes().to_vec())).collect(),
        ),
        Pool::new("uuid", uuids.iter().map(|text| uuid(text)).collect()),
        Pool::new("timeuuid", time_uuids.iter().map(|text| uuid(text)).collect()),
        Pool::new(
            "date",
            named(&[
                ("'1969-12-31'", &[0x7f, 0xff, 0xff, 0xff]),
                ("'1970-01-01'", &[0x80, 0, 0, 0]),
                ("'1970-01-03'", &[0x80, 0, 0, 2]),
            ]),
        ),
        Pool::new(
            "time",
            named(&[("'00:00:00'", &[0; 8]), ("'00:00:00.000000300'", &[0, 0, 0, 0, 0, 0, 1, 0x2c])]),
        ),
        Pool::new("inet", named(&[("'1.2.3.4'", &[1, 2, 3, 4]), ("'200.0.0.1'", &[200, 0, 0, 1])])),
        frozen_list(),
        tuple(),
    ]
}

fn frozen_list() -> Pool {
    let lists: [&[i32]; 6] = [&[], &[-1], &[0], &[0, 0], &[0, 5], &[1]];
    let value = |list: &&[i32]| {
        let items: Vec<String> = list.iter().map(i32::to_string).collect();
        let bytes: Vec<u8> = list.iter().flat_map(|n| sized(Some(&int(*n)))).collect();
        (format!("[{}]", items.join(", ")), [int(list.len() as i32), bytes].concat())
    };
    Pool::new("frozen<list<int>>", lists.iter().map(value).collect())
}

fn tuple() -> Pool {
    let tuples: [(Option<i32>, Option<&str>); 6] = [
        (None, Some("z")),
        (Some(-1), Some("")),
        (Some(0), None),
        (Some(0), Some("")),
        (Some(0), Some("a\0")),
        (Some(1), Some("a")),
    ];
    let value = |(n, t): &(Option<i32>, Option<&str>)| {
        let number = n.map_or("null".into(), |n| n.to_string());
        let text = t.map_or("null".into(), |t| format!("'{t}'"));
        let bytes = [sized(n.map(int).as_deref()), sized(t.map(str::as_bytes))].concat();
        (format!("({number}, {text})"), bytes)
    };
    Pool::new("frozen<tuple<int, text>>", tuples.iter().map(value).collect())
}

/// A collection of these parts, serialised: how many, then each with its length.
pub(crate) fn collection(count: usize, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = int(count as i32);
    parts.iter().for_each(|part| out.extend(sized(Some(part))));
    out
}

/// A user-defined value of these fields, serialised.
pub(crate) fn fields(parts: &[Option<&[u8]>]) -> Vec<u8> {
    parts.iter().flat_map(|part| sized(*part)).collect()
}
