//! Draws broken configuration files. Every error names the file and the line, says what is allowed, and speaks no words of
//! the YAML library.

use helenus_server::config::Settings;
use proptest::prelude::*;

/// A file as people have it: Cassandra's keys, some without effect here, lists and maps.
const LINES: [&str; 20] = [
    "# a comment",
    "cluster_name: 'Test Cluster'",
    "num_tokens: 16",
    "commitlog_sync: periodic",
    "commitlog_sync_period: 10000ms",
    "commitlog_segment_size: 32MiB",
    "",
    "data_file_directories:",
    "    - /var/lib/cassandra/data",
    "seed_provider:",
    "  - class_name: org.apache.cassandra.locator.SimpleSeedProvider",
    "    parameters:",
    "      - seeds: \"127.0.0.1:7000\"",
    "concurrent_reads: 32",
    "rpc_address: localhost",
    "native_transport_port: 9042",
    "client_encryption_options:",
    "  enabled: false",
    "rpc_keepalive: true",
    "memory_limit: 64M",
];

/// Lines whose value has a type that a person can get wrong, each with its place in `LINES`.
const TYPED: [usize; 8] = [3, 4, 5, 13, 14, 15, 18, 19];

/// Words of parsers and of Rust, which say nothing to a person.
const FOREIGN: [&str; 15] = [
    "serde",
    "saphyr",
    "scanner",
    "deserial",
    "invalid type",
    "expected a",
    "did not find",
    "mapping values",
    "block mapping",
    "-->",
    "scalar",
    "simple key",
    "visitor",
    "untagged",
    "Some(",
];

fn error_of(lines: &[String]) -> Option<String> {
    let mut settings = Settings::default();
    settings.read_yaml("f.yaml", &lines.join("\n")).err().map(|error| error.to_string())
}

/// Checks the form of an error, and returns the line that it names.
fn line_of(error: &str) -> usize {
    for word in FOREIGN {
        assert!(!error.contains(word), "{word}: {error}");
    }
    assert!(!error.contains('\n'), "{error}");
    let rest = error.strip_prefix("f.yaml:").unwrap_or_else(|| panic!("no file and line: {error}"));
    rest.split(':').next().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no line: {error}"))
}

fn whole() -> Vec<String> {
    LINES.iter().map(|line| (*line).to_owned()).collect()
}

fn key_of(line: &str) -> &str {
    line.split(':').next().unwrap_or_default()
}

#[test]
fn the_file_that_is_broken_is_whole_before() {
    assert_eq!(error_of(&whole()), None);
}

