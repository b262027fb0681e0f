//! Tests the shell without a server (`--data`, `--memory`), its terminal features, and that `--dry-run` writes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use end_to_end::{Server, Terminal, binary};
use tempfile::TempDir;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn folder() -> TempDir {
    TempDir::with_prefix("helenus-without-").expect("a temporary directory")
}

fn helenus(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder).env("HOME", folder).env_remove("HELENUS_HOST");
    command.output().expect("run helenus")
}

fn printed(folder: &Path, args: &[&str]) -> String {
    let output = helenus(folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn refusal(folder: &Path, args: &[&str]) -> String {
    let output = helenus(folder, args);
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_shell_opens_a_directory_itself_and_a_server_finds_what_it_wrote() {
    let folder = folder();
    let at = folder.path();
    let create = format!(
        "CREATE KEYSPACE k {KEYSPACE}; CREATE TABLE k.t (a int PRIMARY KEY, b text); INSERT INTO k.t (a, b) VALUES (1, 'x')"
    );
    printed(at, &["shell", "--data", "data", "-e", &create]);
    fs::write(at.join("in.csv"), "2,y\n3,z\n").expect("a file");
    let copied =
        printed(at, &["shell", "--data", "data", "-e", "COPY k.t FROM 'in.csv'; SELECT count(*) FROM k.t"]);
    assert!(copied.contains("2 rows imported") && copied.contains("\n     3\n"), "{copied}");
    let plan =
        printed(at, &["shell", "--data", "data", "-e", "EXPLAIN ANALYZE SELECT * FROM k.t WHERE a = 2"]);
    assert!(plan.contains("total statement"), "{plan}");

    let server = Server::start();
    let data = server.data();
    let data = data.to_str().expect("a path in UTF-8");
    let text = refusal(at, &["shell", "--data", data, "-e", "SELECT * FROM system.local"]);
    assert!(text.contains("a server has") && text.contains(server.address()), "{text}");
    // Another shell that has the directory open is no server.
    let held = refusal(at, &["shell", "--data", data, "-e", "x", "--host", "localhost"]);
    assert!(held.contains("cannot be used with"), "{held}");
}

#[test]
fn a_database_in_memory_ends_with_its_shell_and_lets_nobody_else_in() {
    let folder = folder();
    let at = folder.path();
    let create =
        format!("CREATE KEYSPACE k {KEYSPACE}; CREATE TABLE k.t (a int PRIMARY KEY); SELECT * FROM k.t");
    assert!(printed(at, &["shell", "--memory", "-e", &create]).contains("(0 rows)"));
    let gone = refusal(at, &["shell", "--memory", "-e", "SELECT * FROM k.t"]);
    assert!(gone.contains("keyspace k does not exist"), "{gone}");

    let mut command = Command::new(binary());
    command.args(["shell", "--memory", "--disable-history"]).current_dir(at).env("HOME", at);
    let mut terminal = Terminal::run(&command, 100, 40);
    terminal.expect("Opened a database in memory");
    terminal.expect("helenus> ");
    terminal.line("SELECT native_port FROM system.peers_v2;");
    terminal.expect("(0 rows)");
    terminal.line("SELECT rpc_address, native_port FROM system_views.clients;");
    terminal.line("SELECT address, port FROM system_views.clients;");
    terminal.expect("helenus> ");
    // The port that the shell's own server listens on, as the kernel lists it: whoever connects is refused.
    let port = listening_of(&at.display().to_string());
    let refused = refusal(at, &["shell", &format!("127.0.0.1:{port}"), "-e", "SELECT * FROM system.local"]);
    assert!(refused.contains("inside another program"), "{refused}");
    terminal.keys("\x04");
    assert_eq!(terminal.end().1, 0);
}

/// The port that the only process of ours with this working directory listens on.
fn listening_of(folder: &str) -> u16 {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let is_there = |path: &PathBuf| {
        fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == Path::new(folder))
            && fs::read_link(path.join("exe"))
                .is_ok_and(|exe| exe == fs::canonicalize(binary()).expect("the binary"))
    };
    let process = processes.map(|entry| entry.path()).find(is_there).expect("the shell");
    let sockets: Vec<String> = fs::read_dir(process.join("fd"))
        .expect("its files")
        .flatten()
        .filter_map(|file| {
            fs::read_link(file.path())
                .ok()?
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')
                .map(str::to_owned)
        })
        .collect();
    let list = fs::read_to_string(process.join("net/tcp")).expect("its connections");
    let port = list.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_ours = *columns.get(3)? == "0A" && sockets.contains(&(*columns.get(9)?).to_owned());
        is_ours.then(|| u16::from_str_radix(columns.get(1)?.rsplit(':').next()?, 16).ok())?
    });
    port.expect("a port that it listens on")
}

