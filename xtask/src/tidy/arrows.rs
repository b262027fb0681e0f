//! Which crate may use which: the floors of ARCHITECTURE.md, checked in manifests and in source lines.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Source;

/// A floor and what it may stand on. The order is the order of the house, bottom first.
const FLOORS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("host", &[]),
    ("logins", &[]),
    ("lexer", &[]),
    ("wire", &["model"]),
    ("tls", &[]),
    ("cluster", &["model", "wire", "tls"]),
    ("gateway", &["model", "logins", "lexer", "wire", "tls", "cluster"]),
    ("sstable", &["model", "host"]),
    ("engine", &["model", "host", "sstable"]),
    ("cql", &["model", "logins", "lexer", "engine"]),
    ("rpc", &["model", "wire", "engine", "cql"]),
    ("rpc-gateway", &["model", "host", "wire", "cluster", "gateway", "engine", "cql", "rpc"]),
    ("mover", &["model", "host", "wire", "tls", "cluster", "engine", "cql"]),
    ("server", &["model", "host", "logins", "wire", "tls", "engine", "cql", "rpc"]),
    ("helenus", &["model", "host", "engine", "cql"]),
    (
        "helenus-cli",
        &[
            "model",
            "host",
            "wire",
            "tls",
            "cluster",
            "gateway",
            "sstable",
            "engine",
            "cql",
            "rpc",
            "rpc-gateway",
            "mover",
            "server",
        ],
    ),
];

/// Folders inside a crate that may use less than their crate.
const ROOMS: &[(&str, &[&str])] =
    &[("crates/cql/src/syntax", &["lexer"]), ("crates/cql/src/analysis", &["model"])];

/// Names from outside the house that a floor must not know.
const STRANGERS: &[(&str, &[&str])] = &[
    ("model", &["tokio::", "std::net::Tcp", "std::net::Udp", "std::io::"]),
    ("wire", &["tokio::", "std::net::Tcp", "std::net::Udp"]),
    ("tls", &["tokio::", "std::net::Tcp", "std::net::Udp"]),
    ("sstable", &["tokio::", "std::net"]),
    ("engine", &["tokio::", "std::net", "serde_saphyr"]),
    ("cql", &["tokio::", "std::net::Tcp", "std::net::Udp"]),
    ("rpc", &["tokio::", "std::net::Tcp", "std::net::Udp"]),
];

/// Packages that must not be in the dependency tree of the library: they belong to the server and the binary.
const NOT_IN_THE_LIBRARY: &[&str] = &[
    "tokio",
    "axum",
    "hyper",
    "rustls",
    "clap",
    "anyhow",
    "serde_json",
    "mimalloc",
    "helenus-wire",
    "helenus-tls",
    "helenus-rpc",
    "helenus-mover",
    "helenus-server",
    "helenus-cli",
];

pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<String>, String> {
    let mut breaches = Vec::new();
    for (floor, allowed) in FLOORS {
        breaches.extend(manifest(root, floor, allowed)?);
    }
    for source in sources.iter().filter(|source| source.is_rust()) {
        breaches.extend(uses(source));
    }
    breaches.extend(library_tree(root)?);
    Ok(breaches)
}

/// The `[dependencies]` of a floor's Cargo.toml. Those of tests may reach down further, so they are not read.
fn manifest(root: &Path, floor: &str, allowed: &[&str]) -> Result<Vec<String>, String> {
    let path = format!("crates/{floor}/Cargo.toml");
    let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
    let mut breaches = Vec::new();
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            section = line.trim();
        }
        let Some(used) = line.strip_prefix("helenus-") else { continue };
        let used = used.split(['.', ' ', '=']).next().unwrap_or_default();
        if section == "[dependencies]" && !allowed.contains(&used) {
            let number = index + 1;
            breaches
                .push(format!("{path}:{number}: `{floor}` must not use `{used}`; it may use {allowed:?}"));
        }
    }
    Ok(breaches)
}

/// Every `helenus_x` and every stranger in the code of one file.
fn uses(source: &Source) -> Vec<String> {
    let Some((floor, allowed)) =
        FLOORS.iter().find(|(floor, _)| source.path.starts_with(&format!("crates/{floor}/src/")))
    else {
        return Vec::new();
    };
    let room = ROOMS.iter().find(|(room, _)| source.path.starts_with(room));
    let (place, allowed) = room.map_or((*floor, *allowed), |(room, allowed)| (*room, *allowed));
    let strangers = STRANGERS.iter().find(|(name, _)| name == floor).map_or(&[][..], |(_, names)| *names);
    let mut breaches = Vec::new();
    for (number, line) in source.code() {
        for used in line.split("helenus_").skip(1) {
            let used = used.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
            let is_floor = FLOORS.iter().any(|(name, _)| *name == used);
            if is_floor && used != *floor && !allowed.contains(&used) {
                let path = &source.path;
                breaches.push(format!(
                    "{path}:{number}: `{place}` must not use `{used}`; it may use {allowed:?}"
                ));
            }
        }
        for stranger in strangers.iter().filter(|stranger| line.contains(**stranger)) {
            breaches.push(format!("{}:{number}: `{floor}` must not name `{stranger}`", source.path));
        }
    }
    breaches
}

/// The dependency tree of the library, as Cargo resolves it: a dependency may come in through another one.
fn library_tree(root: &Path) -> Result<Vec<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["tree", "--package", "helenus", "--all-features", "--edges", "normal", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(args)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let breach = |name| {
        format!(
            "crates/helenus/Cargo.toml: the library depends on `{name}`, which belongs to crates/helenus-cli; \
             `cargo tree -p helenus -i {name}` shows how"
        )
    };
    Ok(not_in_the_library(&tree).map(breach).collect())
}

/// The packages of a tree, one for each line, that must not be in the library's.
fn not_in_the_library(tree: &str) -> impl Iterator<Item = &'static str> {
    let present = |name: &&str| tree.lines().any(|line| line.split(' ').next() == Some(*name));
    NOT_IN_THE_LIBRARY.iter().copied().filter(present)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_the_server_is_found_anywhere_in_the_tree_by_its_whole_name() {
        let tree = "helenus v0.1.0 (/h/crates/helenus)\nserde v1.0.0\ntokio v1.54.1 (*)\nclap_lex v1.1.1\n";
        assert_eq!(not_in_the_library(tree).collect::<Vec<_>>(), ["tokio"]);
    }
}
