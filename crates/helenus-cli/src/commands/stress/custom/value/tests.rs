//! Tests that generated values have their types and follow the definitions.

use super::*;
use std::sync::Arc;

fn spec(text: &str) -> Spec {
    toml::from_str(text).unwrap()
}

fn values(text: &str, ty: &CqlType, count: u64) -> Vec<Vec<u8>> {
    let generator = Generator::new("value", &spec(text), ty).unwrap();
    (0..count)
        .map(|number| {
            let mut out = Vec::new();
            generator.put(mix(number), number, &mut out);
            out
        })
        .collect()
}

fn refusal(text: &str, ty: &CqlType) -> String {
    Generator::new("value", &spec(text), ty).unwrap_err()
}

#[test]
fn every_value_is_one_of_its_type() {
    let text = Arc::new(CqlType::Text);
    let types = [
        CqlType::Ascii,
        CqlType::BigInt,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Float,
        CqlType::Inet,
        CqlType::Int,
        CqlType::SmallInt,
        CqlType::Text,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::TimeUuid,
        CqlType::TinyInt,
        CqlType::Uuid,
        CqlType::Varint,
        CqlType::List { element: Arc::clone(&text), frozen: false },
        CqlType::Set { element: Arc::new(CqlType::Int), frozen: true },
        CqlType::Map { key: text, value: Arc::new(CqlType::Double), frozen: false },
        CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 7 },
    ];
    for ty in &types {
        for text in ["uniform = [0, 100]", "sequence = [0, 100]\nlength = [1, 9]", "zipf = [1, 100]"] {
            for value in values(text, ty, 50) {
                ty.validate(&value).unwrap_or_else(|error| panic!("{ty}, {text}: {error}"));
            }
        }
    }
    for ty in [CqlType::Timestamp, CqlType::TimeUuid, CqlType::Date, CqlType::BigInt] {
        values("now = true", &ty, 3).iter().for_each(|value| ty.validate(value).unwrap());
    }
}

#[test]
fn a_sequence_counts_and_begins_again() {
    let found: Vec<Vec<u8>> = values("sequence = [5, 7]\nprefix = 'user'", &CqlType::Text, 4);
    assert_eq!(found, [&b"user5"[..], b"user6", b"user7", b"user5"]);
}

#[test]
fn a_number_always_makes_the_same_text_of_its_length() {
    let texts = values("uniform = [1, 20]\nlength = [10, 30]", &CqlType::Text, 2_000);
    let different: std::collections::BTreeSet<&Vec<u8>> = texts.iter().collect();
    assert!(texts.iter().all(|text| (10..=30).contains(&text.len()) && text.is_ascii()));
    assert!(different.len() > 10);
    let blobs = values("sequence = [1, 2]\nlength = 34", &CqlType::Blob, 4);
    assert!(blobs[0] == blobs[2] && blobs[0] != blobs[1] && blobs[0].len() == 34);
}

#[test]
fn the_first_of_zipf_is_drawn_most_often() {
    let mut counts = [0_u32; 4];
    for value in values("zipf = [0, 999]", &CqlType::Int, 10_000) {
        let number = i32::from_be_bytes(value.try_into().unwrap());
        assert!((0..1_000).contains(&number));
        if let Some(count) = counts.get_mut(number as usize) {
            *count += 1;
        }
    }
    assert!(counts[0] > counts[1] && counts[1] > counts[3] && counts[0] > 800, "{counts:?}");
}

#[test]
fn choices_are_values_of_the_type() {
    let found = values("choice = ['1', '-2']", &CqlType::Int, 50);
    assert!(
        found.contains(&1_i32.to_be_bytes().to_vec()) && found.contains(&(-2_i32).to_be_bytes().to_vec())
    );
}

#[test]
fn what_makes_no_value_is_refused_with_what_to_write() {
    assert!(refusal("", &CqlType::Int).contains("say one way to draw it: sequence = [1, 1000]"));
    assert!(refusal("now = true\nuniform = [1, 2]", &CqlType::Timestamp).contains("say one way"));
    assert!(refusal("uniform = [0, 1000]", &CqlType::TinyInt).contains("-128 to 127"));
    assert!(refusal("uniform = [7, 3]", &CqlType::Int).contains("write the least first"));
    assert!(refusal("choice = ['a']", &CqlType::Int).contains("`a` is no value of type int"));
    assert!(refusal("now = true", &CqlType::Text).contains("not a value of type text"));
    assert!(refusal("uniform = [1, 2]", &CqlType::Duration).contains("of type duration are not made"));
    assert!(refusal("uniform = [1, 2]\nlength = [5, 2]", &CqlType::Text).contains("[LEAST, MOST]"));
}
