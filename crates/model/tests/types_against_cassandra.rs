//! Compares types, ordered encodings, tokens and constants with the results of Cassandra 5.0.9 for the same input.
//!
//! The tables in `fixtures/types` are written by `tests/fixtures/java/TypeFixtures.java` at the root of the workspace;
//! `regenerate-types.sh` beside it writes them again. `deliberate` and `survives_only_here` list the intended
//! differences.

#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use helenus_model::byte_comparable::{self, Encoded, Position};
use helenus_model::murmur3::murmur3_x64_128;
use helenus_model::token::{KeyHash, Token};
use helenus_model::types::{
    Assignment, ConstantKind, CqlType, ParsedClass, parse_class_name, parse_constant, parse_text,
    test_constant, to_cql_literal, to_json,
};

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().map(|line| line.split('\t').collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ty(class: &str) -> CqlType {
    CqlType::from_class_name(class).unwrap()
}

fn escape(text: &str) -> String {
    let escapes = [('\\', "\\\\"), ('\t', "\\t"), ('\n', "\\n"), ('\r', "\\r"), ('\0', "\\0")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(*from, to))
}

fn unescape(text: &str) -> String {
    let escapes = [("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\0", "\0"), ("\\\\", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Collects differences, to show all of them at once.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn check(&mut self, what: &str, row: &[&str], ours: &str, cassandras: &str) {
        if ours != cassandras {
            self.0.push(format!("{what} of {row:?}\n    ours       {ours}\n    Cassandra's {cassandras}"));
        }
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let shown: Vec<_> = self.0.iter().take(40).cloned().collect();
            assert!(self.0.is_empty(), "{} differences:\n{}", self.0.len(), shown.join("\n"));
        }
    }
}

fn ordered(ty: &CqlType, reversed: bool, value: &[u8]) -> String {
    let mut out = Vec::new();
    match byte_comparable::encode_value(ty, reversed, value, &mut out) {
        Ok(Encoded::Bytes) => hex(&out),
        Ok(Encoded::Nothing) => "null".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn values_encode_print_and_come_back_as_in_cassandra() {
    let mut differences = Differences::default();
    for row in rows(include_str!("fixtures/types/values.tsv")) {
        let [class, cql, value, _, encoded, reversed, back, literal, json] = row[..] else {
            panic!("{row:?}")
        };
        let (ty, value) = (ty(class), bytes(value));
        differences.check("class", &row, &ty.class_name().replace(PACKAGE, ""), class);
        let shown = ty.to_string();
        differences.check("CQL name", &row, &shown.replace(PACKAGE, ""), &cql.replace(PACKAGE, ""));
        differences.check("validity", &row, &format!("{:?}", ty.validate(&value)), "Ok(())");
        differences.check("ordered", &row, &ordered(&ty, false, &value), encoded);
        differences.check("ordered reversed", &row, &ordered(&ty, true, &value), reversed);
        if encoded != "null" {
            for (reversed, encoded) in [(false, bytes(encoded)), (true, bytes(reversed))] {
                let (mut position, mut decoded) = (0, Vec::new());
                let result =
                    byte_comparable::decode_value(&ty, reversed, &encoded, &mut position, &mut decoded);
                let ours = result.map(|()| hex(&decoded)).unwrap_or_else(|error| error.to_string());
                if !survives_only_here(class, &value) {
                    differences.check("way back", &row, &ours, back);
                } else if ty.compare(&decoded, &value).is_ne() {
                    differences.check("way back", &row, &ours, &hex(&value));
                }
                assert_eq!(position, encoded.len(), "{row:?}");
                for cut in 0..encoded.len() {
                    let (mut position, mut decoded) = (0, Vec::new());
                    _ = byte_comparable::decode_value(
                        &ty,
                        reversed,
                        &encoded[..cut],
                        &mut position,
                        &mut decoded,
                    );
                }
            }
        }
        if literal != "!" {
            differences.check("literal", &row, &escape(&to_cql_literal(&ty, Some(&value))), literal);
        }
        if json != "!" {
            differences.check("JSON", &row, &escape(&to_json(&ty, Some(&value))), json);
        }
    }
}

/// The greatest scale: Cassandra's decoder wraps it around to the smallest.
fn survives_only_here(class: &str, value: &[u8]) -> bool {
    class == "DecimalType" && value.starts_with(&i32::MAX.to_be_bytes())
}

#[test]
fn values_compare_as_in_cassandra_and_as_their_encodings() {
    let mut types: BTreeMap<&str, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    for row in rows(include_str!("fixtures/types/values.tsv")) {
        types.entry(row[0]).or_default().push((bytes(row[2]), row[3].parse().unwrap()));
    }
    let mut differences = Differences::default();
    for (class, values) in types {
        let ty = ty(class);
        for (a, rank_a) in &values {
            for (b, rank_b) in &values {
                let order = ty.compare(a, b);
                let row = [class, &hex(a), &hex(b)];
                differences.check("order", &row, &format!("{order:?}"), &format!("{:?}", rank_a.cmp(rank_b)));
                // As clustering values, where the separator distinguishes an empty value from others.
                for reversed in [false, true] {
                    let [key_a, key_b] = [a, b].map(|value| {
                        let mut key = Vec::new();
                        byte_comparable::clustering_key([Some(&value[..])], &[(&ty, reversed)], &mut key)
                            .unwrap();
                        key
                    });
                    let expected = if reversed { order.reverse() } else { order };
                    if survives(&ty, a) && survives(&ty, b) {
                        differences.check(
                            "order of encodings",
                            &row,
                            &format!("{:?}", key_a.cmp(&key_b)),
                            &format!("{expected:?}"),
                        );
                    }
                    assert!(key_a == key_b || !key_a.starts_with(&key_b), "a prefix: {row:?}");
                }
            }
        }
    }
}

/// Whether decoding gives an equal value. An empty part of a tuple or collection is decoded as null; Cassandra's own
/// two orders differ there.
fn survives(ty: &CqlType, value: &[u8]) -> bool {
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    match byte_comparable::encode_value(ty, false, value, &mut encoded) {
        Ok(Encoded::Nothing) => true,
        Ok(Encoded::Bytes) => {
            byte_comparable::decode_value(ty, false, &encoded, &mut 0, &mut decoded).unwrap();
            ty.compare(value, &decoded) == Ordering::Equal
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn invalid_values_are_refused_in_cassandras_words() {
    let mut differences = Differences::default();
    for row in rows(include_str!("fixtures/types/invalid.tsv")) {
        let [class, value, message] = row[..] else { panic!("{row:?}") };
        let ours = match ty(class).validate(&bytes(value)) {
            Ok(()) => "ok".to_owned(),
            Err(error) => escape(&error.to_string()),
        };
        differences.check("message", &row, &ours, message);
    }
}

#[test]
fn clusterings_and_bounds_encode_as_in_cassandra() {
    let mut differences = Differences::default();
    for row in rows(include_str!("fixtures/types/clusterings.tsv")) {
        let [classes, kind, values, encoded] = row[..] else { panic!("{row:?}") };
        let types: Vec<(CqlType, bool)> = classes
            .split(';')
            .filter(|class| !class.is_empty())
            .map(|class| match parse_class_name(class).unwrap() {
                ParsedClass::Plain { ty, reversed } => (ty, reversed),
                composite => panic!("{composite:?}"),
            })
            .collect();
        let mut ours = Vec::new();
        let count = if kind == "row" { types.len() } else { values.split(';').count() };
        let values: Vec<Option<Vec<u8>>> =
            values.split(';').take(count).map(|value| (value != "null").then(|| bytes(value))).collect();
        // No value and one empty value print alike; the length of the encoding distinguishes them.
        let none = encoded.len() == 2;
        let slices = values.iter().take(if none { 0 } else { count }).map(|value| value.as_deref());
        let position = match kind {
            "row" => byte_comparable::clustering_key(slices, &types, &mut ours).map(|()| Position::Row),
            "static" => {
                byte_comparable::static_key(&mut ours);
                Ok(Position::Static)
            }
            _ => byte_comparable::clustering_bound(slices, &types, kind == "before", &mut ours)
                .map(|()| if kind == "before" { Position::Before } else { Position::After }),
        }
        .unwrap();
        differences.check("clustering", &row, &hex(&ours), encoded);
        let decoded = byte_comparable::decode_clustering(&ours, &types).unwrap();
        assert_eq!(decoded.position, position);
        let mut again = Vec::new();
        let slices = decoded.values.iter().map(|value| value.as_deref());
        match position {
            Position::Row => byte_comparable::clustering_key(slices, &types, &mut again).unwrap(),
            Position::Static => byte_comparable::static_key(&mut again),
            _ => byte_comparable::clustering_bound(slices, &types, kind == "before", &mut again).unwrap(),
        }
        if types.iter().all(|(ty, _)| !matches!(ty, CqlType::Tuple(_))) {
            assert_eq!(ours, again, "{row:?}"); // empty fields of a tuple are decoded as nulls
        }
        for cut in 0..ours.len() {
            assert!(
                byte_comparable::decode_clustering(&ours[..cut], &types).is_err(),
                "{row:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn keys_hash_and_encode_as_in_cassandra() {
    let mut differences = Differences::default();
    for row in rows(include_str!("fixtures/types/keys.tsv")) {
        let [key, first, second, token, decorated, before, after, token_before, token_after] = row[..] else {
            panic!("{row:?}")
        };
        let key = bytes(key);
        let halves = murmur3_x64_128(&key, 0);
        differences.check("hash", &row, &format!("{} {}", halves.0, halves.1), &format!("{first} {second}"));
        assert_eq!(KeyHash::of(&key), KeyHash { token: Token::of_key(&key), halves });
        let ours = Token::of_key(&key);
        differences.check("token", &row, &ours.to_string(), token);
        let encoded = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            hex(&out)
        };
        use byte_comparable::{decode_decorated_key, decorated_key, decorated_key_bound, token_bound};
        differences.check("decorated", &row, &encoded(&|out| decorated_key(ours, &key, out)), decorated);
        differences.check(
            "before",
            &row,
            &encoded(&|out| decorated_key_bound(ours, &key, true, out)),
            before,
        );
        differences.check("after", &row, &encoded(&|out| decorated_key_bound(ours, &key, false, out)), after);
        differences.check("token before", &row, &encoded(&|out| token_bound(ours, true, out)), token_before);
        differences.check("token after", &row, &encoded(&|out| token_bound(ours, false, out)), token_after);
        let mut back = Vec::new();
        assert_eq!(decode_decorated_key(&bytes(decorated), &mut back), Ok(ours));
        assert_eq!(back, key);
    }
    assert_eq!(Token::of_key(&[]), Token::MIN);
}

#[test]
fn constants_read_as_in_cassandra() {
    let mut differences = Differences::default();
    for row in rows(include_str!("fixtures/types/texts.tsv")) {
        let [class, kind, text, assignment, result] = row[..] else { panic!("{row:?}") };
        let (ty, text) = (ty(class), unescape(text));
        let kind = match kind {
            "STRING" => ConstantKind::String,
            "INTEGER" => ConstantKind::Integer,
            "FLOAT" => ConstantKind::Float,
            "BOOLEAN" => ConstantKind::Boolean,
            "UUID" => ConstantKind::Uuid,
            "HEX" => ConstantKind::Hex,
            _ => ConstantKind::Duration,
        };
        let ours = match test_constant(&ty, kind, &text) {
            Assignment::Exact => "EXACT_MATCH",
            Assignment::Weak => "WEAKLY_ASSIGNABLE",
            Assignment::Refused => "NOT_ASSIGNABLE",
        };
        differences.check("assignment", &row, ours, assignment);
        if deliberate(&ty, kind, &text, result) {
            continue;
        }
        let ours = match parse_constant(&ty, kind, &text) {
            Ok(value) => hex(&value),
            Err(error) => format!("!{}", escape(&error.for_column("c"))),
        };
        differences.check("value", &row, &ours.replace(PACKAGE, ""), &result.replace(PACKAGE, ""));
    }
}

#[test]
fn composites_encode_and_compare_as_in_cassandra() {
    let mut differences = Differences::default();
    let mut classes: BTreeMap<&str, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    for row in rows(include_str!("fixtures/types/composites.tsv")) {
        let [class, value, rank, encoded, reversed] = row[..] else { panic!("{row:?}") };
        let (ty, value) = (ty(class), bytes(value));
        differences.check("ordered", &row, &ordered(&ty, false, &value), encoded);
        differences.check("ordered reversed", &row, &ordered(&ty, true, &value), reversed);
        classes.entry(class).or_default().push((value, rank.parse().unwrap()));
    }
    for (class, values) in classes {
        let ty = ty(class);
        for (a, rank_a) in &values {
            for (b, rank_b) in &values {
                let order = ty.compare(a, b);
                let row = [class, &hex(a), &hex(b)];
                differences.check("order", &row, &format!("{order:?}"), &format!("{:?}", rank_a.cmp(rank_b)));
            }
        }
    }
}

#[test]
fn numbers_and_addresses_read_as_in_cassandra() {
    let mut differences = Differences::default();
    let read = |ty: &CqlType, text: &str| match parse_text(ty, text) {
        Ok(value) => hex(&value),
        Err(_) => "!".to_owned(),
    };
    for row in rows(include_str!("fixtures/types/numbers.tsv")) {
        let [text, double, float] = row[..] else { panic!("{row:?}") };
        let text = unescape(text);
        differences.check("double", &row, &read(&CqlType::Double, &text), double);
        differences.check("float", &row, &read(&CqlType::Float, &text), float);
    }
    for row in rows(include_str!("fixtures/types/addresses.tsv")) {
        let [text, address] = row[..] else { panic!("{row:?}") };
        differences.check("address", &row, &read(&CqlType::Inet, &unescape(text)), address);
    }
}

/// Whether this server differs on purpose.
fn deliberate(ty: &CqlType, kind: ConstantKind, _text: &str, result: &str) -> bool {
    // Cassandra stores hexadecimal constants unchecked in a tinyint or a tuple.
    kind == ConstantKind::Hex && !result.starts_with('!') && !matches!(ty, CqlType::Blob)
}
