//! No text of the sources names a setting that has no effect: each string literal in `crates/*/src` is searched for
//! keys of `cassandra.yaml` that the configuration takes without effect or refuses, and for switches of Cassandra's
//! command line. A user who reads such a name would change the setting, and nothing would happen.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::path::{Path, PathBuf};

use helenus_server::config::{REFUSED_KEYS, names_without_effect};

/// Where such a word is no key of the configuration, and what it is: the end of a path, the word, the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("cql/src/plan/ddl/options.rs", "auto_repair", "an option of tables"),
    ("cql/src/plan/ddl/options.rs", "incremental_backups", "an option of tables"),
    ("cql/src/plan/describe/create.rs", "incremental_backups", "an option of tables"),
    ("engine/src/schema/load.rs", "incremental_backups", "a column of system_schema.tables"),
    ("engine/src/schema/diff.rs", "incremental_backups", "a column of system_schema.tables"),
    ("helenus-cli/src/commands/export.rs", "incremental_backups", "a column of system_schema.tables"),
    ("mover/src/definitions.rs", "incremental_backups", "an option of tables"),
    ("mover/src/versions.rs", "incremental_backups", "an option of tables"),
    ("mover/src/schema.rs", "incremental_backups", "an option of tables"),
    ("mover/src/obstacles.rs", "", "the settings of the target's nodes"),
    ("mover/src/plan.rs", "", "the settings of the target's nodes"),
    ("mover/src/error.rs", "storage_compatibility_mode", "a setting of the target's nodes"),
    ("cluster/src/topology.rs", "broadcast_address", "a column of system.local"),
    ("gateway/src/own_tables.rs", "broadcast_address", "a column of system.local"),
    ("gateway/src/own_tables.rs", "listen_address", "a column of system.local"),
    ("cql/src/virtual_table/local.rs", "broadcast_address", "a column of system.local"),
    ("cql/src/virtual_table/local.rs", "listen_address", "a column of system.local"),
    (
        "helenus-cli/src/commands/cli/schema.rs",
        "key_cache_save_period",
        "an option of cassandra-cli, never shown",
    ),
    (
        "helenus-cli/src/commands/cli/schema.rs",
        "row_cache_save_period",
        "an option of cassandra-cli, never shown",
    ),
    (
        "helenus-cli/src/commands/cli/schema.rs",
        "row_cache_keys_to_save",
        "an option of cassandra-cli, never shown",
    ),
    ("helenus-cli/src/commands/cli/schema.rs", "index_interval", "an option of cassandra-cli, never shown"),
    (
        "commands/container/environment.rs",
        "endpoint_snitch",
        "decides about data center and rack in a container",
    ),
    ("commands/container/place.rs", "endpoint_snitch", "a key of the tests"),
    ("rpc/src/statement/cql2/schema.rs", "row_cache_size", "an option of CQL 2, never shown"),
    ("rpc/src/statement/cql2/schema.rs", "key_cache_size", "an option of CQL 2, never shown"),
    ("helenus-cli/src/commands/shell/rc.rs", "request_timeout", "a key of cqlshrc, which has an effect"),
    ("server/src/config/cassandra_keys.rs", "", "the lists themselves"),
];

/// Texts of Cassandra that name its file. Each is about a key that has an effect here.
const NAMES_OF_THE_FILE: &[(&str, &str)] = &[
    ("DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml", "drop_compact_storage_enabled"),
    ("dynamic_data_masking_enabled property on cassandra.yaml", "dynamic_data_masking_enabled"),
    ("helenus serve --config cassandra.yaml", "data"),
];

/// The sources of the node in a container, which reads this file and ignores properties of the JVM.
const CONTAINER: &str = "helenus-cli/src/commands/container/";
/// The obstacles and errors of a move: their texts name the file of the target's nodes.
const TARGET: [&str; 2] = ["mover/src/obstacles.rs", "mover/src/error.rs"];

