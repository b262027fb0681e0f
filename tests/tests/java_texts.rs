//! Checks that numbers are printed, and names of time zones read, as by Cassandra's JDK.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::Raw;
use end_to_end::{Cql, Server};
use scylla::value::CqlValue;

fn java(args: &[&str], input: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/java/JavaTexts.java");
    let mut command = Command::new("java");
    command
        .args(["-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8"])
        .arg(program)
        .args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run java");
    let mut stdin = child.stdin.take().expect("its input");
    // Written on another thread, because the program reads all input before it prints much.
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).expect("write to java"));
    let output = child.wait_with_output().expect("wait for java");
    writer.join().expect("all written");
    assert!(output.status.success(), "java failed");
    String::from_utf8(output.stdout).expect("text")
}

/// Random bits, numbers with few digits, powers of two and of ten, and their neighbours.
fn double(draw: &mut Draw) -> f64 {
    let mut bits = || (draw.below(1 << 32) as u64) << 32 | draw.below(1 << 32) as u64;
    let (random, small) = (bits(), bits());
    let value = match small % 7 {
        0 | 1 => f64::from_bits(random),
        2 => f64::from_bits((random % 2_047) << 52),
        3 => (random % 10_000_000) as f64 / 1e6,
        4 => (random % 900) as f64 * 10_f64.powi((random >> 32) as i32 % 300),
        5 => (random >> 20) as f64 / 10_f64.powi((small >> 32) as i32 % 20),
        _ => f64::from_bits((random % 1_000) + 1),
    };
    if value.is_finite() { value } else { 2e23 }
}

fn float(draw: &mut Draw) -> f32 {
    let random = draw.below(1 << 32) as u32;
    let value = match draw.below(4) {
        0 | 1 => f32::from_bits(random),
        2 => (random % 100_000) as f32 / 10_f32.powi((random >> 20) as i32 % 8),
        _ => f32::from_bits((random % 255) << 23),
    };
    if value.is_finite() { value } else { 1.0 }
}

/// A serialised list, as in version 4 of the native protocol.
fn list<const N: usize>(values: &[[u8; N]]) -> Vec<u8> {
    let mut out = (values.len() as i32).to_be_bytes().to_vec();
    for value in values {
        out.extend_from_slice(&(N as i32).to_be_bytes());
        out.extend_from_slice(value);
    }
    out
}

#[test]
fn floats_and_doubles_print_with_the_digits_of_the_jdk() {
    let server = Server::start_with(&["--memory"]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (p int PRIMARY KEY, d frozen<list<double>>, f frozen<list<float>>)");
    let cql = Cql::connect(server.address());
    let mut draw = Draw::new("floats_and_doubles_print_with_the_digits_of_the_jdk", 20_261_126);
    for _ in 0..rounds(5) {
        let doubles: Vec<f64> = (0..2_000).map(|_| double(&mut draw)).collect();
        let floats: Vec<f32> = (0..2_000).map(|_| float(&mut draw)).collect();
        let d = list(&doubles.iter().map(|value| value.to_be_bytes()).collect::<Vec<_>>());
        let f = list(&floats.iter().map(|value| value.to_be_bytes()).collect::<Vec<_>>());
        let reply = client.query_with("INSERT INTO k.t (p, d, f) VALUES (1, ?, ?)", &[Some(&d), Some(&f)]);
        assert_eq!(reply.opcode, end_to_end::raw::RESULT, "the insert");
        let row = cql.rows("SELECT to_json(d), to_json(f) FROM k.t").remove(0);
        let mut ours = Vec::new();
        for text in &row {
            let Some(CqlValue::Text(text)) = text else { panic!("no JSON: {text:?}") };
            ours.extend(text.trim_matches(['[', ']']).split(", ").map(str::to_owned));
        }
        let mut input = String::new();
        for value in &doubles {
            input.push_str(&format!("d{:x}\n", value.to_bits()));
        }
        for value in &floats {
            input.push_str(&format!("f{:x}\n", value.to_bits()));
        }
        let theirs = java(&["numbers"], &input);
        assert_eq!(ours.len(), theirs.lines().count());
        for ((ours, theirs), bits) in ours.iter().zip(theirs.lines()).zip(input.lines()) {
            assert_eq!(ours, theirs, "{bits}");
        }
    }
}

#[test]
fn every_zone_name_of_the_jdk_is_read_as_there() {
    let server = Server::start_with(&["--memory"]);
    let cql = Cql::connect(server.address());
    let mut draw = Draw::new("every_zone_name_of_the_jdk_is_read_as_there", 20_261_126);
    for _ in 0..rounds(1) {
        let seed = draw.below(1 << 30).to_string();
        let theirs = java(&["zones", &seed], "");
        assert!(theirs.lines().count() > 1_300);
        for line in theirs.lines() {
            let (text, expected) = line.split_once('\t').expect("two fields");
            let query = format!("SELECT (timestamp)'{}' FROM system.local", text.replace('\'', "''"));
            match expected {
                "refused" => {
                    let refusal = cql.refusal(&query);
                    assert!(refusal.contains("Unable to parse a date/time from"), "{text}: {refusal}");
                }
                millis => match cql.rows(&query).remove(0).remove(0) {
                    Some(CqlValue::Timestamp(found)) => assert_eq!(found.0.to_string(), millis, "{text}"),
                    other => panic!("{text}: {other:?}"),
                },
            }
        }
    }
}
