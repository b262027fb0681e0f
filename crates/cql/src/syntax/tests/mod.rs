//! Tests of the whole module. The `.txt` files are recorded answers of Cassandra 5.0.9's parser, one statement a line,
//! with `\n`, `\r`, `\t` and `\\` escaped.

mod against_cassandra;
mod limits;
mod meaning;
mod round_trip;

/// Undoes the escapes of the `.txt` files.
fn unescaped(line: &str) -> String {
    let mut out = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                other => out.extend(other),
            },
            (plain, false) => out.push(plain),
        }
    }
    out
}

/// The lines of a `.txt` file: statement and answer.
fn answers(file: &str) -> impl Iterator<Item = (String, String)> {
    file.lines().map(|line| {
        let (statement, answer) = line.split_once('\t').unwrap_or((line, ""));
        (unescaped(statement), unescaped(answer))
    })
}
