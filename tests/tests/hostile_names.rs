//! Tests names that clients choose: of snapshots, backups, files in archives, keyspaces and tables. Whatever they are,
//! no file outside the intended folder is read or written, and log entries about them are short and harmless to a
//! terminal.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use end_to_end::Server;
use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{ERROR, RESULT, Raw};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Parts from which names are composed.
const PIECES: [&str; 20] = [
    "..",
    ".",
    "/",
    "//",
    "\\",
    ":",
    "\0",
    "\n",
    "\u{1b}[2J",
    "\u{202e}",
    "a",
    "monday",
    "ä",
    "日本",
    " ",
    "%2e%2e",
    "/etc/passwd",
    "'",
    "\"",
    "$(id)",
];

fn name(draw: &mut Draw) -> String {
    match draw.below(8) {
        0 => "../".repeat(1 + draw.below(12)) + "outside",
        1 => "x".repeat(200 + draw.below(200)),
        2 => "日".repeat(60 + draw.below(60)),
        _ => (0..draw.below(6)).map(|_| *draw.one(&PIECES)).collect(),
    }
}

fn all_below(path: &Path, into: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
            all_below(&path, into);
        }
        into.insert(path);
    }
}

/// All paths in the server's folder, except the data that the server creates itself.
fn places(server: &Server) -> BTreeSet<PathBuf> {
    let data = server.data();
    let mut all = BTreeSet::new();
    all_below(data.parent().expect("a folder"), &mut all);
    let is_its_own = |path: &PathBuf| {
        let below = path.strip_prefix(&data).ok().and_then(|path| path.iter().next()?.to_str());
        matches!(below, Some("commitlog" | "data" | "import"))
    };
    all.into_iter().filter(|path| !is_its_own(path)).collect()
}

