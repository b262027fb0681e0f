//! Tests the administrator's tools at a terminal.

use end_to_end::{Cql, Server, Terminal, binary, files, root, tool};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// Creates a table of two SSTables with some megabytes of incompressible data.
fn filled(server: &Server) -> Cql {
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE shop {KEYSPACE}"));
    cql.run("CREATE TABLE shop.orders (k int PRIMARY KEY, v blob) WITH compression = {'enabled': false}");
    server.admin(&["disableautocompaction", "shop"]);
    let value = "5a".repeat(40_000);
    for half in 0..2 {
        for k in 0..60 {
            cql.run(&format!("INSERT INTO shop.orders (k, v) VALUES ({}, 0x{value})", half * 60 + k));
        }
        server.admin(&["flush", "shop"]);
    }
    cql
}

/// Runs `helenus admin VERB` for a server, on a terminal.
fn admin(server: &Server, args: &[&str]) -> Terminal {
    let data = server.data();
    let mut words = vec!["admin"];
    words.extend(args);
    words.extend(["--data", data.to_str().expect("a path in UTF-8")]);
    Terminal::start(&words)
}

#[test]
fn a_compaction_shows_how_far_it_is_and_then_what_came_of_it() {
    let server = Server::start();
    let _cql = filled(&server);
    server.admin(&["setcompactionthroughput", "1"]);
    let mut terminal = admin(&server, &["compact", "shop", "orders"]);
    terminal.expect("shop.orders  major of 2 SSTables, ");
    terminal.expect(" % of ");
    // A second client asks meanwhile.
    let told = server.admin(&["compactionstats", "-H"]);
    assert!(told.contains("Major compaction") && told.contains("active compaction remaining time"), "{told}");
    server.admin(&["setcompactionthroughput", "0"]);
    terminal.expect("compacted   2 SSTables (");
    assert!(terminal.raw().contains("\r\u{1b}[K"), "the line is drawn over: {:?}", terminal.raw());
    let (rest, code) = terminal.end();
    assert!(code == 0 && rest.contains(" to 1 ("), "{rest}");
}

#[test]
fn a_compaction_goes_on_when_its_watcher_is_interrupted() {
    let server = Server::start();
    let _cql = filled(&server);
    server.admin(&["setcompactionthroughput", "1"]);
    let mut terminal = admin(&server, &["compact", "shop", "orders"]);
    terminal.expect(" % of ");
    terminal.keys("\x03");
    drop(terminal);
    assert!(server.admin(&["compactionstats"]).contains("Major compaction"));
    server.admin(&["setcompactionthroughput", "0"]);
}

#[test]
fn tables_and_errors_stand_on_a_terminal_as_in_a_pipe() {
    let server = Server::start();
    let _cql = filled(&server);
    for args in
        [&["describecluster"][..], &["ring", "shop"], &["listsnapshots"], &["getcompactionthroughput"]]
    {
        let (shown, code) = admin(&server, args).end();
        assert_eq!((shown, code), (server.admin(args), 0), "{args:?}");
    }
    // Its other values change between two runs, so only the first lines are compared.
    let (shown, code) = admin(&server, &["tablestats", "-H", "shop.orders"]).end();
    assert!(code == 0 && shown.contains("\t\tTable: orders\n\t\tSSTable count: 2\n"), "{shown}");
    let failed = |args: &[&str]| {
        let (shown, code) = admin(&server, args).end();
        (shown.trim_end().to_owned(), code)
    };
    let (said, code) = failed(&["tablestats", "shop.order"]);
    assert_eq!((said.as_str(), code), ("helenus: Unknown tables: [order] in keyspace: shop", 1));
    let (said, code) = failed(&["repair"]);
    assert!(code == 1 && said.starts_with("helenus: ") && said.lines().count() <= 2, "{said}");
    // For a misspelled verb, the message suggests the right one, coloured, and the exit code is that of wrong usage.
    let mut terminal = admin(&server, &["tablestat"]);
    terminal.expect("similar subcommand");
    assert!(terminal.raw().contains("\u{1b}["), "{:?}", terminal.raw());
    assert_eq!(terminal.end().1, 2);
}

