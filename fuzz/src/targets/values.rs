//! Values of every type, and the class names that say which type it is.

use helenus_model::byte_comparable::{decode_value, encode_value};
use helenus_model::types::{CqlType, to_cql_literal, to_json};
use std::cmp::Ordering;

/// Class names of every kind of type.
const CLASSES: [&str; 27] = [
    "AsciiType",
    "LongType",
    "BytesType",
    "BooleanType",
    "CounterColumnType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "Int32Type",
    "UTF8Type",
    "TimestampType",
    "UUIDType",
    "IntegerType",
    "TimeUUIDType",
    "InetAddressType",
    "SimpleDateType",
    "TimeType",
    "ShortType",
    "ByteType",
    "DurationType",
    "ListType(Int32Type)",
    "SetType(UTF8Type)",
    "MapType(UTF8Type,IntegerType)",
    "FrozenType(ListType(FrozenType(SetType(DecimalType))))",
    "TupleType(Int32Type,UTF8Type,FrozenType(ListType(ByteType)))",
    "VectorType(FloatType,3)",
    "UserType(ks,75,66:Int32Type,67:FrozenType(MapType(TimeUUIDType,BooleanType)))",
];

pub fn corpus() -> Vec<Vec<u8>> {
    let values: [&[u8]; 8] = [
        b"",
        &[0; 4],
        &[0xff; 8],
        &[0, 0, 0, 2, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b'],
        &[0, 0, 0, 4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 3, 0x12, 0x34],
        &[0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x1d, 0xef, 0x80, 0, 0, 0, 0, 0, 0, 1],
        &[
            0, 0, 0, 1, 0, 0, 0, 16, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x1d, 0xef, 0x80, 0, 0, 0, 0, 0, 0,
            1, 0, 0, 0, 1, 1,
        ],
    ];
    let of = |(index, value): (usize, &&[u8])| {
        (0..CLASSES.len()).map(move |class| [&[class as u8, index as u8][..], value, value].concat())
    };
    values.iter().enumerate().flat_map(of).collect()
}

/// The first byte says which type; the rest is two values, one behind the other.
pub fn run(bytes: &[u8]) {
    let [class, _, values @ ..] = bytes else { return };
    let Some(name) = CLASSES.get(usize::from(*class) % CLASSES.len()) else { return };
    let Ok(ty) = CqlType::from_class_name(name) else { panic!("{name} is a type") };
    let (a, b) = values.split_at(values.len() / 2);
    let encoded = [a, b].map(|value| look(&ty, value));
    if let [Some(a_encoded), Some(b_encoded)] = encoded {
        let order = ty.compare(a, b);
        let alike = |encoded: Ordering| encoded == order || order == Ordering::Equal;
        assert!(ty.is_empty_meaningless() || alike(a_encoded.cmp(&b_encoded)), "{name}: {a:02x?} {b:02x?}");
    }
    // Names come from schema tables and Statistics.db.
    if let Ok(text) = std::str::from_utf8(values)
        && let Ok(ty) = CqlType::from_class_name(text)
    {
        assert_eq!(CqlType::from_class_name(&ty.class_name()).ok(), Some(ty), "{text}");
    }
}

/// Prints a value if it is one; its ordered form, out of which it comes again.
fn look(ty: &CqlType, value: &[u8]) -> Option<Vec<u8>> {
    // What is not a value is not printed by anybody.
    ty.validate(value).ok()?;
    let _printed = (to_cql_literal(ty, Some(value)), to_json(ty, Some(value)));
    let mut encoded = Vec::new();
    let Ok(_how) = encode_value(ty, false, value, &mut encoded) else { return None };
    let (mut back, mut position) = (Vec::new(), 0);
    if !value.is_empty() {
        assert!(decode_value(ty, false, &encoded, &mut position, &mut back).is_ok(), "{ty}: {value:02x?}");
        assert_eq!(position, encoded.len(), "{ty}: {value:02x?}");
        assert!(ty.compare(value, &back).is_eq(), "{ty}: {value:02x?} became {back:02x?}");
    }
    // Any bytes may be taken for an encoding.
    let _decoded = decode_value(ty, true, value, &mut 0, &mut Vec::new());
    Some(encoded)
}
