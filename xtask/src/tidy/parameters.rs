//! A function takes at most six values, `self` among them. Clippy counts a tuple as one parameter; here each of its
//! members counts, so that a tuple is no way round the limit.

use super::Source;
use super::tokens::{Token, group_end, product};

const VALUES_MAX: usize = 6;

pub fn check(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust() && !source.is_test) {
        for (line, name, values) in long_functions(&product(&source.text)) {
            breaches.push(format!(
                "{}:{line}: `{name}` takes {values} values, with those in tuples; put some that belong together into a struct",
                source.path
            ));
        }
    }
    breaches
}

/// The line, name and number of values of each function with a tuple parameter and more than `VALUES_MAX` values.
fn long_functions<'a>(tokens: &[Token<'a>]) -> Vec<(usize, &'a str, usize)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let Some(name) = tokens.get(at + 1).filter(|name| name.is_identifier()) else { continue };
        // A `(` within generics belongs to a bound such as `Fn(u64)`.
        let Some(open) = past_generics(tokens, at + 2) else { continue };
        let parameters = parts(tokens, open);
        let values: usize = parameters.iter().map(|parameter| count(parameter)).sum();
        if values > VALUES_MAX && values > parameters.len() {
            found.push((token.line, name.text, values));
        }
    }
    found
}

/// The index of the parenthesis that opens the parameters.
fn past_generics(tokens: &[Token<'_>], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match tokens.get(at)?.text {
            "(" if depth == 0 => return Some(at),
            "(" | "[" | "{" => {
                at = group_end(tokens, at);
                continue;
            }
            "<" => depth += 1,
            ">" if !is_arrow(tokens, at) => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
}

fn is_arrow(tokens: &[Token<'_>], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|before| before.text == "-")
}

/// What stands between the commas of a group: in parentheses, without those within other brackets.
fn parts<'t, 'a>(tokens: &'t [Token<'a>], open: usize) -> Vec<&'t [Token<'a>]> {
    let end = group_end(tokens, open) - 1;
    let (mut parts, mut begin, mut at, mut depth) = (Vec::new(), open + 1, open + 1, 0_usize);
    while at < end {
        match tokens[at].text {
            "(" | "[" | "{" => {
                at = group_end(tokens, at);
                continue;
            }
            "<" => depth += 1,
            ">" if !is_arrow(tokens, at) => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if begin < end {
        parts.push(&tokens[begin..end]);
    }
    parts
}

/// The number of values of a parameter: the members of a tuple, else one.
fn count(parameter: &[Token<'_>]) -> usize {
    let colon = parameter.iter().position(|token| token.text == ":");
    let pattern_is_tuple = parameter.first().is_some_and(|token| token.text == "(");
    let open = match colon {
        _ if pattern_is_tuple => 0,
        Some(colon) if parameter.get(colon + 1).is_some_and(|token| token.text == "(") => colon + 1,
        _ => return 1,
    };
    parts(parameter, open).len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        long_functions(&product(text)).into_iter().map(|(_, _, values)| values).collect()
    }

    #[test]
    fn members_of_tuples_count_and_other_commas_do_not() {
        for (text, values) in [
            ("fn a(&self, (b, c): (u8, u8), (d, e): (u8, u8), f: u8) {}", Vec::new()),
            ("fn a(&self, (b, c): (u8, u8), (d, e): (u8, u8), f: u8, g: u8) {}", vec![7]),
            ("fn a(b: (u8, u8, u8), c: (u8, u8, u8), d: u8,) {}", vec![7]),
            (
                "fn a<F: Fn(u8, u8) -> u8>(b: F, (c, d): (Map<u8, u8>, [u8; 2]), e: u8, f: u8, g: u8) {}",
                Vec::new(),
            ),
            (
                "fn a(b: Map<(u8, u8), Fn(u8, u8) -> u8>, c: &dyn Fn(u8, u8), d: u8, e: u8, f: u8, g: u8) {}",
                Vec::new(),
            ),
            ("fn a(b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) {}", Vec::new()),
            ("fn a(b: impl Fn(u8) -> u8, (c, d, e, f, g, h): T) {}", vec![7]),
            ("#[cfg(test)] mod tests { fn a((b, c, d, e): T, (f, g, h, i): T) {} }", Vec::new()),
        ] {
            assert_eq!(found(text), values, "{text}");
        }
    }
}
