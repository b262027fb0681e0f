//! Tests `helenus shell`: its output compared with cqlsh, its use at a terminal, and COPY of tables to files and back.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use end_to_end::{Client, Oracle, Server, Terminal, binary, root};
use tempfile::TempDir;

/// Runs `helenus shell ADDRESS ARGS` in a folder, with an input.
fn shell_in(folder: &Path, address: &str, args: &[&str], input: &str) -> Output {
    let given = folder.join("input");
    fs::write(&given, input).expect("the input");
    let mut command = Command::new(binary());
    command.args(["shell", address]).args(args).current_dir(folder);
    command.stdin(fs::File::open(&given).expect("the input"));
    command.output().expect("run helenus shell")
}

/// Runs a shell that must succeed, and returns its output.
fn printed(address: &str, args: &[&str]) -> String {
    let folder = TempDir::with_prefix("helenus-shell-").expect("a temporary directory");
    let output = shell_in(folder.path(), address, args, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The lines without trailing blanks and without cqlsh's warning about its version.
fn comparable(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("WARNING: cqlsh was built against"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn is_alike(address: &str, args: &[&str]) {
    let script = root().join("tests/shell/values.cql");
    let (expected, expected_errors) = Client::cqlsh(address, &script, &[]);
    let mut all = vec!["-f", script.to_str().expect("a path in UTF-8")];
    all.extend(args);
    let found = printed(address, &all);
    let (expected, found) = (comparable(&expected), comparable(&found));
    assert_eq!(expected_errors.trim(), "", "cqlsh's errors");
    for (at, pair) in expected.iter().zip(&found).enumerate() {
        assert_eq!(pair.0, pair.1, "line {}: left cqlsh, right helenus shell", at + 1);
    }
    assert_eq!(expected.len(), found.len(), "lines");
}

#[test]
fn results_print_as_cqlsh_prints_them_over_helenus_and_cassandra() {
    let server = Server::start();
    is_alike(server.address(), &[]);
    is_alike(server.address(), &["--protocol-version", "4"]);
    is_alike(Oracle::shared().address(), &[]);
}

const MAKE: &str =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    CREATE TABLE k.events (source text, at timestamp, body text, tags set<text>, PRIMARY KEY (source, at));";

#[test]
fn statements_of_the_command_line_end_with_exit_codes_that_scripts_read() {
    let server = Server::start();
    let folder = TempDir::with_prefix("helenus-shell-").expect("a temporary directory");
    let run = |args: &[&str], input: &str| shell_in(folder.path(), server.address(), args, input);
    assert!(run(&["-e", MAKE], "").status.success());
    let insert = "INSERT INTO k.events (source, at, body, tags) VALUES ('a', 0, 'x, \"y\"', {'t'});";
    let select = "SELECT source, at, body, tags FROM k.events";
    let json = run(&["--format", "json"], &format!("{insert}\n{select};\n"));
    let expected = r#"{"source": "a", "at": "1970-01-01 00:00:00.000Z", "body": "x, \"y\"", "tags": ["t"]}"#;
    assert_eq!(String::from_utf8_lossy(&json.stdout).trim(), expected);
    let csv = run(&["--format", "csv", "-e", select], "");
    let expected = "source,at,body,tags\na,1970-01-01 00:00:00.000000+0000,\"x, \"\"y\"\"\",{'t'}\n";
    assert_eq!(String::from_utf8_lossy(&csv.stdout), expected);

    let failing = "SELECT * FROM k.nothing;\nSELECT source FROM k.events;\n";
    let both = run(&[], failing);
    let (out, errors) = (String::from_utf8_lossy(&both.stdout), String::from_utf8_lossy(&both.stderr));
    assert_eq!(both.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("<stdin>:1:InvalidRequest: Error from server: code=2200 [Invalid query]"),
        "{errors}"
    );
    assert!(out.contains("(1 rows)"), "the next statement runs: {out}");
    let one = run(&["--stop-on-error"], failing);
    assert_eq!((one.status.code(), one.stdout.len()), (Some(1), 0));
    assert_eq!(run(&["--format", "xml"], "").status.code(), Some(2));
    let open = run(&["-f", "-"], "SELECT source FROM k.events");
    assert!(String::from_utf8_lossy(&open.stderr).contains("Incomplete statement at end of file"));
    let nobody = Command::new(binary()).args(["shell", "127.0.0.1:1", "-e", "x"]).output().expect("run it");
    let text = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(nobody.status.code() == Some(1) && text.contains("helenus serve"), "{text}");
}

#[test]
fn a_person_types_completes_pages_and_leaves() {
    let server = Server::start();
    let folder = TempDir::with_prefix("helenus-shell-").expect("a temporary directory");
    let mut command = Command::new(binary());
    command.args(["shell", server.address()]).current_dir(folder.path());
    command.env("HELENUS_SHELL_HISTORY", folder.path().join("history"));
    let mut terminal = Terminal::run(&command, 100, 40);
    terminal.expect("Connected to");
    terminal.expect("Use HELP for help.");
    terminal.expect("helenus> ");
    // A statement of several lines.
    terminal.line("CREATE KEYSPACE feed");
    terminal.line("WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};");
    terminal.expect("helenus> ");
    terminal.line("USE feed;");
    terminal.expect("helenus:feed> ");
    terminal.line("CREATE TABLE timeline (user text, at int, event text, PRIMARY KEY (user, at));");
    terminal.expect("helenus:feed> ");
    // TAB completes keywords, tables and columns.
    terminal.keys("ins\tinto tim\t(user, at, ev\t) VALUES ('foo', 1, 'login');\r");
    terminal.expect("insert into timeline (user, at, event)");
    terminal.expect("helenus:feed> ");
    terminal.line("SELECT * FROM timeline;");
    terminal.expect(" foo |  1 | login");
    terminal.expect("(1 rows)");
    assert!(terminal.raw().contains("\x1b[0;1;31muser\x1b[0m"), "a key's name is red");
    // An error does not end the shell; the up arrow recalls the last statement.
    terminal.line("SELECT nothing FROM timeline;");
    terminal.expect("InvalidRequest: Error from server: code=2200");
    terminal.expect("helenus:feed> ");
    terminal.keys("\x1b[A\x1b[A\r");
    terminal.expect("(1 rows)");
    // Pages wait for a key.
    terminal.line("BEGIN BATCH INSERT INTO timeline (user, at) VALUES ('foo', 2);");
    terminal.line("INSERT INTO timeline (user, at) VALUES ('foo', 3); APPLY BATCH;");
    terminal.expect("helenus:feed> ");
    terminal.line("PAGING 2");
    terminal.expect("Page size: 2");
    terminal.line("SELECT at FROM timeline;");
    terminal.expect("---MORE---");
    terminal.keys(" ");
    terminal.expect("(3 rows)");
    terminal.line("SELECT at FROM timeline;");
    terminal.expect("---MORE---");
    terminal.keys("q");
    terminal.expect("(more rows not shown)");
    terminal.line("\\x on");
    terminal.expect("EXPAND set to ON");
    terminal.line("SELECT at FROM timeline LIMIT 1;");
    terminal.expect("@ Row 1");
    terminal.line("EXPAND OFF");
    terminal.expect("EXPAND set to OFF");
    terminal.line("EXPLAIN ANALYZE SELECT * FROM timeline WHERE user = 'foo';");
    terminal.expect("└─ total statement");
    terminal.line("TRACING ON");
    terminal.line("SELECT at FROM timeline LIMIT 1;");
    terminal.expect("Tracing session: ");
    terminal.expect("Request complete");
    terminal.line("TRACING OFF");
    terminal.line("CAPTURE 'out.txt'");
    terminal.expect("Now capturing query output to 'out.txt'.");
    terminal.line("SELECT at FROM timeline LIMIT 1;");
    terminal.line("CAPTURE OFF");
    terminal.line("LOGIN nobody 'a secret'");
    // Ctrl-C discards the typed line, Ctrl-D ends the shell.
    terminal.line("CONSISTENCY");
    terminal.expect("Current consistency level is ONE.");
    terminal.expect("helenus:feed> ");
    terminal.keys("SELECT half");
    terminal.expect("SELECT half");
    terminal.keys("\x03");
    terminal.expect("helenus:feed> ");
    terminal.keys("\x04");
    let (_, code) = terminal.end();
    assert_eq!(code, 0);
    let captured = fs::read_to_string(folder.path().join("out.txt")).expect("the captured output");
    assert!(captured.contains("(1 rows)") && !captured.contains('\x1b'), "{captured}");
    let history = fs::read_to_string(folder.path().join("history")).expect("the history");
    assert!(history.contains("EXPLAIN ANALYZE") && !history.contains("secret"), "{history}");
}

#[test]
fn tables_go_to_files_and_come_back() {
    let server = Server::start();
    let folder = TempDir::with_prefix("helenus-shell-").expect("a temporary directory");
    let run = |args: &[&str], input: &str| {
        let output = shell_in(folder.path(), server.address(), args, input);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let done = |args: &[&str], input: &str| {
        let (code, out, errors) = run(args, input);
        assert_eq!(code, Some(0), "{args:?}: {out}{errors}");
        out
    };
    done(&["-e", MAKE], "");
    let mut rows = String::new();
    // An empty field is a null without quotes, and an empty text with quotes.
    for at in 0..3_000 {
        let body = ["plain", "a, b", "say \\\"x\\\"", "two\nlines", "back\\\\slash", ""][at % 6];
        rows.push_str(&format!("s{},{at},\"{body}\",\"{{'a', 'it''s {at}'}}\"\n", at % 7));
    }
    fs::write(folder.path().join("in.csv"), &rows).expect("a file");
    let copied = done(&["-e", "COPY k.events FROM 'in.csv' WITH MAXBATCHSIZE = 3"], "");
    assert!(copied.contains("3000 rows imported from 1 files"), "{copied}");
    let all = |table: &str| {
        let text = done(&["--format", "json", "-e", &format!("SELECT * FROM k.{table}")], "");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = all("events");
    assert_eq!(before.len(), 3_000);
    assert_eq!(before.iter().filter(|row| row.contains(r#""body": """#)).count(), 500);
    for (out, options) in [
        ("out.csv", "HEADER = true"),
        ("out.jsonl", "MAXATTEMPTS = 2"),
        ("pipe.csv", "DELIMITER = '|' AND NULL = '-'"),
    ] {
        done(&["-e", &format!("COPY k.events TO '{out}' WITH {options}")], "");
        done(&["-e", "TRUNCATE k.events"], "");
        let back = done(&["-e", &format!("COPY k.events FROM '{out}' WITH {options}")], "");
        assert!(back.contains("3000 rows imported"), "{out}: {back}");
        assert!(all("events") == before, "{out}: the rows are the same");
    }
    // Invalid rows go to the error file, the others into the table.
    done(&["-e", "TRUNCATE k.events"], "");
    let input = "COPY k.events (source, at, body) FROM STDIN WITH ERRFILE = 'wrong.csv';\na,1,x\n,2,no key\nb,never,y\nc,3\nd,4,z\n\\.\nSELECT count(*) FROM k.events;\n";
    let (code, out, errors) = run(&[], input);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        out.contains("2 rows imported")
            && out.contains("\n     2\n")
            && errors.contains("Cannot insert null value for primary key column 'source'"),
        "{out}{errors}"
    );
    let wrong = fs::read_to_string(folder.path().join("wrong.csv")).expect("the file of errors");
    assert_eq!(wrong, ",2,no key\nb,never,y\nc,3\n");
    let refused = run(&["-e", "COPY k.events FROM 'in.csv' WITH CONFIGFILE = 'x'"], "");
    assert!(refused.0 == Some(1) && refused.2.contains("cannot read x"), "{}", refused.2);
    let to_stdout = done(&["-e", "COPY k.events (source, body) TO STDOUT"], "");
    let mut lines: Vec<&str> = to_stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a,x", "d,z"]);
}

/// Runs `helenus shell ARGS` for a user whose home is `home`. Returns whether it succeeded, and both outputs.
fn of_user(home: &Path, args: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(binary());
    command.arg("shell").args(args).current_dir(home).env("HOME", home);
    command.env_remove("CQLSH_HOST").env_remove("CQLSH_PORT");
    let output = command.output().expect("run helenus shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_file_of_cqlshs_defaults_is_read_and_flags_win_over_it() {
    let server = Server::start();
    let (host, port) = server.address().rsplit_once(':').expect("HOST:PORT");
    let home = TempDir::with_prefix("helenus-home-").expect("a temporary directory");
    fs::create_dir(home.path().join(".cassandra")).expect("a folder");
    let rc = home.path().join(".cassandra/cqlshrc");
    fs::write(
        &rc,
        format!(
            "[connection]\nhostname = {host}\nport = {port}\n[authentication]\nkeyspace = k\n[ui]\ncolor = on\n\
             float_precision = 3\ntime_format = %d.%m.%Y %H:%M %z\ntimezone = +02:00\n[copy]\nDELIMITER = |\n\
             [copy-to:k.counts]\nHEADER = true\n"
        ),
    )
    .expect("the file");
    // The table can only be created without the file, because its keyspace does not exist yet.
    let (made, _, errors) = of_user(home.path(), &["--cqlshrc", "/dev/null", host, port, "-e", MAKE]);
    assert!(made, "{errors}");
    let run = |text: &str| {
        let (done, out, errors) = of_user(home.path(), &["--no-color", "-e", text]);
        assert!(done, "{text}\n{out}{errors}");
        out
    };
    run("CREATE TABLE counts (k int PRIMARY KEY, n counter); CREATE TABLE again (k int PRIMARY KEY, n counter);
         CREATE TABLE t (k int PRIMARY KEY, f float, at timestamp);
         INSERT INTO t (k, f, at) VALUES (1, 1.23456, 0); UPDATE counts SET n = n + 7 WHERE k = 1;
         UPDATE counts SET n = n - 2 WHERE k = 2");
    let shown = run("SELECT f, at FROM t");
    assert!(
        shown.contains("1.23") && shown.contains("01.01.1970 02:00 +0200") && !shown.contains("1.2346"),
        "{shown}"
    );
    let (_, coloured, _) = of_user(home.path(), &["-e", "SELECT f FROM t"]);
    assert!(coloured.contains('\u{1b}'), "{coloured:?}");
    // COPY TO writes counter values; COPY FROM adds them to the counters.
    run("COPY counts TO 'counts.csv'");
    let csv = fs::read_to_string(home.path().join("counts.csv")).expect("the file");
    let mut lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.remove(0), "k|n");
    lines.sort_unstable();
    assert_eq!(lines, ["1|7", "2|-2"]);
    run("COPY again FROM 'counts.csv' WITH HEADER = true AND INGESTRATE = 1000");
    run("COPY again FROM 'counts.csv' WITH HEADER = true");
    let twice = run("SELECT * FROM again");
    assert!(twice.contains(" 1 | 14") && twice.contains(" 2 | -4"), "{twice}");
    // CONFIGFILE replaces the user's file.
    fs::write(home.path().join("other"), "[copy]\nDELIMITER = ;\n").expect("another file");
    run("COPY counts TO 'other.csv' WITH CONFIGFILE = 'other'");
    let csv = fs::read_to_string(home.path().join("other.csv")).expect("the file");
    assert!(csv.contains("1;7") && !csv.contains("k;n"), "{csv}");

    // What does not work is refused with advice.
    let refused = |args: &[&str]| {
        let (done, _, errors) = of_user(home.path(), args);
        assert!(!done);
        errors
    };
    assert!(refused(&["--ssl"]).contains("serves no TLS on this port"));
    fs::write(
        &rc,
        format!("[connection]\nhostname = {host}\nport = {port}\n[ui]\ntimezone = Europe/Berlin\n"),
    )
    .expect("the file");
    let (done, _, errors) = of_user(home.path(), &["-e", "SHOW HOST"]);
    assert!(
        done && errors.contains("timezone Europe/Berlin: this shell knows UTC and offsets such as +02:00"),
        "{errors}"
    );
    fs::write(&rc, "[connection]\nport 9042\n").expect("the file");
    assert!(refused(&["-e", "SHOW HOST"]).contains("cqlshrc:2: neither [section] nor name = value"));
}
