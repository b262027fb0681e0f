//! Nulls and empty elements in lists that are bound as a whole, through memory, files and JSON: a frozen list keeps them, in a cell and
//! in a clustering; sets, maps, lists within others and partition keys refuse them (`ListSerializer` of Cassandra 5.0.9).

use super::harness::Session;
use crate::backend::BoundValue;
use helenus_model::types::pack;

fn list(elements: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(elements.len(), elements.iter().copied(), &mut bytes);
    bytes
}

fn text(elements: &[Option<&[u8]>], is_int: bool) -> String {
    let shown = |value: &Option<&[u8]>| match value {
        None => "null".to_owned(),
        Some([]) if is_int => "null".to_owned(),
        Some(value) if is_int => i32::from_be_bytes((*value).try_into().unwrap()).to_string(),
        Some(value) => format!("'{}'", std::str::from_utf8(value).unwrap()),
    };
    format!("[{}]", elements.iter().map(shown).collect::<Vec<_>>().join(", "))
}

#[test]
fn a_frozen_list_in_a_cell_takes_nulls_and_keeps_them_in_memory_in_files_and_in_json() {
    let mut session = Session::with(&[
        "CREATE TYPE u (a int, l frozen<list<int>>)",
        "CREATE TABLE t (k int PRIMARY KEY, i frozen<list<int>>, x frozen<list<text>>, \
         m map<int, frozen<list<int>>>, u u)",
    ]);
    let numbers: [Option<&[u8]>; 4] = [None, Some(&[]), Some(&[0, 0, 0, 7]), Some(&[255, 255, 255, 255])];
    let texts: [Option<&[u8]>; 3] = [None, Some(b""), Some(b"word")];
    for draw in 0..64_usize {
        let ints = [numbers[draw % 4], numbers[draw / 4 % 4], numbers[draw / 16 % 4]];
        let words = [texts[draw % 3], texts[draw / 3 % 3], texts[draw / 9 % 3]];
        let key = (draw as i32).to_be_bytes();
        let (i, x) = (list(&ints), list(&words));
        let values = [&key[..], &i, &x].map(BoundValue::Bytes);
        session.execute("INSERT INTO t (k, i, x) VALUES (?, ?, ?)", &values).unwrap();
        let values = [&i[..], &i, &key].map(BoundValue::Bytes);
        session.execute("UPDATE t SET m[1] = ?, u.l = ? WHERE k = ?", &values).unwrap();
    }
    for is_flushed in [false, true] {
        if is_flushed {
            session.backend.database().flush_all().unwrap();
        }
        for draw in 0..64_usize {
            let ints = text(&[numbers[draw % 4], numbers[draw / 4 % 4], numbers[draw / 16 % 4]], true);
            let words = text(&[texts[draw % 3], texts[draw / 3 % 3], texts[draw / 9 % 3]], false);
            let found = session.rows(&format!("SELECT i, x, m[1], u.l FROM t WHERE k = {draw}"));
            assert_eq!(found, format!("{ints},{words},{ints},{ints}"), "{draw}");
            let whole = session.rows(&format!("SELECT m, u FROM t WHERE k = {draw}"));
            assert_eq!(whole, format!("{{1: {ints}}},{{a: null, l: {ints}}}"), "{draw}");
            let json = session.rows(&format!("SELECT JSON i, x, m, u FROM t WHERE k = {draw}"));
            let words = words.replace('\'', "\"");
            let cells = format!("\"m\": {{\"1\": {ints}}}, \"u\": {{\"a\": null, \"l\": {ints}}}");
            assert_eq!(json, format!("'{{\"i\": {ints}, \"x\": {words}, {cells}}}'"), "{draw}");
        }
    }
    let (one, with_null) = (1_i32.to_be_bytes(), list(&[numbers[1], numbers[0], numbers[0]]));
    let values = [&one[..], &one, &with_null].map(BoundValue::Bytes);
    let found = session.execute("UPDATE t SET x = null WHERE k = ? IF k = ? AND i = ?", &values);
    assert!(found.is_err(), "a key in a condition");
    let found = session.execute(
        "UPDATE t SET x = null WHERE k = ? IF i = ?",
        &[&one[..], &with_null].map(BoundValue::Bytes),
    );
    assert_eq!(found.unwrap()[0][0], "true");
}

#[test]
fn nulls_elsewhere_are_refused() {
    let mut session = Session::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s frozen<set<int>>, m frozen<map<int, int>>, \
         ll frozen<list<frozen<list<int>>>>, tp frozen<tuple<frozen<list<int>>>>)",
        "CREATE TABLE p (k frozen<list<int>> PRIMARY KEY)",
        "CREATE TABLE c (k int, c frozen<list<int>>, PRIMARY KEY (k, c))",
    ]);
    let one = 1_i32.to_be_bytes();
    let plain = list(&[Some(&one), None]);
    let nested = list(&[Some(&plain)]);
    for (column, value) in [("l", &plain), ("s", &plain), ("ll", &nested)] {
        let insert = format!("INSERT INTO t (k, {column}) VALUES (?, ?)");
        let error = session.execute(&insert, &[&one[..], value].map(BoundValue::Bytes)).unwrap_err();
        assert!(error.to_string().contains("Null value read when not allowed"), "{column}: {error}");
    }
    let mut map = Vec::new();
    pack(1, [Some(&one[..]), None], &mut map);
    let values = [&one[..], &map].map(BoundValue::Bytes);
    session.execute("INSERT INTO t (k, m) VALUES (?, ?)", &values).unwrap_err();
    session.execute("INSERT INTO p (k) VALUES (?)", &[BoundValue::Bytes(&plain)]).unwrap_err();
    // A clustering is not validated (`ClusteringPrefix.validate` looks at its length).
    let values = [&one[..], &plain].map(BoundValue::Bytes);
    for is_flushed in [false, true] {
        session.execute("INSERT INTO c (k, c) VALUES (?, ?)", &values).unwrap();
        assert_eq!(session.rows("SELECT c FROM c WHERE k = 1"), "[1, null]", "{is_flushed}");
        session.backend.database().flush_all().unwrap();
    }
}
