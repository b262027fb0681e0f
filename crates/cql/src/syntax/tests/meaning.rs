//! The meaning of a few texts that are easy to get wrong.

use super::super::ast::{
    AssignmentKind, LiteralKind, PropertyValue, RelationKind, Selectable, Selectors, StatementKind, Term,
};
use super::super::{parse, parse_type, print, print_type};

fn canonical(text: &str) -> String {
    parse(text).map_or_else(|error| error.to_string(), |statement| print(&statement))
}

fn term(text: &str) -> Result<String, String> {
    let statement = format!("INSERT INTO t (a) VALUES ({text})");
    let statement = parse(&statement).map_err(|error| error.to_string())?;
    Ok(print(&statement).trim_start_matches("INSERT INTO t (a) VALUES (").trim_end_matches(')').to_owned())
}

#[test]
fn markers_are_numbered_as_they_appear() {
    let text = "UPDATE t USING TTL ? SET a = :A, b[?] = :\"B\" WHERE k IN ? AND (c, d) > (?, :a) IF e = ?";
    let statement = parse(text).expect(text);
    let names: Vec<_> =
        statement.markers.iter().map(|marker| marker.name.as_ref().map(|name| name.as_str())).collect();
    assert_eq!(names, [None, Some("a"), None, Some("B"), None, None, Some("a"), None]);
    assert_eq!(statement.markers[1].pos.line_and_column(text), (1, 29));
    let StatementKind::Update(update) = &statement.kind else { panic!("an update") };
    assert!(matches!(&update.using.ttl, Some(Term::Marker(marker)) if marker.index == 0));
    assert!(
        matches!(&update.assignments[1].kind, AssignmentKind::SetElement(Term::Marker(key), _) if key.index == 2)
    );
}

#[test]
fn markers_of_an_attempt_that_failed_are_forgotten() {
    let statement = parse("SELECT json[? ..] FROM t WHERE k = ?").expect("json as a column");
    assert_eq!(statement.markers.len(), 2);
    assert!(matches!(&statement.kind, StatementKind::Select(select) if !select.json));
}

#[test]
fn json_and_distinct_are_keywords_only_where_selectors_follow() {
    for (text, json, distinct) in [
        ("SELECT json FROM t", false, false),
        ("SELECT JSON a FROM t", true, false),
        ("SELECT json, a FROM t", false, false),
        ("SELECT json - json FROM t", true, false),
        ("SELECT distinct FROM t", false, false),
        ("SELECT DISTINCT a FROM t", false, true),
        ("SELECT JSON DISTINCT a FROM t", true, true),
        ("SELECT distinct.a FROM t", false, false),
    ] {
        let statement = parse(text).expect(text);
        let StatementKind::Select(select) = &statement.kind else { panic!("a select") };
        assert_eq!((select.json, select.distinct), (json, distinct), "{text}");
    }
}

#[test]
fn precedence_is_kept() {
    let statement = parse("SELECT a + b * c - d FROM t").expect("arithmetic");
    let StatementKind::Select(select) = &statement.kind else { panic!("a select") };
    let Selectors::List(list) = &select.selectors else { panic!("a list") };
    let Selectable::Arithmetic(_, rest) = &list[0].selectable else { panic!("a sum") };
    assert_eq!(rest.len(), 2);
    assert!(matches!(&rest[0].1, Selectable::Arithmetic(..)));
}

#[test]
fn braces_hold_fields_pairs_or_items() {
    assert_eq!(term("{a: 1}").as_deref(), Ok("{a: 1}"));
    for (text, is) in [
        ("{a: 1}", "udt"),
        ("{'a': 1}", "map"),
        ("{1}", "set"),
        ("{}", "set"),
        ("{:a: 1}", "map"),
        ("{f(1)}", "set"),
    ] {
        let statement = format!("INSERT INTO t (a) VALUES ({text})");
        let statement = parse(&statement).expect(text);
        let StatementKind::Insert(insert) = &statement.kind else { panic!("an insert") };
        let super::super::ast::InsertData::Values { values, .. } = &insert.data else { panic!("values") };
        let kind = match &values[0] {
            Term::Udt(..) => "udt",
            Term::Map(..) => "map",
            Term::Set(..) => "set",
            _ => "something else",
        };
        assert_eq!(kind, is, "{text}");
    }
}

#[test]
fn the_forms_of_self_assignment_are_told_apart() {
    for (text, is) in [
        ("a = a + 1", "add"),
        ("a = a - 1", "subtract"),
        ("a = a -1", "add"),
        ("a += 1", "add"),
        ("a = [1] + a", "prepend"),
        ("a = f(1) + a", "prepend"),
        ("a = 1 + f(a(1))", "set"),
        ("A = a + 1", "add"),
    ] {
        let statement = format!("UPDATE t SET {text} WHERE k = 1");
        let statement = parse(&statement).expect(text);
        let StatementKind::Update(update) = &statement.kind else { panic!("an update") };
        let kind = match &update.assignments[0].kind {
            AssignmentKind::Add(_) => "add",
            AssignmentKind::Subtract(_) => "subtract",
            AssignmentKind::Prepend(_) => "prepend",
            AssignmentKind::Set(_) => "set",
            _ => "something else",
        };
        assert_eq!(kind, is, "{text}");
    }
}

