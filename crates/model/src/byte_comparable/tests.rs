//! Properties of the byte-comparable encoding that must hold for every value, not only for the values in Cassandra's
//! table (see `tests/types_against_cassandra.rs`).

use std::cmp::Ordering;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::types::{CqlType, TypeError, pack, put_element, put_value};

/// Bytes that are at the limits of the rules more often than random bytes.
pub(super) fn edgy_bytes(
    length: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(0xFF), Just(0x80), Just(0x7F), Just(1), any::<u8>()];
    proptest::collection::vec(byte, length)
}

pub(super) fn scalar() -> impl Strategy<Value = CqlType> {
    prop_oneof![
        Just(CqlType::Blob),
        Just(CqlType::BigInt),
        Just(CqlType::Boolean),
        Just(CqlType::Date),
        Just(CqlType::Decimal),
        Just(CqlType::Double),
        Just(CqlType::Float),
        Just(CqlType::Inet),
        Just(CqlType::Int),
        Just(CqlType::SmallInt),
        Just(CqlType::Time),
        Just(CqlType::Timestamp),
        Just(CqlType::TimeUuid),
        Just(CqlType::TinyInt),
        Just(CqlType::Uuid),
        Just(CqlType::Varint),
    ]
}

/// Any NaN, with either sign; `infinity` is the number whose bits are just before those of all NaNs.
fn nan(infinity: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let rest = infinity.len() - 1;
    (any::<bool>(), proptest::collection::vec(any::<u8>(), rest), 1..=rest).prop_map(
        move |(is_negative, bits, at)| {
            let mut bytes: Vec<u8> = infinity.to_vec();
            bytes.iter_mut().skip(1).zip(bits).for_each(|(byte, bits)| *byte |= bits);
            bytes[at] |= 1;
            bytes[0] |= u8::from(is_negative) << 7;
            bytes
        },
    )
}

/// A valid value; sometimes the empty one, if the type has it.
pub(super) fn value_of(ty: &CqlType) -> BoxedStrategy<Vec<u8>> {
    let full = match ty {
        CqlType::Blob => edgy_bytes(0..12).boxed(),
        CqlType::Varint => edgy_bytes(1..20).boxed(),
        CqlType::Decimal => (-40_i32..40, edgy_bytes(1..20))
            .prop_map(|(scale, unscaled)| [&scale.to_be_bytes()[..], &unscaled].concat())
            .boxed(),
        CqlType::Inet => prop_oneof![edgy_bytes(4), edgy_bytes(16)].boxed(),
        CqlType::TinyInt => edgy_bytes(1).boxed(),
        CqlType::SmallInt => edgy_bytes(2).boxed(),
        CqlType::Date => edgy_bytes(4).boxed(),
        CqlType::Time => edgy_bytes(8).boxed(),
        CqlType::TimeUuid => edgy_bytes(16)
            .prop_map(|mut bytes| {
                bytes[6] = bytes[6] & 0x0F | 0x10;
                bytes
            })
            .boxed(),
        CqlType::Float => prop_oneof![3 => edgy_bytes(4), 1 => nan(&[0x7F, 0x80, 0, 0])].boxed(),
        CqlType::Double => prop_oneof![3 => edgy_bytes(8), 1 => nan(&[0x7F, 0xF0, 0, 0, 0, 0, 0, 0])].boxed(),
        other => edgy_bytes(other.fixed_length().unwrap()).boxed(),
    };
    if ty.allows_empty() { prop_oneof![1 => Just(Vec::new()), 9 => full].boxed() } else { full }
}

fn two_values() -> impl Strategy<Value = (CqlType, Vec<u8>, Vec<u8>)> {
    scalar().prop_flat_map(|ty| {
        let (a, b) = (value_of(&ty), value_of(&ty));
        (Just(ty), a, b)
    })
}

/// Up to three columns and the values of two rows, some of them null.
type Table = (Vec<(CqlType, bool)>, Vec<Option<Vec<u8>>>, Vec<Option<Vec<u8>>>);

fn table() -> impl Strategy<Value = Table> {
    proptest::collection::vec((scalar(), any::<bool>()), 1..4).prop_flat_map(|types| {
        let value = |ty: &CqlType| prop_oneof![1 => Just(None), 9 => value_of(ty).prop_map(Some)];
        let row: Vec<_> = types.iter().map(|(ty, _)| value(ty)).collect();
        // The first columns are often equal, so that later columns decide.
        let other: Vec<_> = types.iter().map(|(ty, _)| (any::<bool>(), value(ty))).collect();
        (Just(types), row, other).prop_map(|(types, a, other)| {
            let b = a.iter().zip(other).map(|(a, (same, b))| if same { a.clone() } else { b }).collect();
            (types, a, b)
        })
    })
}

pub(super) fn key(types: &[(CqlType, bool)], values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    clustering_key(values.iter().map(Option::as_deref), types, &mut out).unwrap();
    out
}

