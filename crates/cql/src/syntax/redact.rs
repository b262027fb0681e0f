//! A statement's text without its values, or without passwords, for logs and traces.

use super::lexer::Lexer;
use super::token::Kind;
use std::borrow::Cow;

/// What stands for a password (`PasswordObfuscator.OBFUSCATION_TOKEN`).
const HIDDEN: &str = "*******";

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

/// The text with stars in place of each password, as `PasswordObfuscator` has it. In a statement about a role all other texts but
/// its name and those in braces are hidden too, because PASSWORD may be misspelt, and so is whatever cannot be read. Statements
/// about data are not changed, unless words of a statement about a role follow in the same text.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    // Most statements pass here.
    if !["password", "role", "user"].iter().any(|word| contains(text, word)) {
        return Cow::Borrowed(text);
    }
    let mut lexer = Lexer::new(text);
    let mut shown = String::with_capacity(text.len());
    let (mut copied, mut is_password, mut number) = (0, false, 0_usize);
    // Whether all words so far are of a statement about data, whether some are of one about a role; open braces, and the
    // token before with its end.
    let (mut is_of_data, mut is_of_role, mut braces) = (false, false, 0_u32);
    let (mut before, mut end_before) = (Kind::Eof, 0);
    while let Ok(token) = lexer.next_token() {
        if number == 0 {
            let data = [Kind::Select, Kind::Insert, Kind::Update, Kind::Delete, Kind::Begin];
            is_of_data = data.contains(&token.kind);
        }
        let begins = number == 1 && !is_of_data || matches!(before, Kind::Create | Kind::Alter);
        if begins && matches!(token.kind, Kind::Role | Kind::User) {
            (is_of_data, is_of_role) = (false, true);
        }
        let (start, end) = (token.start as usize, token.end as usize);
        let is_name = matches!(before, Kind::Role | Kind::User | Kind::Exists);
        let is_value = before == Kind::Equal;
        (before, end_before, number) = (token.kind, end, number + 1);
        let is_hidden = match token.kind {
            Kind::Eof => {
                shown.push_str(text.get(copied..).unwrap_or_default());
                return Cow::Owned(shown);
            }
            _ if is_of_data => false,
            Kind::Password => {
                is_password = true;
                false
            }
            Kind::Equal => false,
            _ if is_password => true,
            Kind::LBrace => {
                braces += 1;
                false
            }
            Kind::RBrace => {
                braces = braces.saturating_sub(1);
                false
            }
            // Another statement.
            Kind::Semicolon => {
                is_of_role = false;
                false
            }
            Kind::Bool => false,
            kind => {
                let could_be_one = is_value || matches!(kind, Kind::String | Kind::QuotedName);
                is_of_role && braces == 0 && !is_name && could_be_one
            }
        };
        if is_hidden {
            shown.push_str(text.get(copied..start).unwrap_or_default());
            shown.push_str(if token.kind == Kind::String { "'*******'" } else { HIDDEN });
            (copied, is_password) = (end, false);
        }
    }
    if contains(text, "password") || !is_of_role {
        return cut_at_password(text);
    }
    shown.push_str(text.get(copied..end_before).unwrap_or_default());
    Cow::Owned(format!("{shown} {HIDDEN}"))
}

/// A message without what follows the word "password" in it: a syntax error quotes the statement.
pub fn cut_at_password(text: &str) -> Cow<'_, str> {
    let word = "password";
    match text.to_ascii_lowercase().find(word) {
        Some(at) => Cow::Owned(format!("{} {HIDDEN}", text.get(..at + word.len()).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Whether the text has the letters of this word, in any case.
fn contains(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left_of_a_statement() {
        for (text, shown) in [
            (
                "CREATE ROLE a WITH PASSWORD = 'topsecret' AND LOGIN = true",
                "CREATE ROLE a WITH PASSWORD = '*******' AND LOGIN = true",
            ),
            ("ALTER USER a WITH password 'it''s'", "ALTER USER a WITH password '*******'"),
            ("ALTER USER a WITH HASHED PASSWORD '$2a$10$x'", "ALTER USER a WITH HASHED PASSWORD '*******'"),
            ("CREATE ROLE a WITH PASSWORD = $$x'y$$", "CREATE ROLE a WITH PASSWORD = '*******'"),
            ("CREATE ROLE a WITH PASSWORD = \"x\"", "CREATE ROLE a WITH PASSWORD = *******"),
            ("CREATE ROLE a WITH PASSWORD = 'topsecret", "CREATE ROLE a WITH PASSWORD *******"),
            ("CREAT ROLE a WITH PASSWORD = 'x'", "CREAT ROLE a WITH PASSWORD = '*******'"),
            ("SELECT password FROM t WHERE password = 'x'", "SELECT password FROM t WHERE password = 'x'"),
            ("CREATE ROLE a", "CREATE ROLE a"),
            (
                "CREATE ROLE a WITH PASWORD = 'topsecret' AND LOGIN = true",
                "CREATE ROLE a WITH PASWORD = '*******' AND LOGIN = true",
            ),
            (
                "CREATE ROLE a WITH PASWORD = \"x\" AND LOGIN = true",
                "CREATE ROLE a WITH PASWORD = ******* AND LOGIN = true",
            ),
            ("ALTER ROLE \"A\" WITH PASWORD \"x\"", "ALTER ROLE \"A\" WITH PASWORD *******"),
            (
                "CREATE ROLE a WITH OPTIONS = {'x': 'y'} AND PASWORD = 12345",
                "CREATE ROLE a WITH OPTIONS = {'x': 'y'} AND PASWORD = *******",
            ),
            ("alter user 'a' with pass word 'x'", "alter user 'a' with pass word '*******'"),
            (
                "CREAT ROLE IF NOT EXISTS 'a' WITH PASSWROD='x",
                "CREAT ROLE IF NOT EXISTS 'a' WITH PASSWROD= *******",
            ),
            (
                "ALTER ROLE a WITH ACCESS TO DATACENTERS {'dc1'} AND PASSWD = 'x'; DROP TABLE a; CREATE TABLE t (a int PRIMARY KEY) WITH comment = 'c'",
                "ALTER ROLE a WITH ACCESS TO DATACENTERS {'dc1'} AND PASSWD = '*******'; DROP TABLE a; CREATE TABLE t (a int PRIMARY KEY) WITH comment = 'c'",
            ),
            ("SELECT * FROM users WHERE role = 'x'", "SELECT * FROM users WHERE role = 'x'"),
            ("INSERT INTO t (role) VALUES ('x", "INSERT INTO t (role) VALUES ('x"),
            ("ADD IDENTITY 'spiffe://a' TO ROLE 'r'", "ADD IDENTITY 'spiffe://a' TO ROLE 'r'"),
            (
                "SELECT * FROM ks.t; ALTER ROLE a WITH PASSWORD='x'",
                "SELECT * FROM ks.t; ALTER ROLE a WITH PASSWORD='*******'",
            ),
            ("BEGIN ALTER USER a WITH PASSWORD 'x'", "BEGIN ALTER USER a WITH PASSWORD '*******'"),
            (
                "DELETE FROM t; create role a WITH PASSWORD = 'x",
                "DELETE FROM t; create role a WITH PASSWORD *******",
            ),
        ] {
            assert_eq!(without_passwords(text), shown, "{text}");
        }
    }

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
