//! Composites drawn of scalar components: their encoding has the order of Cassandra's comparator, which is written down
//! here once more.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::tests::{edgy_bytes, key, scalar, value_of};
use super::*;
use crate::types::{CqlType, composite_class_name};

/// A component: its type, whether it descends, the bytes that give its type in a dynamic composite, its value.
#[derive(Clone, Debug)]
struct Part {
    ty: CqlType,
    reversed: bool,
    header: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Drawn {
    is_static: bool,
    parts: Vec<Part>,
    end: i8,
}

impl Drawn {
    fn bytes(&self) -> Vec<u8> {
        let mut out = if self.is_static { vec![0xFF, 0xFF] } else { Vec::new() };
        for (index, part) in self.parts.iter().enumerate() {
            out.extend_from_slice(&part.header);
            out.extend_from_slice(&(part.value.len() as u16).to_be_bytes());
            out.extend_from_slice(&part.value);
            out.push(self.end_of(index) as u8);
        }
        out
    }

    /// Only the last component may have an end byte other than 0.
    fn end_of(&self, index: usize) -> i8 {
        if index + 1 == self.parts.len() { self.end } else { 0 }
    }
}

/// `AbstractCompositeType.compareCustom`, with the comparators of `DynamicCompositeType.getComparator`.
fn order(a: &Drawn, b: &Drawn) -> Ordering {
    let (a_bytes, b_bytes) = (a.bytes(), b.bytes());
    if a_bytes.is_empty() || b_bytes.is_empty() {
        return b_bytes.is_empty().cmp(&a_bytes.is_empty());
    }
    if a.is_static != b.is_static {
        return if a.is_static { Ordering::Less } else { Ordering::Greater };
    }
    let name = |ty: &CqlType| ty.class_name().rsplit('.').next().unwrap_or_default().to_owned();
    for (index, (one, other)) in a.parts.iter().zip(&b.parts).enumerate() {
        let names = if one.reversed && other.reversed {
            name(&one.ty).cmp(&name(&other.ty))
        } else {
            let outer = |part: &Part| if part.reversed { "ReversedType".to_owned() } else { name(&part.ty) };
            outer(one).cmp(&outer(other))
        };
        let values = match one.reversed {
            _ if names.is_ne() => names,
            true => one.ty.compare(&other.value, &one.value),
            false => one.ty.compare(&one.value, &other.value),
        };
        let order = values.then(a.end_of(index).cmp(&b.end_of(index)));
        if order.is_ne() {
            return order;
        }
    }
    a.parts.len().cmp(&b.parts.len())
}

fn end() -> impl Strategy<Value = i8> {
    prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(-1)]
}

/// The class of a composite, and two of its values that often begin alike.
type Two = (CqlType, Drawn, Drawn);

fn two_fixed() -> impl Strategy<Value = Two> {
    proptest::collection::vec((scalar(), any::<bool>()), 1..4).prop_flat_map(|types| {
        let class = CqlType::Custom(composite_class_name(&types).into());
        let part = |(ty, reversed): (CqlType, bool)| {
            value_of(&ty).prop_map(move |value| Part { ty: ty.clone(), reversed, header: Vec::new(), value })
        };
        let parts = || types.iter().cloned().map(part).collect::<Vec<_>>();
        let count = 0..=types.len();
        let drawn = (any::<bool>(), parts(), count.clone(), end());
        let other = (any::<bool>(), parts(), count, end(), 0..3_usize);
        (Just(class), drawn, other).prop_map(|(class, a, b)| {
            let (is_static, mut parts, count, end, same) = b;
            parts.iter_mut().zip(&a.1).take(same).for_each(|(part, of_a)| *part = of_a.clone());
            parts.truncate(count);
            let mut first = a.1;
            first.truncate(a.2);
            (class, Drawn { is_static: a.0, parts: first, end: a.3 }, Drawn { is_static, parts, end })
        })
    })
}

fn two_dynamic() -> impl Strategy<Value = Two> {
    let alias = (scalar(), any::<bool>());
    let parts = |aliases: Vec<(CqlType, bool)>| {
        let part = (0..aliases.len(), any::<bool>()).prop_flat_map(move |(alias, is_named)| {
            let (ty, reversed) = aliases[alias].clone();
            let name = ty.class_name_ordered(reversed);
            let header = match is_named {
                true => [&(name.len() as u16).to_be_bytes()[..], name.as_bytes()].concat(),
                false => vec![0x80, b'a' + alias as u8],
            };
            value_of(&ty).prop_map(move |value| Part {
                ty: ty.clone(),
                reversed,
                header: header.clone(),
                value,
            })
        });
        (proptest::collection::vec(part, 0..4), end())
    };
    proptest::collection::vec(alias, 1..4).prop_flat_map(move |aliases| {
        let named = aliases
            .iter()
            .zip('a'..)
            .map(|((ty, reversed), alias)| format!("{alias}=>{}", ty.class_name_ordered(*reversed)));
        let class = format!("DynamicCompositeType({})", named.collect::<Vec<_>>().join(","));
        let class = CqlType::from_class_name(&class).unwrap();
        (Just(class), parts(aliases.clone()), parts(aliases), 0..3_usize).prop_map(|(class, a, b, same)| {
            let (a, mut b) = (Drawn { is_static: false, parts: a.0, end: a.1 }, b);
            b.0.iter_mut().zip(&a.parts).take(same).for_each(|(part, of_a)| *part = of_a.clone());
            (class, a, Drawn { is_static: false, parts: b.0, end: b.1 })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn composites_have_the_order_of_their_components(
        (class, a, b) in prop_oneof![two_fixed(), two_dynamic()],
        reversed: bool,
    ) {
        let (first, second) = (a.bytes(), b.bytes());
        prop_assert_eq!(class.validate(&first), Ok(()));
        prop_assert_eq!(class.validate(&second), Ok(()));
        let expected = order(&a, &b);
        prop_assert_eq!(class.compare(&first, &second), expected);
        let types = [(class, reversed)];
        let (key_a, key_b) = (key(&types, &[Some(first.clone())]), key(&types, &[Some(second)]));
        prop_assert_eq!(key_a.cmp(&key_b), if reversed { expected.reverse() } else { expected });
        prop_assert!(key_a == key_b || !key_a.starts_with(&key_b));
        let decoded = decode_clustering(&key_a, &types).unwrap();
        let again = decoded.values[0].clone().unwrap();
        prop_assert_eq!(types[0].0.compare(&again, &first), Ordering::Equal);
        prop_assert_eq!(key(&types, &[Some(again)]), key_a);
    }

    #[test]
    fn damaged_composites_are_errors_and_never_panic(
        (class, a, _) in prop_oneof![two_fixed(), two_dynamic()],
        at: prop::sample::Index,
        by in edgy_bytes(0..4),
        reversed: bool,
    ) {
        let damaged = |bytes: &[u8]| {
            let at = at.index(bytes.len() + 1);
            let rest = bytes.get(at + by.len()..).unwrap_or_default();
            [&bytes[..at], &by, rest].concat()
        };
        let (mut encoded, value) = (Vec::new(), damaged(&a.bytes()));
        if encode_value(&class, reversed, &value, &mut encoded).is_err() {
            prop_assert!(class.validate(&value).is_err());
        }
        encoded.clear();
        _ = encode_value(&class, reversed, &a.bytes(), &mut encoded).unwrap();
        let (mut position, mut out) = (0, Vec::new());
        _ = decode_value(&class, reversed, &damaged(&encoded), &mut position, &mut out);
        _ = class.compare(&value, &a.bytes());
    }
}
