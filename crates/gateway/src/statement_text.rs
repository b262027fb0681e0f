//! What the gateway must know of a statement's text: whether it reads or writes, and whether it is one that is answered here.
//!
//! This is no parser: a text that is no CQL passes, and the cluster says what is wrong with it.

use helenus_wire::native::WriteType;

use crate::peers_select::{PeersSelect, Unsupported};
use crate::tokens::{Token, Tokens};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnTable {
    /// `system.local`.
    Local,
    /// `system.peers` and `system.peers_v2`, and the rows that are asked for.
    Peers(Result<PeersSelect, Unsupported>),
}

/// What is known of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatementText {
    pub effect: Effect,
    pub own_table: Option<OwnTable>,
}

impl StatementText {
    /// Looks at a text. `keyspace`: the one in use.
    pub fn of(text: &str, keyspace: Option<&str>) -> StatementText {
        let mut tokens = Tokens::of(text);
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

/// The keyspace of a USE statement; `None`: the text is another statement.
pub fn used_keyspace(text: &str) -> Option<String> {
    match StatementText::of(text, None).effect {
        Effect::Use(keyspace) => Some(keyspace),
        _ => None,
    }
}

/// The table behind FROM, if it is one of those.
fn own_table(mut tokens: Tokens<'_>, keyspace: Option<&str>) -> Option<OwnTable> {
    let all = tokens;
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
        "peers" | "peers_v2" => Some(OwnTable::Peers(PeersSelect::of(all))),
        _ => None,
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
        let peers = Some(OwnTable::Peers(Ok(PeersSelect::default())));
        assert_eq!(table("select host_id from \"system\" . peers_v2", None), peers);
        assert_eq!(table("SELECT * FROM peers", Some("system")), peers);
        assert_eq!(table("SELECT * FROM peers", Some("app")), None);
        assert_eq!(table("SELECT * FROM app.local", None), None);
        assert_eq!(table("SELECT 'from system.local' FROM t", None), None);
    }
}
