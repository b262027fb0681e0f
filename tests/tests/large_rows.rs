//! Tests rows of more than 65,535 cells with the real binary: written by one statement and by several, read, killed,
//! replayed, flushed, compacted, exported in Cassandra's format and imported again, with a clean stop at the end.

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Server, tool};

/// The collection columns: name and type.
const COLUMNS: &[(&str, &str)] =
    &[("m", "map<int, int>"), ("e", "set<int>"), ("l", "list<int>"), ("ms", "map<int, int> STATIC")];

fn ready(server: &Server) -> Raw {
    Raw::ready(server.address(), 4)
}

/// A serialised collection of the numbers in a range; the entries of a map are pairs of the same number.
fn elements(ty: &str, from: i32, to: i32) -> Vec<u8> {
    let mut out = (to - from).to_be_bytes().to_vec();
    for number in from..to {
        for _ in 0..if ty.starts_with("map") { 2 } else { 1 } {
            out.extend_from_slice(&4_i32.to_be_bytes());
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
    out
}

fn run(client: &mut Raw, text: &str, value: &[u8]) {
    let reply = client.query_with(text, &[Some(value)]);
    assert_eq!(reply.opcode, RESULT, "{text}: {:?}", reply.error());
}

/// The number of elements of a collection in the row `k`, read from the start of the value in the answer's last cell.
fn count(client: &mut Raw, column: &str, k: i32) -> i32 {
    let reply = client.query(&format!("SELECT {column} FROM k.t WHERE k = {k}"));
    assert_eq!(reply.opcode, RESULT, "{column} of {k}: {:?}", reply.error());
    let size = if column.starts_with('m') { 16 } else { 8 };
    // The value ends the body, and its start depends on its number of elements, so the matching number is searched for.
    let begins = |elements: usize| reply.body.len().checked_sub(4 + elements * size);
    let at = |start: usize| reply.body.get(start..start + 4).and_then(|bytes| bytes.first_chunk().copied());
    let fits = |elements: &usize| {
        begins(*elements).and_then(at).is_some_and(|found| i32::from_be_bytes(found) as usize == *elements)
    };
    let found = (1..reply.body.len() / size + 1).rev().find(fits);
    found.unwrap_or_else(|| panic!("no collection in {column} of {k}")) as i32
}

fn check(server: &Server, wanted: i32) {
    let mut client = ready(server);
    for k in [1, 2] {
        for (column, _) in COLUMNS {
            assert_eq!(count(&mut client, column, k), wanted, "{column} of {k}");
        }
    }
    let reply = client.query("SELECT count(*) FROM k.t");
    assert_eq!(reply.opcode, RESULT, "{:?}", reply.error());
    assert_eq!(u64::from_be_bytes(*reply.body.last_chunk().expect("a row")), 2);
    assert_eq!(client.query("SELECT c FROM k.t WHERE k = 1 AND c > 0 AND c < 9").opcode, RESULT);
}

#[test]
fn rows_of_more_cells_than_two_bytes_count_go_all_ways() {
    let elements_each: i32 =
        std::env::var("LARGE_ROWS").map_or(70_000, |text| text.parse().expect("a number"));
    let mut server = Server::start();
    let mut client = ready(&server);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    let columns: Vec<String> = COLUMNS.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    let table = format!("TABLE k.t (k int, c int, {}, PRIMARY KEY (k, c))", columns.join(", "));
    client.run(&format!("CREATE {table}"));
    for (column, ty) in COLUMNS {
        let is_static = ty.ends_with("STATIC");
        // Written by one statement, then by several.
        let key = if is_static { "k" } else { "k, c" };
        let values = if is_static { "1" } else { "1, 1" };
        let insert = format!("INSERT INTO k.t ({key}, {column}) VALUES ({values}, ?)");
        // Larger values exceed `max_mutation_size`.
        let first = elements_each.min(400_000);
        run(&mut client, &insert, &elements(ty, 0, first));
        let place = if is_static { "k = 2" } else { "k = 2 AND c = 1" };
        let update = |place: &str| format!("UPDATE k.t SET {column} = {column} + ? WHERE {place}");
        for from in (first..elements_each).step_by(400_000) {
            let place = if is_static { "k = 1" } else { "k = 1 AND c = 1" };
            run(&mut client, &update(place), &elements(ty, from, elements_each.min(from + 400_000)));
        }
        let update = update(place);
        for part in 0..4 {
            let (from, to) = (elements_each / 4 * part, elements_each / 4 * (part + 1));
            run(&mut client, &update, &elements(ty, from, if part == 3 { elements_each } else { to }));
        }
    }
    check(&server, elements_each);
    server.kill();
    server.restart();
    check(&server, elements_each);
    let data = server.data().to_str().expect("UTF-8").to_owned();
    server.admin(&["flush"]);
    check(&server, elements_each);
    // A second SSTable with the same rows, which is then compacted with the first.
    let mut client = ready(&server);
    run(
        &mut client,
        "UPDATE k.t SET m = m + ? WHERE k = 1 AND c = 1",
        &elements("map", 0, elements_each / 2),
    );
    server.admin(&["flush"]);
    server.admin(&["compact"]);
    check(&server, elements_each);
    let out = tempfile::TempDir::with_prefix("helenus-large-").expect("a directory");
    let out = out.path().join("out");
    let out = out.to_str().expect("UTF-8");
    tool(&["export", out, "k", "--data", &data]);
    let mut other = Server::start();
    tool(&["import", out, "--data", other.data().to_str().expect("UTF-8")]);
    check(&other, elements_each);
    assert!(other.stop().success(), "a clean stop");
    assert!(server.stop().success(), "a clean stop");
}
