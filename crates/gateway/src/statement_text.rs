//! What the gateway must know of a statement's text: whether it reads or writes, and whether it is one that is answered here.
//!
//! This is no parser: a text that is no CQL passes, and the cluster says what is wrong with it.

use helenus_wire::native::WriteType;

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// SELECT: running it twice does no harm.
    Read,
    /// A write of this kind.
    Write(WriteType),
    /// USE of this keyspace.
    Use(String),
    /// EXPLAIN, which only Helenus has.
    Explain,
    /// Everything else.
    Other,
}

/// The tables that the gateway answers for, since it stands for one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnTable {
    /// `system.local`.
    Local,
    /// `system.peers` and `system.peers_v2`.
    Peers,
}

/// What is known of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatementText {
    pub effect: Effect,
    pub own_table: Option<OwnTable>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word in lower case, or the text of a quoted name.
    Word(String),
    Quoted(String),
    Sign(char),
    /// A string or a number.
    Value,
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word == keyword)
    }

    fn name(&self) -> Option<&str> {
        match self {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Sign(_) | Token::Value => None,
        }
    }
}

impl StatementText {
    /// Looks at a text. `keyspace`: the one in use.
    pub fn of(text: &str, keyspace: Option<&str>) -> StatementText {
        let mut tokens = Tokens(text);
        let effect = match tokens.next() {
            Some(Token::Word(word)) => match word.as_str() {
                "select" => {
                    return StatementText { effect: Effect::Read, own_table: own_table(tokens, keyspace) };
                }
                "use" => match tokens.next() {
                    Some(Token::Word(name) | Token::Quoted(name)) => Effect::Use(name),
                    _ => Effect::Other,
                },
                "insert" | "update" | "delete" => match tokens.any(|token| token.is("if")) {
                    true => Effect::Write(WriteType::Cas),
                    false => Effect::Write(WriteType::Simple),
                },
                "begin" => Effect::Write(match tokens.next() {
                    Some(kind) if kind.is("unlogged") => WriteType::UnloggedBatch,
                    Some(kind) if kind.is("counter") => WriteType::Counter,
                    _ if tokens.any(|token| token.is("if")) => WriteType::Cas,
                    _ => WriteType::Batch,
                }),
                "explain" => Effect::Explain,
                _ => Effect::Other,
            },
            _ => Effect::Other,
        };
        StatementText { effect, own_table: None }
    }
}

/// The table behind FROM, if it is one of those.
fn own_table(mut tokens: Tokens<'_>, keyspace: Option<&str>) -> Option<OwnTable> {
    tokens.find(|token| token.is("from"))?;
    let first = tokens.next()?;
    let (keyspace, table) = match tokens.next() {
        Some(Token::Sign('.')) => (first.name(), tokens.next()),
        _ => (keyspace, Some(first.clone())),
    };
    if keyspace != Some("system") {
        return None;
    }
    match table?.name()? {
        "local" => Some(OwnTable::Local),
        "peers" | "peers_v2" => Some(OwnTable::Peers),
        _ => None,
    }
}

struct Tokens<'a>(&'a str);

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let text = self.0.trim_start();
            let skipped = if text.starts_with("--") || text.starts_with("//") {
                text.split_once('\n').map_or("", |(_, rest)| rest)
            } else if let Some(rest) = text.strip_prefix("/*") {
                rest.split_once("*/").map_or("", |(_, rest)| rest)
            } else {
                self.0 = text;
                break;
            };
            self.0 = skipped;
        }
        let first = self.0.chars().next()?;
        let (token, rest) = match first {
            '\'' | '"' => {
                let (inner, rest) = quoted(self.0, first);
                (if first == '"' { Token::Quoted(inner) } else { Token::Value }, rest)
            }
            '$' if self.0.starts_with("$$") => {
                let inner = self.0.get(2..).unwrap_or_default();
                (Token::Value, inner.split_once("$$").map_or("", |(_, rest)| rest))
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = self.0.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.0.len());
                let (word, rest) = self.0.split_at(end);
                (Token::Word(word.to_lowercase()), rest)
            }
            other => (Token::Sign(other), self.0.get(other.len_utf8()..).unwrap_or_default()),
        };
        self.0 = rest;
        Some(token)
    }
}

/// The text between quotes, which stand twice inside it, and what follows.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut inner = String::new();
    let mut rest = text.get(1..).unwrap_or_default();
    loop {
        let Some((part, after)) = rest.split_once(quote) else { return (inner, "") };
        inner.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                inner.push(quote);
                rest = more;
            }
            None => return (inner, after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells_what_a_statement_does() {
        let effect = |text: &str| StatementText::of(text, None).effect;
        assert_eq!(effect(" select 1"), Effect::Read);
        assert_eq!(
            effect("-- a comment\n/* and */ INSERT INTO t (a) VALUES (1)"),
            Effect::Write(WriteType::Simple)
        );
        assert_eq!(effect("INSERT INTO t (a) VALUES (' if ') IF NOT EXISTS"), Effect::Write(WriteType::Cas));
        assert_eq!(effect("INSERT INTO t (a) VALUES (' if ')"), Effect::Write(WriteType::Simple));
        assert_eq!(effect("BEGIN BATCH UPDATE .."), Effect::Write(WriteType::Batch));
        assert_eq!(effect("begin unlogged batch"), Effect::Write(WriteType::UnloggedBatch));
        assert_eq!(effect("USE \"A\"\"b\";"), Effect::Use("A\"b".to_owned()));
        assert_eq!(effect("use Ks"), Effect::Use("ks".to_owned()));
        assert_eq!(effect("EXPLAIN SELECT"), Effect::Explain);
        assert_eq!(effect("CREATE TABLE"), Effect::Other);
        assert_eq!(effect(""), Effect::Other);
        assert_eq!(effect("'"), Effect::Other);
    }

    #[test]
    fn selects_from_the_tables_of_the_node_itself_are_seen() {
        let table = |text: &str, keyspace: Option<&str>| StatementText::of(text, keyspace).own_table;
        assert_eq!(table("SELECT * FROM system.local WHERE key='local'", None), Some(OwnTable::Local));
        assert_eq!(table("select host_id from \"system\" . peers_v2", None), Some(OwnTable::Peers));
        assert_eq!(table("SELECT * FROM peers", Some("system")), Some(OwnTable::Peers));
        assert_eq!(table("SELECT * FROM peers", Some("app")), None);
        assert_eq!(table("SELECT * FROM app.local", None), None);
        assert_eq!(table("SELECT 'from system.local' FROM t", None), None);
    }
}