/// Copies the tables of a Cassandra 4.1 node.
fn node(folder: &Path) {
    files::copy_all(&root().join("crates/cql/tests/fixtures/nodes/nb/data"), folder);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn a_file_of_an_old_version_stands_beside_those_that_are_read() {
    let scratch = TempDir::with_prefix("helenus-old-").expect("a temporary directory");
    let folder = scratch.path().join("data");
    node(&folder);
    let mut tables =
        fs::read_dir(folder.join("fx")).expect("the tables").map(|entry| entry.expect("one").path());
    let table = tables.find(|path| text(path).contains("/wide-")).expect("the table");
    fs::write(table.join("la-7-big-Data.db"), "").expect("write");
    for (command, of_another) in [
        ("ls", "fx.wide  "),
        ("metadata", "Partitioner"),
        ("partitions", "fx.wide nb-"),
        ("verify", "sound  "),
    ] {
        let (shown, code) = Terminal::start(&["sstable", command, text(&table)]).end();
        assert_eq!(code, 1, "{shown}");
        assert!(shown.contains(of_another), "{command}: {shown}");
        let refused = shown.lines().find(|line| line.starts_with("refused  ")).expect("the line of the file");
        assert!(refused.contains("la-7-big-Data.db") && refused.contains("sstableupgrade"), "{refused}");
        assert!(shown.contains("1 file is no SSTable that can be read here"), "{command}: {shown}");
    }
    let (shown, code) = Terminal::start(&["sstable", "dump", text(&table)]).end();
    assert!(code == 1 && shown.contains("sstableupgrade") && shown.lines().count() <= 2, "{shown}");
}

#[test]
fn mistakes_with_import_and_export_are_answered_with_what_there_is() {
    let scratch = TempDir::with_prefix("helenus-mistakes-").expect("a temporary directory");
    let place = |name: &str| text(&scratch.path().join(name)).to_owned();
    let (data, from) = (place("data"), place("node"));
    node(Path::new(&from));
    let told = |args: &[&str]| {
        let (shown, code) = Terminal::start(&[args, &["--data", &data]].concat()).end();
        assert!(!shown.contains("panicked"), "{args:?}: {shown}");
        (shown, code)
    };
    let refused = |args: &[&str], expected: &str| {
        let (shown, code) = told(args);
        assert!(code == 1 && shown.contains(expected), "{args:?}, {code}: {shown}");
    };
    refused(&["export", &place("out")], "no database is here");
    assert!(!Path::new(&data).exists() && !Path::new(&place("out")).exists());
    refused(&["import", &place("nowhere")], "there is no such directory");
    refused(
        &["import", &from, "--keyspace", "xf"],
        "no SSTables of keyspace xf to import; there is fx.collections",
    );
    refused(&["import", &from, "--snapshot", "monday"], "no snapshot monday of a table to import");
    // An import that fails leaves no new database behind.
    assert!(!Path::new(&data).exists());
    let (shown, code) = told(&["shell", "-e", "SELECT key FROM system.local"]);
    assert!(code == 0, "{shown}");
    refused(&["export", &place("out")], "there is no table to export");
    let (shown, code) = told(&["import", &from]);
    assert!(code == 0 && shown.contains("imported    fx.wide: 2 SSTables"), "{shown}");
    refused(&["export", &place("out"), "xf"], "keyspace xf does not exist; there is fx");
    refused(
        &["export", &place("out"), "fx", "wid"],
        "table fx.wid does not exist; there is collections, counts",
    );
    let (shown, code) = told(&["export", &place("out"), "fx.wide"]);
    assert!(code == 0 && shown.contains("exported    1 table,"), "{shown}");
    refused(&["export", &place("out"), "fx.wide"], "is not empty; give another folder");
    let (shown, code) = told(&["import", &place("out"), "--dry-run"]);
    assert!(code == 0 && shown.contains("to import   fx.wide: 2 SSTables"), "{shown}");
}

#[test]
fn help_fits_a_terminal_and_ends_with_examples() {
    for command in ["serve", "shell", "admin", "backup", "restore", "stress", "import", "export", "man"] {
        let mut asked = Command::new(binary());
        asked.args([command, "--help"]);
        let mut terminal = Terminal::run(&asked, 100, 40);
        terminal.expect("Example");
        let (rest, code) = terminal.end();
        assert_eq!(code, 0, "{command}");
        assert!(rest.contains(&format!("helenus {command}")), "{command}: {rest}");
    }
    // Output to a pipe has no colours.
    assert!(!tool(&["admin", "--help"]).contains('\u{1b}'));
}
