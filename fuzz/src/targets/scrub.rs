//! Scrubbing a table of which one component is damaged: what comes out is a sound table, whatever went in.

use super::sstable::{SOUND, put};
use helenus_host::memory;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::scrub::{SORTED_BYTES_DEFAULT, Scrubbing, scrub};
use helenus_sstable::table::SsTable;
use std::path::Path;

const OUT: &str = "/out";

/// Data.db and the indexes, each behind a byte that says which.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let files = SOUND.iter().flat_map(|sound| &sound.files);
    let numbered = files.filter_map(|(kind, bytes)| Some((number_of(*kind)?, bytes)));
    numbered.map(|(number, bytes)| [&[number], &bytes[..]].concat()).collect()
}

const KINDS: [Component; 5] =
    [Component::Data, Component::Index, Component::Partitions, Component::Rows, Component::Filter];

fn number_of(kind: Component) -> Option<u8> {
    KINDS.iter().position(|known| *known == kind).map(|number| number as u8)
}

pub(super) fn run(input: &[u8]) {
    let Some((number, input)) = input.split_first() else { return };
    let component = KINDS[usize::from(*number) % KINDS.len()];
    for sound in SOUND.iter().filter(|sound| sound.files.iter().any(|(kind, _)| *kind == component)) {
        let host = memory::host();
        for (kind, bytes) in &sound.files {
            let bytes = if *kind == component { input } else { bytes.as_slice() };
            put(&host, &sound.descriptor.path(&sound.folder, *kind), bytes);
        }
        host.disk.create_dir_all(Path::new(OUT)).unwrap_or_else(|error| panic!("{error}"));
        let version = sound.descriptor.version;
        let mut number = 0;
        let how = Scrubbing {
            folder: Path::new(OUT),
            names: ("ks", "t"),
            known: None,
            version,
            validate: true,
            skip_corrupted: false,
            reinsert_overflowed: true,
            page_checksums: false,
            sorted_bytes: SORTED_BYTES_DEFAULT,
            next: &mut || {
                number += 1;
                Ok(Descriptor { version, id: SsTableId::Sequence(number) })
            },
            lost: &mut |_| {},
            progress: &mut |_, _| {},
        };
        let Ok(scrubbed) = scrub(&host.disk, (&sound.folder, sound.descriptor), how) else { continue };
        for descriptor in scrubbed.written {
            let cache = BufferPool::offline();
            let place = (Path::new(OUT), descriptor);
            let table = SsTable::open_without_schema(&*host.disk, place, ("ks", "t"), cache);
            let verified = table.and_then(|table| table.verify(&*host.disk, Path::new(OUT)));
            assert!(
                verified.is_ok(),
                "{version}: {}",
                verified.err().map(|e| e.to_string()).unwrap_or_default()
            );
        }
    }
}
