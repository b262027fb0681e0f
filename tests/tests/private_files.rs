//! Tests that the files of the binary are accessible by their owner only, whatever the umask, and that it follows no
//! link that another user has put in the place of a file. Umasks, names and paths are random.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Server, binary};
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::with_prefix("helenus-private-").expect("a temporary directory")
}

/// Collects a path and everything below it, without following links.
fn all_below(path: &Path, into: &mut Vec<PathBuf>) {
    into.push(path.to_owned());
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            // A server that runs removes folders meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        for entry in entries {
            all_below(&entry.expect("an entry").path(), into);
        }
    }
}

/// What there is of a path; `None` if a server has removed it meanwhile.
fn about(path: &Path) -> Option<fs::Metadata> {
    match fs::symlink_metadata(path) {
        Ok(about) => Some(about),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn assert_private(path: &Path, what: &str) -> usize {
    assert!(path.exists(), "{what}: {}", path.display());
    let mut all = Vec::new();
    all_below(path, &mut all);
    for path in &all {
        let Some(about) = about(path) else { continue };
        let wanted = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.mode() & 0o777, wanted, "{what}: {}", path.display());
    }
    all.len()
}

fn fill(server: &Server) {
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE IF NOT EXISTS k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE IF NOT EXISTS k.t (k int PRIMARY KEY, v text)");
    client.run("CREATE INDEX IF NOT EXISTS ON k.t (v)");
    for row in 0..10 {
        client.run(&format!("INSERT INTO k.t (k, v) VALUES ({row}, 'v')"));
    }
    server.admin(&["flush", "k", "t"]);
}

/// Runs a tool of the binary in a shell with this umask.
fn tool_under(umask: &str, arguments: &[&str], home: &Path) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(binary()).args(arguments);
    let output = shell.env("HOME", home).output().expect("run helenus");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn data_log_snapshots_backups_and_exports_are_their_owners_alone() {
    let mut draw = Draw::new("umasks", 30);
    for round in 0..rounds(3) {
        // All rights to all users, none to anybody, and random masks.
        let umask = match round {
            0 => "000".to_owned(),
            1 => "777".to_owned(),
            _ => format!("{:03o}", draw.below(0o1000)),
        };
        let what = format!("umask {umask}");
        let server = Server::start_after(&format!("umask {umask}"), folder(), &[]);
        fill(&server);
        server.admin(&["snapshot", "-t", "monday", "k"]);
        let data = server.data();
        let socket = fs::symlink_metadata(data.join("admin.sock")).expect("the admin socket");
        assert_eq!(socket.mode() & 0o777, 0o600, "{what}");
        let count = assert_private(&data, &what);
        assert!(count > 40, "{count} files");
        let out = TempDir::with_prefix("helenus-private-out-").expect("a temporary directory");
        let at = |name: &str| out.path().join(name).to_str().expect("UTF-8").to_owned();
        let from = ["--data", data.to_str().expect("UTF-8")];
        for target in ["backup", "backup.tar"] {
            tool_under(&umask, &[&["backup", &at(target)], &from[..]].concat(), out.path());
            assert!(assert_private(Path::new(&at(target)), &what) > 0);
        }
        for (target, more) in [("export", &[][..]), ("copies", &["--copy-data", "--for", "cassandra-5"][..])]
        {
            tool_under(&umask, &[&["export", &at(target)], more, &from[..]].concat(), out.path());
            assert!(assert_private(Path::new(&at(target)), &what) > 5);
        }
        // Also the files that a restore unpacks and writes.
        let restored = Server::start_after(&format!("umask {umask}"), folder(), &[]);
        let to = restored.data();
        let to = to.to_str().expect("UTF-8");
        tool_under(&umask, &["restore", &at("backup.tar"), "--data", to], out.path());
        assert_private(Path::new(to), &what);
    }
}

/// Files of whoever, of any mode, become the server's own: nobody changes them after they were checked.
#[test]
fn imported_files_belong_to_the_server_alone() {
    let node = end_to_end::root().join("crates/cql/tests/fixtures/nodes/oa/data");
    let mut draw = Draw::new("imports", 33);
    for owner in [None, Some(65_534)] {
        if owner.is_some() && !rustix::process::geteuid().is_root() {
            continue;
        }
        let server = Server::start_in(folder(), &[]);
        // On the server's disk, where files can be linked.
        let source = server.data().with_file_name("source");
        let copied = Command::new("cp").args(["-r"]).arg(&node).arg(&source).status().expect("run cp");
        assert!(copied.success());
        let mut all = Vec::new();
        all_below(&source, &mut all);
        for path in all.iter().rev() {
            let is_folder = path.is_dir();
            let mode =
                draw.one(if is_folder { &[0o755, 0o777, 0o700] } else { &[0o600, 0o644, 0o666, 0o660] });
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).expect("a mode");
            std::os::unix::fs::chown(path, owner, None).expect("an owner");
            if !is_folder && draw.below(4) == 0 {
                fs::hard_link(path, path.with_extension("second")).expect("a second name");
            }
        }
        let data = server.data();
        let at = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let from = [&at(&source)[..], "--data", &at(&data)];
        end_to_end::tool(&[&["import"][..], &from].concat());
        assert!(assert_private(&data, "an import") > 20);
        let mut own = Vec::new();
        all_below(&data, &mut own);
        for path in own {
            let Some(about) = about(&path) else { continue };
            assert_eq!(about.uid(), rustix::process::geteuid().as_raw(), "{}", path.display());
        }
    }
}