#[test]
fn no_text_names_a_setting_without_effect() {
    let guarded = REFUSED_KEYS.iter().map(|guarded| guarded.key.split('.').next().unwrap());
    let keys: Vec<&str> = names_without_effect().map(|(key, _)| key).chain(guarded).collect();
    let mut found = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let place = path.to_string_lossy().replace('\\', "/");
        for literal in literals(&text) {
            // A key of one word, such as `memtable`, is a word of the language, too.
            let words = literal.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(|word| word.contains('_') && keys.contains(word)) {
                let is_allowed = |(end, name, _): &(&str, &str, &str)| {
                    place.ends_with(end) && (name.is_empty() || *name == word)
                };
                if !ALLOWED.iter().any(is_allowed) {
                    found.push(format!("{place}: {word} has no effect, in: {literal}"));
                }
            }
            let is_known = place.contains(CONTAINER)
                || TARGET.iter().any(|of| place.ends_with(of))
                || NAMES_OF_THE_FILE.iter().any(|(known, _)| literal.contains(known));
            let names_cassandra = literal.contains("-Dcassandra") || literal.contains("cassandra.yaml");
            if names_cassandra && !is_known {
                found.push(format!("{place}: names a setting of Cassandra, in: {literal}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (_, key) in NAMES_OF_THE_FILE {
        assert!(helenus_server::config::OPTIONS.iter().any(|option| option.key == *key), "{key}");
    }
}

#[test]
fn no_key_is_both_an_option_and_without_effect() {
    let names = helenus_server::config::OPTIONS
        .iter()
        .flat_map(|option| std::iter::once(option.key).chain(option.old.iter().map(|(old, _)| *old)));
    let both: Vec<_> = names.filter(|key| names_without_effect().any(|(name, _)| name == *key)).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn literals_are_found_beside_comments_and_characters() {
    let text = r##"
        // "no"
        /* "no" */
        f('"', "one \"two\" \
            three", b"four", '\'', &'a str, r#"fi"ve"#, '\u{22}', r"six");
    "##;
    assert_eq!(literals(text), ["one \"two\" three", "four", "fi\"ve", "six"]);
}

/// The Rust files of all crates that are no tests.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.ends_with("tests") || path.ends_with("tests.rs");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 300, "{} files", found.len());
    found
}

/// The string literals of a Rust source, without comments; escapes other than quotes and ends of lines stay as they are.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw =
            rest.strip_prefix('r').map(|after| (after, after.len() - after.trim_start_matches('#').len()));
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if let Some((after, hashes)) = raw
            && after[hashes..].starts_with('"')
        {
            let end = format!("\"{}", "#".repeat(hashes));
            let (inside, after) = after[hashes + 1..].split_once(&end).unwrap();
            found.push(inside.to_owned());
            rest = after;
        } else if first == '"' {
            let (inside, after) = quoted(&rest[1..]);
            found.push(inside);
            rest = after;
        } else if first == '\'' {
            rest = after_character(&rest[1..]);
        } else if first.is_alphanumeric() || first == '_' {
            // A whole word, so that its last letter is not taken for the start of a raw string. `r` and `b` are starts.
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let is_start = matches!(&rest[..end], "b" | "br" | "c" | "cr");
            rest = if is_start { &rest[1..] } else { &rest[end..] };
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

/// The text up to the closing quote, and what follows the quote.
fn quoted(text: &str) -> (String, &str) {
    let mut inside = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (inside, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((at, '\n')) => {
                    let blank = text[at..].len() - text[at..].trim_start().len();
                    chars = text.char_indices();
                    while chars.offset() < at + blank {
                        chars.next();
                    }
                }
                Some((_, '"')) => inside.push('"'),
                Some((_, other)) => inside.extend(['\\', other]),
                None => break,
            },
            _ => inside.push(c),
        }
    }
    (inside, "")
}

/// What follows a character literal, or the quote of a lifetime.
fn after_character(text: &str) -> &str {
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, '\\')) => text[2..].find('\'').map_or("", |end| &text[2 + end + 1..]),
        Some((_, c)) if text[c.len_utf8()..].starts_with('\'') => &text[c.len_utf8() + 1..],
        _ => text,
    }
}
