//! The language.

use helenus_cql::syntax::{parse, parse_type, print};

pub(super) fn corpus() -> Vec<Vec<u8>> {
    [
        "SELECT a, \"B\" AS c, writetime(v), token(k), count(*) FROM ks.t WHERE k IN (1, ?) AND (c, d) > (1, 'x') AND token(k) \
         <= -5 ORDER BY c DESC PER PARTITION LIMIT 2 LIMIT 10 ALLOW FILTERING",
        "INSERT INTO ks.t (k, v, m) VALUES (0xCAFE, 'it''s', {'a': [1, 2], 'b': []}) IF NOT EXISTS USING TTL 10 AND TIMESTAMP 5",
        "UPDATE t USING TTL ? SET a = a + [1], b['k'] = :v, c.f = (1, NaN), d = -1.5e10 WHERE k = 5b6962dd-3f90-4c93-8f61-eabfa4a803e2",
        "BEGIN UNLOGGED BATCH DELETE a, b[1] FROM t WHERE k = $$x$$ AND c >= 1 IF v = 2; INSERT INTO t JSON '{}'; APPLY BATCH",
        "CREATE TABLE IF NOT EXISTS ks.t (k int, c frozen<map<text, list<int>>>, s text static, v vector<float, 3>, PRIMARY KEY ((k), c)) \
         WITH CLUSTERING ORDER BY (c DESC) AND compaction = {'class': 'X', 'a': 1} AND comment = 'x'",
        "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3} AND durable_writes = true",
        "ALTER TABLE ks.t DROP a, b USING TIMESTAMP 5", "ALTER TYPE u ADD f frozen<tuple<int, text>>",
        "CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        "GRANT SELECT ON ALL KEYSPACES TO r", "DESCRIBE TABLE \"K\".t", "USE k; -- a comment", "/* x */ TRUNCATE t",
        "SELECT CAST(a AS text), m['k'], [1, 2], {a: 1}, 1h30m, P1Y2M, -Infinity FROM t WHERE v LIKE '%x' AND m CONTAINS KEY 1",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _a_type = parse_type(&text);
    let Ok(statement) = parse(&text) else { return };
    let printed = print(&statement);
    match parse(&printed) {
        Ok(again) => assert_eq!(print(&again), printed, "of {text}"),
        Err(error) => panic!("{text} was printed as {printed}: {error}"),
    }
}
