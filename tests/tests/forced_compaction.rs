//! `helenus admin forcecompact` removes the young tombstones of the named partitions, and no others.

use std::path::Path;

use end_to_end::{Cql, Server, files, offline, refused};

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn forced_compactions_drop_young_tombstones_of_their_keys_alone() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE k {KEYSPACE}"));
    for strategy in ["SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "UnifiedCompactionStrategy"]
    {
        cql.run("DROP TABLE IF EXISTS k.t");
        cql.run(&format!(
            "CREATE TABLE k.t (a text, b int, c int, v text, PRIMARY KEY ((a, b), c)) \
             WITH compaction = {{'class': '{strategy}'}}"
        ));
        server.admin(&["disableautocompaction", "k", "t"]);
        for round in 0..3 {
            for b in 0..4 {
                for c in 0..3 {
                    cql.run(&format!("INSERT INTO k.t (a, b, c, v) VALUES ('x:y', {b}, {c}, '{round}')"));
                }
                cql.run(&format!("DELETE FROM k.t WHERE a = 'x:y' AND b = {b} AND c = 1"));
            }
            if round < 2 {
                server.admin(&["flush", "k", "t"]);
            }
        }
        let before = cql.rows("SELECT * FROM k.t");
        // The third part is still in the memtable.
        let told = server.admin(&["forcecompact", "k", "t", r"x\:y:1", r"x\:y:2"]);
        assert!(told.starts_with("compacted"), "{strategy}: {told}");
        assert_eq!(cql.rows("SELECT * FROM k.t"), before, "{strategy}");
        server.admin(&["flush", "k", "t"]);
        let folder = files::table_folder(&server.tables(), &cql, "k", "t");
        let partitions: Vec<serde_json::Value> =
            files::tables(&folder).iter().flat_map(|file| offline::dump(file)).collect();
        let tombstones_of = |b: &str| {
            let of_key = partitions.iter().filter(|partition| partition["partition"]["key"][1] == b);
            of_key.map(|partition| partition.to_string().matches("deletion_info").count()).sum::<usize>()
        };
        assert_eq!((tombstones_of("1"), tombstones_of("2")), (0, 0), "{strategy}: {partitions:?}");
        assert!(tombstones_of("0") > 0 && tombstones_of("3") > 0, "{strategy}: {partitions:?}");
    }
    let told = refused(&["admin", "forcecompact", "k", "t", "nokey", "--data", text(&server.data())]);
    assert!(told.contains("nokey"), "{told}");
}
