//! The words and signs of a Rust file, without comments, literals and test-only items, for rules that read paths.

/// One identifier, or one sign. `::` is one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    /// From 1.
    pub line: usize,
}

impl Token<'_> {
    pub fn is_identifier(&self) -> bool {
        self.text.chars().next().is_some_and(is_word)
    }
}

/// The tokens of `text` that are part of the product: each item behind `#[cfg(test)]` is left out.
pub fn product(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match literal_or_comment(rest) {
            Some(length) => length,
            None => {
                let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let sign = if rest.starts_with("::") { 2 } else { first.len_utf8() };
                let length = if word > 0 { word } else { sign };
                if !first.is_whitespace() {
                    tokens.push(Token { text: &rest[..length], line });
                }
                length
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length of what `rest` begins with, if that is a comment, a string, a character or a lifetime.
fn literal_or_comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |at| at + 2));
    }
    if let Some(after) = rest.strip_prefix('\'') {
        let mut inside = after.chars();
        return Some(match (inside.next(), inside.next()) {
            (Some('\\'), Some(escaped)) => {
                let from = 2 + escaped.len_utf8();
                rest[from..].find('\'').map_or(rest.len(), |at| from + at + 1)
            }
            (Some(one), Some('\'')) => 2 + one.len_utf8(),
            _ => 1 + after.find(|c| !is_word(c)).unwrap_or(after.len()),
        });
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| {
            after.starts_with('"')
                || (prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"'))
        })
    })?;
    let after = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = after.len() - after.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let from = prefix.len() + hashes + 1;
        return Some(rest[from..].find(&end).map_or(rest.len(), |at| from + at + end.len()));
    }
    let mut escaped = false;
    for (at, c) in after.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(prefix.len() + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// Cuts out each `#[cfg(test)]` with the item, the field or the statement behind it.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let marked = tokens.get(at..at + MARK.len());
        if marked.is_some_and(|here| here.iter().map(|token| token.text).eq(MARK)) {
            at = item_end(tokens, at + MARK.len());
        } else {
            kept.push(*token);
            at += 1;
        }
    }
    kept
}

/// The index behind the item that begins at `at`, with its other attributes.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    while text(at) == "#" {
        at = group_end(tokens, at + 1);
    }
    if text(at) == "pub" {
        at += 1;
        if text(at) == "(" {
            at = group_end(tokens, at);
        }
    }
    // Where the item ends: behind a semicolon, behind its block, or before the comma or bracket of what holds it.
    let is_item =
        ["fn", "impl", "mod", "struct", "enum", "trait", "unsafe", "extern", "async", "macro_rules"]
            .contains(&text(at))
            || (text(at) == "const" && ["fn", "unsafe", "async"].contains(&text(at + 1)));
    let ends_with_semicolon = !is_item && ["use", "let", "const", "static", "type"].contains(&text(at));
    while at < tokens.len() {
        match text(at) {
            ";" => return at + 1,
            "," if !is_item && !ends_with_semicolon => return at + 1,
            ")" | "]" | "}" => return at,
            "{" if !ends_with_semicolon => return group_end(tokens, at),
            "(" | "[" | "{" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The index behind the bracket that closes the one at `at`.
pub fn group_end(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        product(text).iter().filter(|token| token.is_identifier()).map(|token| token.text).collect()
    }

    #[test]
    fn comments_strings_characters_and_lifetimes_are_no_words() {
        assert_eq!(
            words("a // no\n/* no */ b \"no \\\" no\" c r#\"no \" no\"# d b\"no\""),
            ["a", "b", "c", "d"]
        );
        assert_eq!(words("a '\"' b '\\'' c '\\u{1}' <'no> d '{' e"), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_token_knows_its_line() {
        let tokens = product("a\n\"\n\"\nb::c");
        assert_eq!(
            tokens.iter().map(|token| (token.text, token.line)).collect::<Vec<_>>(),
            [("a", 1), ("b", 4), ("::", 4), ("c", 4)]
        );
    }

    #[test]
    fn an_item_for_tests_is_left_out_and_what_follows_it_is_kept() {
        for test_only in [
            "#[cfg(test)] use no::{no, no};",
            "#[cfg(test)] mod no;",
            "#[cfg(test)] pub(crate) mod no { fn no() {} }",
            "#[cfg(test)] #[expect(no)] pub const fn no(no: [u8; 2]) {}",
            "#[cfg(test)] const NO: [u8; 2] = [no; 2];",
            "#[cfg(test)] impl<A, B> No for (A, B) {}",
        ] {
            assert_eq!(words(&format!("a; {test_only} b")), ["a", "b"], "{test_only}");
        }
        assert_eq!(
            words("struct A { b: C, #[cfg(test)] no: No, d: E }"),
            ["struct", "A", "b", "C", "d", "E"]
        );
        assert_eq!(words("struct A { b: C, #[cfg(test)] no: No } d"), ["struct", "A", "b", "C", "d"]);
    }
}
