//! Cassandra's offline tools, which need no running node: sstabledump, sstablepartitions, sstableloader and
//! sstableverify.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::run;
use crate::oracle::script;
use crate::{Oracle, files};

/// The parsed output of `sstabledump FILE`: a list of partitions.
///
/// # Panics
/// The tool refuses the file.
pub fn dump(file: &Path) -> Vec<Value> {
    let text =
        run(script().args(["tool", "sstabledump"]).arg(file), &format!("sstabledump {}", file.display()));
    let parsed: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in the dump:\n{text}"));
    match parsed {
        Value::Array(partitions) => partitions,
        other => panic!("the dump is no list: {other}"),
    }
}

/// The output of `sstabledump FILE ARGS` as text.
///
/// # Panics
/// The tool refuses the file.
pub fn dump_text(file: &Path, args: &[&str]) -> String {
    run(
        script().args(["tool", "sstabledump"]).arg(file).args(args),
        &format!("sstabledump {} {args:?}", file.display()),
    )
}

/// The output of `sstablepartitions FILE ARGS`.
///
/// # Panics
/// The tool refuses the file.
pub fn partitions(file: &Path, args: &[&str]) -> String {
    run(
        script().args(["tool", "sstablepartitions"]).args(args).arg(file),
        &format!("sstablepartitions {} {args:?}", file.display()),
    )
}

/// Loads a folder into a node with `sstableloader FOLDER`; the folder is `KEYSPACE/TABLE`.
///
/// # Panics
/// The tool fails.
pub fn load(oracle: &Oracle, folder: &Path) {
    let (host, port) = oracle.address().split_once(':').expect("an address with a port");
    let storage = (port.parse::<u16>().expect("a port") + 1).to_string();
    let mut command = script();
    command.args(["tool", "sstableloader", "-d", host, "-p", port, "--storage-port", &storage]).arg(folder);
    run(&mut command, &format!("sstableloader {}", folder.display()));
}

/// Removes from a dump what may differ between two servers after the same writes: positions in the file, and the
/// seconds at which a deletion or an expiry was computed.
pub fn comparable(mut dump: Vec<Value>) -> Vec<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for name in ["position", "local_delete_time", "expires_at"] {
                    map.remove(name);
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    dump.iter_mut().for_each(strip);
    dump
}

/// Runs `sstableverify -f -e KEYSPACE TABLE` on a data directory with a schema. `folder` is the table's folder.
///
/// # Panics
/// The tool finds a fault or no SSTable at all.
pub fn verify(data: &Path, keyspace: &str, table: &str, folder: &Path) {
    let expected = files::tables(folder).len();
    let mut command = script();
    command.args(["tool", "sstableverify", "--data"]).arg(data).args(["-f", "-e", keyspace, table]);
    let output = run(&mut command, &format!("sstableverify {keyspace}.{table}"));
    let checked = output.matches("Verifying ").count();
    assert!(expected > 0 && checked >= expected, "{expected} SSTables, {checked} verified:\n{output}");
}

/// As `verify`, for the SSTables in `folder` with the schema of `oracle`, which must have an equal table. This checks
/// the SSTables alone, not the schema tables of the server that wrote them.
pub fn verify_as_oracle(oracle: &Oracle, keyspace: &str, table: &str, folder: &Path) {
    let scratch = TempDir::with_prefix("helenus-verify-").expect("a temporary directory");
    files::copy_all(&oracle.data().join("system_schema"), &scratch.path().join("system_schema"));
    let theirs = oracle.table_folder(keyspace, table);
    let name = theirs.file_name().expect("a table's folder has a name");
    let copies = scratch.path().join(keyspace).join(name);
    files::copy(folder, &copies);
    verify(scratch.path(), keyspace, table, &copies);
}