proptest! {
    #[test]
    fn a_wrong_type_is_told_with_its_line_and_what_is_allowed(
        which in 0..TYPED.len(),
        value in prop::sample::select(vec!["[a, b]", "{a: b}", "x y", "-5.5", "'?'", "10 parsecs"]),
    ) {
        let (mut lines, at) = (whole(), TYPED[which]);
        let key = key_of(LINES[at]).to_owned();
        lines[at] = format!("{key}: {value}");
        if let Some(error) = error_of(&lines) {
            prop_assert_eq!(line_of(&error), at + 1, "{}", error);
            prop_assert!(error.contains(&key) && error.contains("it takes"), "{}", error);
        } else {
            // Hosts are looked up later.
            prop_assert!(key == "rpc_address", "{key}: {value} is taken");
        }
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line_and_a_known_one(at in prop::sample::select(vec![1usize, 2, 3, 5, 13, 15, 19]), cut in 1usize..8) {
        let mut lines = whole();
        let key = key_of(LINES[at]).to_owned();
        let cut = cut.min(key.len() - 2);
        let wrong = format!("{}{}", &key[..cut], &key[cut + 1..]);
        lines[at] = lines[at].replace(&key, &wrong);
        let error = error_of(&lines).expect("an unknown key");
        prop_assert_eq!(line_of(&error), at + 1, "{}", error);
        prop_assert!(error.ends_with(&format!("did you mean {key}?")), "{}", error);
    }

    #[test]
    fn a_key_that_is_given_twice_is_told_with_its_second_line(at in prop::sample::select(vec![1usize, 2, 4, 7, 14, 17])) {
        let mut lines = whole();
        // A nested key goes beside the first one.
        let to = if LINES[at].starts_with(' ') { at + 1 } else { lines.len() };
        lines.insert(to, if at == 7 { "data_file_directories: [/x/data]".to_owned() } else { LINES[at].to_owned() });
        let error = error_of(&lines).expect("a key is there twice");
        prop_assert_eq!(line_of(&error), to + 1, "{}", error);
        prop_assert!(error.contains(key_of(LINES[at]).trim()) && error.contains("twice"), "{}", error);
    }

    #[test]
    fn what_is_no_yaml_is_told_near_its_line(at in 1usize..LINES.len(), how in 0usize..6) {
        let mut lines = whole();
        let broken = match how {
            0 => format!("\t{}", LINES[at].trim()),
            1 => format!("{}: \"open", key_of(LINES[at])),
            2 => format!("{} [1, 2", LINES[at]),
            3 => LINES[at].replace(": ", ":").replace(':', " "),
            4 => format!("   {}", LINES[at]),
            _ => format!("{}: }}", key_of(LINES[at])),
        };
        lines[at] = broken;
        // Some of these are YAML, as a deeper indent is where a list begins.
        if let Some(error) = error_of(&lines) {
            let told = line_of(&error);
            // An open quote or bracket may be noticed at any later line.
            prop_assert!(told + 2 >= at && (told <= at + 3 || how == 1 || how == 2), "{} at {}: {error}", how, at + 1);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "[a-z:#\\-\\[\\]{}'\"& *|>%@!,?\t\n 0-9]{0,60}") {
        let mut settings = Settings::default();
        if let Err(error) = settings.read_yaml("f.yaml", &text) {
            let error = error.to_string();
            prop_assert!(error.starts_with("f.yaml"), "{}", error);
            // The error shows what is wrong, so words that the text itself contains are not the library's.
            for word in FOREIGN.iter().filter(|word| !text.contains(**word)) {
                prop_assert!(!error.contains(word), "{}: {}", word, error);
            }
        }
    }
}

/// Each option that may have a secret, in each way of writing it wrongly, after each line of a file.
#[test]
fn no_error_shows_a_secret() {
    const SECRET: &str = "topsecret5";
    const NAMES: [&str; 7] = [
        "keystore_password",
        "truststore_password",
        "private_key",
        "private_key_password",
        "password",
        "client_encryption_options",
        "server_encryption_options",
    ];
    const SHAPES: [&str; 22] = [
        "NAME SECRET",
        "NAME:SECRET",
        "NAME=SECRET",
        "SECRET",
        "  NAME SECRET",
        "  SECRET",
        "    NAME: SECRET",
        "  NAME: SECRET",
        "  - NAME: SECRET",
        "  NAME: [SECRET",
        "  NAME: \"SECRET",
        "\tNAME: SECRET",
        "  NAME: [SECRET, {a: SECRET}]",
        "  NAME: {a: SECRET}",
        "  enabled: {NAME: SECRET}",
        "  enabled: [NAME, SECRET]",
        "  store_type: [SECRET]",
        "  ssl_context_factory: {class_name: X, parameters: {NAME: SECRET}}",
        "  ssl_context_factory:\n    class_name: PEMBasedSslContextFactory\n    parameters:\n      NAME: [SECRET]",
        "client_encryption_options: [NAME: SECRET]",
        "server_encryption_options: {internode_encryption: {NAME: SECRET}}",
        "jmx_encryption_options: {enabled: {NAME: SECRET}}",
    ];
    for name in NAMES {
        for shape in SHAPES {
            let broken = shape.replace("NAME", name).replace("SECRET", SECRET);
            for at in 0..=LINES.len() {
                let mut lines = whole();
                lines.insert(at, broken.clone());
                let error = error_of(&lines).unwrap_or_default();
                assert!(!error.contains(SECRET), "{broken:?} before line {}: {error}", at + 1);
            }
            let alone =
                error_of(&["client_encryption_options:".to_owned(), broken.clone()]).unwrap_or_default();
            assert!(!alone.contains(SECRET), "{broken:?}: {alone}");
        }
        for set in [
            format!("{name} {SECRET}"),
            format!("{name}:{SECRET}"),
            format!("client_encryption_options={name}: {SECRET}"),
            format!("client_encryption_options={{{name}: {SECRET}}}"),
        ] {
            let error = Settings::default().set_key(&set).map_err(|error| error.to_string()).unwrap_err();
            assert!(!error.contains(SECRET), "--set {set}: {error}");
        }
    }
}
