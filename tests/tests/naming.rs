//! Tests that every tool names a server in the same way, and that `helenus admin` finds the one that runs.

use std::path::Path;
use std::process::Command;

use end_to_end::{Server, binary};
use tempfile::TempDir;

/// Runs `helenus ARGS` in a folder with variables. Returns whether it succeeded, and both outputs.
fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> (bool, String) {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder).env("HOME", folder);
    command.env_remove("HELENUS_HOST").env_remove("CQLSH_HOST").env_remove("CQLSH_PORT");
    let output = command.envs(variables.iter().copied()).output().expect("run helenus");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn every_tool_reaches_a_server_by_each_form_of_its_name() {
    let server = Server::start_with(&["--rpc", "localhost:0"]);
    let folder = TempDir::with_prefix("helenus-naming-").expect("a temporary directory");
    let (_, port) = server.address().rsplit_once(':').expect("HOST:PORT");
    let short = format!(":{port}");
    let forms = [format!("127.0.0.1{short}"), format!("localhost{short}"), short.clone()];
    for form in &forms {
        let shell = ["shell", "-e", "SHOW HOST"];
        for (variables, args) in [
            (vec![], [&shell[..], &["--host", form]].concat()),
            (vec![], ["shell", form, "-e", "SHOW HOST"].to_vec()),
            (vec![("HELENUS_HOST", form.as_str())], shell.to_vec()),
            (vec![], vec!["stress", "insert", "--rows", "10", "--host", form]),
            (vec![("HELENUS_HOST", form)], vec!["stress", "read", "--rows", "10", "--operations", "5"]),
            (vec![], vec!["admin", "status", "--host", form]),
            (vec![("HELENUS_HOST", form)], vec!["admin", "flush"]),
        ] {
            let (done, text) = run(folder.path(), &variables, &args);
            assert!(done, "{variables:?} {args:?}: {text}");
        }
    }
    let old = ["shell", "localhost", port, "-e", "SHOW HOST"];
    assert!(run(folder.path(), &[], &old).0, "cqlsh's HOST PORT");
    for args in [
        &["shell", "--host", "http://db"][..],
        &["stress", "read", "--host", "9042"],
        &["admin", "status", "--host", "a b"],
    ] {
        let (done, text) = run(folder.path(), &[], args);
        assert!(!done && text.contains("give HOST, HOST:PORT or :PORT"), "{args:?}: {text}");
    }
}

#[test]
fn admin_says_which_servers_run_and_how_to_name_one() {
    let (first, second) = (Server::start(), Server::start());
    let folder = TempDir::with_prefix("helenus-naming-").expect("a temporary directory");
    let (done, text) = run(folder.path(), &[], &["admin", "status"]);
    for server in [&first, &second] {
        let data = server.data().canonicalize().expect("the directory");
        assert!(!done && text.contains(&format!("--data {}", data.display())), "{text}");
    }
    let (done, text) = run(folder.path(), &[], &["admin", "info", "--host", first.address()]);
    assert!(done, "{text}");
    let (done, text) = run(folder.path(), &[], &["admin", "info", "--host", ":1"]);
    assert!(!done && text.contains("listens on :1") && text.contains(first.address()), "{text}");
    let (done, text) = run(folder.path(), &[], &["admin", "info", "--host", "192.0.2.1"]);
    assert!(!done && text.contains("ssh 192.0.2.1"), "{text}");
    // In the folder above its data, a server is the one that is meant.
    let data = second.data().canonicalize().expect("the directory");
    if data.ends_with("data") {
        let (done, text) = run(data.parent().expect("a folder"), &[], &["admin", "status"]);
        assert!(done, "{text}");
    }
    for help in [&["admin", "-h"][..], &["admin", "status", "-h"], &["admin", "--help"]] {
        let (done, text) = run(folder.path(), &[], help);
        assert!(done && text.contains("Usage: helenus admin"), "{help:?}: {text}");
    }
    assert!(
        run(
            folder.path(),
            &[],
            &["admin", "-h", "localhost", "-p", "7199", "--data", &data.display().to_string(), "status"]
        )
        .0
    );
}
