//! The partitions that a WHERE clause selects: keys, or a range of tokens.

use super::restriction::{
    End, Operand, PRODUCT_BYTES, Test, Value, check_product, invalid, room_for_product,
};
use super::statement::Restrictions;
use crate::analysis::Bindings;
use crate::budget::{room_for, room_in, sorted_distinct};
use crate::error::Result;
use helenus_model::byte_comparable::token_bound;
use helenus_model::partitions::{KeyRange, PartitionKey, Partitions};
use helenus_model::schema::Column;
use helenus_model::token::Token;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Maximum bytes of a partition key, and of each of its columns (`FBUtilities.MAX_UNSIGNED_SHORT`).
const KEY_BYTES_MAX: usize = 0xFFFF;

/// The partitions that one execution selects.
pub(crate) enum PartitionSelection {
    /// These partitions.
    Read(Partitions),
    /// No partition: an empty IN, or a range that ends before it begins.
    Nothing,
}

impl PartitionSelection {
    /// Refuses keys that no table can have. Cassandra checks them after the clustering, and not at all if that selects
    /// nothing (`SelectStatement.getSliceCommands`).
    ///
    /// # Errors
    /// A key is empty or too long.
    pub(crate) fn check_keys(&self) -> Result<()> {
        match self {
            PartitionSelection::Read(Partitions::Keys(keys)) => {
                keys.iter().try_for_each(|key| check_key(key.bytes.len()))
            }
            PartitionSelection::Read(Partitions::Range(_)) | PartitionSelection::Nothing => Ok(()),
        }
    }
}

impl Restrictions {
    /// The partitions for these bound values. Keys are in the order of their values, without duplicates.
    ///
    /// # Errors
    /// Null or unset values. Empty and too long keys are left to `PartitionSelection::check_keys`.
    pub(crate) fn partitions(&self, bindings: &Bindings<'_>) -> Result<PartitionSelection> {
        if self.is_key_range() {
            return self.key_range(bindings);
        }
        let single = self.single_key(bindings)?;
        let mut keys = match single {
            Some(key) if self.token.is_none() => {
                let key = PartitionKey::new(key);
                return Ok(PartitionSelection::Read(Partitions::Keys(vec![key])));
            }
            Some(key) => vec![key],
            None => self.several_keys(bindings)?,
        };
        if let Some(test) = &self.token {
            let tokens = TokenRange::bind(test, bindings)?;
            keys.retain(|key| tokens.contains(PartitionKey::new(key.clone()).hash.token));
        }
        if keys.is_empty() {
            return Ok(PartitionSelection::Nothing);
        }
        Ok(PartitionSelection::Read(Partitions::Keys(keys.into_iter().map(PartitionKey::new).collect())))
    }

    /// The key, if each column has `=`.
    fn single_key(&self, bindings: &Bindings<'_>) -> Result<Option<Vec<u8>>> {
        let columns = &self.table.partition_key;
        let mut key = Vec::new();
        for column in columns {
            let Some(Test::Equal(operand @ Operand::One(_))) =
                self.partition.of(column).map(|found| &found.test)
            else {
                return Ok(None);
            };
            let value = operand.bind_one(bindings, ("Invalid", column)).transpose()?.flatten();
            let value = not_null(value, column)?;
            room_in(&mut key, value.len() + 3)?;
            append_key_part(columns.len(), &value, &mut key)?;
        }
        Ok(Some(key))
    }

