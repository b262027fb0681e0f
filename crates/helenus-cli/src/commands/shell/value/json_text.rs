//! Collections in JSON within a CSV field, as dsbulk writes them: `["a","b"]`, `{"k":1}`, `{"field":"x"}`, `[1,null]`.
//!
//! A field is read so if all of it is JSON and it has a text between double quotes. cqlsh puts texts between single quotes,
//! so none of its own collections is JSON then; without texts both forms mean the same.

use serde::de::IgnoredAny;
use std::borrow::Cow;

/// Whether a field is a collection in JSON.
pub fn is_json(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['[', '{']) && text.contains('"') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The elements of an array, or the entries of an object. `text` is valid JSON.
pub fn parts(text: &str) -> Vec<&str> {
    let inner = text.trim();
    let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
    split(inner, b',')
}

/// The name and the value of an object's entry; `None` if it is an element of an array.
///
/// # Errors
/// As in `scalar`.
pub fn entry(part: &str) -> serde_json::Result<Option<(Cow<'_, str>, &str)>> {
    let [name, value] = split(part, b':')[..] else { return Ok(None) };
    Ok(Some((scalar(name)?, value)))
}

/// The text of a value without parts: that of a text between quotes, or the token itself.
///
/// # Errors
/// The text has one half of a surrogate pair, which `is_json` allows and UTF-8 does not have.
pub fn scalar(value: &str) -> serde_json::Result<Cow<'_, str>> {
    if is_quoted(value) { serde_json::from_str::<String>(value).map(Cow::from) } else { Ok(value.into()) }
}

/// Whether a value is a text between quotes.
pub fn is_quoted(value: &str) -> bool {
    value.starts_with('"')
}

/// Splits at separators outside texts and inner brackets. Nothing has no parts.
fn split(text: &str, separator: u8) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            byte if byte == separator && depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text.get(start..).unwrap_or_default().trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_of_dsbulk_is_taken_apart_and_one_of_cqlsh_is_left() {
        assert!(is_json(r#"["a","b"]"#) && is_json(r#" {"1":{"x":null}} "#));
        for other in
            ["['a', 'b']", "{1: 'x'}", "[1, 2]", "{}", "\"a\"", r#"['"a"']"#, r#"["a""#, "{'a\"': \"b\"}"]
        {
            assert!(!is_json(other), "{other}");
        }
        assert_eq!(parts(r#"["a,]\"", [1, "]"], null]"#), [r#""a,]\"""#, r#"[1, "]"]"#, "null"]);
        assert!(parts("[]").is_empty());
        assert_eq!(entry(r#""a:\u00e9" : {"b":1}"#).unwrap(), Some(("a:é".into(), r#"{"b":1}"#)));
        assert_eq!(entry("1").unwrap(), None);
        assert_eq!((scalar(r#""a\nb""#).unwrap(), scalar("1.50").unwrap()), ("a\nb".into(), "1.50".into()));
        assert_eq!(scalar(r#""\ud83d\ude00""#).unwrap(), "😀");
    }
}
