//! Splits the text of a collection at its separators, as cqlsh's COPY FROM does.

/// The reason why a text is not a collection.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// It has no matching brackets around it.
    #[error("Invalid composite string, it should start and end with matching parentheses: {0}")]
    Brackets(String),
}

/// Splits the text between the outermost brackets of `text` at each `separator` that is not in a quoted text or inner
/// brackets.
pub fn split(text: &str, separator: char) -> Result<Vec<&str>, SplitError> {
    let text = text.trim();
    let inner = [('{', '}'), ('[', ']'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    let inner = inner.ok_or_else(|| SplitError::Brackets(text.to_owned()))?;
    Ok(split_inner(inner, separator))
}

/// Splits a text without outer brackets in the same way.
pub fn split_inner(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut in_text) = (Vec::new(), 0, 0_usize, false);
    for (at, character) in text.char_indices() {
        match character {
            '\'' => in_text = !in_text,
            _ if in_text => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            other if other == separator && depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    let last = text.get(start..).unwrap_or_default().trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_texts_and_inner_brackets_separate_nothing() {
        assert_eq!(split("{'a,b': [1, 2], 'it''s': []}", ',').unwrap(), ["'a,b': [1, 2]", "'it''s': []"]);
        assert_eq!(split_inner("'a:b': {x: 1}", ':'), ["'a:b'", "{x: 1}"]);
        assert!(split("[]", ',').unwrap().is_empty());
        assert_eq!(split("1, 2", ',').unwrap_err().to_string().split(':').count(), 2);
    }
}
