//! Limits of depth and length, and arbitrary bytes.

use proptest::prelude::*;

use super::super::{DEPTH_MAX, parse, print};

/// Runs on a stack of 1.5 MiB, three quarters of that of an event loop's thread.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1536 << 10).spawn(test).expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn nesting_without_end_is_refused_and_not_a_stack_overflow() {
    on_a_small_stack(|| {
        for (before, after) in [
            ("INSERT INTO t (a) VALUES (", "("),
            ("INSERT INTO t (a) VALUES (", "["),
            ("INSERT INTO t (a) VALUES (", "{"),
            ("INSERT INTO t (a) VALUES (", "{a:"),
            ("INSERT INTO t (a) VALUES (", "f("),
            ("INSERT INTO t (a) VALUES (", "(int)"),
            ("INSERT INTO t (a) VALUES (", "cast("),
            ("SELECT ", "("),
            ("SELECT ", "["),
            ("SELECT ", "{"),
            ("SELECT ", "f("),
            ("SELECT ", "- "),
            ("SELECT ", "(int)"),
            ("SELECT ", "(a){"),
            ("SELECT ", "cast("),
            ("SELECT a[", "("),
            ("SELECT * FROM t WHERE ", "("),
            ("CREATE TABLE t (a ", "list<"),
            ("CREATE TABLE t (a ", "map<int,"),
            ("CREATE TABLE t (a ", "frozen<"),
        ] {
            let text = format!("{before}{}", after.repeat(100_000));
            let error = parse(&text).expect_err(before);
            assert!(error.to_string().contains("nests too deep"), "{before}{after}: {error}");
        }
    });
}

#[test]
fn the_deepest_statement_is_parsed_printed_and_dropped() {
    on_a_small_stack(|| {
        let depth = DEPTH_MAX as usize;
        let text = format!("INSERT INTO t (a) VALUES ({}1{})", "[".repeat(depth), "]".repeat(depth));
        let statement = parse(&text).expect("deep");
        assert_eq!(parse(&print(&statement)).as_ref(), Ok(&statement));
        // One level is left for `(a)`, which is first tried as a type.
        let text = format!("SELECT {}a{} FROM t", "(".repeat(depth - 1), ")".repeat(depth - 1));
        let statement = parse(&text).expect("deep");
        assert_eq!(parse(&print(&statement)).as_ref(), Ok(&statement));
    });
}

#[test]
fn chains_are_as_deep_as_they_are_long() {
    let chains = [
        ("SELECT a", " + a", " FROM t"),
        ("SELECT a", " * a", " FROM t"),
        ("SELECT a", ".a", " FROM t"),
        ("SELECT a", "[1]", " FROM t"),
        ("SELECT a", "[1..2].a", " FROM t"),
        ("SELECT a[1", " + 1", "] FROM t"),
        ("SELECT ttl(a", ".a", ") FROM t"),
        ("INSERT INTO t (a) VALUES (1", " * 1", ")"),
        ("INSERT INTO t (a) VALUES (1", " + 1", ")"),
        ("SELECT * FROM t WHERE k = 1", " - -(1)", ""),
        ("UPDATE t SET a = 1", " + 1", " + a WHERE k = 1"),
    ];
    on_a_small_stack(move || {
        for (before, link, after) in chains {
            let text = |count: usize| format!("{before}{}{after}", link.repeat(count));
            let short = text(DEPTH_MAX as usize / 4);
            let statement = parse(&short).unwrap_or_else(|error| panic!("{before}{link}: {error}"));
            assert_eq!(parse(&print(&statement)).as_ref(), Ok(&statement));
            for count in [DEPTH_MAX as usize + 1, 650, 100_000] {
                let error = parse(&text(count)).expect_err(before);
                assert!(error.to_string().contains("nests too deep"), "{before}{link}: {error}");
            }
        }
    });
}

#[test]
fn a_chain_of_chains_is_as_deep_as_its_tree() {
    on_a_small_stack(|| {
        // Each level of parentheses contains a chain that begins with the next level: few levels, but a deep tree.
        let nested = |levels: usize, links: usize| {
            (0..levels).fold("1".to_owned(), |inner, _| format!("({inner}{})", " + 1".repeat(links)))
        };
        assert!(parse(&format!("SELECT * FROM t WHERE k = {}", nested(4, 20))).is_ok());
        for (levels, links) in [(4, 40), (64, 2), (40, 40)] {
            for text in [
                format!("SELECT * FROM t WHERE k = {}", nested(levels, links)),
                format!("SELECT {} FROM t", nested(levels, links)),
            ] {
                assert!(
                    parse(&text).is_err_and(|error| error.message.contains("nests too deep")),
                    "{levels} {links}"
                );
            }
        }
        // Chains side by side do not add to the depth.
        let chain = format!("1{}", " + 1".repeat(DEPTH_MAX as usize / 2));
        assert!(parse(&format!("SELECT [{}] FROM t", vec![chain; 500].join(","))).is_ok());
    });
}

