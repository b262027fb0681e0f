//! A gateway looks at a statement's first words and passes the text on to a node. Both must see the same statement: a text that the node
//! takes for a USE or a SELECT is one for the gateway too, whatever comments hide it.

use helenus_cql::syntax::ast::StatementKind;
use helenus_cql::syntax::parse;
use helenus_gateway::{is_select, used_keyspace};

pub(super) fn corpus() -> Vec<Vec<u8>> {
    [
        "--\rUSE evil\n",
        "// a\r/* b */ USE \"Ev\"\"il\";;",
        "--\rINSERT INTO t (a) VALUES (1) /*\nSELECT */",
        "/*\r*/--\u{2028}\nSELECT host_id FROM system.local -- c\r",
        "USE a b",
        "SELECT $$--$$, '/*', \"USE\" FROM t WHERE k = -1--\r",
        "BEGIN BATCH UPDATE t SET a = 1 WHERE k = 2; APPLY BATCH;",
        "\u{a0}USE x",
        "\x0bUSE x",
        "use.x",
        "USE/**/x",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (keyspace, reads) = (used_keyspace(&text), is_select(&text));
    match parse(&text).map(|statement| statement.kind) {
        Ok(StatementKind::Use(name)) => {
            assert!(keyspace.is_ok_and(|used| used.as_deref() == Some(name.as_str())), "{text:?}")
        }
        Ok(StatementKind::Select(_)) => {
            assert!(reads && keyspace.is_ok_and(|used| used.is_none()), "{text:?}")
        }
        Ok(_) => assert!(!reads && keyspace.is_ok_and(|used| used.is_none()), "{text:?}"),
        // No node runs it, so the gateway must not either. What would read does no harm.
        Err(_) => assert!(keyspace.is_err() || keyspace.is_ok_and(|used| used.is_none()), "{text:?}"),
    }
}
