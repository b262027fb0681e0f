//! `helenus serve --gateway --rpc`: calls that change the schema, to a cluster and to a local Helenus. Both describe the same families
//! afterwards, and give the same answers. Old clients make their families by themselves.

use end_to_end::{Calls, Client, Cql, Server, is_result, root};
use helenus_wire::thrift::{
    CfDef, ColumnDef, Compression, CounterColumn, Field, IndexType, KsDef, Map, Method, Reader, Text, args,
};

use crate::both::{Both, QUORUM, insert, parent, result_of, slice};
use crate::ring::Ring;
use crate::rpc_conditions::{
    columns_are_compared_and_set, insert_at, rows_are_found_by_an_index, statements_are_prepared,
};

const KEYSPACE: &str = "gate_rpc_definitions";

pub fn passes(ring: &Ring) {
    let cluster = Cql::connect(&ring.address(1));
    cluster.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    let gateway = Server::start_with(&["--gateway", &ring.address(1), "--rpc", "127.0.0.1:0"]);
    let local = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    let mut both = Both { cluster: Calls::of(&gateway), local: Calls::of(&local) };
    a_keyspace_is_made_with_its_families(&mut both);
    families_are_made_and_described(&mut both);
    definitions_that_the_local_server_refuses_are_refused(&mut both);
    definitions_that_a_cluster_cannot_have_are_refused(&mut both.cluster, &cluster);
    columns_are_written_and_read(&mut both);
    rows_are_found_by_an_index(&mut both);
    families_are_changed(&mut both);
    columns_are_compared_and_set(&mut both);
    statements_are_prepared(&mut both);
    statements_of_cql_2_make_families(&mut both);
    families_and_keyspaces_are_dropped(&mut both);
    old_clients_make_their_families(&cluster, &Calls::address_of(&gateway));
}

/// Programs of Astyanax, of the generated client and of Hector, and scripts of cassandra-cli.
fn old_clients_make_their_families(cluster: &Cql, address: &str) {
    let forget = || {
        for keyspace in ["astyanax", "generated", "reverse", "query", "\"Mailings\""] {
            cluster.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
        }
    };
    forget();
    Client::Astyanax.passes(address, &[]);
    Client::ThriftJava.passes(address, &[]);
    for script in ["reversed_comparators.cli", "query_plans.cli", "mailings.cli"] {
        Client::cassandra_cli(address, &root().join("tests/texts").join(script));
    }
    forget();
}

/// Whether a call has changed the schema of both.
fn done<'a>(both: &mut Both, method: Method, asked: &impl Field<'a>) {
    let (cluster, local) = both.answers(method, asked);
    for (name, answer) in [("cluster", cluster), ("local", local)] {
        assert!(is_result(&answer, method), "{method:?}, {name}: {}", String::from_utf8_lossy(&answer));
    }
}

fn texts<'t>(pairs: &[(&'t str, &'t str)]) -> Option<Map<Text<'t>, Text<'t>>> {
    Some(Map(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()))
}

fn keyspace<'k>(name: &'k str, families: Vec<CfDef<'k>>, durable: bool) -> args::WithKsDef<'k> {
    let ks_def = KsDef {
        name: name.into(),
        strategy_class: "org.apache.cassandra.locator.SimpleStrategy".into(),
        strategy_options: texts(&[("replication_factor", "1")]),
        replication_factor: None,
        cf_defs: families,
        durable_writes: Some(durable),
    };
    args::WithKsDef { ks_def }
}

/// A family with these classes for names, values and keys.
fn family<'f>(name: &'f str, [comparator, value, key]: [&'f str; 3]) -> CfDef<'f> {
    CfDef {
        comparator_type: Some(comparator.into()),
        default_validation_class: Some(value.into()),
        key_validation_class: Some(key.into()),
        ..CfDef::named(KEYSPACE, name)
    }
}

fn declared<'c>(name: &'c str, class: &'c str, index: Option<&'c str>) -> ColumnDef<'c> {
    ColumnDef {
        name: name.as_bytes().into(),
        validation_class: class.into(),
        index_type: index.map(|_| IndexType::Keys),
        index_name: index.map(Into::into),
        index_options: None,
    }
}

