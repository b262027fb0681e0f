//! Masks: values that are changed on the way, so that a copy has no secrets.
//!
//! `null` leaves a value out, `default` puts the same in place of each ('****', 0, ..), and `hash` a value that is made of it with a
//! secret: equal values stay equal, and so keys of tables still fit each other. Keys can be hashed only.

use super::messages::PullOrder;
use crate::error::MoveError;
use crate::remote::SeenRow;
use crate::source::SourceError;
use helenus_host::Random;
use helenus_model::cell::ColumnId;
use helenus_model::partitions::PartitionKey;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, key_values};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hash,
    Null,
    Default,
}

/// A masked column.
#[derive(Clone, Debug)]
struct Mask {
    kind: Kind,
    of: ColumnKind,
    position: usize,
    id: ColumnId,
    ty: CqlType,
}

/// The masks of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    secret: Vec<u8>,
    columns: Vec<Mask>,
}

/// The masks of an order, by the place of their table. `failed`: tables that could not be made, whose masks are passed over.
///
/// # Errors
/// A mask that is not known, of no table of the order, or not for its column.
pub(super) fn masks(
    order: &PullOrder,
    (tables, failed): (&[Arc<Table>], &[&str]),
    random: &dyn Random,
) -> Result<HashMap<usize, Masks>, MoveError> {
    let secret = order.secret.as_ref().map_or_else(
        || {
            let mut drawn = vec![0; 32];
            random.fill(&mut drawn);
            drawn
        },
        |secret| secret.clone().into_bytes(),
    );
    let mut found: HashMap<usize, Masks> = HashMap::new();
    for text in &order.masks {
        let wrong = |what: &str| MoveError::Table(format!("--mask {text}: {what}"));
        let form = "give it as KEYSPACE.TABLE.COLUMN=hash, =null or =default";
        let (name, kind) = text.split_once('=').ok_or_else(|| wrong(form))?;
        let kind = match kind {
            "hash" => Kind::Hash,
            "null" => Kind::Null,
            "default" => Kind::Default,
            _ => return Err(wrong(form)),
        };
        let (table, column) = name.rsplit_once('.').ok_or_else(|| wrong(form))?;
        if failed.contains(&table) {
            continue;
        }
        let place = tables.iter().position(|of| format!("{}.{}", of.keyspace, of.name) == table);
        let place = place.ok_or_else(|| wrong("this table is not pulled"))?;
        let column = tables.get(place).and_then(|of| of.columns().find(|of| *of.name == *column));
        let column = column.ok_or_else(|| wrong("the table has no such column"))?;
        let mask = Mask::of(column, kind).map_err(|what| wrong(&what))?;
        let masks = found.entry(place).or_default();
        masks.secret.clone_from(&secret);
        masks.columns.push(mask);
    }
    Ok(found)
}

impl Mask {
    fn of(column: &Column, kind: Kind) -> Result<Mask, String> {
        let is_key = matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
        if is_key && kind != Kind::Hash {
            return Err("a column of the primary key can only be hashed".to_owned());
        }
        let probe = [0; 16];
        let is_possible = match kind {
            Kind::Null => true,
            Kind::Hash => !column.ty.is_multi_cell() && hashed(&column.ty, &probe).is_some(),
            Kind::Default => !column.ty.is_multi_cell() && default_of(&column.ty).is_some(),
        };
        if !is_possible {
            return Err(format!("a {} can only be left out: =null", column.ty));
        }
        let (of, position, id, ty) = (column.kind, column.position, column.id, column.ty.clone());
        Ok(Mask { kind, of, position, id, ty })
    }
}

impl Masks {
    /// A row with its values masked.
    ///
    /// # Errors
    /// None in practice: a hashed key has an order.
    pub(super) fn apply(&self, table: &Table, mut row: SeenRow) -> Result<SeenRow, SourceError> {
        let mut has_other_key = false;
        for mask in &self.columns {
            match mask.of {
                ColumnKind::PartitionKey => {
                    let values = key_values(table.partition_key.len(), &row.partition.bytes);
                    let hash = |(at, value): (usize, &[u8])| match at == mask.position {
                        true => self.hash(&mask.ty, value),
                        false => value.to_vec(),
                    };
                    let values: Vec<Vec<u8>> = values.into_iter().enumerate().map(hash).collect();
                    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
                    row.partition = Arc::new(PartitionKey::new(crate::remote::serialised_key(&values)));
                    has_other_key = true;
                }
                ColumnKind::Clustering => {
                    let value = row.clustering.as_mut().and_then(|values| values.get_mut(mask.position));
                    if let Some(value) = value {
                        *value = self.hash(&mask.ty, value);
                    }
                    has_other_key = true;
                }
                _ if mask.kind == Kind::Null => row.cells.retain(|cell| cell.column != mask.id),
                _ => {
                    for cell in row.cells.iter_mut().filter(|cell| cell.column == mask.id) {
                        cell.value = match mask.kind {
                            Kind::Hash => self.hash(&mask.ty, &cell.value),
                            _ => default_of(&mask.ty).unwrap_or_default(),
                        };
                    }
                }
            }
        }
        match has_other_key {
            true => SeenRow::new(table, &row.partition, row.clustering, row.cells),
            false => Ok(row),
        }
    }

