//! Splits a script of several statements.

use super::lexer::Lexer;
use super::token::Kind;

/// The statements of a text, without the semicolons between them. Semicolons in strings and comments do not count. From
/// the first invalid token on, the rest is one statement, so that parsing it reports the error. A comment may end the
/// text, although Cassandra's lexer does not accept that as a token.
pub fn split_statements(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let (mut statements, mut start, mut end) = (Vec::new(), None, 0);
    loop {
        let Ok(token) = lexer.next_token() else {
            let rest = text.get(end..).unwrap_or_default().trim_start();
            let is_comment = ["--", "//"].iter().any(|mark| rest.starts_with(mark)) && !rest.contains('\n');
            let until = if is_comment { end } else { text.len() };
            if start.is_some() || !is_comment {
                statements.push(text.get(start.unwrap_or(end)..until).unwrap_or_default());
            }
            return statements;
        };
        let at = token.start as usize;
        end = token.end as usize;
        match token.kind {
            Kind::Semicolon | Kind::Eof => {
                statements.extend(start.take().and_then(|start: usize| text.get(start..at)));
                if token.kind == Kind::Eof {
                    return statements;
                }
            }
            _ => start = start.or(Some(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_a_statement_but_not_in_a_text_or_a_comment() {
        let text = "-- a; b\nCREATE TABLE t (k int) WITH comment = 'a;b';\n/* ; */ ;; DROP TABLE \"x;y\"";
        let found: Vec<&str> = split_statements(text).iter().map(|statement| statement.trim()).collect();
        assert_eq!(found, ["CREATE TABLE t (k int) WITH comment = 'a;b'", "DROP TABLE \"x;y\""]);
        assert_eq!(split_statements("a; 'open").len(), 2);
        assert!(split_statements(" -- nothing").is_empty());
        assert_eq!(split_statements("a; b // nothing"), ["a", "b"]);
    }
}
