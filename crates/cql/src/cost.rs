//! Estimates the work of an operation on values, before it runs.
//!
//! Bytes alone do not tell it: a decimal of five bytes may be a number of a hundred thousand digits once its scale counts,
//! and long numbers are divided and printed in more than linear time. Every call of a function (`CallContext::calls`),
//! every fold of an aggregate and every comparison reports its estimate to the request's `RequestBudget`, which is where
//! deadline, cancellation and the event loop's patience are checked.
//!
//! The unit is a step of `RequestBudget`, about a microsecond. The factors are those of `num-bigint`: sums take a
//! nanosecond a word of 64 bits; quotients one for each pair of words; products and digits are faster than that for
//! long numbers.

use helenus_model::types::{
    CqlType, Elements, Fields, KEPT_CLASS_BYTES_MAX, VectorElements, collection_size, decimals_need_power,
    needs_normalising,
};

/// Values up to this length are never worth an estimate of their own.
pub(crate) const SHORT_BYTES: usize = 64;
/// Decimal digits of a word of 64 bits.
const DIGITS_PER_WORD: u64 = 19;
const NS_PER_STEP: u64 = 1000;
/// The bytes of a value that are gone through in one step.
const BYTES_PER_STEP: usize = 256;
/// The parts of a type that are gone through in one step.
const TYPES_PER_STEP: usize = 256;

/// The number of words of a number with this many bytes.
pub(crate) fn words(bytes: usize) -> u64 {
    bytes as u64 / 8 + 1
}

/// The number of words of a number with this many decimal digits.
pub(crate) fn words_of_digits(digits: u64) -> u64 {
    digits / DIGITS_PER_WORD + 1
}

/// The largest number of decimal digits that these words have.
pub(crate) fn digits_of_words(words: u64) -> u64 {
    words.saturating_mul(DIGITS_PER_WORD + 1)
}

fn steps(ns: u64) -> usize {
    usize::try_from(ns / NS_PER_STEP).unwrap_or(usize::MAX)
}

/// A product of numbers of so many words.
pub(crate) fn product(one: u64, other: u64) -> usize {
    steps(product_ns(one, other))
}

fn product_ns(one: u64, other: u64) -> u64 {
    let (long, short) = (one.max(other), one.min(other));
    long.saturating_mul(short.min(8 * short.isqrt()))
}

/// A quotient or remainder of numbers of so many words.
pub(crate) fn quotient(dividend: u64, divisor: u64) -> usize {
    let of_quotient = (dividend + 1).saturating_sub(divisor).max(1);
    steps(of_quotient.saturating_mul(divisor))
}

/// Ten to a power.
pub(crate) fn power_of_ten(power: u64) -> usize {
    let words = words_of_digits(power);
    steps(product_ns(words, words))
}

/// The decimal digits of a number of so many words, or the number of its digits.
pub(crate) fn digits(words: u64) -> usize {
    steps(words.saturating_mul(32 * words.isqrt()))
}

/// Validating a value of this many bytes, as far as classes of composites are parsed for it: the longest are parsed for
/// each element.
pub(crate) fn class_parsing(ty: &CqlType, bytes: usize) -> usize {
    const CLASS_BYTES_PER_STEP: usize = 100;
    (bytes / 4).saturating_mul(long_classes(ty) / CLASS_BYTES_PER_STEP)
}

/// The bytes of classes in a type that are not kept.
fn long_classes(ty: &CqlType) -> usize {
    match ty {
        CqlType::Custom(class) if class.len() > KEPT_CLASS_BYTES_MAX => class.len(),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            long_classes(element)
        }
        CqlType::Map { key, value, .. } => long_classes(key) + long_classes(value),
        CqlType::Tuple(types) => types.iter().map(long_classes).sum(),
        CqlType::Udt(udt) => udt.fields.iter().map(|(_, ty)| long_classes(ty)).sum(),
        _ => 0,
    }
}

/// Reading a number of any length from its text.
pub(crate) fn number_text(text: &str) -> usize {
    if text.len() <= SHORT_BYTES { 0 } else { digits(words_of_digits(text.len() as u64)) }
}

/// The short values that are compared or visited in one step.
pub(crate) const SHORT_VALUES_PER_STEP: usize = 32;

/// A comparison of two values; none for short ones, whose callers count the rows or elements.
///
/// A short decimal may be compared with a long one: the power of ten that brings both to the same scale has as many
/// digits as the longer. So of two collections the numbers of both count.
pub(crate) fn comparison(ty: &CqlType, a: &[u8], b: &[u8]) -> usize {
    let passes = a.len().min(b.len()) / BYTES_PER_STEP;
    passes.saturating_add(comparison_of_numbers(ty, a, b))
}

/// The part of `comparison` that is for decimals.
fn comparison_of_numbers(ty: &CqlType, a: &[u8], b: &[u8]) -> usize {
    let longer = a.len().max(b.len());
    if longer <= SHORT_BYTES {
        return 0;
    }
    if *ty == CqlType::Decimal {
        return if decimals_need_power(a, b) { scaled(longer) } else { 0 };
    }
    let (has_decimals, walk) = find_numbers(ty, &[CqlType::Decimal]);
    match has_decimals {
        true => walk.saturating_add(of_decimals(ty, a)).saturating_add(of_decimals(ty, b)),
        false => walk,
    }
}