#[test]
fn long_lists_do_not_nest() {
    on_a_small_stack(|| {
        for text in [
            format!("SELECT * FROM t WHERE k = 1{}", " AND k = 1".repeat(100_000)),
            format!("INSERT INTO t (a) VALUES (1{})", ", ?".repeat(100_000)),
            format!("SELECT a{} FROM t", ", a".repeat(100_000)),
            format!("SELECT [a{}] FROM t", ", a".repeat(100_000)),
            format!(
                "UPDATE t SET {} WHERE k = 1",
                (0..20_000).map(|n| format!("a{n} = 1")).collect::<Vec<_>>().join(",")
            ),
            format!("CREATE TABLE t (a int PRIMARY KEY{})", ",".repeat(100_000)),
            format!("SELECT * FROM t{}", ";".repeat(100_000)),
        ] {
            let statement = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", &text[..40]));
            assert_eq!(parse(&print(&statement)).as_ref(), Ok(&statement));
        }
    });
}

#[test]
fn a_column_set_twice_among_many_is_refused() {
    let many = (0..100).map(|n| format!("a{n} = 1")).collect::<Vec<_>>().join(",");
    let clash = |last: &str| {
        parse(&format!("UPDATE t SET {many}, {last} WHERE k = 1")).err().map(|error| error.message)
    };
    assert_eq!(clash("a7 = 2").as_deref(), Some("Multiple incompatible setting of column a7"));
    assert_eq!(clash("a99.f = 2").as_deref(), Some("Multiple incompatible setting of column a99"));
    let many = (0..100).map(|n| format!("a{n}.f = 1")).collect::<Vec<_>>().join(",");
    let clash = |last: &str| parse(&format!("UPDATE t SET {many}, {last} WHERE k = 1")).is_err();
    assert!(clash("a7.f = 2") && clash("a7 = 2") && !clash("a7.g = 2") && !clash("a7[1] = 2"));
}

/// Pieces of statements, valid and invalid ones.
const PIECES: &[&str] = &[
    "SELECT",
    "INSERT INTO",
    "UPDATE",
    "DELETE",
    "BEGIN BATCH",
    "CREATE TABLE",
    "ALTER",
    "DROP",
    "FROM",
    "WHERE",
    "SET",
    "VALUES",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "=",
    ",",
    ".",
    "..",
    ":",
    ";",
    "?",
    "+",
    "-",
    "*",
    "/",
    "--",
    "//",
    "/*",
    "*/",
    "'",
    "\"",
    "$$",
    "$",
    "''",
    "\"\"",
    "a",
    "json",
    "distinct",
    "frozen",
    "list",
    "int",
    "token",
    "count",
    "1",
    "-1",
    "1.",
    "1e",
    "0x",
    "1d",
    "P1Y",
    "-P",
    "NaN",
    "-n",
    "é",
    "\u{1F600}",
    "\0",
    "\n",
    " ",
    "123e4567-",
    "GRANT",
    "ROLE",
    "WITH",
    "AND",
    "IF",
    "EXISTS",
    "DESCRIBE",
    "EXPLAIN",
    "ON",
    "TO",
    "IN",
    "expr(",
    "null",
    "true",
];

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn any_pieces_are_answered_without_a_panic(
        pieces in prop::collection::vec((prop::sample::select(PIECES), any::<bool>()), 0..24),
    ) {
        let text: String = pieces.iter().map(|(piece, spaced)| format!("{piece}{}", if *spaced { " " } else { "" })).collect();
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty());
            prop_assert!(error.offset as usize <= text.len());
        }
    }

    #[test]
    fn any_cut_of_a_statement_is_answered_without_a_panic(
        line in prop::sample::select(include_str!("accepted.txt").lines().collect::<Vec<_>>()),
        from in 0usize..400,
        length in 0usize..40,
    ) {
        let cut: String = line.chars().enumerate().filter(|(at, _)| !(from..from + length).contains(at)).map(|(_, c)| c).collect();
        let _ = parse(&cut);
    }
}
