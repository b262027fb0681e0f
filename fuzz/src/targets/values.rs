//! Values of every type: checked, compared, printed, parsed, put in order and taken out again; and the names of types.

use helenus_model::byte_comparable::{Encoded, decode_value, encode_value};
use helenus_model::types::{
    CqlType, Duration, UserType, collection_size, normalise, pack, parse_class_name, parse_text, put_element,
    write_json, write_literal, write_text,
};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

/// Each type, and types in types.
pub(super) static TYPES: LazyLock<Vec<CqlType>> = LazyLock::new(|| {
    let text = || Arc::new(CqlType::Text);
    let list = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: true };
    let set = |element: CqlType| CqlType::Set { element: Arc::new(element), frozen: true };
    let map = |key: CqlType, value: CqlType| CqlType::Map {
        key: Arc::new(key),
        value: Arc::new(value),
        frozen: true,
    };
    let tuple = CqlType::Tuple([CqlType::Int, CqlType::Text, CqlType::Varint].into());
    let fields = [("a", CqlType::Int), ("b", CqlType::Text), ("c", list(CqlType::Decimal))];
    let udt = CqlType::Udt(Arc::new(UserType {
        keyspace: "ks".into(),
        name: "u".into(),
        fields: fields.into_iter().map(|(name, ty)| (name.into(), ty)).collect(),
        frozen: true,
    }));
    let vector = |element: CqlType, dimension| CqlType::Vector { element: Arc::new(element), dimension };
    let mut types = CqlType::SIMPLE.to_vec();
    types.extend(
        CqlType::SIMPLE
            .iter()
            .filter(|ty| !matches!(ty, CqlType::Counter | CqlType::Empty))
            .cloned()
            .map(list),
    );
    types.extend([
        set(CqlType::Int),
        set(CqlType::Text),
        set(CqlType::TimeUuid),
        map(CqlType::Text, CqlType::Int),
        map(CqlType::Inet, set(CqlType::Varint)),
        list(map(CqlType::Int, list(CqlType::Text))),
        CqlType::List { element: text(), frozen: false },
        CqlType::Map { key: text(), value: text(), frozen: false },
        list(tuple.clone()),
        tuple,
        list(udt.clone()),
        udt,
        vector(CqlType::Float, 3),
        vector(CqlType::Text, 2),
        vector(vector(CqlType::Int, 2), 2),
        CqlType::Custom("org.apache.cassandra.db.marshal.LexicalUUIDType".into()),
        CqlType::Custom("org.apache.cassandra.db.marshal.DateType".into()),
        CqlType::Custom("com.example.Unknown".into()),
    ]);
    types
});