/// A family with all options, none of which is a default.
fn with_options() -> CfDef<'static> {
    CfDef {
        comment: Some("it's all set".into()),
        gc_grace_seconds: Some(4321),
        min_compaction_threshold: Some(5),
        max_compaction_threshold: Some(19),
        key_alias: Some(b"Id"[..].into()),
        compaction_strategy: Some("org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy".into()),
        compaction_strategy_options: texts(&[("bucket_high", "1.7")]),
        compression_options: texts(&[
            ("sstable_compression", "DeflateCompressor"),
            ("chunk_length_kb", "32"),
        ]),
        bloom_filter_fp_chance: Some(0.2),
        caching: Some("all".into()),
        cells_per_row_to_cache: Some("17".into()),
        memtable_flush_period_in_ms: Some(3_600_000),
        default_time_to_live: Some(86_400),
        speculative_retry: Some("95.0PERCENTILE".into()),
        min_index_interval: Some(64),
        max_index_interval: Some(512),
        ..family("optioned", ["AsciiType", "UTF8Type", "UTF8Type"])
    }
}

fn users() -> CfDef<'static> {
    let columns = vec![
        declared("age", "LongType", Some("users_by_age")),
        declared("State", "UTF8Type", Some("users_by_state")),
        declared("email", "UTF8Type", None),
    ];
    CfDef { column_metadata: Some(columns), ..family("users", ["UTF8Type", "BytesType", "UTF8Type"]) }
}

/// Families of each kind.
fn families() -> Vec<CfDef<'static>> {
    let hex = vec![declared("ab", "UTF8Type", None)];
    let counted = vec![declared("hits", "CounterColumnType", None)];
    vec![
        with_options(),
        users(),
        family("down", ["LongType(reversed=true)", "AsciiType", "LongType"]),
        family(
            "composite",
            ["CompositeType(UTF8Type,LongType)", "UTF8Type", "CompositeType(UTF8Type,UUIDType)"],
        ),
        family("downward", ["CompositeType(UTF8Type(reversed=true),LongType(reversed=true))", "", ""]),
        family("counting", ["UTF8Type", "CounterColumnType", "UTF8Type"]),
        family("uuids", ["UUIDType", "TimestampType", "IntegerType"]),
        CfDef { column_metadata: Some(hex), ..family("bytes", ["BytesType", "BytesType", "BytesType"]) },
        CfDef {
            column_metadata: Some(counted),
            ..family("tally", ["AsciiType", "CounterColumnType", "AsciiType"])
        },
    ]
}

fn a_keyspace_is_made_with_its_families(both: &mut Both) {
    let wide = family("wide", ["UTF8Type", "UTF8Type", "UTF8Type"]);
    done(both, Method::SystemAddKeyspace, &keyspace(KEYSPACE, vec![wide, users()], true));
    both.same(Method::SetKeyspace, &args::OfKeyspace { keyspace: KEYSPACE });
    assert_eq!(described(both), ["users", "wide"]);
    // What is there already, by keyspace and family.
    both.refused(
        Method::SystemAddKeyspace,
        &keyspace("Gate_RPC_definitions", vec![], true),
        "case-insensitively unique",
    );
    done(both, Method::SystemDropColumnFamily, &args::OfColumnFamily { column_family: "users" });
    assert_eq!(described(both), ["wide"]);
}

fn families_are_made_and_described(both: &mut Both) {
    for cf_def in families() {
        done(both, Method::SystemAddColumnFamily, &args::WithCfDef { cf_def });
    }
    let names = described(both);
    assert_eq!(names.len(), families().len() + 1, "{names:?}");
    let cf_def = with_options();
    both.refused(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def }, "already exist");
}

