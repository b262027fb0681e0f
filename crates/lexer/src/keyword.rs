//! Finds the keyword that an identifier spells, without regard to case and without allocating.
//!
//! A word of up to 16 bytes is folded to lower case inside one `u128` and looked up in a table built at compile time:
//! one multiplication, one or two comparisons. Folding sets bit 5 of each byte. That turns `_` into 0x7f, which no
//! identifier holds, so the folded form is still unique.

use crate::token::{Kind, WORDS};

const LEN_MAX: usize = 14;
const SLOTS: usize = 1024;
const EMPTY: u8 = u8::MAX;

/// Folded keywords, each with its index in `WORDS`; an open-addressing hash table.
struct Table {
    keys: [u128; SLOTS],
    words: [u8; SLOTS],
}

static TABLE: Table = build();

const fn slot_of(key: u128) -> usize {
    let mixed = ((key as u64) ^ ((key >> 64) as u64).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 54) as usize
}

const fn fold(bytes: &[u8]) -> u128 {
    let mut key = 0u128;
    let mut at = 0;
    while at < bytes.len() {
        key = (key << 8) | (bytes[at] | 0x20) as u128;
        at += 1;
    }
    key
}

const fn build() -> Table {
    let mut table = Table { keys: [0; SLOTS], words: [EMPTY; SLOTS] };
    let mut word = 0;
    assert!(WORDS.len() < EMPTY as usize);
    while word < WORDS.len() {
        let text = WORDS[word].0.as_bytes();
        assert!(text.len() <= LEN_MAX);
        let key = fold(text);
        let mut slot = slot_of(key);
        while table.words[slot] != EMPTY {
            assert!(table.keys[slot] != key);
            slot = (slot + 1) % SLOTS;
        }
        table.keys[slot] = key;
        table.words[slot] = word as u8;
        word += 1;
    }
    table
}

/// The kind of the identifier `bytes` (letters, digits and `_` only): the keyword's kind, or `Kind::Ident`.
#[inline]
pub(super) fn kind_of(bytes: &[u8]) -> Kind {
    if bytes.len() < 2 || bytes.len() > LEN_MAX {
        return Kind::Ident;
    }
    let key = fold(bytes);
    let mut slot = slot_of(key);
    loop {
        let word = TABLE.words[slot];
        if word == EMPTY {
            return Kind::Ident;
        }
        if TABLE.keys[slot] == key {
            return WORDS[usize::from(word)].1;
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case_and_nothing_else_is() {
        for (text, kind) in WORDS {
            assert_eq!(kind_of(text.as_bytes()), *kind);
            assert_eq!(kind_of(text.to_uppercase().as_bytes()), *kind);
            assert_eq!(kind_of(format!("{text}x").as_bytes()), Kind::Ident, "{text}x");
        }
        assert_eq!(kind_of(b"select_"), Kind::Ident);
        assert_eq!(kind_of(b""), Kind::Ident);
        assert_eq!(kind_of(b"a_name_longer_than_any_word"), Kind::Ident);
    }
}
