//! What the gateway must know of a statement's text: whether it reads or writes, and whether it is one that is answered here.
//!
//! This is no parser: a text that is no CQL passes, and the cluster says what is wrong with it.

use helenus_lexer::token::Kind;
use helenus_wire::native::{ErrorCode, ErrorMessage, WriteType};

use crate::lexed::{Token, Tokens};
use crate::peers_select::{PeersSelect, Unsupported};

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// SELECT: running it twice does no harm.
    Read,
    /// A write of this kind.
    Write(WriteType),
    /// USE of this keyspace.
    Use(String),
    /// A text that begins with USE and is not understood. No node gets it: one that does understand it would put a keyspace in use on a
    /// connection that others share.
    UnknownUse,
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
        let has_condition = |mut tokens: Tokens<'_>| tokens.any(|token| token.kind == Kind::If);
        let effect = match tokens.next() {
            Some(Token { kind: Kind::Select, .. }) => {
                return StatementText { effect: Effect::Read, own_table: own_table(tokens, keyspace) };
            }
            Some(Token { kind: Kind::Use, .. }) => match used(tokens) {
                Some(name) => Effect::Use(name),
                None => Effect::UnknownUse,
            },
            Some(Token { kind: Kind::Insert | Kind::Update | Kind::Delete, .. }) => {
                Effect::Write(if has_condition(tokens) { WriteType::Cas } else { WriteType::Simple })
            }
            Some(Token { kind: Kind::Begin, .. }) => {
                Effect::Write(match tokens.next().map(|token| token.kind) {
                    Some(Kind::Unlogged) => WriteType::UnloggedBatch,
                    Some(Kind::Counter) => WriteType::Counter,
                    _ if has_condition(tokens) => WriteType::Cas,
                    _ => WriteType::Batch,
                })
            }
            Some(token) if token.is_word("explain") => Effect::Explain,
            _ => Effect::Other,
        };
        StatementText { effect, own_table: None }
    }
}

/// Whether a text is a SELECT.
pub fn is_select(text: &str) -> bool {
    StatementText::of(text, None).effect == Effect::Read
}

/// The keyspace of a USE statement; `None`: the text is another statement.
///
/// # Errors
/// The text begins with USE and is not understood; it must not be passed on.
pub fn used_keyspace(text: &str) -> Result<Option<String>, ErrorMessage> {
    match StatementText::of(text, None).effect {
        Effect::Use(keyspace) => Ok(Some(keyspace)),
        Effect::UnknownUse => Err(unknown_use()),
        _ => Ok(None),
    }
}

/// The refusal of a USE that is not understood.
pub(crate) fn unknown_use() -> ErrorMessage {
    let text = "USE takes the name of one keyspace, in double quotes if it is a reserved word, and nothing behind it";
    ErrorMessage::plain(ErrorCode::Syntax, text)
}

/// The keyspace behind USE, if nothing follows it but semicolons.
fn used(mut tokens: Tokens<'_>) -> Option<String> {
    let name = tokens.next()?.name()?;
    tokens.all(|token| token.kind == Kind::Semicolon).then_some(name)
}

/// The table behind FROM, if it is one of those.
fn own_table(mut tokens: Tokens<'_>, keyspace: Option<&str>) -> Option<OwnTable> {
    let all = tokens;
    tokens.find(|token| token.kind == Kind::From)?;
    let first = tokens.next()?;
    let in_first;
    let (keyspace, table) = match tokens.next() {
        Some(Token { kind: Kind::Dot, .. }) => {
            in_first = first.name();
            (in_first.as_deref(), tokens.next())
        }
        _ => (keyspace, Some(first)),
    };
    if keyspace != Some("system") {
        return None;
    }
    match table?.name()?.as_str() {
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
        assert_eq!(effect("USE a b"), Effect::UnknownUse);
        assert_eq!(effect("USE ev\u{8}l"), Effect::UnknownUse);
        assert_eq!(effect("USE evil 'open"), Effect::UnknownUse);
        // A comment ends where a node's lexer ends it: at CR too.
        for (comment, hidden) in
            [("--\r", ""), ("// x\r", ""), ("--\n", ""), ("/*\r*/", ""), ("--\u{2028}", "\n")]
        {
            let text = |statement: &str| format!("{comment}{hidden}{statement}\n");
            assert_eq!(effect(&text("USE evil")), Effect::Use("evil".to_owned()), "{comment:?}");
            assert_eq!(effect(&text("SELECT 1")), Effect::Read);
        }
        assert_eq!(
            effect("--\rINSERT INTO t (a) VALUES (1) /*\nSELECT */"),
            Effect::Write(WriteType::Simple)
        );
        // White space is Cassandra's: a node refuses the text.
        assert_eq!(effect("\u{a0}USE evil"), Effect::Other);
        assert_eq!(effect("\x0cUSE evil"), Effect::Other);
        assert_eq!(effect("use Ks"), Effect::Use("ks".to_owned()));
        assert_eq!(effect("EXPLAIN SELECT"), Effect::Explain);
        assert_eq!(effect("CREATE TABLE"), Effect::Other);
        assert_eq!(effect(""), Effect::Other);
        assert_eq!(effect("'"), Effect::Other);
    }

    #[test]
    fn a_text_that_begins_with_use_is_understood_or_refused_whatever_follows() {
        // What another version may take for a name: keywords, reserved or not, and tokens of every other kind.
        let words = "select from where and key entries full insert update with limit using use distinct count set begin unlogged batch \
                     apply truncate delete in create keyspace keyspaces columnfamily table materialized view index on to drop primary into \
                     values timestamp ttl alter rename add list type types compact storage order by asc desc allow filtering if is per \
                     grant revoke of default unset authorize describe desc execute norecursive token writetime null not exists map nan \
                     infinity or replace modify schema mbean mbeans contains mask unmask select_masked between vector ann json";
        let others = "5 -5 0.5 'evil' $$evil$$ 0xcafe 123e4567-e89b-12d3-a456-426614174000 ? :name \"\" ; ( ) { } [ ] . , = + - * / % != @ # ! ~";
        let mut refused = 0;
        for second in words.split_whitespace().chain(others.split_whitespace()).chain([""]) {
            for text in ["", " ", ";", " evil", " ; evil", ".evil"].map(|rest| format!("USE {second}{rest}"))
            {
                match StatementText::of(&text, None).effect {
                    Effect::Use(_) => {}
                    Effect::UnknownUse => refused += 1,
                    other => panic!("{text}: {other:?}"),
                }
            }
        }
        assert!(refused > 100, "{refused}");
        for reserved in ["select", "USE", "Primary"] {
            assert!(used_keyspace(&format!("USE {reserved}")).is_err(), "{reserved}");
            assert_eq!(used_keyspace(&format!("USE \"{reserved}\"")), Ok(Some(reserved.to_owned())));
        }
        assert_eq!(used_keyspace("SELECT 1"), Ok(None));
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
        assert_eq!(table("--\rSELECT host_id, rpc_address FROM system.local\n", None), Some(OwnTable::Local));
        assert_eq!(table("SELECT * FROM system.--\rlocal\n", None), Some(OwnTable::Local));
    }
}
