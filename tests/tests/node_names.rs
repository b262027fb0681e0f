//! The names `cqlsh` and `nodetool`, by which the binary stands in for Cassandra's tools in a container, against a server of
//! TLS and logins.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use end_to_end::{Server, binary, tool};
use tempfile::TempDir;

/// Runs the binary by another name, in a home folder. Returns whether it succeeded, and both outputs.
fn run(home: &Path, name: &str, variables: &[(&str, &str)], args: &[&str]) -> (bool, String) {
    let link = home.join(name);
    if !link.exists() {
        symlink(binary(), &link).expect("a link");
    }
    let mut command = Command::new(link);
    for variable in
        ["HELENUS_HOST", "HELENUS_PASSWORD", "CQLSH_HOST", "CQLSH_PORT", "SSL_CERTFILE", "SSL_VALIDATE"]
    {
        command.env_remove(variable);
    }
    command.args(args).env("HOME", home).envs(variables.iter().copied());
    let output = command.output().expect("run the tool");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

#[test]
fn cqlsh_and_nodetool_take_their_own_options_of_tls_and_logins() {
    let folder = TempDir::with_prefix("helenus-names-").expect("a temporary directory");
    let home = folder.path();
    let at = |name: &str| home.join(name).display().to_string();
    tool(&["cert", &at("certs")]);
    write(Path::new(&at("password")), "a long password\n", 0o600);
    let (cert, ca) = (at("certs/server.pem"), at("certs/ca.pem"));
    let server = Server::start_with(&[
        "--tls-cert",
        &cert,
        "--password-file",
        &at("password"),
        "--set",
        "handshake_timeout=60s",
    ]);
    let (host, port) = server.address().rsplit_once(':').expect("HOST:PORT");
    let select = [host, port, "-e", "SELECT username, ssl_enabled FROM system_views.clients"];
    let cqlsh = |variables: &[(&str, &str)], args: &[&str]| {
        run(home, "cqlsh", variables, &[&select[..], args].concat())
    };
    let trusted = [("SSL_CERTFILE", ca.as_str())];

    let password = ["-u", "cassandra", "-p", "a long password"];
    let (done, text) = cqlsh(&trusted, &[&["--ssl"], &password[..]].concat());
    assert!(done && text.contains("True") && text.contains("list of processes"), "{text}");
    let quiet = [&["--ssl", "--insecure-password-without-warning"], &password[..]].concat();
    let (done, text) = cqlsh(&trusted, &quiet);
    assert!(done && !text.contains("WARNING"), "{text}");

    // The file of a name and a password: named, beside cqlshrc, and beside a cqlshrc that is not there.
    let credentials = "[plain_text_auth]\nusername = cassandra\npassword = a long password\n";
    let own = home.join("credentials");
    write(&own, credentials, 0o600);
    let named = ["--ssl", "--credentials", own.to_str().expect("UTF-8")];
    let (done, text) = cqlsh(&trusted, &named);
    assert!(done && text.contains("cassandra"), "{text}");
    let (done, text) = cqlsh(&trusted, &["--ssl", "--credentials", "/no/such/file"]);
    assert!(!done && text.contains("cannot read /no/such/file"), "{text}");
    write(&own, credentials, 0o644);
    let (done, text) = cqlsh(&trusted, &named);
    assert!(!done && text.contains("can be read by others"), "{text}");
    fs::create_dir(home.join(".cassandra")).expect("a folder");
    write(&home.join(".cassandra/credentials"), credentials, 0o600);
    let (done, text) = cqlsh(&trusted, &["--ssl"]);
    assert!(done && text.contains("cassandra"), "{text}");
    let rc = format!("[connection]\nssl = true\n[ssl]\ncertfile = {ca}\n");
    write(&home.join(".cassandra/cqlshrc"), &rc, 0o600);
    let (done, text) = cqlsh(&[], &[]);
    assert!(done && text.contains("cassandra"), "{text}");
    let (done, text) = cqlsh(&[], &["-u", "cassandra", "-p", "wrong"]);
    assert!(!done && text.contains("incorrect"), "{text}");

    // The admin socket needs neither, and nodetool's options for JMX mean nothing to it.
    let data = server.data().display().to_string();
    let here = [("HELENUS_DATA", data.as_str())];
    for args in [
        &["status"][..],
        &["-u", "cassandra", "-pw", "wrong", "--ssl", "-h", "127.0.0.1", "-p", "7199", "status"],
        &["--ssl", "info"],
        &["clientstats"],
        &["reloadssl"],
    ] {
        let (done, text) = run(home, "nodetool", &here, args);
        assert!(done, "{args:?}: {text}");
    }
    // What the image's health check asks.
    let (done, text) = run(home, "nodetool", &here, &["statusbinary"]);
    assert!(done && text == "running\n", "{text}");
}
