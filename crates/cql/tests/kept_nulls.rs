//! Frozen lists with nulls, wherever a list can be bound, are sound to every reader of files: verify, scrub and import keep them.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::backend::{Backend, BoundValue, Identity, Outcome, Request};
use helenus_cql::{ImportRequest, LocalBackend, LocalOptions};
use helenus_engine::import::ImportProgress;
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_model::types::pack;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::scrub::{SORTED_BYTES_DEFAULT, Scrubbing, scrub};
use helenus_sstable::table::{OpenOptions, SsTable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Collected, rows_of, run_on};

const SCHEMA: [&str; 3] = [
    "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE s.u (a int, l frozen<list<int>>)",
    "CREATE TABLE s.t (k int, c frozen<list<int>>, d frozen<list<int>>, fixed frozen<list<int>> static, cell frozen<list<int>>, \
     m map<int, frozen<list<int>>>, u u, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)",
];

fn open(machine: &Machine, dir: &str) -> (Arc<Database>, Arc<LocalBackend>) {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new(dir)).unwrap();
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    SCHEMA.iter().for_each(|statement| run_on(&backend, statement));
    (database, backend)
}

/// Binds values, lists among them.
fn execute(backend: &LocalBackend, query: &str, values: &[&[u8]]) {
    let values: Vec<_> = values.iter().map(|value| BoundValue::Bytes(value)).collect();
    let identity = Identity::server();
    let answer = backend.query(query, &Request::plain(&identity, &values), &mut Collected::default());
    if let Outcome::Done(ticket) = answer.unwrap_or_else(|error| panic!("{query}: {error}")).outcome {
        ticket.wait().unwrap();
    }
}

#[test]
fn lists_with_nulls_in_any_place_are_verified_scrubbed_and_imported_whole() {
    let machine = Machine::new(1);
    let (database, backend) = open(&machine, "/db");
    let elements: [Option<&[u8]>; 3] = [None, Some(&[]), Some(&[0, 0, 0, 7])];
    for draw in 0..27_usize {
        let mut list = Vec::new();
        pack(3, [draw, draw / 3, draw / 9].map(|at| elements[at % 3]), &mut list);
        let key = (draw as i32 / 5).to_be_bytes();
        let insert = "INSERT INTO s.t (k, c, d, fixed, cell) VALUES (?, ?, ?, ?, ?)";
        execute(&backend, insert, &[&key, &list, &list, &list, &list]);
        let update = "UPDATE s.t SET m[1] = ?, u.l = ? WHERE k = ? AND c = ? AND d = ?";
        execute(&backend, update, &[&list, &list, &key, &list, &list]);
        if draw % 4 == 0 {
            execute(&backend, "DELETE FROM s.t WHERE k = ? AND c > ?", &[&key, &list]);
        }
    }
    let wanted = rows_of(&backend, "SELECT * FROM s.t");
    assert!(wanted.len() > 5);
    let table = database.schema().table("s", "t").cloned().unwrap();
    database.flush_all().unwrap();
    assert_eq!(rows_of(&backend, "SELECT * FROM s.t"), wanted);
    let disk = machine.host().disk;
    let data = machine.files_below(Path::new("/db/data/s")).unwrap();
    let (folder, descriptor) = data
        .iter()
        .find_map(|path| {
            let (found, component) = Descriptor::parse(path.file_name()?.to_str()?)?;
            (component == Component::Data.name()).then(|| (path.parent().unwrap().to_owned(), found))
        })
        .unwrap();
    let verify = |folder: &Path, descriptor: Descriptor| {
        let open = OpenOptions { schema: table.clone(), buffers: BufferPool::new(1 << 20) };
        let sstable = SsTable::open(&*disk, folder, descriptor, open).unwrap();
        sstable.verify(&*disk, folder).unwrap();
    };
    verify(&folder, descriptor);
    let out = PathBuf::from("/out/s/t");
    disk.create_dir_all(&out).unwrap();
    let mut lost = Vec::new();
    let scrubbing = Scrubbing {
        folder: &out,
        names: ("s", "t"),
        known: None,
        version: descriptor.version,
        validate: true,
        skip_corrupted: false,
        reinsert_overflowed: false,
        page_checksums: true,
        sorted_bytes: SORTED_BYTES_DEFAULT,
        next: &mut || Ok(Descriptor { id: SsTableId::Sequence(9), ..descriptor }),
        lost: &mut |loss| lost.push(format!("{loss:?}")),
        progress: &mut |_, _| {},
    };
    let scrubbed = scrub(&disk, (&folder, descriptor), scrubbing).unwrap();
    assert_eq!((lost, scrubbed.written.len()), (Vec::new(), 1));
    verify(&out, scrubbed.written[0]);
    let (_other, there) = open(&machine, "/other");
    let request = ImportRequest { directory: PathBuf::from("/out"), ..ImportRequest::default() };
    there.import(&disk, &request, &ImportProgress::default()).unwrap();
    assert_eq!(rows_of(&there, "SELECT * FROM s.t"), wanted);
}
