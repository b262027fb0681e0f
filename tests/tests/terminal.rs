//! The tools of an administrator as a person at a terminal sees them.

use end_to_end::{Cql, Server, Terminal, binary, tool};
use std::process::Command;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// A table of two SSTables with some megabytes that do not compress.
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

/// `helenus admin VERB` of a server, on a terminal.
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
    // Somebody else looks meanwhile.
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
    // What changes from one moment to the next.
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
    // A slip of the finger: what was meant is said, in the terminal's colours, and the exit code is that of a wrong use.
    let mut terminal = admin(&server, &["tablestat"]);
    terminal.expect("similar subcommand");
    assert!(terminal.raw().contains("\u{1b}["), "{:?}", terminal.raw());
    assert_eq!(terminal.end().1, 2);
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
    // Nobody looks at a pipe: no colours there.
    assert!(!tool(&["admin", "--help"]).contains('\u{1b}'));
}