#[test]
fn the_process_leaves_no_core_dump() {
    let server = Server::start_in(folder(), &[]);
    let limits =
        fs::read_to_string(format!("/proc/{}/limits", server.process_id())).expect("a running server");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("the limit");
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
}

#[test]
fn a_directory_that_others_could_enter_is_closed_to_them() {
    let mut draw = Draw::new("modes", 31);
    for _ in 0..rounds(2) {
        let folder = folder();
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder");
        // A new tmpfs also has the sticky bit.
        let mode = 0o700 | draw.below(0o100) as u32 | if draw.below(2) == 0 { 0o1000 } else { 0 };
        fs::set_permissions(&data, fs::Permissions::from_mode(mode)).expect("a mode");
        let server = Server::start_in(folder, &[]);
        assert_private(&data, &format!("mode {mode:o}"));
        let told = server.head().iter().any(|line| line.starts_with("private") && line.contains("data"));
        assert_eq!(told, mode & 0o077 != 0, "mode {mode:o}: {:?}", server.head());
    }
}

#[test]
fn a_directory_that_others_prepare_is_not_used() {
    let folder = folder();
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("a folder");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).expect("a mode");
        std::os::unix::fs::chown(&data, Some(65_534), None).expect("another owner");
        let refused =
            Command::new(binary()).args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).output();
        let text = String::from_utf8_lossy(&refused.expect("run helenus").stderr).into_owned();
        assert!(text.contains("it belongs to user 65534"), "{text}");
        assert_eq!(fs::read_dir(&data).expect("a folder").count(), 0, "nothing was put there");
    }
}

/// What a server says that must refuse to start on a directory.
fn refused_on(data: &Path) -> String {
    let started =
        Command::new(binary()).args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).output();
    let output = started.expect("run helenus");
    assert!(!output.status.success(), "it started on {}", data.display());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_directory_with_files_of_others_is_refused_and_stays_as_it_is() {
    let node = end_to_end::root().join("crates/cql/tests/fixtures/nodes/oa/data/fx");
    let table = fs::read_dir(&node).expect("a keyspace").flatten().find(|entry| entry.path().is_dir());
    let folder = folder();
    let plain = folder.path().join("q");
    fs::create_dir(&plain).expect("a folder");
    fs::write(plain.join("x"), "").expect("a file");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o777)).expect("a mode");
    let mut all = vec![(plain, "it has x.")];
    for (name, from) in [("keyspace", node.clone()), ("table", table.expect("a table").path())] {
        let copy = folder.path().join(name);
        let copied = Command::new("cp").arg("-r").arg(from).arg(&copy).status().expect("run cp");
        assert!(copied.success());
        all.push((copy, "helenus import"));
    }
    for (data, words) in all {
        let before = state(&data);
        for _ in 0..2 {
            let told = refused_on(&data);
            assert!(told.contains(words) && told.contains("Give a new or an empty directory"), "{told}");
            assert_eq!(state(&data), before, "{}", data.display());
        }
    }
}

