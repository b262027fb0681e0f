//! How long types are where they are described: in a result's metadata, in an SSTable's header, in `system_schema`.

use super::{CqlType, UserType};
use std::collections::HashMap;

/// Bytes of a type beside its names.
const TYPE_BYTES: usize = 4;

/// How much longer a type is as a class name, at most: a class has up to 48 letters where the metadata have 4 bytes, and names are hexadecimal.
/// Vectors are described so.
const CLASS_NAMES: usize = 12;

/// Bytes by which types are described, at most, in all: every user type with its names, as often as it occurs. A type of a type of many
/// fields is short in memory and long here. Types that are shared are visited once.
pub fn described_bytes<'t>(types: impl IntoIterator<Item = &'t CqlType>) -> usize {
    let mut described = Described::default();
    types.into_iter().fold(0, |sum, ty| sum.saturating_add(described.bytes(ty)))
}

/// The bytes of types that are shared, by their address.
#[derive(Default)]
struct Described(HashMap<usize, usize>);

impl Described {
    fn bytes(&mut self, ty: &CqlType) -> usize {
        let parts = match ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => self.bytes(element),
            CqlType::Vector { element, .. } => {
                self.bytes(element).saturating_mul(CLASS_NAMES).saturating_add(64)
            }
            CqlType::Map { key, value, .. } => self.bytes(key).saturating_add(self.bytes(value)),
            CqlType::Tuple(types) => {
                let address = types.as_ptr().addr();
                self.shared(address, |this| {
                    types.iter().fold(0, |sum, ty| sum.saturating_add(this.bytes(ty)))
                })
            }
            CqlType::Udt(udt) => {
                let address = std::ptr::from_ref::<UserType>(udt).addr();
                self.shared(address, |this| {
                    let names = 2 * TYPE_BYTES + udt.keyspace.len() + udt.name.len();
                    let field = |sum: usize, (name, ty): &(_, CqlType)| {
                        let name: &std::sync::Arc<str> = name;
                        sum.saturating_add(2 + name.len()).saturating_add(this.bytes(ty))
                    };
                    udt.fields.iter().fold(names, field)
                })
            }
            CqlType::Custom(class) => class.len(),
            _ => 0,
        };
        parts.saturating_add(TYPE_BYTES)
    }

    fn shared(&mut self, address: usize, count: impl FnOnce(&mut Described) -> usize) -> usize {
        if let Some(known) = self.0.get(&address) {
            return *known;
        }
        let bytes = count(self);
        self.0.insert(address, bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn of_fields(names: &[String], ty: &CqlType) -> CqlType {
        let fields = names.iter().map(|name| (Arc::from(&**name), ty.clone())).collect();
        let (keyspace, name) = (Arc::from("ks"), Arc::from("t"));
        CqlType::Udt(Arc::new(UserType { keyspace, name, fields, frozen: true }))
    }

    #[test]
    fn names_count_as_often_as_they_are_written() {
        let names: Vec<String> = (0..100).map(|number| format!("{number:0>1000}")).collect();
        let inner = of_fields(&names, &CqlType::Int);
        let outer = of_fields(&names, &inner);
        let (one, all) = (described_bytes([&inner]), described_bytes([&outer]));
        assert!((100_000..110_000).contains(&one), "{one}");
        assert!((100 * one..101 * one + 110_000).contains(&all), "{all}");
        assert_eq!(described_bytes([&outer, &outer, &CqlType::Int]), 2 * all + TYPE_BYTES);
        let vector = CqlType::Vector { element: Arc::new(outer.clone()), dimension: 2 };
        assert!(described_bytes([&vector]) >= vector.class_name().len());
    }

    /// Each level doubles the length; a count that follows would not end.
    #[test]
    fn shared_types_are_visited_once() {
        let names = ["a".to_owned(), "b".to_owned()];
        let mut ty = CqlType::Int;
        for _ in 0..200 {
            ty = of_fields(&names, &ty);
        }
        assert_eq!(described_bytes([&ty]), usize::MAX);
    }
}