/// Compares what both describe. Returns the names of the families.
fn described(both: &mut Both) -> Vec<String> {
    let (cluster, local) = both.answers(Method::DescribeKeyspace, &args::OfKeyspace { keyspace: KEYSPACE });
    let read = |answer: &[u8]| {
        let mut keyspace =
            KsDef::read(&mut Reader::new(result_of(answer, Method::DescribeKeyspace))).expect("a keyspace");
        for family in &mut keyspace.cf_defs {
            family.column_metadata.iter_mut().for_each(|columns| columns.sort_by(|a, b| a.name.cmp(&b.name)));
            if family.name != "optioned" {
                // The defaults of a node.
                family.compaction_strategy = None;
                family.compaction_strategy_options = None;
                family.compression_options = None;
                family.bloom_filter_fp_chance = None;
            }
            for options in [&mut family.compaction_strategy_options, &mut family.compression_options] {
                options.iter_mut().for_each(|options| options.0.sort());
            }
        }
        keyspace.cf_defs.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<String> = keyspace.cf_defs.iter().map(|family| family.name.to_string()).collect();
        (format!("{keyspace:#?}"), names)
    };
    let ((cluster, names), (local, _)) = (read(&cluster), read(&local));
    for (of_cluster, of_local) in cluster.lines().zip(local.lines()) {
        assert_eq!(of_cluster, of_local, "the cluster's:\n{cluster}\nthe local one's:\n{local}");
    }
    names
}

fn definitions_that_the_local_server_refuses_are_refused(both: &mut Both) {
    let plain = || family("bad", ["UTF8Type", "UTF8Type", "UTF8Type"]);
    let with = |columns| CfDef { column_metadata: Some(columns), ..plain() };
    for (cf_def, why) in [
        (family("bad", ["FooType", "", ""]), "Unable to find"),
        (CfDef { name: "not a name".into(), ..plain() }, "ColumnFamily name must not be empty"),
        (CfDef { column_type: Some("Hyper".into()), ..plain() }, "Invalid column type"),
        (CfDef { caching: Some("some".into()), ..plain() }, "Invalid value some for caching"),
        (family("bad", ["CounterColumnType", "", ""]), "not a valid comparator"),
        (with(vec![declared("a", "CounterColumnType", None)]), "Cannot add a counter column"),
        (with(vec![declared("a", "UTF8Type", Some("users_by_age"))]), "Duplicate index name users_by_age"),
        (with(vec![declared("a", "UTF8Type", None), declared("a", "UTF8Type", None)]), "Duplicate column a"),
        (CfDef { keyspace: "gate_missing".into(), ..plain() }, "non existing keyspace"),
    ] {
        both.refused(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def }, why);
    }
    for (cf_def, why) in [
        (family("missing", ["UTF8Type", "", ""]), "unconfigured table missing"),
        (family("optioned", ["LongType", "UTF8Type", "UTF8Type"]), "comparators do not match"),
        (family("optioned", ["AsciiType", "LongType", "UTF8Type"]), "cannot be changed from"),
    ] {
        both.refused(Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def }, why);
    }
    let missing = args::OfColumnFamily { column_family: "missing" };
    both.refused(Method::SystemDropColumnFamily, &missing, "unconfigured table missing");
    both.refused(Method::SystemUpdateKeyspace, &keyspace("gate_missing", vec![], true), "does not exist");
    both.refused(
        Method::SystemDropKeyspace,
        &args::OfKeyspace { keyspace: "gate_missing" },
        "non existing keyspace",
    );
    let foreign = keyspace("gate_other", vec![plain()], true);
    both.refused(Method::SystemAddKeyspace, &foreign, "did not match KsDef");
    both.refused(Method::SystemAddKeyspace, &keyspace("system", vec![], true), "not user-modifiable");
}

