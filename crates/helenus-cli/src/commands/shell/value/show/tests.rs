//! Tests that parse and show values of every type, and show malformed bytes.

use super::*;
use crate::commands::shell::value::{TextRules, parse_value};
use helenus_model::types::UserType;
use std::sync::Arc;

fn text_rules() -> TextRules {
    TextRules {
        null: String::new(),
        timestamp: TimeFormat::new(DEFAULT_TIMESTAMP),
        booleans: ["True".to_owned(), "False".to_owned()],
        decimal_separator: None,
        thousands_separator: None,
    }
}

fn shown(ty: &CqlType, text: &str) -> String {
    let mut bytes = Vec::new();
    parse_value(ty, text, &text_rules(), &mut bytes).unwrap_or_else(|error| panic!("{text}: {error}"));
    show(ty, Some(&bytes), Style { rules: &ValueRules::default(), in_colour: false }).text
}

#[test]
fn values_are_read_and_shown_as_cqlsh_shows_them() {
    let texts = CqlType::List { element: Arc::new(CqlType::Text), frozen: false };
    let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(texts.clone()), frozen: false };
    let set = CqlType::Set { element: Arc::new(CqlType::Inet), frozen: true };
    let fields = vec![("a".into(), CqlType::Int), ("b".into(), CqlType::Timestamp)];
    let udt = UserType { keyspace: "k".into(), name: "t".into(), fields, frozen: true };
    let udt = CqlType::Udt(Arc::new(udt));
    let tuple = CqlType::Tuple([CqlType::Int, CqlType::Text].into());
    let vector = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 2 };
    for (ty, text, expected) in [
        (&CqlType::Int, "-5", "-5"),
        (&CqlType::Boolean, "true", "True"),
        (&CqlType::Double, "1e100", "1e+100"),
        (&CqlType::Decimal, "1.50", "1.50"),
        (&CqlType::Blob, "0xCAFE", "0xcafe"),
        (&CqlType::Timestamp, "2026-11-21", "2026-11-21 00:00:00.000000+0000"),
        (&CqlType::Date, "2026-11-21", "2026-11-21"),
        (&CqlType::Time, "01:02:03.5", "01:02:03.500000000"),
        (&CqlType::Duration, "1y2mo3d4h5us", "1y2mo3d4h5us"),
        (&CqlType::Text, "a\nb\\", "a\\nb\\\\"),
        (&texts, "['it''s', 'a, b']", "['it''s', 'a, b']"),
        (&map, "{'b': ['x'], 'a': []}", "{'a': [], 'b': ['x']}"),
        (&set, "{'::1', '10.0.0.1'}", "{'10.0.0.1', '::1'}"),
        (&udt, "{b: '2026-11-21', a: 3}", "{a: 3, b: '2026-11-21 00:00:00.000000+0000'}"),
        (&tuple, "(1, '')", "(1, '')"),
        (&tuple, "(1, )", "(1, null)"),
        (&vector, "[1, 2.5]", "[1, 2.5]"),
    ] {
        assert_eq!(shown(ty, text), expected, "{text}");
    }
}

#[test]
fn what_is_no_value_shows_as_its_bytes_and_never_panics() {
    let style = Style { rules: &ValueRules::default(), in_colour: false };
    assert_eq!(show(&CqlType::Int, Some(&[1]), style).text, "0x01");
    assert_eq!(show(&CqlType::Int, None, style).text, "null");
    assert_eq!(show(&CqlType::Int, Some(&[]), style).text, "");
    let days_before_year_1 = 5_u32.to_be_bytes();
    assert_eq!(show(&CqlType::Date, Some(&days_before_year_1), style).text, "-2147483643");
}

#[test]
fn numbers_in_json_have_a_point_whatever_separates_those_of_csv_and_half_a_surrogate_pair_is_refused() {
    let rules = TextRules { decimal_separator: Some(','), thousands_separator: Some('.'), ..text_rules() };
    let map = |value| CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(value), frozen: false };
    let read = |ty: &CqlType, text: &str| {
        let mut bytes = Vec::new();
        let read = parse_value(ty, text, &rules, &mut bytes).map_err(|error| error.to_string());
        let style = Style { rules: &ValueRules::default(), in_colour: false };
        read.map(|()| show(ty, Some(&bytes), style).text)
    };
    assert_eq!(read(&map(CqlType::Double), r#"{"a":1.5}"#).unwrap(), "{'a': 1.5}");
    assert_eq!(read(&map(CqlType::Decimal), r#"{"a":1234.50}"#).unwrap(), "{'a': 1234.50}");
    assert_eq!(read(&map(CqlType::Int), r#"{"a":12}"#).unwrap(), "{'a': 12}");
    assert_eq!(read(&CqlType::Double, "1.234,5").unwrap(), "1234.5");
    for text in [r#"{"a":"\ud83d"}"#, r#"{"\ude00":"a"}"#, r#"{"a":"\ud83dx"}"#] {
        assert!(read(&map(CqlType::Text), text).is_err(), "{text}");
    }
    assert_eq!(read(&map(CqlType::Text), r#"{"a":"\ud83d\ude00"}"#).unwrap(), "{'a': '😀'}");
}
