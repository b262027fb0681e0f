//! Makes a statement invalid, or at least something else: what a slip of a hand would.

use super::Draw;

/// Words that are put where another stood.
const WORDS: &[&str] = &[
    "FROM",
    "WHERE",
    "AND",
    "(",
    ")",
    ",",
    "=",
    "IN",
    "null",
    "1",
    "'x'",
    "nosuch",
    "USING",
    "TTL",
    "LIMIT",
    "?",
    "*",
    "[1]",
    "{1}",
    "{'a': 1}",
    "true",
    "0x01",
    "1.5",
    ">",
    "DESC",
    "IF EXISTS",
    "minTimeuuid(0)",
    "\"Q\"",
    "-",
];

/// The text with a word left out, doubled, changed, or two of them in each other's place.
pub fn spoil(draw: &mut Draw, text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let at = draw.below(words.len());
    match draw.below(5) {
        0 if words.len() > 1 => {
            words.remove(at);
        }
        1 => words.insert(at, words[at]),
        2 => words.insert(at, draw.word(WORDS)),
        3 => {
            let other = draw.below(words.len());
            words.swap(at, other);
        }
        _ => words[at] = draw.word(WORDS),
    }
    words.join(" ")
}