fn start() -> (Server, Raw) {
    let folder = TempDir::with_prefix("helenus-names-").expect("a temporary directory");
    fs::create_dir(folder.path().join("outside")).expect("a folder");
    let server = Server::start_in(folder, &["--log-level", "debug", "--log-values"]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    client.run("INSERT INTO k.t (k, v) VALUES (1, 'v')");
    server.admin(&["flush", "k", "t"]);
    (server, client)
}

/// A request on the admin socket, as any program of the same user may send it.
fn order(server: &Server, request: &Value) -> Value {
    let mut socket = UnixStream::connect(server.data().join("admin.sock")).expect("the admin socket");
    writeln!(socket, "{request}").expect("sent");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn names_of_snapshots_lead_nowhere() {
    let mut draw = Draw::new("names_of_snapshots", 40);
    let (server, _client) = start();
    let before = places(&server);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..rounds(80) {
        let name = name(&mut draw);
        let answer = order(&server, &json!({ "verb": "snapshot", "name": name, "of": [], "flush": false }));
        if answer.to_string().contains("cannot be named") {
            refused += 1;
        } else {
            taken += 1;
            let found = order(&server, &json!({ "verb": "snapshots" })).to_string();
            assert!(
                found.contains(&*serde_json::to_string(&name).expect("JSON"))
                    || answer.to_string().contains("already"),
                "{name:?}: {answer}"
            );
        }
        let import = json!({
            "verb": "import", "directory": server.tables().join("k"), "snapshot": name, "keyspace": null, "table": null,
            "schema": null, "copy": false, "no_verify": true, "keep_level": false, "dry_run": true,
        });
        order(&server, &import);
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
    assert_eq!(places(&server), before);
    order(&server, &json!({ "verb": "clear_snapshots", "name": null, "keyspaces": [], "before_ms": null }));
    let mut left = BTreeSet::new();
    all_below(&server.tables().join("k"), &mut left);
    assert!(!left.iter().any(|path| path.ends_with("snapshots")), "{left:?}");
}

#[test]
fn names_in_a_backup_lead_nowhere() {
    let mut draw = Draw::new("names_in_a_backup", 41);
    let (server, mut client) = start();
    let out = TempDir::with_prefix("helenus-names-out-").expect("a temporary directory");
    let (backup, archive) = (out.path().join("backup"), out.path().join("backup.tar"));
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let data = text(&server.data());
    end_to_end::tool(&["backup", &text(&backup), "--data", &data]);
    end_to_end::tool(&["backup", &text(&archive), "--data", &data]);
    client.run("DROP TABLE k.t");
    let before = places(&server);
    let manifest: Value =
        serde_json::from_slice(&fs::read(backup.join("backup.json")).expect("a manifest")).expect("JSON");
    let whole = fs::read(&archive).expect("an archive");
    for round in 0..rounds(12) {
        let mut hostile = name(&mut draw);
        if !hostile.contains(['/', '\\', '\0', '\n', ':']) {
            hostile.insert_str(0, "../");
        }
        let order = if round % 2 == 0 {
            let mut changed = manifest.clone();
            match draw.below(3) {
                0 => changed["id"] = json!(hostile),
                _ => changed["files"][draw.below(3)]["path"] = json!(hostile),
            }
            fs::write(backup.join("backup.json"), changed.to_string()).expect("a manifest");
            &backup
        } else {
            fs::write(&archive, with_a_name(&whole, &hostile, draw.below(3))).expect("an archive");
            &archive
        };
        let said = end_to_end::refused(&["restore", &text(order), "--data", &data]);
        assert!(said.len() < 20_000 && !said.contains('\u{1b}'), "{hostile:?}: {said:?}");
        let mut now = places(&server);
        now.retain(|path| !path.ends_with("restore"));
        assert_eq!(now, before, "{hostile:?}: {said}");
    }
    assert!(!server.data().join("restore/unpacked").exists());
    fs::write(&archive, &whole).expect("an archive");
    end_to_end::tool(&["restore", &text(&archive), "--data", &data]);
    assert_eq!(client.query("SELECT v FROM k.t WHERE k = 1").opcode, RESULT);
}

/// The archive with another name for one of its first files, and a correct checksum.
fn with_a_name(archive: &[u8], name: &str, file: usize) -> Vec<u8> {
    let mut out = archive.to_vec();
    let mut at = 0;
    for _ in 0..file {
        let size = std::str::from_utf8(&out[at + 124..at + 135]).expect("digits").trim_matches(['\0', ' ']);
        let size = usize::from_str_radix(size, 8).expect("octal digits");
        at += 512 + size.next_multiple_of(512);
    }
    let head = &mut out[at..at + 512];
    head[..100].fill(0);
    // The field for the prefix of a long name.
    head[345..500].fill(0);
    let bytes = name.as_bytes();
    let count = bytes.len().min(100);
    head[..count].copy_from_slice(&bytes[..count]);
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out
}

#[test]
fn names_in_statements_lead_nowhere_and_long_texts_are_short_in_answers_and_in_the_log() {
    let mut draw = Draw::new("names_in_statements", 42);
    let (mut server, mut client) = start();
    let before = places(&server);
    for _ in 0..rounds(60) {
        let mut hostile = name(&mut draw);
        if draw.below(4) == 0 {
            hostile = hostile.repeat(1 + draw.below(3000));
        }
        let quoted = hostile.replace('"', "\"\"");
        let statement = match draw.below(5) {
            0 => format!(
                "CREATE KEYSPACE \"{quoted}\" WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ),
            1 => format!("CREATE TABLE k.\"{quoted}\" (k int PRIMARY KEY)"),
            2 => format!("CREATE INDEX \"{quoted}\" ON k.t (v)"),
            3 => format!("SELECT \"{quoted}\" FROM k.t"),
            _ => format!("SELECT v FROM k.t WHERE k = '{}", hostile.replace('\'', "''")),
        };
        let reply = client.query(&statement);
        if reply.opcode == ERROR {
            let (_, text) = reply.error();
            assert!(text.len() < 10_000, "{} bytes for a statement of {}", text.len(), statement.len());
        }
        client.query("DROP INDEX IF EXISTS k.t_v_idx");
    }
    assert_eq!(places(&server), before);
    let mut made = BTreeSet::new();
    all_below(&server.tables(), &mut made);
    let is_plain = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("\0");
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    assert!(
        made.iter().all(is_plain),
        "{:?}",
        made.iter().filter(|path| !is_plain(path)).collect::<Vec<_>>()
    );
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.contains("statement_failed"), "errors of clients are logged at this level");
    let longest = log.lines().map(str::len).max().unwrap_or_default();
    println!("{} lines, the longest of {longest} bytes", log.lines().count());
    assert!(longest < 20_000, "a line of {longest} bytes");
    let obeyed = |c: &char| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(log.chars().find(obeyed), None, "a character that a terminal obeys");
}
