//! Statements whose memory their text and values do not bound: results sized by a type, a value that is bound once and
//! used often, a cell that is selected often.

use super::MIB;
use super::server::Server;

/// A list of `count` pieces.
fn many(piece: &str, count: usize) -> String {
    vec![piece; count].join(", ")
}

/// `tuple<int, int, ..>`.
fn wide_tuple(count: usize) -> String {
    format!("tuple<{}>", many("int", count))
}

fn list_of_empty(count: usize) -> Vec<u8> {
    let mut bytes = (count as i32).to_be_bytes().to_vec();
    bytes.resize(4 + 4 * count, 0);
    bytes
}

/// Tables, with cells of half a mebibyte and more, and of just less than what is asked for one by one.
pub fn create(server: &Server) {
    for table in [
        "CREATE TABLE t (k int, c int, s blob static, v blob, x text, l list<blob>, m map<int, blob>, PRIMARY KEY (k, c))",
        "CREATE TABLE j (k text PRIMARY KEY, v text, l list<int>)",
        "CREATE TABLE ck (k blob, c blob, v int, PRIMARY KEY (k, c))",
        "CREATE TABLE n (k int PRIMARY KEY, v vector<float, 2>, b blob)",
        "CREATE INDEX ON n (v) USING 'sai'",
    ] {
        server.must(table, &[]);
    }
    let (wide, text) = (vec![7; MIB], vec![1; MIB / 2]);
    let values: &[(&str, &[u8])] = &[("v", &wide), ("x", &text)];
    for c in 0..4 {
        server.must(&format!("INSERT INTO t (k, c, v, x) VALUES (1, {c}, :v, :x)"), values);
    }
    server.must("INSERT INTO t (k, s) VALUES (1, :v)", values);
    let small = vec![3; 60 << 10];
    for c in 0..8 {
        server.must(&format!("INSERT INTO t (k, c, v, x) VALUES (2, {c}, :v, :v)"), &[("v", &small)]);
    }
    for entry in 0..16 {
        server.must(
            &format!("UPDATE t SET m[{entry}] = :v, l = l + [0x01] WHERE k = 2 AND c = 0"),
            &[("v", &small)],
        );
    }
    server.must("INSERT INTO ck (k, c, v) VALUES (:v, :v, 1)", &[("v", &small[..30 << 10])]);
    for k in 0..4 {
        server.must(&format!("INSERT INTO n (k, v, b) VALUES ({k}, [1, {k}], :v)"), &[("v", &wide)]);
    }
}

pub fn run(server: &Server, found: &mut Vec<String>) {
    each(server, found, &mut |run| {
        documents(run);
        sized_by_types(run);
        bound_once(run);
        selected_often(run);
    });
}

/// Statements that a small limit refuses before they take much.
pub fn run_with_room(server: &Server, found: &mut Vec<String>) {
    each(server, found, &mut |run| {
        merged(run);
        refused_conditions(run);
        listed(run);
    });
}

