//! Finds the known name that was probably meant by an unknown one.

/// The name with the smallest distance to `typed`, if that is small enough to be a slip: up to a third of its letters.
pub fn nearest<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let lower = typed.to_lowercase();
    let (distance, found) = known.map(|name| (distance(&lower, &name.to_lowercase()), name)).min()?;
    (distance <= (typed.chars().count() / 3).max(1) && !found.is_empty()).then_some(found)
}

/// The number of letters to change, add, remove, or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // The rows of the table for the last two letters of `a`, and the present one.
    let mut rows: [Vec<usize>; 3] = [vec![], (0..=b.len()).collect(), vec![]];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX >> 1);
            let [before, last, _] = &rows;
            let mut least =
                (cell(last, j) + usize::from(from != to)).min(cell(last, j + 1) + 1).min(cell(&row, j) + 1);
            let is_swapped = i > 0 && j > 0 && a.get(i - 1) == Some(to) && b.get(j - 1) == Some(from);
            if is_swapped {
                least = least.min(cell(before, j - 1) + 1);
            }
            row.push(least);
        }
        rows.rotate_left(1);
        rows[1] = row;
    }
    rows[1].last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_found_and_another_word_is_not() {
        let known = ["timeline", "users", "events"];
        let near = |typed: &str| nearest(typed, known.into_iter());
        assert_eq!(near("timelin"), Some("timeline"));
        assert_eq!(near("tmieline"), Some("timeline"));
        assert_eq!(near("USERS"), Some("users"));
        assert_eq!(near("event"), Some("events"));
        assert_eq!((near("orders"), near("x"), near("")), (None, None, None));
        assert_eq!((distance("ab", "ba"), distance("", "abc"), distance("kitten", "sitting")), (1, 3, 3));
    }
}
