//! The small files around an SSTable: TOC.txt, Digest.crc32, transaction logs, schema.cql.

use super::sstable::{SCHEMA, put};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::memory;
use helenus_sstable::component::Component;
use helenus_sstable::toc::Toc;
use helenus_sstable::transaction_log::{Record, RecordKind, invalid_prefixes, recover};
use std::path::Path;
use std::sync::{Arc, LazyLock};

pub(super) fn tocs() -> Vec<Vec<u8>> {
    let of = |names: &[&str]| names.join("\n").into_bytes();
    vec![Toc::of(&Component::ALL).to_bytes(), of(&["Data.db", "", "SAI+aa+x.db", " TOC.txt"]), Vec::new()]
}

pub(super) fn run_toc(input: &[u8]) {
    let file = Path::new("TOC.txt");
    let Ok(toc) = Toc::parse(input, file) else { return };
    match Toc::parse(&toc.to_bytes(), file) {
        Ok(again) => assert_eq!(again, toc),
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn digests() -> Vec<Vec<u8>> {
    vec![b"4294967295".to_vec(), b"0\n".to_vec(), b"1234567890".to_vec()]
}

pub(super) fn run_digest(input: &[u8]) {
    let file = Path::new("Digest.crc32");
    if let Ok(crc) = helenus_sstable::digest::parse(input, file) {
        assert!(helenus_sstable::digest::parse(&helenus_sstable::digest::to_bytes(crc), file).is_ok());
    }
}

/// SSTables in the folder of the logs.
const PREFIXES: [&str; 4] = ["da-1-bti-", "da-2-bti-", "nb-11-big-", "nb-1-big-"];
/// What no log may touch.
const BYSTANDER: &str = "/t/da-99-bti-Data.db";

pub(super) fn logs() -> Vec<Vec<u8>> {
    let record = |kind, name: &str, files| {
        let path = if name.is_empty() { String::new() } else { format!("/elsewhere/t/{name}") };
        let modified_ms = if kind == RecordKind::Remove { 1_700_000_000_123 } else { 0 };
        Record { kind, path, modified_ms, files }
    };
    let last = |kind| record(kind, "", 0);
    let log = |records: &[Record]| {
        records.iter().flat_map(|record| (record.to_line() + "\n").into_bytes()).collect::<Vec<u8>>()
    };
    let compaction = [record(RecordKind::Add, PREFIXES[0], 8), record(RecordKind::Remove, PREFIXES[1], 1)];
    vec![
        log(&compaction),
        log(&[compaction[0].clone(), compaction[1].clone(), last(RecordKind::Commit)]),
        log(&[compaction[0].clone(), last(RecordKind::Abort)]),
        log(&[record(RecordKind::Remove, PREFIXES[3], 1), last(RecordKind::Commit)]),
    ]
}

pub(super) fn run_log(input: &[u8]) {
    judge(input);
    // Most changes break a checksum: made right again, what stands behind it is looked at too.
    let text = String::from_utf8_lossy(input);
    let mended: String = text.lines().map(|line| mend(line).unwrap_or(line.to_owned()) + "\n").collect();
    judge(mended.as_bytes());
}

/// The line with the checksum that its content asks for.
fn mend(line: &str) -> Option<String> {
    let (word, rest) = line.split_once(":[")?;
    let (fields, _) = rest.rsplit_once("][")?;
    let mut fields = fields.rsplitn(3, ',');
    let (files, modified_ms) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let kind = match word {
        "ADD" => RecordKind::Add,
        "REMOVE" => RecordKind::Remove,
        "COMMIT" => RecordKind::Commit,
        "ABORT" => RecordKind::Abort,
        _ => return None,
    };
    Some(Record { kind, path: fields.next()?.to_owned(), modified_ms, files }.to_line())
}

fn judge(log: &[u8]) {
    let host = memory::host();
    let folder = Path::new("/t");
    for prefix in PREFIXES {
        put(&host, &folder.join(format!("{prefix}Data.db")), b"rows");
    }
    put(&host, Path::new(BYSTANDER), b"rows");
    let path = folder.join("bti-da_txn_compaction_50554d6e-29bb-11e5-b345-feff819cdc9f.log");
    put(&host, &path, log);
    let useless = invalid_prefixes(&*host.disk, folder);
    let recovered = recover(&*host.disk, folder);
    // Who only looks and who cleans up come to the same.
    assert_eq!(useless.is_ok(), recovered.is_ok(), "{useless:?} {recovered:?}");
    let Ok(useless) = useless else {
        assert!(PREFIXES.iter().all(|prefix| host.disk.exists(&folder.join(format!("{prefix}Data.db")))));
        return;
    };
    for prefix in PREFIXES {
        let is_useless = useless.iter().any(|useless| prefix.starts_with(&**useless));
        assert_eq!(host.disk.exists(&folder.join(format!("{prefix}Data.db"))), !is_useless, "{useless:?}");
    }
    assert!(host.disk.exists(Path::new(BYSTANDER)) || useless.iter().any(|useless| useless.contains("99")));
}

static BACKEND: LazyLock<Arc<LocalBackend>> = LazyLock::new(|| {
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let opened = Database::open(memory::host(), options).unwrap_or_else(|error| panic!("{error}"));
    LocalBackend::new(opened.0, LocalOptions::default())
});

pub(super) fn schemas() -> Vec<Vec<u8>> {
    let statements = SCHEMA.join(";\n") + ";\n";
    let more = "CREATE INDEX i ON ks.plain (v);\nCREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.plain;\n\
                ALTER TABLE ks.plain DROP s USING TIMESTAMP 5;\n/* a comment; */ -- and; another\n";
    let of_node = "CREATE TABLE IF NOT EXISTS ks.t (\n    a int,\n    b frozen<map<text, list<int>>>,\n    PRIMARY KEY (a, b)\n\
                   ) WITH ID = 50554d6e-29bb-11e5-b345-feff819cdc9f\n    AND CLUSTERING ORDER BY (b DESC)\n    AND comment = 'x;y';\n";
    vec![statements.clone().into_bytes(), (statements + more).into_bytes(), of_node.as_bytes().to_vec()]
}

pub(super) fn run_schema(input: &[u8]) {
    let _refused = BACKEND.schema_of_text(&String::from_utf8_lossy(input));
}
