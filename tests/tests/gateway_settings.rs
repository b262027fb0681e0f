//! A setting that restricts clients or records what they do is kept by a gateway, or its start is refused by the setting's name.

use std::fs;
use std::process::Command;

use end_to_end::binary;
use tempfile::TempDir;

/// Starts a gateway with these lines of a configuration, in front of a port where nobody is; returns what it says.
fn start(lines: &str, flags: &[&str]) -> String {
    let folder = TempDir::with_prefix("helenus-gateway-").expect("a temporary directory");
    let file = folder.path().join("helenus.yaml");
    fs::write(&file, lines).expect("written");
    let config = file.to_str().expect("UTF-8");
    let mut command = Command::new(binary());
    command
        .args(["serve", "--gateway", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--config", config])
        .args(flags);
    let output = command.output().expect("run helenus");
    assert!(!output.status.success(), "nobody is there");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_setting_that_a_gateway_does_not_keep_is_refused_by_name() {
    for (lines, name) in [
        (
            "audit_logging_options:\n  enabled: true\n  logger: [{class_name: FileAuditLogger}]\n",
            "audit_logging_options",
        ),
        ("authenticator: PasswordAuthenticator\n", "authenticator"),
        ("native_transport_throw_on_overload: true\n", "native_transport_throw_on_overload"),
        (
            "native_transport_max_request_data_in_flight_per_ip: 100MiB\n",
            "native_transport_max_request_data_in_flight_per_ip",
        ),
        ("busy_poll_us: 500\n", "busy_poll_us"),
        ("keyspaces_fail_threshold: 5\n", "guardrails"),
        (
            "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\n\
             cidr_authorizer: CassandraCIDRAuthorizer\n",
            "cidr_authorizer",
        ),
    ] {
        // Without two cores there is no busy polling to refuse.
        if name == "busy_poll_us" && std::thread::available_parallelism().is_ok_and(|count| count.get() < 2) {
            continue;
        }
        let said = start(lines, &[]);
        assert!(said.contains("a gateway does not support") && said.contains(name), "{lines}\n{said}");
    }
}

#[test]
fn what_a_gateway_keeps_is_no_reason_to_refuse_it() {
    let lines = "native_transport_max_concurrent_connections_per_ip: 2\nnative_transport_idle_timeout: 3000ms\n\
                 native_transport_max_concurrent_connections: 50\nhandshake_timeout: 3s\nrequest_arrival_timeout: 3s\n";
    let said = start(lines, &[]);
    assert!(said.contains("127.0.0.1:1") && !said.contains("does not support"), "{said}");
}
