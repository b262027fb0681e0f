//! A statement's text without its values, for logs.

use super::lexer::Lexer;
use super::token::Kind;

/// The text on one line, with `?` for each literal and without comments. From the first invalid token on, nothing is
/// shown, because it could be part of a value.
pub fn redact(text: &str) -> String {
    let mut lexer = Lexer::new(text);
    let mut redacted = String::with_capacity(text.len().min(1024));
    let mut end = 0;
    loop {
        let Ok(token) = lexer.next_token() else {
            redacted.push_str(" ...");
            return redacted;
        };
        if token.kind == Kind::Eof {
            return redacted;
        }
        let start = token.start as usize;
        if start > end && end > 0 {
            redacted.push(' ');
        }
        end = token.end as usize;
        match token.kind {
            Kind::String
            | Kind::Integer
            | Kind::FloatNumber
            | Kind::DurationLiteral
            | Kind::UuidLiteral
            | Kind::Hex
            | Kind::NegativeNan
            | Kind::NegativeInfinity
            | Kind::Bool => redacted.push('?'),
            _ => redacted.push_str(text.get(start..end).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_is_left_of_a_statement() {
        for (text, redacted) in [
            ("SELECT a FROM k.t WHERE p = 'secret' AND c > -7;", "SELECT a FROM k.t WHERE p = ? AND c > ?;"),
            (
                "INSERT INTO t (a,b) VALUES (0xCAFE, {'x': 1.5, 'y': true})",
                "INSERT INTO t (a,b) VALUES (?, {?: ?, ?: ?})",
            ),
            ("SELECT *\n  FROM t -- why\n WHERE p = ?", "SELECT * FROM t WHERE p = ?"),
            ("SELECT * FROM t WHERE p = 'secret", "SELECT * FROM t WHERE p = ..."),
            (
                "UPDATE t SET d = $$a 'b$$ WHERE u = 6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47",
                "UPDATE t SET d = ? WHERE u = ?",
            ),
            ("", ""),
        ] {
            assert_eq!(redact(text), redacted, "{text}");
        }
    }
}