fn typed_order(types: &[(CqlType, bool)], a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>]) -> Ordering {
    for ((ty, reversed), (a, b)) in types.iter().zip(a.iter().zip(b)) {
        let order = match (a, b) {
            (Some(a), Some(b)) if *reversed => ty.compare(b, a),
            (Some(a), Some(b)) => ty.compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn byte_order_is_typed_order_and_no_key_begins_another((types, a, b) in table()) {
        for ((ty, _), values) in types.iter().zip(a.iter().zip(&b)) {
            for value in [values.0, values.1].into_iter().flatten() {
                prop_assert_eq!(ty.validate(value), Ok(()));
            }
        }
        let (key_a, key_b) = (key(&types, &a), key(&types, &b));
        prop_assert_eq!(key_a.cmp(&key_b), typed_order(&types, &a, &b));
        prop_assert!(key_a == key_b || !key_a.starts_with(&key_b));
        let decoded = decode_clustering(&key_a, &types).unwrap();
        prop_assert_eq!(typed_order(&types, &decoded.values, &a), Ordering::Equal);
    }

    #[test]
    fn a_bound_stands_before_or_after_all_that_begin_with_it((types, a, b) in table(), count in 0..4_usize) {
        let count = count.min(types.len());
        let same = typed_order(&types[..count], &a[..count], &b[..count]);
        for before in [true, false] {
            let mut bound = Vec::new();
            clustering_bound(a.iter().take(count).map(Option::as_deref), &types, before, &mut bound).unwrap();
            let expected = same.then(if before { Ordering::Less } else { Ordering::Greater });
            prop_assert_eq!(bound.cmp(&key(&types, &b)), expected);
        }
    }

    #[test]
    fn lists_and_vectors_keep_the_order_of_their_elements((ty, a, b) in two_values(), length in 1..4_usize) {
        let element = Arc::new(ty.clone());
        let list = CqlType::List { element: element.clone(), frozen: true };
        let packed = |value: &[u8], length: usize| {
            let mut out = Vec::new();
            pack(length, std::iter::repeat_n(Some(value), length), &mut out);
            out
        };
        let (list_a, list_b) = (packed(&a, length), packed(&b, 2));
        let types = [(list, false)];
        let order = types[0].0.compare(&list_a, &list_b);
        prop_assert_eq!(key(&types, &[Some(list_a)]).cmp(&key(&types, &[Some(list_b)])), order);
        if !a.is_empty() && !b.is_empty() {
            let vector = CqlType::Vector { element, dimension: 2 };
            let [vector_a, vector_b] = [[&a, &b], [&b, &b]].map(|elements| {
                let mut out = Vec::new();
                elements.iter().for_each(|value| put_element(&ty, value, &mut out));
                out
            });
            let types = [(vector, true)];
            let order = types[0].0.compare(&vector_a, &vector_b).reverse();
            prop_assert_eq!(key(&types, &[Some(vector_a)]).cmp(&key(&types, &[Some(vector_b)])), order);
        }
    }

    #[test]
    fn broken_encodings_are_errors_and_never_panics(ty in scalar(), reversed: bool, bytes in edgy_bytes(0..30)) {
        let mut out = Vec::new();
        _ = decode_value(&ty, reversed, &bytes, &mut 0, &mut out);
        let element = Arc::new(ty.clone());
        let map = CqlType::Map { key: element.clone(), value: element.clone(), frozen: true };
        let tuple = CqlType::Tuple(Arc::new([map, CqlType::Vector { element, dimension: 3 }, ty.clone()]));
        _ = decode_value(&tuple, reversed, &bytes, &mut 0, &mut out);
        _ = decode_clustering(&bytes, &[(ty, reversed), (tuple, !reversed)]);
        _ = decode_decorated_key(&bytes, &mut out);
    }

    #[test]
    fn invalid_values_are_errors_and_never_panics(ty in scalar(), bytes in edgy_bytes(0..30), other in edgy_bytes(0..9)) {
        let element = Arc::new(ty.clone());
        let map = CqlType::Map { key: element.clone(), value: element.clone(), frozen: true };
        let set = CqlType::Set { element: element.clone(), frozen: true };
        let vector = CqlType::Vector { element, dimension: 3 };
        for ty in [CqlType::Tuple(Arc::new([map.clone(), set.clone()])), map, set, vector, ty] {
            _ = ty.validate(&bytes);
            _ = ty.compare(&bytes, &other);
            _ = encode_value(&ty, false, &bytes, &mut Vec::new());
            _ = crate::types::normalise(&ty, &bytes);
            _ = crate::types::to_cql_literal(&ty, Some(&bytes));
            _ = crate::types::to_json(&ty, Some(&bytes));
        }
    }
}

#[test]
fn a_value_of_the_wrong_length_is_refused_not_encoded() {
    let mut out = Vec::new();
    let refused = clustering_key([Some(&[1_u8, 2][..])], &[(CqlType::Int, false)], &mut out);
    assert_eq!(refused, Err(TypeError::Length { expected: "Expected 4 or 0 byte int", length_bytes: 2 }));
}

#[test]
fn a_tuple_written_before_a_field_was_added_stays_equal() {
    let ty = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text]));
    let (mut short, mut long) = (Vec::new(), Vec::new());
    put_value(Some(&[0, 0, 0, 1]), &mut short);
    put_value(Some(&[0, 0, 0, 1]), &mut long);
    put_value(None, &mut long);
    let encoded = |value: &[u8]| {
        let mut out = Vec::new();
        let encoded = encode_value(&ty, false, value, &mut out);
        assert_eq!(encoded, Ok(Encoded::Bytes));
        out
    };
    assert_eq!(encoded(&short), encoded(&long));
    assert_eq!(ty.compare(&short, &long), Ordering::Equal);
}