#[test]
fn a_statement_of_several_lines_has_a_prompt_and_wide_tables_are_turned() {
    let folder = folder();
    let mut command = Command::new(binary());
    command
        .args(["shell", "--memory", "--disable-history"])
        .current_dir(folder.path())
        .env("HOME", folder.path());
    let mut terminal = Terminal::run(&command, 80, 30);
    terminal.expect("helenus> ");
    terminal.line("SELECT cluster_name");
    terminal.expect("     ... ");
    terminal.line("FROM system.local;");
    terminal.expect("Test Cluster");
    terminal.expect("(1 rows)");
    // Nine columns do not fit into 80; two do.
    terminal.line("SELECT * FROM system.local;");
    terminal.expect("@ Row 1");
    terminal.expect(" cluster_name ");
    terminal.line("EXPAND OFF");
    terminal.expect("EXPAND set to OFF");
    terminal.line("EXPAND AUTO");
    terminal.expect("EXPAND set to AUTO");
    // Ctrl-C drops the lines that were typed.
    terminal.line("SELECT nonsense");
    terminal.expect("     ... ");
    terminal.keys("\x03");
    terminal.expect("helenus> ");
    terminal.line("EXIT");
    assert_eq!(terminal.end().1, 0);
}

/// Every file below a folder with its bytes.
fn files(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, into),
            false => drop(into.insert(path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}

#[test]
fn a_dry_run_without_a_server_changes_no_file_and_makes_no_folder() {
    let folder = folder();
    let at = folder.path();
    let create = format!(
        "CREATE KEYSPACE k {KEYSPACE}; CREATE TABLE k.t (a int PRIMARY KEY, b text); INSERT INTO k.t (a, b) VALUES (1, 'x')"
    );
    printed(at, &["shell", "--data", "data", "-e", &create]);
    printed(at, &["backup", "kept"]);
    printed(at, &["backup", "kept.tar"]);
    printed(at, &["export", "files"]);
    let mut before = BTreeMap::new();
    files(at, &mut before);
    for args in [
        &["restore", "kept", "--keyspace", "k", "--as-keyspace", "k2", "--dry-run"][..],
        &["restore", "kept.tar", "--keyspace", "k", "--as-keyspace", "k2", "--dry-run", "-v"],
        &["restore", "kept", "--dry-run", "--data", "none"],
        &["import", "files", "--dry-run"],
        &["import", "files", "--dry-run", "--data", "none"],
    ] {
        let text = printed(at, args);
        assert!(
            text.contains("to restore") || text.contains("checked") || text.contains("to import"),
            "{text}"
        );
        let mut after = BTreeMap::new();
        files(at, &mut after);
        let (names, new): (Vec<_>, Vec<_>) = (before.keys().collect(), after.keys().collect());
        assert_eq!(names, new, "{args:?}");
        assert!(before == after && !at.join("none").exists(), "{args:?} has changed a file");
    }
    assert!(refusal(at, &["import", "-v", "files"]).contains("unexpected argument '-v'"));
}

/// What asks for a server does not hold the directory: a supervisor that restarts the server at this moment would find it locked.
#[test]
fn what_needs_a_server_does_not_open_the_directory_of_one_that_is_stopped() {
    let folder = folder();
    let at = folder.path();
    let create = format!(
        "CREATE KEYSPACE k {KEYSPACE}; CREATE TABLE k.t (a int PRIMARY KEY) WITH cdc = true; INSERT INTO k.t (a) VALUES (1)"
    );
    printed(at, &["shell", "--data", "data", "-e", &create]);
    let mut before = BTreeMap::new();
    files(at, &mut before);
    for (args, told) in [
        (&["changes", "k.t", "--from", "oldest", "--data", "data"][..], "--offline"),
        (&["changes", "k.t", "--consumer", "c", "--ack-all"], "--offline"),
        (&["changes", "--consumers"], "--offline"),
        (&["move", "status"], "no server runs"),
        (&["move", "verify", "--stop"], "no server runs"),
        (&["pull", "--stop"], "no server runs"),
    ] {
        let text = refusal(at, args);
        assert!(text.contains(told), "{args:?}: {text}");
        let mut after = BTreeMap::new();
        files(at, &mut after);
        assert!(before == after, "{args:?} has written a file");
    }
    let text = printed(at, &["changes", "k.t", "--from", "oldest", "--offline"]);
    assert!(text.contains("insert"), "{text}");
}

#[test]
fn the_shell_reads_sstables_where_they_lie_by_their_own_schema() {
    let folder = folder();
    let at = folder.path();
    let create = format!(
        "CREATE KEYSPACE k {KEYSPACE}; CREATE TYPE k.p (x int); \
         CREATE TABLE k.t (a int, b int, p frozen<p>, s set<text>, PRIMARY KEY (a, b)); CREATE INDEX ON k.t (p); \
         INSERT INTO k.t (a, b, p, s) VALUES (1, 2, {{x: 7}}, {{'one', 'two'}}); INSERT INTO k.t (a, b) VALUES (1, 3)"
    );
    printed(at, &["shell", "--data", "data", "-e", &create]);
    printed(at, &["backup", "kept"]);
    printed(at, &["export", "files"]);
    let mut before = BTreeMap::new();
    files(at, &mut before);
    for place in ["kept", "files", "data"] {
        let read = ["shell", "--sstables", place, "-e"];
        let with = |text| [&read[..], &[text]].concat();
        let rows = printed(at, &with("SELECT * FROM k.t"));
        assert!(
            rows.contains("{x: 7}") && rows.contains("{'one', 'two'}") && rows.contains("(2 rows)"),
            "{place}: {rows}"
        );
        let changed = printed(at, &with("DELETE FROM k.t WHERE a = 1 AND b = 2; SELECT count(*) FROM k.t"));
        assert!(changed.contains("\n     1\n"), "{place}: {changed}");
        let mut after = BTreeMap::new();
        files(at, &mut after);
        assert!(before == after, "{place}: a file has changed");
    }
    assert!(refusal(at, &["shell", "--sstables", "nothere", "-e", "x"]).contains("give a folder"));
    assert!(refusal(at, &["shell", "--sstables", "kept", "--memory"]).contains("cannot be used with"));
}

#[test]
fn work_that_fails_without_a_server_leaves_no_database_behind() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("empty")).expect("a folder");
    for (args, told) in [
        (&["restore", "nothere"][..], "nothere"),
        (&["restore", "empty", "--data", "a/b/c"], "empty"),
        (&["import", "nothere"], "nothere"),
        (&["import", "empty", "--data", "a/b/c"], "empty"),
        (&["import", "empty", "--schema", "nofile.cql"], "nofile.cql"),
        (&["pull", "127.0.0.1:1", "--tables", "k"], "127.0.0.1"),
    ] {
        let text = refusal(at, args);
        assert!(text.contains(told), "{args:?}: {text}");
        let names: Vec<_> =
            fs::read_dir(at).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["empty"], "{args:?}");
    }
    // A directory that was there stays, whatever is in it.
    fs::create_dir(at.join("mine")).expect("a folder");
    refusal(at, &["import", "nothere", "--data", "mine"]);
    assert!(at.join("mine").is_dir());
}