    fn hash(&self, ty: &CqlType, value: &[u8]) -> Vec<u8> {
        let mut digest = Sha256::new();
        digest.update((self.secret.len() as u64).to_be_bytes());
        digest.update(&self.secret);
        digest.update(value);
        let digest = digest.finalize();
        let first = digest.first_chunk::<16>().copied().unwrap_or_default();
        hashed(ty, &first).unwrap_or_default()
    }
}

/// A value of a type made of 16 bytes; `None` if a value of that type would say nothing or be no value.
fn hashed(ty: &CqlType, digest: &[u8; 16]) -> Option<Vec<u8>> {
    let number = i64::from_be_bytes(*digest.first_chunk()?).unsigned_abs();
    Some(match ty {
        CqlType::Ascii | CqlType::Text => {
            digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
        }
        CqlType::Blob => digest.to_vec(),
        CqlType::BigInt | CqlType::Varint => ((number >> 1) as i64).to_be_bytes().to_vec(),
        CqlType::Int => ((number >> 33) as i32).to_be_bytes().to_vec(),
        CqlType::SmallInt => ((number >> 49) as i16).to_be_bytes().to_vec(),
        CqlType::Double => ((number >> 12) as f64).to_be_bytes().to_vec(),
        CqlType::Float => ((number >> 41) as f32).to_be_bytes().to_vec(),
        CqlType::Uuid | CqlType::TimeUuid => {
            let version = if *ty == CqlType::Uuid { 0x40 } else { 0x10 };
            let mut uuid = digest.to_vec();
            if let Some(byte) = uuid.get_mut(6) {
                *byte = (*byte & 0x0F) | version;
            }
            if let Some(byte) = uuid.get_mut(8) {
                *byte = (*byte & 0x3F) | 0x80;
            }
            uuid
        }
        _ => return None,
    })
}

/// The value that stands for every value of a type.
fn default_of(ty: &CqlType) -> Option<Vec<u8>> {
    Some(match ty {
        CqlType::Ascii | CqlType::Text => b"****".to_vec(),
        CqlType::Blob => Vec::new(),
        CqlType::Boolean | CqlType::TinyInt | CqlType::Varint => vec![0],
        CqlType::SmallInt => vec![0; 2],
        CqlType::Int | CqlType::Float => vec![0; 4],
        CqlType::BigInt | CqlType::Double | CqlType::Time | CqlType::Timestamp => vec![0; 8],
        CqlType::Date => (1_u32 << 31).to_be_bytes().to_vec(),
        CqlType::Inet => vec![0; 4],
        CqlType::Decimal => vec![0; 5],
        CqlType::Uuid => vec![0; 16],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_a_value_of_its_type_and_equal_values_stay_equal() {
        let masks = Masks { secret: b"s".to_vec(), columns: Vec::new() };
        for ty in [
            CqlType::Text,
            CqlType::Ascii,
            CqlType::Blob,
            CqlType::BigInt,
            CqlType::Varint,
            CqlType::Int,
            CqlType::SmallInt,
            CqlType::Double,
            CqlType::Float,
            CqlType::Uuid,
            CqlType::TimeUuid,
        ] {
            let hash = masks.hash(&ty, b"value");
            ty.validate(&hash).unwrap();
            assert_eq!(hash, masks.hash(&ty, b"value"));
            assert_ne!(hash, masks.hash(&ty, b"other"));
            let other = Masks { secret: b"t".to_vec(), columns: Vec::new() };
            assert_ne!(hash, other.hash(&ty, b"value"));
        }
        for ty in [CqlType::Text, CqlType::Int, CqlType::Date, CqlType::Inet, CqlType::Decimal, CqlType::Uuid]
        {
            ty.validate(&default_of(&ty).unwrap()).unwrap();
        }
    }
}