fn definitions_that_a_cluster_cannot_have_are_refused(calls: &mut Calls, cluster: &Cql) {
    let supers = CfDef {
        column_type: Some("Super".into()),
        subcomparator_type: Some("LongType".into()),
        ..family("supers", ["UTF8Type", "UTF8Type", "UTF8Type"])
    };
    let mixed = family("mixed", ["CompositeType(UTF8Type,LongType(reversed=true))", "", ""]);
    let both = CfDef {
        column_metadata: Some(vec![ColumnDef {
            name: b"\0\x01a\0\0\x08\0\0\0\0\0\0\0\x01\0"[..].into(),
            ..declared("", "UTF8Type", None)
        }]),
        ..family("both", ["CompositeType(UTF8Type,LongType)", "", ""])
    };
    for (cf_def, why) in [
        (supers, "it would have super columns"),
        (mixed, "its clustering columns are in different orders"),
        (both, "column family both cannot be made at the cluster"),
    ] {
        let answer = calls.exception(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def });
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(why), "{text}");
    }
    // What the cluster refuses leaves nothing behind: neither the keyspace nor the family before the one refused.
    let strange = || CfDef {
        compaction_strategy: Some("NoSuchStrategy".into()),
        ..CfDef { keyspace: "gate_rpc_undone".into(), ..family("strange", ["UTF8Type", "", ""]) }
    };
    let first = CfDef { keyspace: "gate_rpc_undone".into(), ..family("first", ["UTF8Type", "", ""]) };
    let answer = calls
        .exception(Method::SystemAddKeyspace, &keyspace("gate_rpc_undone", vec![first, strange()], true));
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("NoSuchStrategy"), "{text}");
    let left = cluster
        .rows("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'gate_rpc_undone'");
    assert!(left.is_empty(), "{left:?}");
    let indexed = CfDef {
        column_metadata: Some(vec![ColumnDef {
            index_type: Some(IndexType::Custom),
            index_options: texts(&[("class_name", "StorageAttachedIndex"), ("no_such_option", "1")]),
            ..declared("a", "UTF8Type", Some("indexed_a"))
        }]),
        ..family("indexed", ["UTF8Type", "", ""])
    };
    calls.exception(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def: indexed });
    let left = cluster.rows(&format!(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}' AND table_name = 'indexed'"
    ));
    assert!(left.is_empty(), "{left:?}");
}

fn columns_are_written_and_read(both: &mut Both) {
    let long = 7_i64.to_be_bytes();
    let uuid = [7; 16];
    let composite = |number: i64| [b"\0\x01n\0\0\x08", &number.to_be_bytes()[..], b"\0"].concat();
    let composite_key = [b"\0\x01k\0\0\x10", &uuid[..], b"\0"].concat();
    for (family, key, name, value) in [
        ("wide", &b"k"[..], &b"n"[..], &b"v"[..]),
        ("down", &long, &long, b"v"),
        ("composite", &composite_key, &composite(1), b"v"),
        ("composite", &composite_key, &composite(-1), b"w"),
        ("downward", b"k", &composite(1), b"v"),
        ("downward", b"k", &composite(2), b"w"),
        ("uuids", b"\x05", &uuid, &long),
        ("bytes", b"k", b"\xab", b"declared"),
        ("bytes", b"k", b"\xac", b"\0"),
        ("bytes", b"k", b"\xaa", b"\0"),
    ] {
        insert(both, (family, key), (name, value));
        slice(both, (family, key));
    }
    for (family, name) in [("counting", &b"n"[..]), ("tally", b"hits"), ("tally", b"a")] {
        let column = CounterColumn { name, value: 5 };
        let add = args::Add { key: b"k", column_parent: parent(family), column, consistency_level: QUORUM };
        both.same(Method::Add, &add);
        slice(both, (family, b"k"));
    }
}