/// Sound values of a type.
fn values(ty: &CqlType) -> Vec<Vec<u8>> {
    let packed = |values: &[Vec<u8>]| {
        let mut out = Vec::new();
        pack(values.len(), values.iter().map(|value| Some(&**value)), &mut out);
        out
    };
    match ty {
        CqlType::Ascii | CqlType::Text => {
            ["", "a", "some text", "1"].map(|text| text.as_bytes().to_vec()).to_vec()
        }
        CqlType::Blob | CqlType::Empty | CqlType::Custom(_) => {
            vec![Vec::new(), vec![0; 16], vec![0, 0xFF, 1, 0]]
        }
        CqlType::Boolean | CqlType::TinyInt => vec![vec![0], vec![1]],
        CqlType::SmallInt => vec![vec![0, 1], vec![0x80, 0]],
        CqlType::Int | CqlType::Date | CqlType::Float => {
            vec![vec![0; 4], vec![0x80, 0, 0, 1], 1.5_f32.to_be_bytes().to_vec()]
        }
        CqlType::BigInt | CqlType::Timestamp | CqlType::Double => {
            vec![
                vec![0; 8],
                vec![0xFF; 8],
                1.5_f64.to_be_bytes().to_vec(),
                1_700_000_000_123_i64.to_be_bytes().to_vec(),
            ]
        }
        CqlType::Time => vec![vec![0; 8], 3_723_000_000_004_i64.to_be_bytes().to_vec()],
        // One global and one local shard: head, then id, clock and count each.
        CqlType::Counter => {
            let shard =
                |id: u8| [&[id; 16][..], &[0, 0, 0, 0, 0, 0, 0, 9], &[0, 0, 0, 0, 0, 0, 0, 5]].concat();
            vec![
                vec![0; 8],
                [&[0, 1, 0x80, 0][..], &shard(1)].concat(),
                [&[0, 1, 0, 1][..], &shard(2), &shard(3)].concat(),
            ]
        }
        CqlType::Decimal => {
            vec![vec![0, 0, 0, 2, 0xFF, 6], vec![0xFF, 0xFF, 0xFF, 0xF0, 1], vec![0, 0, 0, 0, 0]]
        }
        CqlType::Varint => vec![vec![0], vec![0xFF; 9], vec![0, 0x80, 1, 2, 3, 4, 5, 6, 7, 8]],
        CqlType::Duration => {
            let of = |months, days, nanoseconds| Duration { months, days, nanoseconds }.to_bytes();
            vec![of(0, 0, 0), of(14, 3, 7), of(-1, -40, -86_400_000_000_000), of(i32::MAX, 1, i64::MAX)]
        }
        CqlType::Inet => vec![vec![127, 0, 0, 1], [&[0x20, 1][..], &[0; 14]].concat()],
        CqlType::TimeUuid | CqlType::Uuid => {
            let time = [
                0x50, 0x55, 0x4D, 0x6E, 0x29, 0xBB, 0x11, 0xE5, 0xB3, 0x45, 0xFE, 0xFF, 0x81, 0x9C, 0xDC,
                0x9F,
            ];
            vec![time.to_vec(), [&time[..6], &[0x41], &time[7..]].concat()]
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            vec![packed(&[]), packed(&values(element)), packed(&values(element)[..1])]
        }
        CqlType::Map { key, value, .. } => {
            let entries = values(key).into_iter().zip(values(value));
            let flat: Vec<Vec<u8>> = entries.flat_map(|(key, value)| [key, value]).collect();
            let mut out = Vec::new();
            pack(flat.len() / 2, flat.iter().map(|value| Some(&**value)), &mut out);
            vec![packed(&[]), out]
        }
        CqlType::Tuple(types) => vec![fields(types.iter()), fields(types.iter().take(1)), Vec::new()],
        CqlType::Udt(udt) => {
            let types = || udt.fields.iter().map(|(_, ty)| ty);
            vec![fields(types()), fields(types().take(1)), Vec::new()]
        }
        CqlType::Vector { element, dimension } => {
            let mut out = Vec::new();
            for value in values(element).iter().cycle().take(*dimension as usize) {
                put_element(element, value, &mut out);
            }
            vec![out]
        }
    }
}

fn fields<'t>(types: impl Iterator<Item = &'t CqlType>) -> Vec<u8> {
    let mut out = Vec::new();
    for value in types.filter_map(|ty| values(ty).pop()) {
        out.extend_from_slice(&(value.len() as i32).to_be_bytes());
        out.extend_from_slice(&value);
    }
    out
}

/// The number of a type, where the first of two values ends, both values.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for (number, ty) in TYPES.iter().enumerate() {
        let values = values(ty);
        for (a, b) in values.iter().zip(values.iter().cycle().skip(1)) {
            corpus.push([&[number as u8, a.len() as u8], &a[..], b].concat());
        }
    }
    corpus
}

pub(super) fn run(input: &[u8]) {
    let [number, end, values @ ..] = input else { return };
    let ty = &TYPES[usize::from(*number) % TYPES.len()];
    let (a, b) = values.split_at(usize::from(*end).min(values.len()));
    for value in [a, b] {
        print(ty, value);
        in_order(ty, value);
        from_text(ty, &String::from_utf8_lossy(value));
    }
    if ty.validate(a).is_ok() && ty.validate(b).is_ok() {
        compared(ty, a, b);
    }
}

/// Whatever the bytes, something is printed: a dump meets values that are none of their type.
fn print(ty: &CqlType, value: &[u8]) {
    let (mut json, mut text, mut literal) = (String::new(), String::new(), String::new());
    write_json(ty, Some(value), &mut json);
    write_text(ty, value, &mut text);
    write_literal(ty, Some(value), &mut literal);
    std::hint::black_box(collection_size(value));
    if ty.validate(value).is_ok() {
        let normal = normalise(ty, value);
        assert!(ty.validate(&normal).is_ok(), "{ty:?}: {value:02x?} becomes {normal:02x?}, which is none");
        assert_eq!(normalise(ty, &normal), normal, "{ty:?}: {value:02x?} is not normal after one step");
    }
}

