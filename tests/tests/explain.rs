//! Tests EXPLAIN, EXPLAIN ANALYZE and traces, as shown by the Python driver and cqlsh.

use end_to_end::{Client, Server};

#[test]
fn explanations_and_traces_reach_the_python_driver_and_cqlsh() {
    let server = Server::start();
    Client::text("explain.py", &["load", server.address()]);
    server.admin(&["flush"]);
    println!("{}", Client::text("explain.py", &["check", server.address()]));
}
