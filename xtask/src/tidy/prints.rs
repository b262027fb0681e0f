//! Texts that the binary prints: no macro that panics when the reader of the output is gone, and no runs of blanks that a broken line left.

use super::Source;
use super::tokens::product;

/// The macros of the standard library that panic, and what stands for them (`crates/helenus-cli/src/print.rs`).
const PANICKING: [(&str, &str); 4] =
    [("println", "say!"), ("print", "put!"), ("eprintln", "note!"), ("eprint", "note!")];
/// The most blanks that stand in a text one after the other, between words.
const BLANKS_MAX: usize = 4;

pub fn check(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let of_product = |source: &&Source| {
        source.is_rust()
            && !source.is_test
            && source.path.starts_with("crates/")
            && source.path.contains("/src/")
    };
    for source in sources.iter().filter(of_product) {
        let path = &source.path;
        for (line, name, instead) in panicking(&source.text) {
            breaches
                .push(format!("{path}:{line}: `{name}!` panics when its reader is gone; use `{instead}`"));
        }
        for (line, text) in source.code().filter(|(_, text)| is_broken(text)) {
            let begin: String = text.trim().chars().take(60).collect();
            breaches.push(format!(
                "{path}:{line}: a run of blanks in a sentence, as of a lost line end: {begin}"
            ));
        }
    }
    breaches
}

/// The line, name and replacement of each macro that panics.
fn panicking(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let tokens = product(text);
    let mut found = Vec::new();
    for pair in tokens.windows(2).filter(|pair| pair[1].text == "!") {
        let of = PANICKING.iter().find(|(name, _)| *name == pair[0].text);
        found.extend(of.map(|(name, instead)| (pair[0].line, *name, *instead)));
    }
    found
}

/// Whether a line has a text with a run of blanks between two sentences or words of one. Columns of a table have none of these ends.
fn is_broken(line: &str) -> bool {
    let mut rest = line;
    let mut quotes = 0;
    while let Some(at) = rest.find(['"', ' ']) {
        let (before, after) = rest.split_at(at);
        if let Some(behind) = after.strip_prefix('"') {
            quotes += usize::from(!before.ends_with('\\'));
            rest = behind;
            continue;
        }
        let blanks = after.len() - after.trim_start_matches(' ').len();
        let end = before.chars().next_back();
        let next = after[blanks..].chars().next();
        let is_sentence = match end {
            Some('.') => next.is_some_and(char::is_alphanumeric),
            Some(',' | ':' | ';') => next.is_some_and(char::is_lowercase),
            _ => false,
        };
        if quotes % 2 == 1 && blanks > BLANKS_MAX && is_sentence {
            return true;
        }
        rest = &after[blanks..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_that_panic_are_found_in_the_product_alone() {
        let text = "fn a() {\n  println!(\"x\");\n  eprint!(\"y\");\n  say!(\"println!\")?; // print!\n}\n\
                    #[cfg(test)]\nmod tests { fn b() { println!(); } }\n";
        assert_eq!(panicking(text), [(2, "println", "say!"), (3, "eprint", "note!")]);
    }

    #[test]
    fn a_run_of_blanks_within_a_sentence_is_found_and_a_column_or_an_indent_is_not() {
        for (line, is_one) in [
            ("\"more of the log:          cdc_total_space\"", true),
            ("\"read at its start.      Or send {}\"", true),
            ("\"memory       memtables {}, cache {}\"", false),
            ("\"Name:\",      other", false),
            ("\"  Endpoint,             Phi\"", false),
            ("        \"one. Two\"", false),
            ("\"a \\\"b\\\".      C\"", true),
        ] {
            assert_eq!(is_broken(line), is_one, "{line}");
        }
    }
}
