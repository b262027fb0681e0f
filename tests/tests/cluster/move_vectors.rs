//! `helenus move`: vectors and storage-attached indexes go to the cluster, and both sides answer alike by them.

use end_to_end::{Cql, Server, draw, tool};
use tempfile::TempDir;

use crate::moving::{until_done, wait_for_tail};
use crate::ring::Ring;

/// Rows that are written before the move and while it runs, each.
const ROWS: usize = 60;
/// What both sides must answer alike.
const QUERIES: [&str; 5] = [
    "SELECT k, v, WRITETIME(v), w, s, WRITETIME(s) FROM mv_vec.t",
    "SELECT k FROM mv_vec.t WHERE s = 'even'",
    "SELECT k FROM mv_vec.t WHERE n >= 20 AND n < 40",
    "SELECT k FROM mv_vec.t ORDER BY v ANN OF [0.5, 0.25, 0.125] LIMIT 5",
    "SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = 'mv_vec'",
];

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
    let server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let (here, there) = (Cql::connect(server.address()), Cql::connect(&ring.address(1)).at_all());
    there.run("DROP KEYSPACE IF EXISTS mv_vec");
    for text in [
        "CREATE KEYSPACE mv_vec WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE mv_vec.t (k int PRIMARY KEY, v vector<float, 3>, w frozen<list<vector<int, 2>>>, s text, n int)",
        "CREATE CUSTOM INDEX of_v ON mv_vec.t (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'euclidean'}",
        "CREATE CUSTOM INDEX of_s ON mv_vec.t (s) USING 'StorageAttachedIndex' WITH OPTIONS = {'case_sensitive': 'false'}",
    ] {
        here.run(text);
    }
    let mut random = draw::Draw::new("vectors", 51);
    let mut fill = |from: usize| {
        for k in from..from + ROWS {
            let [x, y, z] = [(); 3].map(|()| random.below(1_000) as f64 / 1_000.0);
            let s = if k % 2 == 0 { "even" } else { "ODD" };
            here.run(&format!(
                "INSERT INTO mv_vec.t (k, v, w, s, n) VALUES ({k}, [{x}, {y}, {z}], [[{k}, 1], [2, 3]], '{s}', {k})"
            ));
        }
        here.run(&format!("DELETE v FROM mv_vec.t WHERE k = {from}"));
        here.run(&format!("DELETE FROM mv_vec.t WHERE k = {}", from + 1));
    };
    fill(0);
    tool(&["move", "start", "--to", &ring.address(1), "--tables", "mv_vec", "--data", &data]);
    fill(ROWS);
    here.run("CREATE CUSTOM INDEX of_n ON mv_vec.t (n) USING 'StorageAttachedIndex'");
    wait_for_tail(&data);
    // It carries definitions over first, the index that was made meanwhile too.
    let said = tool(&["move", "verify", "--data", &data]);
    assert!(said.contains("0 rows differing"), "{said}");
    until_done(&["move", "cutover", "--dry-run", "--pause", "5s", "--data", &data]);
    for query in QUERIES {
        let sorted = |cql: &Cql| {
            let mut rows: Vec<String> =
                cql.rows_once_indexed(query).iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted(&here), sorted(&there), "{query}");
    }
    tool(&["move", "abort", "--data", &data]);
    there.run("DROP KEYSPACE mv_vec");
}