fn families_are_changed(both: &mut Both) {
    // A declared column and an index more, an index and another column less, and an option.
    let columns = vec![
        declared("age", "LongType", Some("users_by_age")),
        declared("State", "UTF8Type", None),
        declared("nick", "AsciiType", Some("users_by_nick")),
        declared("other", "BytesType", None),
    ];
    let changed = || CfDef {
        column_metadata: Some(columns.clone()),
        comment: Some("changed".into()),
        gc_grace_seconds: Some(99),
        ..family("users", ["UTF8Type", "BytesType", "UTF8Type"])
    };
    done(both, Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def: changed() });
    described(both);
    // Twice, and as it is described, it changes nothing.
    done(both, Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def: changed() });
    described(both);
    let answer = both.cluster.answer(Method::DescribeKeyspace, &args::OfKeyspace { keyspace: KEYSPACE });
    let keyspace = KsDef::read(&mut Reader::new(result_of(&answer, Method::DescribeKeyspace))).expect("one");
    for cf_def in keyspace.cf_defs {
        both.cluster.answer(Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def });
    }
    described(both);
    // A value that was written before its column was declared is found at its old place.
    insert_at(both, 3_000, "row 1", (b"nick", b"one"));
    slice(both, ("users", b"row 1"));
    slice(both, ("users", b"row 2"));
    // A dynamic family becomes one with declared columns.
    let columns = vec![declared("n", "UTF8Type", None), declared("fresh", "LongType", None)];
    let cf_def =
        CfDef { column_metadata: Some(columns), ..family("wide", ["UTF8Type", "UTF8Type", "UTF8Type"]) };
    done(both, Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def });
    described(both);
    slice(both, ("wide", b"k"));
    // A change of a type is none that a cluster makes.
    let columns = vec![declared("n", "BytesType", None), declared("fresh", "LongType", None)];
    let cf_def =
        CfDef { column_metadata: Some(columns), ..family("wide", ["UTF8Type", "UTF8Type", "UTF8Type"]) };
    let refused = both.cluster.exception(Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def });
    let refused = String::from_utf8_lossy(&refused);
    assert!(refused.contains("column n of wide cannot be changed from text to blob"), "{refused}");
    done(both, Method::SystemUpdateKeyspace, &keyspace_alone(false));
    described(both);
    done(both, Method::SystemUpdateKeyspace, &keyspace_alone(true));
}

fn keyspace_alone(durable: bool) -> args::WithKsDef<'static> {
    keyspace(KEYSPACE, vec![], durable)
}

fn families_and_keyspaces_are_dropped(both: &mut Both) {
    let dropped = args::OfColumnFamily { column_family: "wide" };
    done(both, Method::SystemDropColumnFamily, &dropped);
    both.refused(Method::SystemDropColumnFamily, &dropped, "unconfigured table wide");
    let keyspace = args::OfKeyspace { keyspace: KEYSPACE };
    done(both, Method::SystemDropKeyspace, &keyspace);
    both.refused(Method::SystemDropKeyspace, &keyspace, "non existing keyspace");
    both.compared(Method::DescribeKeyspace, &keyspace);
}

fn statements_of_cql_2_make_families(both: &mut Both) {
    for text in [
        "CREATE COLUMNFAMILY people (KEY text PRIMARY KEY, state text, age bigint)",
        "CREATE INDEX people_state ON people (state)",
        "INSERT INTO people (KEY, state, age) VALUES (ann, UT, 30) USING TIMESTAMP 5",
        "SELECT state, age FROM people WHERE state = UT AND age > 10",
        "ALTER TABLE people ADD nick text",
        "ALTER COLUMNFAMILY people WITH comment = 'they'",
        "DROP INDEX people_state",
    ] {
        both.same(
            Method::ExecuteCqlQuery,
            &args::CqlQuery { query: text.as_bytes(), compression: Compression::None },
        );
        if !text.starts_with("INSERT") && !text.starts_with("SELECT") {
            described(both);
        }
    }
    let again =
        args::CqlQuery { query: b"SELECT * FROM people WHERE state = UT", compression: Compression::None };
    both.refused(Method::ExecuteCqlQuery, &again, "No indexed columns");
}