    /// All combinations of the columns' values, in order.
    fn several_keys(&self, bindings: &Bindings<'_>) -> Result<Vec<Vec<u8>>> {
        let columns = &self.table.partition_key;
        let mut keys = vec![Vec::new()];
        for column in columns {
            if keys.is_empty() {
                // An empty IN: Cassandra does not check the values after it.
                break;
            }
            let mut values: Vec<Cow<'_, [u8]>> = Vec::new();
            let Some(restriction) = self.partition.of(column) else { continue };
            let bound = match &restriction.test {
                Test::Equal(operand) => vec![operand.bind(bindings, ("Invalid", column))?],
                Test::In(candidates) => candidates.bind(bindings, ("Invalid", column))?,
                Test::Slice(..) | Test::Contains { .. } => continue,
            };
            room_for(bound.len() * size_of::<Cow<'_, [u8]>>())?;
            values.reserve_exact(bound.len());
            for mut value in bound {
                let value = not_null(value.pop().flatten(), column)?;
                // Longer ones are no keys, but long decimals could take long to sort.
                if value.len() > KEY_BYTES_MAX {
                    check_key(value.len())?;
                }
                values.push(value);
            }
            // Of values that are equal but have different bytes, such as 1.0 and 1, the first is used.
            let work = bindings.calls.work;
            let values = sorted_distinct(values, |a, b| work.order(&column.ty, a, b), work)?;
            check_product((keys.len(), values.len()), PRODUCT_BYTES, "partition key")?;
            room_for_product(
                (keys.len(), keys.iter().map(Vec::len).sum()),
                (values.len(), values.iter().map(|value| value.len()).sum()),
            )?;
            let mut longer = Vec::with_capacity(keys.len() * values.len());
            for key in &keys {
                for value in &values {
                    let mut key: Vec<u8> = key.clone();
                    append_key_part(columns.len(), value, &mut key)?;
                    longer.push(key);
                }
            }
            keys = longer;
        }
        Ok(keys)
    }

    fn key_range(&self, bindings: &Bindings<'_>) -> Result<PartitionSelection> {
        let Some(test) = &self.token else {
            return Ok(PartitionSelection::Read(Partitions::Range(KeyRange::all())));
        };
        let range = TokenRange::bind(test, bindings)?;
        let (start, end) = (range.start.0, range.end.0);
        let backwards = match start.cmp(&end) {
            Ordering::Less => false,
            Ordering::Equal => !range.start.1 || !range.end.1,
            Ordering::Greater => true,
        };
        if backwards && start != Token::MIN && end != Token::MIN {
            return Ok(PartitionSelection::Nothing);
        }
        let mut keys = KeyRange::all();
        if start != Token::MIN {
            keys.start.clear();
            token_bound(start, range.start.1, &mut keys.start);
        }
        // The smallest token as an end means the end of the ring.
        if end != Token::MIN {
            keys.end.clear();
            token_bound(end, !range.end.1, &mut keys.end);
        }
        Ok(PartitionSelection::Read(Partitions::Range(keys)))
    }
}

/// A restriction on the token: both ends, and whether each is inclusive. A missing end is the smallest token.
struct TokenRange {
    start: (Token, bool),
    end: (Token, bool),
    has: (bool, bool),
}

impl TokenRange {
    fn bind(test: &Test, bindings: &Bindings<'_>) -> Result<TokenRange> {
        match test {
            Test::Equal(operand) => {
                let token = bind_token(operand, bindings)?;
                Ok(TokenRange { start: (token, true), end: (token, true), has: (true, true) })
            }
            Test::Slice(start, end) => {
                let bind = |end: &Option<End>| -> Result<(Token, bool)> {
                    match end {
                        None => Ok((Token::MIN, true)),
                        Some(end) => Ok((bind_token(&end.operand, bindings)?, end.inclusive)),
                    }
                };
                Ok(TokenRange { start: bind(start)?, end: bind(end)?, has: (start.is_some(), end.is_some()) })
            }
            Test::In(_) | Test::Contains { .. } => {
                Ok(TokenRange { start: (Token::MIN, true), end: (Token::MIN, true), has: (false, false) })
            }
        }
    }

    /// Whether a key's token is in the range. If the ends are in the wrong order, the range is everything outside them
    /// (`TokenFilter.toRangeSet`).
    fn contains(&self, token: Token) -> bool {
        let after = !self.has.0 || token > self.start.0 || (self.start.1 && token == self.start.0);
        let before = !self.has.1 || token < self.end.0 || (self.end.1 && token == self.end.0);
        if self.has == (true, true) && self.start.0 > self.end.0 { after || before } else { after && before }
    }
}

fn bind_token(operand: &Operand, bindings: &Bindings<'_>) -> Result<Token> {
    let Operand::One(term) = operand else { return invalid("Invalid null token value".to_owned()) };
    match term.bind(bindings)?.bytes().and_then(|bytes| bytes.first_chunk::<8>()) {
        Some(bytes) => Ok(Token(i64::from_be_bytes(*bytes))),
        None => invalid("Invalid null token value".to_owned()),
    }
}

fn not_null<'a>(value: Value<'a>, column: &Column) -> Result<Cow<'a, [u8]>> {
    match value {
        Some(value) => Ok(value),
        None => invalid(format!("Invalid null value in condition for column {}", column.name)),
    }
}

/// Appends a column's value to a serialised key: unchanged if the key has one column, otherwise as `CompositeType`
/// does.
fn append_key_part(columns: usize, value: &[u8], key: &mut Vec<u8>) -> Result<()> {
    if columns == 1 {
        key.extend_from_slice(value);
        return Ok(());
    }
    let Ok(length) = u16::try_from(value.len()) else { return check_key(key.len() + value.len()) };
    key.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(value);
    key.push(0);
    Ok(())
}

fn check_key(bytes: usize) -> Result<()> {
    if bytes == 0 {
        return invalid("Key may not be empty".to_owned());
    }
    if bytes > KEY_BYTES_MAX {
        return invalid(format!("Key length of {bytes} is longer than maximum of {KEY_BYTES_MAX}"));
    }
    Ok(())
}