fn each(server: &Server, found: &mut Vec<String>, statements: &mut dyn FnMut(Run<'_>)) {
    // Every other one in pages.
    let mut pages = None;
    let mut run = |query: &str, values: &[(&str, &[u8])]| {
        pages = if pages.is_none() { Some(100) } else { None };
        {
            let done = server.run(query, values, pages, found);
            let shown: String = query.chars().take(90).collect();
            match done {
                Ok(bytes) => println!("{:>9} {shown}", bytes),
                Err(error) => {
                    println!("refused   {shown}: {}", error.to_string().chars().take(150).collect::<String>())
                }
            }
        }
    };
    statements(&mut run);
}

type Run<'r> = &'r mut dyn FnMut(&str, &[(&str, &[u8])]);

fn sized_by_types(run: Run<'_>) {
    for ty in [
        "vector<int, 2147483647>",
        "vector<int, 500000000>",
        "vector<text, 100000000>",
        "vector<int, 8000000>",
        "vector<vector<int, 2000000000>, 2000000000>",
        "vector<vector<vector<int, 65536>, 65536>, 65536>",
        "vector<frozen<tuple<vector<int, 1000000>, vector<int, 1000000>>>, 1000>",
        "tuple<vector<int, 7000000>, vector<int, 7000000>, vector<int, 7000000>>",
    ] {
        run(&format!("SELECT mask_default(({ty})null) FROM system.local"), &[]);
        let twice = many(&format!("mask_default(({ty})null)"), 40);
        run(&format!("SELECT {twice} FROM system.local"), &[]);
        run(&format!("SELECT to_json(mask_default(({ty})null)) FROM system.local"), &[]);
        run(
            &format!("CREATE TABLE masked_{} (k int PRIMARY KEY, v {ty} MASKED WITH DEFAULT)", ty.len()),
            &[],
        );
        run(&format!("INSERT INTO masked_{} (k, v) VALUES (1, null)", ty.len()), &[]);
    }
    let masks = many("mask_default((vector<int, 1000000>)null)", 300);
    run(&format!("SELECT {masks} FROM system.local"), &[]);
    run(&format!("SELECT ({masks}) FROM system.local"), &[]);
    run(&format!("SELECT [{masks}] FROM system.local"), &[]);
    run(&format!("SELECT JSON {masks} FROM system.local"), &[]);
    // Four bytes a tuple, and some hundred times as many of its text.
    let list = list_of_empty(MIB / 8);
    let tuple = wide_tuple(2000);
    run(&format!("SELECT to_json((list<frozen<{tuple}>>) :x) FROM system.local"), &[("x", &list)]);
    run(&format!("SELECT JSON (list<frozen<{tuple}>>) :x FROM system.local"), &[("x", &list)]);
    // Elements without bytes, and a composite for each four bytes.
    run(
        "SELECT (vector<'org.apache.cassandra.db.marshal.EmptyType', 2147483647>) :x FROM system.local",
        &[("x", &[7])],
    );
    let composite = format!("CompositeType({})", many("Int32Type", 190));
    run(&format!("SELECT (list<'{composite}'>) :x FROM system.local"), &[("x", &list)]);
    // Errors that quote what they refuse.
    run("SELECT blob_as_int(:x), blob_as_text(:x) FROM system.local", &[("x", &vec![0xFF; 8 * MIB])]);
    let digits = "7".repeat(2 * MIB);
    run(&format!("SELECT 1.{digits} + 1 FROM system.local"), &[]);
    run(&format!("SELECT (int)'{digits}' FROM system.local"), &[]);
    run(&format!("SELECT (uuid)'{digits}', (inet)'{digits}' FROM system.local"), &[]);
    run("INSERT INTO j JSON :x", &[("x", format!("{{\"k\": \"a\", \"l\": \"{digits}\"}}").as_bytes())]);
    let sums = many("(decimal)1 + (decimal)1E-900000", 200);
    run(&format!("SELECT {} FROM system.local", sums), &[]);
}

fn bound_once(run: Run<'_>) {
    let wide = vec![b'x'; 8 * MIB];
    let some = vec![b'x'; 60 << 10];
    for (value, count) in [(&wide, 1000), (&some, 4000)] {
        let x: &[(&str, &[u8])] = &[("x", value)];
        run(&format!("SELECT {} FROM system.local", many("(blob) :x", count)), x);
        run(&format!("SELECT {} FROM system.local", many("blob_as_text((blob) :x)", count)), x);
        run(&format!("SELECT ({}) FROM system.local", many("(blob) :x", count)), x);
        run(&format!("SELECT [{}] FROM system.local", many("(blob) :x", count)), x);
        run(&format!("SELECT {{{}}} FROM system.local", many("1: (blob) :x", count)), x);
        run(&format!("SELECT JSON {} FROM system.local", many("(blob) :x", count)), x);
        run(&format!("INSERT INTO t (k, c, l) VALUES (3, 3, [{}])", many(":x", count)), x);
        run(&format!("UPDATE t SET l = [{}] WHERE k = 3 AND c = 3", many("text_as_blob(:x)", count)), x);
        run(&format!("UPDATE t SET {} WHERE k = 3 AND c = 4", many("l = l + [:x]", count)), x);
        run(&format!("UPDATE t SET {} WHERE k = 3 AND c = 4", many("m[1] = :x", count)), x);
        run(
            &format!(
                "UPDATE t SET v = :x WHERE k = 3 AND c IN ({})",
                (0..count).map(|c| c.to_string()).collect::<Vec<_>>().join(", ")
            ),
            x,
        );
        run(&format!("SELECT * FROM t WHERE k = 1 AND v IN ({}) ALLOW FILTERING", many(":x", count)), x);
        run(&format!("UPDATE t SET c = c WHERE k = 3 AND c = 4 IF v IN ({})", many(":x", count)), x);
        run(&format!("UPDATE t SET v = 0x WHERE k = 3 AND c = 4 IF v IN ({})", many(":x", count)), x);
        run(&format!("UPDATE t SET v = 0x WHERE k = 3 AND c = 4 IF l IN ({})", many("[:x]", count)), x);
        run(
            &format!("UPDATE t SET v = 0x WHERE k = 3 AND c = 4 IF {}", vec!["v = :x"; count].join(" AND ")),
            x,
        );
        let inserts: Vec<String> =
            (0..count).map(|c| format!("INSERT INTO t (k, c, v) VALUES (3, {c}, :x);")).collect();
        run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", inserts.join(" ")), x);
        let with_if: Vec<String> = (0..count)
            .map(|c| format!("INSERT INTO t (k, c, v) VALUES (3, {c}, :x) IF NOT EXISTS;"))
            .collect();
        run(&format!("BEGIN BATCH {} APPLY BATCH", with_if.join(" ")), x);
        run(
            &format!("UPDATE ck SET v = 1 WHERE k = 0x01 AND c IN ({})", many(":x", count)),
            &[("x", &value[..value.len().min(30 << 10)])],
        );
        run(
            &format!("UPDATE ck SET v = 1 WHERE k IN ({0}) AND c IN ({0})", many(":x", 300)),
            &[("x", &value[..30 << 10])],
        );
        run(
            &format!("SELECT v FROM ck WHERE k IN ({0}) AND c IN ({0})", many(":x", 300)),
            &[("x", &value[..30 << 10])],
        );
    }
    explained(run);
    listed(run);
    refused_conditions(run);
    merged(run);
    // Sets and maps that arrive unsorted are sorted in a copy.
    let mut set = 1000_i32.to_be_bytes().to_vec();
    for element in (0..1000_i32).rev() {
        set.extend_from_slice(&4096_i32.to_be_bytes());
        set.extend_from_slice(&element.to_be_bytes());
        set.resize(set.len() + 4092, 1);
    }
    run(&format!("SELECT {} FROM system.local", many("(set<blob>) :x", 200)), &[("x", &set)]);
    run(&format!("SELECT {} FROM system.local", many("to_json((set<blob>) :x)", 20)), &[("x", &set)]);
    run(
        &format!(
            "SELECT * FROM t WHERE k = 1 AND c = 1 AND v = :x {} ALLOW FILTERING",
            "AND x = :y ".repeat(50)
        ),
        &[("x", &wide), ("y", &wide)],
    );
}

/// Lists of many short values for IN, which become values of their own.
fn listed(run: Run<'_>) {
    let of = |count: usize, element: &dyn Fn(usize) -> Vec<u8>| {
        let mut bytes = (count as i32).to_be_bytes().to_vec();
        for index in 0..count {
            let element = element(index);
            bytes.extend_from_slice(&(element.len() as i32).to_be_bytes());
            bytes.extend(element);
        }
        bytes
    };
    let number = |index: usize| (index as i32).to_be_bytes().to_vec();
    // Tuples of one blob, and tuples of two without bytes.
    let tuple = |index: usize| [&4_i32.to_be_bytes()[..], &number(index)].concat();
    for (list, tuples) in [
        (of(900_000, &number), of(400_000, &tuple)),
        (of(900_000, &|index| number(900_000 - index)), of(400_000, &|index| tuple(400_000 - index))),
        (list_of_empty(MIB), of(500_000, &|_| vec![0; 4])),
        (list_of_empty(4 * MIB), of(900_000, &|_| vec![0xFF; 4])),
    ] {
        let x: &[(&str, &[u8])] = &[("x", &list), ("y", &tuples)];
        for form in ["", "EXPLAIN "] {
            run(&format!("{form}SELECT * FROM t WHERE k = 1 AND v IN :x ALLOW FILTERING"), &x[..1]);
            run(&format!("{form}SELECT * FROM t WHERE k IN :x"), &x[..1]);
            run(&format!("{form}SELECT * FROM t WHERE k = 1 AND c IN :x"), &x[..1]);
            run(&format!("{form}SELECT * FROM t WHERE k = 1 AND (c) IN :y"), &x[1..]);
            run(&format!("{form}SELECT * FROM ck WHERE k IN :x"), &x[..1]);
            run(&format!("{form}SELECT * FROM ck WHERE k = 0x01 AND c IN :x"), &x[..1]);
            run(&format!("{form}SELECT * FROM ck WHERE (c) IN :y AND k = 0x01"), &x[1..]);
            run(&format!("{form}DELETE FROM ck WHERE k IN :x"), &x[..1]);
            run(&format!("{form}DELETE FROM ck WHERE k = 0x01 AND c IN :x"), &x[..1]);
            run(&format!("{form}DELETE FROM ck WHERE k = 0x01 AND (c) IN :y"), &x[1..]);
            run(&format!("{form}UPDATE t SET v = 0x WHERE k = 1 AND c = 1 IF v IN :x"), &x[..1]);
        }
    }
}

/// Conditions that are not met: the answer has the rows that were found.
fn refused_conditions(run: Run<'_>) {
    let value = vec![5; 48 << 10];
    run("INSERT INTO t (k, s) VALUES (7, :v)", &[("v", &vec![6; MIB])]);
    for c in 0..400 {
        run(&format!("INSERT INTO t (k, c, v) VALUES (7, {c}, :v)"), &[("v", &value)]);
    }
    for count in [10, 200, 2000] {
        let insert = |c: usize| format!("INSERT INTO t (k, c, v) VALUES (7, {c}, :x) IF NOT EXISTS;");
        let update =
            |c: usize| format!("UPDATE t SET v = :x, s = :x WHERE k = 7 AND c = {c} IF v = 0x AND s = 0x;");
        for statement in [&insert as &dyn Fn(usize) -> String, &update] {
            let all: String = (0..count).map(statement).collect();
            run(&format!("BEGIN BATCH {all} APPLY BATCH"), &[("x", &[1])]);
        }
    }
}

/// Many changes of one row, which are merged before they are written. Together they are so short that a memtable's copy of
/// the row, which is made after they are logged, is less than what is watched for.
fn merged(run: Run<'_>) {
    for (c, count, bytes) in [(0, 100, 15 << 10), (10, 1000, 1500), (20, 2000, 700)] {
        let value = vec![5; bytes];
        let x: &[(&str, &[u8])] = &[("x", &value)];
        let all = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>();
        let entries = all(&|key| format!("m[{key}] = :x"));
        run(&format!("UPDATE t SET {} WHERE k = 8 AND c = {c}", entries.join(", ")), x);
        let updates =
            all(&|key| format!("UPDATE t SET m[{key}] = :x WHERE k = 8 AND c = {};", c + 1 + key % 3));
        run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", updates.concat()), x);
        let same = all(&|_| format!("UPDATE t SET v = :x WHERE k = 8 AND c = {};", c + 5));
        run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", same.concat()), x);
    }
}

/// EXPLAIN of statements with long values, which it shows.
fn explained(run: Run<'_>) {
    let wide = vec![b'x'; 8 * MIB];
    let x: &[(&str, &[u8])] = &[("x", &wide)];
    let all = |condition: &str, count: usize| vec![condition; count].join(" AND ");
    for form in ["EXPLAIN", "EXPLAIN FORMAT JSON"] {
        for filter in [
            all("l CONTAINS :x", 1000),
            all("m CONTAINS :x", 1000),
            all("m[1] = :x", 1000),
            format!("v IN ({}) AND x = :x", many(":x", 1000)),
            "v = :x AND x = :x AND s = :x".to_owned(),
            "v > :x AND x <= :x".to_owned(),
        ] {
            run(&format!("{form} SELECT * FROM t WHERE k = 1 AND {filter} ALLOW FILTERING"), x);
        }
        run(&format!("{form} SELECT * FROM ck WHERE k = :x AND c > :x"), &[("x", &wide[..60 << 10])]);
        run(&format!("{form} SELECT * FROM ck WHERE k IN ({}) AND c IN (:x)", many(":x", 200)), x);
        run(&format!("{form} INSERT INTO t (k, c, v, x) VALUES (1, 1, :x, :x)"), x);
        run(&format!("{form} UPDATE t SET v = :x WHERE k = 1 AND c = 1 IF v = :x"), x);
        run(&format!("{form} INSERT INTO ck (k, c, v) VALUES (:x, :x, 1)"), &[("x", &wide[..60 << 10])]);
    }
}

fn selected_often(run: Run<'_>) {
    for k in [1, 2] {
        for (column, count) in
            [("v", 400), ("v", 14), ("s", 400), ("l", 300), ("m", 300), ("m[1]", 3000), ("x", 5000)]
        {
            let from = format!("FROM t WHERE k = {k}");
            let columns = many(column, count);
            run(&format!("SELECT {columns} {from}"), &[]);
            run(&format!("SELECT JSON {columns} {from}"), &[]);
            run(&format!("SELECT ({columns}) {from}"), &[]);
            run(&format!("SELECT [{columns}] {from}"), &[]);
            run(&format!("SELECT {} {from}", many(&format!("max({column})"), count)), &[]);
            run(&format!("SELECT k, c, {columns} {from} GROUP BY k, c"), &[]);
            run(&format!("SELECT {} {from}", many(&format!("to_json({column})"), count)), &[]);
            run(&format!("SELECT {columns} FROM t WHERE k IN ({k}, 9) ORDER BY c DESC"), &[]);
            run(&format!("SELECT DISTINCT {} {from}", many("s", count)), &[]);
            run(&format!("SELECT {columns} {from} AND c > 0 ALLOW FILTERING"), &[]);
        }
        run(&format!("SELECT {} FROM t WHERE k = {k}", many("writetime(m)", 4000)), &[]);
        run(&format!("SELECT {} FROM t WHERE k = {k}", many("m[0..15]", 400)), &[]);
        run(&format!("UPDATE t SET v = 0x WHERE k = {k} AND c = 1 IF x = 'a' AND v = 0x AND m[1] = 0x"), &[]);
    }
    run(&format!("SELECT {} FROM ck", many("k, c", 2000)), &[]);
    run(&format!("SELECT {} FROM ck", many("token(k)", 2000)), &[]);
    run(&format!("SELECT {} FROM n ORDER BY v ANN OF [1, 1] LIMIT 4", many("b", 400)), &[]);
    run(&format!("SELECT {} FROM n ORDER BY v ANN OF [1, 1] LIMIT 4", many("v", 4000)), &[]);
}

fn documents(run: Run<'_>) {
    let text = format!("{{\"k\": \"a\", \"v\": \"{}\"}}", "v".repeat(6 * MIB));
    let insert = "INSERT INTO j JSON :x";
    run(insert, &[("x", text.as_bytes())]);
    for piece in ["1", "[]", "{}", "\"\"", "[[]]", "{\"a\": 1}", "123456789012345678901234567890"] {
        let inner = vec![piece; 2 * MIB / (piece.len() + 1)].join(",");
        run(insert, &[("x", format!("{{\"k\": \"a\", \"l\": [{inner}]}}").as_bytes())]);
        run(insert, &[("x", format!("[{inner}]").as_bytes())]);
        run("INSERT INTO j (k, l) VALUES ('a', from_json(:x))", &[("x", format!("[{inner}]").as_bytes())]);
        run("INSERT INTO j (k, l) VALUES ('a', from_json(:x))", &[("x", format!("[{inner}").as_bytes())]);
    }
    let keys: Vec<String> = (0..200_000).map(|key| format!("\"K{key}\":{key}")).collect();
    run(insert, &[("x", format!("{{{}}}", keys.join(",")).as_bytes())]);
}
