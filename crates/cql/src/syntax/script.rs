//! Takes a text of many statements apart.

use super::lexer::Lexer;
use super::token::Kind;

/// The statements of a text, without the semicolons that end them; those in texts and comments end nothing. From what is no
/// token on, the rest is one statement: parsing it says what is wrong.
pub fn split_statements(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let (mut statements, mut start) = (Vec::new(), None);
    loop {
        let Ok(token) = lexer.next_token() else {
            statements.push(text.get(start.unwrap_or_default()..).unwrap_or_default());
            return statements;
        };
        let at = token.start as usize;
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
    }
}