/// What can be put in order comes out again equal, and nothing is left.
fn in_order(ty: &CqlType, value: &[u8]) {
    for reversed in [false, true] {
        let mut encoded = Vec::new();
        let bytes_of_it = encode_value(ty, reversed, value, &mut encoded);
        let (mut position, mut decoded) = (0, Vec::new());
        // The bytes of a value as an encoding: most are none.
        let _none = decode_value(ty, reversed, value, &mut position, &mut decoded);
        if ty.validate(value).is_err() || !matches!(bytes_of_it, Ok(Encoded::Bytes)) {
            continue;
        }
        // The separator that follows in every key ends it.
        encoded.push(0x40);
        let (mut position, mut decoded) = (0, Vec::new());
        let read = decode_value(ty, reversed, &encoded, &mut position, &mut decoded);
        assert!(read.is_ok(), "{ty:?} reversed {reversed}: {value:02x?} as {encoded:02x?}: {read:?}");
        assert_eq!(position, encoded.len() - 1, "{ty:?} reversed {reversed}: {value:02x?} as {encoded:02x?}");
        // A part that encodes as nothing comes back as null, in Cassandra too (`fromComparableBytesListOrSet`): an empty tuple
        // in a list is another value then, and of a tuple's last fields fewer are there.
        if !has_parts(ty) {
            let order = ty.compare(value, &decoded);
            assert_eq!(order, Ordering::Equal, "{ty:?}: {value:02x?} back as {decoded:02x?}");
        }
    }
}

/// Two values sort as their encodings do, and as each other's opposite.
fn compared(ty: &CqlType, a: &[u8], b: &[u8]) {
    let order = ty.compare(a, b);
    assert_eq!(ty.compare(b, a), order.reverse(), "{ty:?}: {a:02x?} and {b:02x?}");
    assert_eq!(ty.compare(a, a), Ordering::Equal, "{ty:?}: {a:02x?} and itself");
    // Not numbers with their sign set are put first by their bits and last by Java, in Cassandra too.
    let is_no_number = |value| helenus_model::types::to_cql_literal(ty, Some(value)).contains("NaN");
    if is_no_number(a) || is_no_number(b) {
        return;
    }
    let encoded = |value, reversed| {
        let mut out = Vec::new();
        let is_bytes = matches!(encode_value(ty, reversed, value, &mut out), Ok(Encoded::Bytes));
        (is_bytes && (!has_parts(ty) || comes_back(ty, reversed, value, &out))).then_some(out)
    };
    for (reversed, wanted) in [(false, order), (true, order.reverse())] {
        if let (Some(a), Some(b)) = (encoded(a, reversed), encoded(b, reversed)) {
            // A prefix of the other is told by the separator, which is not here.
            if !a.starts_with(&b) && !b.starts_with(&a) {
                assert_eq!(a.cmp(&b), wanted, "{ty:?} reversed {reversed}: {a:02x?} and {b:02x?}");
            }
        }
    }
}

/// What a text is read to is a value. Empty text is the empty value of every type, and of collections and vectors any bytes may
/// stand in hexadecimal digits: the callers of `parse_text` look at those.
fn from_text(ty: &CqlType, text: &str) {
    let Ok(value) = parse_text(ty, text) else { return };
    let is_checked =
        !text.is_empty() && !has_parts(ty) && !matches!(ty, CqlType::Vector { .. } | CqlType::Custom(_));
    assert!(
        !is_checked || ty.validate(&value).is_ok(),
        "{ty:?}: {text:?} is read to {value:02x?}, which is none"
    );
}

/// Whether no part of a value encodes as nothing: only such sort as their encodings do.
fn comes_back(ty: &CqlType, reversed: bool, value: &[u8], encoded: &[u8]) -> bool {
    let (mut position, mut decoded) = (0, Vec::new());
    let ended = [encoded, &[0x40]].concat();
    decode_value(ty, reversed, &ended, &mut position, &mut decoded).is_ok() && decoded == value
}

fn has_parts(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Tuple(_)
            | CqlType::Udt(_)
    )
}

/// Names of types, as schemas and files have them.
pub(super) fn class_names() -> Vec<Vec<u8>> {
    let names = TYPES.iter().flat_map(|ty| [ty.class_name(), ty.class_name_ordered(true)]);
    let more = [
        "org.apache.cassandra.db.marshal.CompositeType(UTF8Type,ReversedType(Int32Type))",
        "DynamicCompositeType(a=>BytesType,t=>TimeUUIDType)",
        "ColumnToCollectionType(6d:MapType(UTF8Type,Int32Type))",
        "FrozenType(UserType(ks,75,61:Int32Type,62:FrozenType(ListType(UTF8Type))))",
        "VectorType(FloatType , 3)",
    ];
    names.chain(more.map(str::to_owned)).map(String::into_bytes).collect()
}

pub(super) fn run_class_name(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _parsed = parse_class_name(&text);
    if let Ok(ty) = CqlType::from_class_name(&text) {
        let name = ty.class_name();
        match CqlType::from_class_name(&name) {
            Ok(again) => assert_eq!(again, ty, "{text} is {name}"),
            Err(error) => panic!("{text} is printed as {name}: {error}"),
        }
    }
}
