//! Permission to go on, for code that takes memory or time in the measure of its values. The caller knows the request,
//! its memory and its deadline; this crate knows none of them.

use std::cmp::Ordering;

/// Asked before memory is taken and while work is done: for so many bytes, and so many steps of about a microsecond.
/// Once it has refused, the work ends without a result.
pub type Permission<'p> = &'p mut dyn FnMut(usize, usize) -> bool;

/// Up to this many values are sorted by insertion.
const INSERTED_MAX: usize = 12;

/// Sorts values like `slice::sort_by`: equal ones keep their order, and sorted ones cost one comparison each. It ends at the
/// first comparison that fails, which the standard library's sort does not. The memory is up to two and a half times
/// that of the vector.
///
/// # Errors
/// Those of `compare`.
pub fn try_sort<T, E>(
    mut values: Vec<T>,
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<Vec<T>, E> {
    if values.len() <= INSERTED_MAX {
        insert(&mut values, compare)?;
        return Ok(values);
    }
    let right = values.split_off(values.len() / 2);
    let mut left = try_sort(values, compare)?;
    let right = try_sort(right, compare)?;
    if let (Some(last), Some(first)) = (left.last(), right.first())
        && compare(last, first)?.is_le()
    {
        left.extend(right);
        return Ok(left);
    }
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let (mut one, mut other) = (left.next(), right.next());
    while let (Some(a), Some(b)) = (&one, &other) {
        if compare(a, b)?.is_le() {
            merged.extend(one);
            one = left.next();
        } else {
            merged.extend(other);
            other = right.next();
        }
    }
    merged.extend(one.into_iter().chain(left).chain(other).chain(right));
    Ok(merged)
}

fn insert<T, E>(values: &mut [T], compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>) -> Result<(), E> {
    for end in 1..values.len() {
        let mut at = end;
        while let Some([before, value]) = at.checked_sub(1).and_then(|from| values.get(from..=at)) {
            if compare(before, value)?.is_le() {
                break;
            }
            values.swap(at - 1, at);
            at -= 1;
        }
    }
    Ok(())
}

/// Removes values that are equal to the one before them; the first of several stays.
///
/// # Errors
/// Those of `compare`.
pub fn try_dedup<T, E>(
    values: Vec<T>,
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<Vec<T>, E> {
    let mut kept: Vec<T> = Vec::with_capacity(values.len());
    for value in values {
        let is_same = match kept.last() {
            Some(last) => compare(last, &value)?.is_eq(),
            None => false,
        };
        if !is_same {
            kept.push(value);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_sorted_and_distinct_as_by_the_standard_library(
            values in prop::collection::vec((0_u8..40, any::<u16>()), 0..300),
            fails_at in 0_usize..4000,
        ) {
            let mut compare = |a: &(u8, u16), b: &(u8, u16)| Ok::<_, ()>(a.0.cmp(&b.0));
            let sorted = try_sort(values.clone(), &mut compare).unwrap();
            let mut expected = values.clone();
            expected.sort_by_key(|value| value.0);
            prop_assert_eq!(&sorted, &expected);
            expected.dedup_by_key(|value| value.0);
            prop_assert_eq!(try_dedup(sorted, &mut compare).unwrap(), expected);
            // It compares nothing after a failure.
            let mut compared = 0;
            let ended = try_sort(values, &mut |a, b| {
                assert!(compared <= fails_at);
                compared += 1;
                if compared > fails_at { Err(()) } else { Ok(a.0.cmp(&b.0)) }
            });
            prop_assert_eq!(ended.is_err(), compared > fails_at);
        }
    }

    #[test]
    fn sorted_values_cost_one_comparison_each() {
        let mut compared = 0;
        let values: Vec<u32> = (0..10_000).collect();
        let sorted = try_sort(values, &mut |a, b| {
            compared += 1;
            Ok::<_, ()>(a.cmp(b))
        });
        assert!(sorted.unwrap().is_sorted());
        assert_eq!(compared, 9999);
    }
}