/// Bringing a decimal of this many bytes to another scale, and comparing it.
fn scaled(bytes: usize) -> usize {
    product(words(bytes), words(bytes)).saturating_mul(2)
}

/// The comparisons of all decimals in a value with others.
fn of_decimals(ty: &CqlType, value: &[u8]) -> usize {
    let each = |ty: &CqlType, bytes: usize| if *ty == CqlType::Decimal { scaled(bytes) } else { 0 };
    (value.len() / BYTES_PER_STEP).saturating_add(of_numbers(ty, value, &each))
}

/// The comparisons of decimals when the sets and maps in a value are sorted: of each with one other, and how many there
/// are of each.
pub(crate) fn sorting_of_numbers(ty: &CqlType, value: &[u8]) -> (usize, usize) {
    if value.len() <= SHORT_BYTES || !needs_normalising(ty) {
        return (0, 0);
    }
    let (has_decimals, walk) = find_numbers(ty, &[CqlType::Decimal]);
    if !has_decimals {
        // `needs_normalising` and sorting go through the type too.
        return (walk, 1);
    }
    let count = match ty {
        CqlType::Set { .. } | CqlType::Map { .. } => collection_size(value).min(value.len() / 4),
        _ => value.len() / 4,
    };
    (of_decimals(ty, value).saturating_add(walk), levels(count))
}

/// The number of comparisons for each of so many values when they are sorted.
fn levels(count: usize) -> usize {
    count.checked_ilog2().unwrap_or(0) as usize + 1
}

/// A text of a value. Only numbers cost more than their bytes.
pub(crate) fn text(ty: &CqlType, value: &[u8]) -> usize {
    if value.len() <= SHORT_BYTES {
        return 0;
    }
    let (has_numbers, walk) = find_numbers(ty, &[CqlType::Varint, CqlType::Decimal]);
    match has_numbers {
        true => walk.saturating_add(of_numbers(ty, value, &|_, bytes| digits(words(bytes)))),
        false => walk,
    }
}

/// The steps of all `varint` and `decimal` numbers in a value; `each` gets the type and the bytes of a number.
fn of_numbers(ty: &CqlType, value: &[u8], each: &dyn Fn(&CqlType, usize) -> usize) -> usize {
    if value.len() <= SHORT_BYTES {
        return 0;
    }
    let sum = |parts: &mut dyn Iterator<Item = usize>| parts.fold(0_usize, usize::saturating_add);
    let fields = |types: &mut dyn Iterator<Item = &CqlType>| {
        let parts = Fields::of(value).zip(types);
        sum(&mut parts.map(|(part, ty)| of_numbers(ty, part.unwrap_or_default(), each)))
    };
    match ty {
        CqlType::Varint | CqlType::Decimal => each(ty, value.len()),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            sum(&mut Elements::of_list(value).flatten().map(|part| of_numbers(element, part, each)))
        }
        CqlType::Map { key, value: of_value, .. } => {
            let parts = Elements::of_map(value).zip([&**key, &**of_value].into_iter().cycle());
            sum(&mut parts.map(|(part, ty)| of_numbers(ty, part.unwrap_or_default(), each)))
        }
        CqlType::Vector { element, .. } => {
            sum(&mut VectorElements::of(element, value).map(|part| of_numbers(element, part, each)))
        }
        CqlType::Tuple(types) => fields(&mut types.iter()),
        CqlType::Udt(udt) => fields(&mut udt.fields.iter().map(|(_, ty)| ty)),
        _ => 0,
    }
}

/// Whether values of a type contain numbers of these types, and the steps of finding that out: a type may have many more parts than a
/// value has bytes.
fn find_numbers(ty: &CqlType, numbers: &[CqlType]) -> (bool, usize) {
    let mut parts = 0;
    let found = has_numbers(ty, numbers, &mut parts);
    (found, parts / TYPES_PER_STEP)
}

fn has_numbers(ty: &CqlType, numbers: &[CqlType], parts: &mut usize) -> bool {
    *parts += 1;
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            has_numbers(element, numbers, parts)
        }
        CqlType::Map { key, value, .. } => {
            has_numbers(key, numbers, parts) || has_numbers(value, numbers, parts)
        }
        CqlType::Tuple(types) => types.iter().any(|ty| has_numbers(ty, numbers, parts)),
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, ty)| has_numbers(ty, numbers, parts)),
        ty => numbers.contains(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_type_count_where_they_are_gone_through() {
        const PARTS: usize = 1 << 20;
        let plain = CqlType::Tuple(vec![CqlType::Int; PARTS].into());
        let mut with_number = vec![CqlType::Int; PARTS];
        with_number.push(CqlType::Decimal);
        let with_number = CqlType::Tuple(with_number.into());
        let value = [7; SHORT_BYTES + 1];
        for ty in [&plain, &with_number] {
            for steps in [comparison(ty, &value, &value), text(ty, &value), sorting_of_set(ty)] {
                assert!((PARTS / TYPES_PER_STEP..2 * PARTS).contains(&steps), "{steps}");
            }
            assert_eq!(comparison(ty, &value[1..], &value[1..]), 0, "short values");
        }
        assert_eq!(comparison(&CqlType::Text, &value, &value), 0);
    }

    fn sorting_of_set(element: &CqlType) -> usize {
        let ty = CqlType::Set { element: std::sync::Arc::new(element.clone()), frozen: true };
        let (once, times) = sorting_of_numbers(&ty, &[0; SHORT_BYTES + 1]);
        once * times
    }
}