/// What the command line names in the directory, and what is there of a file system, are no files of others.
#[test]
fn a_configuration_in_the_directory_is_no_hindrance() {
    let folder = folder();
    let data = folder.path().join("data");
    for below in ["lost+found", ".snapshot", "schema", "conf"] {
        fs::create_dir_all(data.join(below)).expect("a folder");
    }
    fs::write(data.join("conf/helenus.yaml"), "log_level: info\n").expect("a configuration");
    fs::write(data.join("password"), "secret\n").expect("a password");
    fs::set_permissions(data.join("password"), fs::Permissions::from_mode(0o600)).expect("a mode");
    let args =
        ["--config", "data/conf/helenus.yaml", "--init", "data/schema", "--password-file", "data/password"];
    let mut server = Server::start_in(folder, &args);
    assert!(server.stop().success());
    server.restart();
}

/// Content and mode of every file below a folder.
fn state(of: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = Vec::new();
    all_below(of, &mut all);
    let file = |path: PathBuf| {
        let mode = fs::symlink_metadata(&path).expect("it is there").mode();
        let content = fs::read(&path).unwrap_or_default();
        (path, (mode, content))
    };
    all.into_iter().map(file).collect()
}

/// Starts a server on a directory that contains links, and stops it if it started.
fn start_on(data: &Path) -> String {
    let mut child = Command::new("timeout")
        .args(["-s", "TERM", "2"])
        .arg(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .output()
        .expect("run helenus");
    child.stdout.append(&mut child.stderr);
    String::from_utf8_lossy(&child.stdout).into_owned()
}

#[test]
fn no_link_in_the_place_of_a_file_of_ours_leads_anywhere() {
    const WELL_KNOWN: [&str; 9] = [
        "helenus.lock",
        "host-id",
        "host-id.new",
        "admin.sock",
        "commitlog/helenus-0000000001.log",
        "commitlog/helenus-0000000002.log",
        "export/left",
        "import/left",
        "restore/unpacked",
    ];
    let mut draw = Draw::new("links", 32);
    for round in 0..rounds(4) {
        let folder = folder();
        let (data, victim) = (folder.path().join("data"), folder.path().join("victim"));
        fs::create_dir(&victim).expect("a folder");
        for name in ["one", "two"] {
            fs::write(victim.join(name), format!("the content of {name}, which nobody may touch"))
                .expect("a file");
        }
        // Either an unused directory, or one with data, where any file may be replaced by a link.
        let is_fresh = round % 2 == 0;
        let mut names: Vec<PathBuf> = WELL_KNOWN.iter().map(PathBuf::from).collect();
        let mut server = None;
        if !is_fresh {
            let mut begun = Server::start_in(folder, &[]);
            fill(&begun);
            assert!(begun.stop().success());
            let mut all = Vec::new();
            all_below(&data, &mut all);
            let below = |path: &PathBuf| path.strip_prefix(&data).expect("below").to_owned();
            names.extend(all.iter().filter(|path| path.is_file()).map(below));
            server = Some(begun);
        }
        let mut replaced = Vec::new();
        for _ in 0..1 + draw.below(3) {
            let name = draw.one(&names).clone();
            let path = data.join(&name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            let target = match draw.below(4) {
                0 => victim.clone(),
                // A target that does not exist: a server that followed the link would create it.
                1 => victim.join("made"),
                _ => victim.join(draw.one(&["one", "two"])),
            };
            // The path may exist already, also as a folder.
            let _removed = fs::remove_file(&path);
            if symlink(&target, &path).is_ok() {
                replaced.push((name, target));
            }
        }
        let before = state(&victim);
        let said = start_on(&data);
        assert_eq!(state(&victim), before, "round {round}: {replaced:?}\n{said}");
        assert!(!said.contains("panic"), "{replaced:?}: {said}");
        drop(server);
    }
}

#[test]
fn a_lock_or_an_identity_that_is_a_link_is_refused_with_what_to_do() {
    for name in ["helenus.lock", "host-id"] {
        let mut server = Server::start();
        assert!(server.stop().success());
        let path = server.data().join(name);
        let elsewhere = server.data().join("elsewhere");
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("a link");
        let text = server.start_refused();
        assert!(text.contains("symbolic link") && text.contains("remove it"), "{name}: {text}");
        fs::remove_file(&path).expect("removed");
        fs::rename(&elsewhere, &path).expect("moved back");
        server.restart();
        assert_eq!(Raw::ready(server.address(), 4).query("SELECT key FROM system.local").opcode, RESULT);
    }
}