#[test]
fn literals_keep_their_text() {
    let text =
        "INSERT INTO t (a) VALUES ('it''s', $$it's$$, -07, 1.50, TRUE, 1Y2mo, 0xAb, -NaN, infinity, P1Y)";
    let statement = parse(text).expect(text);
    let StatementKind::Insert(insert) = &statement.kind else { panic!("an insert") };
    let super::super::ast::InsertData::Values { values, .. } = &insert.data else { panic!("values") };
    let literals = values.iter().map(|value| match value {
        Term::Literal(literal) => (literal.kind, literal.text.as_ref()),
        other => panic!("{other:?}"),
    });
    use LiteralKind::{Boolean, Duration, Float, Hex, Integer, String};
    let expected = [
        (String, "it's"),
        (String, "it's"),
        (Integer, "-07"),
        (Float, "1.50"),
        (Boolean, "TRUE"),
        (Duration, "1Y2mo"),
        (Hex, "0xAb"),
        (Float, "NaN"),
        (Float, "Infinity"),
        (Duration, "P1Y"),
    ];
    assert!(literals.eq(expected));
}

#[test]
fn names_fold_unless_quoted() {
    assert_eq!(
        canonical("select A, \"A\", \"a\", \"a\"\"b\", Text from KS.\"Select\""),
        "SELECT a, \"A\", a, \"a\"\"b\", \"text\" FROM ks.\"Select\""
    );
    assert_eq!(
        canonical("SELECT Token(A), COUNT(*), Foo(a) FROM t"),
        "SELECT \"token\"(a), COUNT(*), foo(a) FROM t"
    );
}

#[test]
fn parentheses_around_a_relation_say_nothing() {
    assert_eq!(
        canonical("SELECT * FROM t WHERE ((a = 1)) AND (b) = (2)"),
        "SELECT * FROM t WHERE a = 1 AND (b) = (2)"
    );
    let statement = parse("SELECT * FROM t WHERE (token(a) > 1)").expect("token");
    assert!(
        matches!(&statement.kind, StatementKind::Select(select) if matches!(select.filter[0].kind, RelationKind::Token(..)))
    );
}

#[test]
fn explain_takes_reads_and_writes_and_leaves_its_words_free() {
    assert_eq!(canonical("explain select * from explain"), "EXPLAIN SELECT * FROM explain");
    assert_eq!(
        canonical("EXPLAIN ANALYZE FORMAT JSON DELETE analyze FROM format WHERE json = 1"),
        "EXPLAIN ANALYZE FORMAT JSON DELETE analyze FROM format WHERE \"json\" = 1"
    );
    assert_eq!(canonical("EXPLAIN UPDATE t SET a = ? WHERE k = ?"), "EXPLAIN UPDATE t SET a = ? WHERE k = ?");
    assert_eq!(
        canonical("Explain Analyze Insert Into explain (analyze) Values (1)"),
        "EXPLAIN ANALYZE INSERT INTO explain (analyze) VALUES (1)"
    );
    assert_eq!(
        canonical("EXPLAIN FORMAT JSON BEGIN BATCH DELETE FROM t WHERE k = 1; APPLY BATCH"),
        "EXPLAIN FORMAT JSON BEGIN BATCH DELETE FROM t WHERE k = 1; APPLY BATCH"
    );
    for text in [
        "CREATE TABLE explain (explain int, analyze text, format text, PRIMARY KEY (explain))",
        "SELECT explain, analyze, format FROM explain.analyze WHERE explain = 1",
    ] {
        assert_eq!(canonical(text), text);
    }
    assert!(
        canonical("EXPLAIN TRUNCATE t").starts_with("line 1:8 no viable alternative at input 'TRUNCATE'")
    );
}

#[test]
fn properties_are_literals_words_or_maps() {
    let statement =
        parse("CREATE KEYSPACE k WITH a = {'b': 1} AND c = ALL AND d = -1.5").expect("properties");
    let StatementKind::CreateKeyspace(create) = &statement.kind else { panic!("a keyspace") };
    assert!(matches!(&create.properties[0].value, PropertyValue::Map(pairs, _) if pairs.len() == 1));
    assert!(matches!(&create.properties[1].value, PropertyValue::Word(word, _) if word == "ALL"));
    assert!(matches!(&create.properties[2].value, PropertyValue::Literal(_)));
}

#[test]
fn a_type_is_parsed_alone() {
    for text in [
        "int",
        "frozen<map<text, list<ks.\"T\">>>",
        "vector<float, 3>",
        "'org.x.Type(a)'",
        "tuple<int, text>",
    ] {
        assert_eq!(parse_type(text).map(|parsed| print_type(&parsed)).as_deref(), Ok(text));
    }
    assert!(parse_type("list<int").is_err() && parse_type("int int").is_err() && parse_type("").is_err());
}

#[test]
fn columns_are_counted_in_utf16_units_and_lines_by_newlines() {
    let error = parse("SELECT 'é\u{1F600}' x\nFROM t").expect_err("no AS");
    assert_eq!((error.line, error.column), (1, 13));
    let error = parse("SELECT a\r\n  FROM t\n WHERE 1").expect_err("no column");
    assert_eq!((error.line, error.column), (3, 7));
}