#[test]
fn typos_are_answered_with_a_name_that_exists() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("file"), "").expect("a file");
    for args in [["-v"], ["-V"], ["--version"], ["version"]] {
        assert!(printed(at, &args).starts_with("helenus "));
    }
    for (args, meant) in [
        (&["admn"][..], "'admin'"),
        (&["admin", "statu"], "'status'"),
        (&["admin", "tablestat"], "'tablestats'"),
        (&["serve", "--lisen", ":1"], "'--listen'"),
        (&["serve", "--set", "commitlog_snyc=batch"], "commitlog_sync"),
        (&["serve", "--port", "9042"], "--listen :9042"),
        (&["serve", "--data", "file"], "--data file: this is a file"),
        (&["shell", "--data", "file"], "--data file: this is a file"),
        (&["import", "x", "--data", "file"], "--data file: this is a file"),
    ] {
        let text = refusal(at, args);
        assert!(text.contains(meant), "{args:?}: {text}");
    }
    let create = format!(
        "CREATE KEYSPACE feed {KEYSPACE}; CREATE TABLE feed.timeline (user text PRIMARY KEY, event text);"
    );
    for (statement, meant) in [
        ("SELECT * FROM feed.timelin", "timeline"),
        ("SELECT evnt FROM feed.timeline", "event"),
        ("SELECT * FROM fed.timeline", "feed"),
        ("DROP KEYSPACE feeed", "feed"),
        ("USE fed", "feed"),
        ("UPDATE feed.timeline SET evet = 'x' WHERE user = 'a'", "event"),
        ("ALTER TABLE feed.tmeline ADD x int", "timeline"),
    ] {
        let text = refusal(at, &["shell", "--memory", "-e", &format!("{create} {statement}")]);
        assert!(text.contains(&format!("did you mean {meant}?")), "{statement}: {text}");
    }
}
