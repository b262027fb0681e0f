//! Makes writes or syncs of the commit log fail under the real binary, by strace's injection: a refused write is not
//! read, neither while the server runs nor after a restart. Skipped if strace is missing or may not attach.

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Injection, Server};

/// The value of a row read by SELECT, or the error.
fn row(client: &mut Raw, key: i32) -> Result<i32, (i32, String)> {
    let reply = client.query(&format!("SELECT v FROM k.t WHERE k = {key}"));
    if reply.opcode != RESULT {
        return Err(reply.error());
    }
    // One column of four bytes, or no rows.
    let body = &reply.body[reply.body.len() - 4..];
    Ok(i32::from_be_bytes(body.try_into().expect("four bytes")))
}

#[test]
fn a_row_that_was_refused_is_not_read_while_the_server_runs_nor_after_a_restart() {
    for (mode, calls) in [
        ("group", "fsync,fdatasync"),
        ("batch", "fsync,fdatasync"),
        ("group", "pwrite64"),
        ("periodic", "pwrite64"),
    ] {
        let what = format!("--sync {mode}, {calls}");
        let mut server = Server::start_with(&["--sync", mode]);
        let mut client = Raw::ready(server.address(), 4);
        client
            .run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        client.run("CREATE TABLE k.t (k int PRIMARY KEY, v int)");
        client.run("INSERT INTO k.t (k, v) VALUES (1, 100)");
        client.run("INSERT INTO k.t (k, v) VALUES (2, 100)");
        let Some(injection) = Injection::fail(&server, calls) else {
            println!("not run: strace is missing or may not attach");
            return;
        };
        let refused = client.query("INSERT INTO k.t (k, v) VALUES (2, 200)");
        assert_ne!(refused.opcode, RESULT, "{what}: a write is acknowledged");
        let (_, text) = refused.error();
        assert!(text.contains("commit log failed"), "{what}: {text}");
        drop(injection);
        assert_eq!(row(&mut client, 1), Ok(100), "{what}: a partition that has nothing to do with it");
        let (_, text) = row(&mut client, 2).expect_err("the refused value is read");
        assert!(text.contains("restart the server"), "{what}: {text}");
        server.kill();
        server.restart();
        let mut client = Raw::ready(server.address(), 4);
        assert_eq!(row(&mut client, 1), Ok(100), "{what}");
        assert_eq!(row(&mut client, 2), Ok(100), "{what}: what was refused is there after the restart");
    }
}
