//! Versions of nodes.

/// The first two numbers of a version.
pub(crate) fn major_minor(version: &str) -> (u32, u32) {
    let mut numbers = version.split(['.', '-', '~']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Options of tables, and the first version that knows them.
const NEWER_OPTIONS: [(&str, (u32, u32)); 5] = [
    ("additional_write_policy", (4, 0)),
    ("read_repair", (4, 0)),
    ("memtable", (4, 1)),
    ("allow_auto_snapshot", (5, 0)),
    ("incremental_backups", (5, 0)),
];

/// Whether a version knows an option of tables.
pub(crate) fn is_known(option: &str, version: (u32, u32)) -> bool {
    !NEWER_OPTIONS.iter().any(|(newer, since)| *newer == option && version < *since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_numbers_of_a_version_are_found() {
        assert_eq!(major_minor("5.0.9"), (5, 0));
        assert_eq!(major_minor("4.1-beta1"), (4, 1));
        assert_eq!(major_minor("5"), (5, 0));
    }
}
