//! What the server reads besides requests of clients: its settings in YAML, orders on the admin socket and the manifests of
//! backups in JSON, and backups as one file.

use super::sstable::put;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::CheckedPath;
use helenus_engine::import::ImportProgress;
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::{Host, memory};
use helenus_server::admin::{AdminRequest, RestoreOrder, TableSelection};
use helenus_server::backup::{ArchiveWriter, BackedUpFile, BackedUpTable, BackupManifest, MANIFEST, restore};
use helenus_server::config::{OPTIONS, ServerConfig, Settings};
use std::path::{Path, PathBuf};

pub(super) fn settings() -> Vec<Vec<u8>> {
    let all: String = OPTIONS.iter().map(|option| format!("{}: {}\n", option.key, option.default)).collect();
    let of_cassandra = "cluster_name: 'Test Cluster'\nnum_tokens: 16\ncommitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n\
        data_file_directories:\n    - /var/lib/cassandra/data\nseed_provider:\n    - class_name: x\n      parameters:\n          - seeds: \
        \"127.0.0.1:7000\"\nread_request_timeout: 5s\nmax_mutation_size: 16MiB\nauthenticator: AllowAllAuthenticator\n";
    let odd = "a: &x [1, {b: *x}]\n<<: {c: 1}\n? key\n: |\n  text\n  more\nd: !!binary aGk=\n--- \n...\n";
    [all, of_cassandra.to_owned(), odd.to_owned(), "{}".to_owned()].map(String::into_bytes).to_vec()
}

pub(super) fn run_settings(input: &[u8]) {
    let mut settings = Settings::default();
    if settings.read_yaml("helenus.yaml", &String::from_utf8_lossy(input)).is_ok() {
        let _refused = ServerConfig::new(&settings, 8 << 30, 4);
    }
}

pub(super) fn orders() -> Vec<Vec<u8>> {
    let requests = [
        AdminRequest::Status,
        AdminRequest::Flush { which: TableSelection::keyspace("ks") },
        AdminRequest::Rewrite { which: TableSelection::table("ks", "t"), current: true },
        AdminRequest::TraceProbability { set: Some(0.5) },
    ];
    let text = |request: &AdminRequest| serde_json::to_vec(request).unwrap_or_default();
    requests.iter().map(text).collect()
}

/// An order that is understood is written and understood again.
pub(super) fn run_order(input: &[u8]) {
    let Ok(request) = serde_json::from_slice::<AdminRequest>(input) else { return };
    let text = serde_json::to_string(&request).unwrap_or_default();
    assert!(serde_json::from_str::<AdminRequest>(&text).is_ok(), "{text}");
}

pub(super) fn manifests() -> Vec<Vec<u8>> {
    let host = memory::host();
    let directory = Path::new("/backup");
    host.disk.create_dir_all(directory).unwrap_or_else(|error| panic!("{error}"));
    let manifest = BackupManifest::new(
        "50554d6e-29bb-11e5-b345-feff819cdc9f".into(),
        "2026-11-22T10:00:00Z".into(),
        "0.1.0",
    );
    manifest.write(&*host.disk, directory).unwrap_or_else(|error| panic!("{error}"));
    let bytes = super::sstable::whole_file(&host, &directory.join(MANIFEST)).unwrap_or_default();
    let full = br#"{"format":1,"id":"x","created_at":"y","version":"0.1.0","tables":[{"keyspace":"k","table":"t","sstables":1}],
        "files":[{"path":"../../etc/x","bytes":18446744073709551615,"sha256":"00"}]}"#;
    vec![bytes, full.to_vec()]
}

/// A manifest that is understood is checked against the folder, where nothing is.
pub(super) fn run_manifest(input: &[u8]) {
    let host = memory::host();
    let directory = Path::new("/backup");
    put(&host, &directory.join(MANIFEST), input);
    if let Ok(manifest) = BackupManifest::read(&*host.disk, directory) {
        manifest.write(&*host.disk, directory).unwrap_or_else(|error| panic!("{error}"));
        assert!(BackupManifest::read(&*host.disk, directory).is_ok());
    }
}

const ARCHIVE: &str = "/in/b.tar";
/// Of an archive.
const BLOCK: usize = 512;

pub(super) fn archives() -> Vec<Vec<u8>> {
    let host = memory::host();
    let failed = |error: std::io::Error| -> ! { panic!("{error}") };
    let manifest = BackupManifest::new("id".into(), "2026-11-22T10:00:00Z".into(), "0.1.0");
    let mut manifest = BackupManifest {
        tables: vec![BackedUpTable { keyspace: "ks".into(), table: "t".into(), sstables: 1 }],
        ..manifest
    };
    put(&host, Path::new("/in/x"), b"");
    let mut archive =
        ArchiveWriter::begin(&host.disk, Path::new(ARCHIVE), 0).unwrap_or_else(|error| failed(error));
    let schema = "CREATE TABLE ks.t (k int PRIMARY KEY, v int);";
    let long = format!("ks/t/{}/da-1-bti-Data.db", "d".repeat(90));
    for (name, text) in [("schema.cql", schema), ("ks/t/da-1-bti-TOC.txt", "Data.db\n"), (&*long, "")] {
        let source = Path::new("/in").join(text.len().to_string());
        put(&host, &source, text.as_bytes());
        let (sha256, bytes) = archive.add(name, &source, &mut |_| {}).unwrap_or_else(|error| failed(error));
        if let Ok(path) = CheckedPath::new("a file", name) {
            manifest.files.push(BackedUpFile { path, bytes, sha256 });
        }
    }
    archive.finish(&manifest).unwrap_or_else(|error| failed(error));
    super::sstable::whole_file(&host, Path::new(ARCHIVE)).into_iter().collect()
}

/// An archive is unpacked below its own folder or refused, also when the sums of its blocks are right.
pub(super) fn run_archive(input: &[u8]) {
    let mut mended = input.to_vec();
    mend(&mut mended);
    for bytes in [input, &mended] {
        let host = memory::host();
        let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
        let (database, _) = Database::open(host.clone(), options).unwrap_or_else(|error| panic!("{error}"));
        let backend = LocalBackend::new(database, LocalOptions::default());
        put(&host, Path::new(ARCHIVE), bytes);
        let before = outside(&host);
        let order = RestoreOrder { directory: ARCHIVE.into(), ..RestoreOrder::default() };
        let place = (&host.disk, Some(Path::new("/db")));
        let _refused = restore(&backend, place, &order, &ImportProgress::default());
        assert_eq!(outside(&host), before, "files beside the database");
    }
}

/// What lies beside the database.
fn outside(host: &Host) -> Vec<PathBuf> {
    let list = |folder: &str| host.disk.list(Path::new(folder)).unwrap_or_default();
    [list("/"), list("/in")].concat()
}

/// Makes the sums of the blocks right that stand where a file's size leads to.
fn mend(archive: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = archive.get_mut(at..at + BLOCK) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = String::from_utf8_lossy(&block[124..135]).into_owned();
        let size = usize::from_str_radix(&size, 8).unwrap_or(0).min(archive.len());
        at += BLOCK + size.next_multiple_of(BLOCK);
    }
}
