//! Statements at and beyond the nesting limit, on the smallest supported stack: that of a default Rust thread of a
//! program that embeds the database.

use super::harness::Session;
use crate::syntax::DEPTH_MAX;
use helenus_model::types::TYPE_DEPTH_MAX;

/// Three quarters of a thread's 2 MiB; the rest is left to the caller.
const STACK_BYTES: usize = 1536 << 10;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).expect("a thread");
    thread.join().expect("no overflow");
}

/// Opening, core and closing of nested syntax; a chain has no closing.
const PIECES: &[(&str, &str, &str)] = &[
    ("1+", "1", ""),
    ("1*", "1", ""),
    ("(1+", "1", ")"),
    ("1-(", "1", ")"),
    ("-(", "1", ")"),
    ("[", "1", "]"),
    ("{", "1", "}"),
    ("{1:", "1", "}"),
    ("{a:", "1", "}"),
    ("(1,", "1", ")"),
    ("abs(", "1", ")"),
    ("mask_replace(1,", "1", ")"),
    ("collection_max([", "1", "])"),
    ("cast(", "1", " as int)"),
    ("(int)", "1", ""),
    ("(list<int>)[", "1", "]"),
    ("i+", "i", ""),
    ("abs(", "i", ")"),
    ("[", "i", "]"),
    ("(i,", "i", ")"),
    ("- ", "i", ""),
    ("max(", "i", ")"),
];

#[test]
fn the_deepest_statements_are_analysed_run_and_dropped_on_a_small_stack() {
    on_a_small_stack(|| {
        let mut session = Session::with(&[
            "CREATE TYPE ut (a int)",
            "CREATE TABLE t (k int PRIMARY KEY, i int, v text, l list<int>, f frozen<list<frozen<list<int>>>>, u ut, m map<int, int>)",
            "INSERT INTO t (k, i) VALUES (1, 1)",
        ]);
        let places = [
            "SELECT * FROM t WHERE k = @",
            "SELECT @ FROM t",
            "SELECT JSON @ FROM t",
            "SELECT m[@] FROM t",
            "INSERT INTO t (k, i) VALUES (1, @)",
            "INSERT INTO t (k, v) VALUES (1, @)",
            "INSERT INTO t (k, l) VALUES (1, @)",
            "INSERT INTO t (k, f) VALUES (1, @)",
            "UPDATE t SET i = 1 WHERE k = 1 IF i = @",
            "EXPLAIN SELECT @ FROM t",
            "BEGIN BATCH INSERT INTO t (k, i) VALUES (1, @); APPLY BATCH",
        ];
        for (open, core, close) in PIECES {
            for place in places {
                for depth in [DEPTH_MAX / 4, DEPTH_MAX / 2 - 1, DEPTH_MAX - 2, DEPTH_MAX, 3 * DEPTH_MAX] {
                    let depth = depth as usize;
                    let piece = format!("{}{core}{}", open.repeat(depth), close.repeat(depth));
                    let _answered = session.run(&place.replace('@', &piece));
                }
            }
        }
        let _answered = session.run(&format!("SELECT u{} FROM t", ".a".repeat(DEPTH_MAX as usize - 2)));
        let _answered = session.run(&format!("SELECT m{} FROM t", "[1]".repeat(DEPTH_MAX as usize - 2)));
    });
}

#[test]
fn a_chain_is_computed_and_one_beyond_the_bound_is_refused() {
    let mut session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY, i int)"]);
    let chain = |links: usize| format!("1{}", "+1".repeat(links));
    session.ok(&format!("INSERT INTO t (k, i) VALUES (1, {})", chain(100)));
    assert_eq!(session.rows("SELECT i FROM t WHERE k = 1"), "101");
    assert_eq!(session.rows(&format!("SELECT i+{} FROM t", chain(100))), "202");
    for links in [DEPTH_MAX as usize + 1, 650, 50_000] {
        let refused = session.error(&format!("SELECT i FROM t WHERE k = {}", chain(links)));
        assert!(refused.contains("nests too deep"), "{refused}");
    }
}

#[test]
fn what_doubles_with_each_call_is_refused_before_it_fills_the_memory() {
    let mut session = Session::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "INSERT INTO t (k, v) VALUES (1, 'a')",
    ]);
    let nested = format!("{}v{}", "to_json(".repeat(100), ")".repeat(100));
    let refused = session.error(&format!("SELECT {nested} FROM t"));
    assert!(refused.contains("is longer than 32 MiB"), "{refused:.200}");
}

#[test]
fn types_nest_as_deep_as_their_bound_with_those_that_user_types_hold() {
    on_a_small_stack(|| {
        let mut session = Session::with(&["CREATE TYPE t0 (a int)"]);
        let mut made = 0;
        let refused = loop {
            match session.run(&format!("CREATE TYPE t{} (a frozen<t{made}>)", made + 1)) {
                Ok(_) => made += 1,
                Err(error) => break error.to_string(),
            }
        };
        assert!(refused.contains("nest too deep"), "{refused}");
        assert!((TYPE_DEPTH_MAX - 4..=TYPE_DEPTH_MAX).contains(&made), "{made}");
        // The deepest type is used in a table, written, read, described, and read again after a crash.
        session.ok(&format!("CREATE TABLE t (k int PRIMARY KEY, v list<frozen<t{made}>>)"));
        session.ok("INSERT INTO t (k) VALUES (1)");
        assert_eq!(session.rows("SELECT k FROM t"), "1");
        assert!(session.rows("DESCRIBE KEYSPACE ks").contains("CREATE TYPE ks.t0"));
        session.backend.database().flush_all().expect("a flush");
        let mut session = session.crashed();
        assert_eq!(session.rows("SELECT k FROM t"), "1");
        // A change of an inner type that would exceed the limit is refused, too.
        session.ok("CREATE TYPE deep (a frozen<tuple<frozen<tuple<int, int>>, int>>)");
        assert!(session.error("ALTER TYPE t0 ADD b frozen<deep>").contains("nest too deep"));
        session.ok("ALTER TYPE t0 ADD b int");
    });
}

#[test]
fn types_that_double_with_each_level_are_refused_before_they_are_too_many() {
    let mut session = Session::with(&["CREATE TYPE d0 (a int, b int)"]);
    let refused = (1..40).find_map(|level| {
        let below = level - 1;
        session.run(&format!("CREATE TYPE d{level} (a frozen<d{below}>, b frozen<d{below}>)")).err()
    });
    let refused = refused.expect("forty levels of two are refused").to_string();
    assert!(refused.contains("too many parts"), "{refused}");
    let tuple = |levels: usize| format!("{}int{}", "tuple<".repeat(levels), ">".repeat(levels));
    session.ok(&format!("CREATE TABLE a (k int PRIMARY KEY, v {})", tuple(TYPE_DEPTH_MAX - 1)));
    let refused = session.error(&format!("CREATE TABLE b (k int PRIMARY KEY, v {})", tuple(TYPE_DEPTH_MAX)));
    assert!(refused.contains("nests too deep"), "{refused}");
}
