//! Nulls and empty values in lists that are bound to markers, or computed: `IF v IN ?` in all its forms, frozen lists, TTLs of elements.

use super::harness::Session;
use crate::backend::BoundValue;
use helenus_model::types::pack;

fn list(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    pack(values.len(), values.iter().copied(), &mut out);
    out
}

fn int(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

const TABLE: [&str; 2] = [
    "CREATE TYPE ut (a int, b int)",
    "CREATE TABLE x (p int, k int, z int, v int, e text, t int static, f frozen<list<int>>, l list<int>, s set<int>, \
     m map<text, int>, u ut, PRIMARY KEY (p, k))",
];
const VALUES: &str =
    "INSERT INTO x (p, k, v, e, t, f, l, s, m, u) VALUES (2, 1, 7, '', 7, [7], [7], {7}, {'a': 7}, {a: 7})";

/// The forms of the left side, the value in row 2 of each, and whether its empty value is read as null.
fn forms() -> Vec<(&'static str, Vec<u8>, bool)> {
    let seven = || int(7);
    let of_one = || list(&[Some(&int(7))]);
    let map = [&1_i32.to_be_bytes()[..], &1_i32.to_be_bytes(), b"a", &4_i32.to_be_bytes(), &int(7)].concat();
    let udt = [&4_i32.to_be_bytes()[..], &int(7), &(-1_i32).to_be_bytes()].concat();
    vec![
        ("v", seven(), true),
        ("t", seven(), true),
        ("l[0]", seven(), true),
        ("m['a']", seven(), true),
        ("u.a", seven(), true),
        ("f", of_one(), false),
        ("l", of_one(), false),
        ("s", of_one(), false),
        ("m", map, false),
        ("u", udt, false),
    ]
}

fn applied(session: &mut Session, p: i32, form: &str, values: &[Option<&[u8]>]) -> bool {
    let text = format!("UPDATE x SET z = 1 WHERE p = {p} AND k = 1 IF {form} IN ?");
    let rows = session.execute(&text, &[BoundValue::Bytes(&list(values))]);
    rows.unwrap_or_else(|error| panic!("{text}: {error}"))[0][0] == "true"
}

#[test]
fn a_null_in_the_list_of_a_condition_is_a_column_without_a_value() {
    let mut session = Session::with(&TABLE);
    session.ok("INSERT INTO x (p, k) VALUES (1, 1)");
    session.ok(VALUES);
    let other = |value: &[u8]| {
        let mut other = value.to_vec();
        if let Some(last) = other.iter_mut().rev().find(|byte| **byte == 7) {
            *last = 8;
        }
        other
    };
    for (form, value, reads_empty_as_null) in forms() {
        let (own, other) = (Some(&value[..]), other(&value));
        for (p, values, expected) in [
            (1, &[None][..], true),
            (1, &[own, None], true),
            (1, &[own], false),
            (1, &[], false),
            (2, &[None], false),
            (2, &[None, own], true),
            (2, &[Some(&other[..]), None], false),
            (2, &[], false),
        ] {
            assert_eq!(applied(&mut session, p, form, values), expected, "{form} of row {p}: {values:?}");
        }
        if reads_empty_as_null {
            assert!(applied(&mut session, 1, form, &[Some(b"")]), "{form}");
            assert!(!applied(&mut session, 2, form, &[Some(b"")]), "{form}");
        }
    }
    // The empty text is a value.
    assert!(!applied(&mut session, 1, "e", &[Some(b"")]));
    assert!(applied(&mut session, 1, "e", &[Some(b""), None]));
    assert!(applied(&mut session, 2, "e", &[Some(b"")]));
    for (value, text) in [
        (BoundValue::Null, "Invalid null list in IN condition"),
        (BoundValue::Unset, "Invalid 'unset' value in condition"),
    ] {
        let refused = session.execute("UPDATE x SET z = 1 WHERE p = 1 AND k = 1 IF v IN ?", &[value]);
        assert_eq!(refused.unwrap_err().to_string(), text);
    }
}

#[test]
fn a_frozen_list_keeps_the_nulls_that_it_is_bound_with() {
    let mut session = Session::with(&[
        "CREATE TABLE y (k int, c frozen<list<int>>, f frozen<list<int>>, l list<int>, e frozen<list<text>>, PRIMARY KEY (k, c))",
    ]);
    let (one, two) = (int(1), int(2));
    let holes = list(&[Some(&one), None, Some(&two), Some(b"")]);
    let insert = "INSERT INTO y (k, c, f, e) VALUES (1, ?, ?, ?)";
    let texts = list(&[Some(b""), None]);
    session.execute(insert, &[&holes, &holes, &texts].map(|bytes| BoundValue::Bytes(bytes))).unwrap();
    let all = "[1, null, 2, null],[1, null, 2, null],['', null]";
    assert_eq!(session.rows("SELECT c, f, e FROM y"), all);
    assert_eq!(session.rows("SELECT JSON f FROM y"), r#"'{"f": [1, null, 2, null]}'"#);
    let found =
        session.execute("SELECT k FROM y WHERE k = 1 AND c = ?", &[BoundValue::Bytes(&holes)]).unwrap();
    assert_eq!(found.len(), 1);
    let found =
        session.execute("SELECT k FROM y WHERE f = ? ALLOW FILTERING", &[BoundValue::Bytes(&holes)]).unwrap();
    assert_eq!(found.len(), 1);
    let mut session = session.crashed();
    assert_eq!(session.rows("SELECT c, f, e FROM y"), all);
    // The elements of other lists are cells, which have values; and the first thing that is wrong is told.
    let cut = [&i32::MAX.to_be_bytes()[..], &(-1_i32).to_be_bytes()].concat();
    let more = [&list(&[None])[..], &[0]].concat();
    for (column, value, text) in [
        ("l", &list(&[None]), "Null value read when not allowed"),
        ("l", &cut, "Not enough bytes to read a list"),
        ("f", &cut, "Not enough bytes to read a list"),
        ("f", &more, "Unexpected extraneous bytes after list value"),
        ("f", &list(&[None, Some(&[1])]), "Expected 4 or 0 byte int (1)"),
    ] {
        let statement = format!("UPDATE y SET {column} = ? WHERE k = 1 AND c = []");
        let refused = session.execute(&statement, &[BoundValue::Bytes(value)]).unwrap_err().to_string();
        assert!(refused.starts_with(text), "{column}: {refused}");
    }
}

#[test]
fn times_of_elements_without_one_are_null_in_json_too() {
    let mut session = Session::with(&["CREATE TABLE w (k int PRIMARY KEY, m map<text, int>)"]);
    session.ok("UPDATE w USING TTL 100 SET m['a'] = 1 WHERE k = 1");
    session.ok("UPDATE w SET m['b'] = 1 WHERE k = 1");
    assert_eq!(session.rows("SELECT ttl(m) FROM w"), "[100, null]");
    assert_eq!(session.rows("SELECT JSON ttl(m) FROM w"), r#"'{"ttl(m)": [100, null]}'"#);
    assert_eq!(session.rows("SELECT to_json(ttl(m)) FROM w"), "'[100, null]'");
}
