//! Every component cut short and with flipped bits: a table with our page checksums answers with an error or rightly, never
//! with a wrong row or without one; any other neither panics nor goes on for ever.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;
mod sound;

use helenus_host::memory;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_sstable::Error;
use helenus_sstable::component::Component;
use helenus_sstable::data::PartitionReader;
use helenus_sstable::table::SsTable;
use helenus_sstable::version::Version;
use sound::{FOLDER, Sound, VERSIONS, each_damage, found, ordered, scanned, write};
use std::path::Path;
use std::sync::Arc;

/// Reads a damaged table in every way. What it yields must be right up to an error.
fn check(sound: &Sound, table: &Arc<SsTable>, what: &str) {
    let (lines, end) = scanned(table);
    assert!(sound.lines.starts_with(&lines), "{what}: a scan yields other rows");
    match end {
        Ok(()) => assert_eq!(lines.len(), sound.lines.len(), "{what}: a scan misses rows"),
        Err(error) => assert_named(&error, what),
    }
    for (key, expected) in sound.partitions.iter().step_by(23) {
        let (lines, end) = found(table, &PartitionKey::new(key.clone()));
        assert!(expected.starts_with(&lines), "{what}: a partition yields other rows");
        match end {
            Ok(is_there) => {
                assert!(is_there && lines.len() == expected.len(), "{what}: a partition is missing");
            }
            Err(error) => assert_named(&error, what),
        }
    }
}

/// Errors tell the file.
fn assert_named(error: &Error, what: &str) {
    let is_named = match error {
        Error::Corrupt { file, .. } | Error::Io { file, .. } | Error::Unsupported { file, .. } => {
            file.starts_with(FOLDER)
        }
        Error::WouldBlock => false,
    };
    assert!(is_named, "{what}: {error}");
}

#[test]
fn with_page_checksums_every_damage_is_an_error_or_does_not_matter() {
    for version in VERSIONS {
        for compressed in [false, true] {
            let sound = write(version, compressed, true);
            each_damage(&sound, 8, |name, bytes, what| match sound.damaged(name, bytes) {
                Ok(table) => check(&sound, &table, what),
                Err(error) => assert_named(&error, what),
            });
        }
    }
}

#[test]
fn without_them_no_damage_makes_a_reader_panic_or_never_end() {
    for version in VERSIONS {
        let mut sound = write(version, false, false);
        let crc = sound.descriptor.file_name(Component::Crc);
        sound.files.retain(|(name, _)| *name != crc);
        each_damage(&sound, 30, |name, bytes, _| {
            if let Ok(table) = sound.damaged(name, bytes) {
                let _ = scanned(&table);
                for key in sound.partitions.keys().step_by(31) {
                    let _ = found(&table, &PartitionKey::new(key.clone()));
                }
            }
        });
    }
}

#[test]
fn verify_finds_an_index_that_leads_elsewhere() {
    for version in [Version::Oa, Version::Nb, Version::Me] {
        let sound = write(version, false, false);
        let name = sound.descriptor.file_name(Component::Index);
        let (_, index) = sound.files.iter().find(|(file, _)| *file == name).unwrap();
        // The first entry: length, key of four bytes, then where the partition is.
        let mut damaged = index.clone();
        damaged[6] ^= 1;
        let host = memory::host();
        let table = sound.damaged(&name, &damaged).unwrap();
        let error = table.verify(&*host.disk, Path::new(FOLDER)).unwrap_err();
        assert!(error.to_string().contains("Index.db"), "{error}");
    }
}

/// The rows of wide partitions by slices that begin at every so many rows, in both directions.
fn sliced(sound: &Sound, table: &Arc<SsTable>) -> Vec<Vec<String>> {
    let mut cx = render::cx();
    let mut all = Vec::new();
    for (key, _) in sound.partitions.iter().filter(|(_, lines)| lines.len() > 100) {
        for (from, reversed) in (0..400).step_by(37).flat_map(|from| [(from, false), (from, true)]) {
            let slice = Slice { start: ordered(&sound.schema, from, Some(true)), end: AFTER_ALL.to_vec() };
            let slice = match reversed {
                false => slice,
                true => Slice { start: BEFORE_ALL.to_vec(), end: slice.start },
            };
            let mut lines = Vec::new();
            if let Ok(Some(mut reader)) =
                PartitionReader::find(table, &PartitionKey::new(key.clone()), true, &mut cx)
            {
                reader.seek_slice(&slice, reversed);
                let ended = sound::rest(&mut reader, table, &mut lines);
                lines.extend(ended.err().map(|error| error.to_string()));
            }
            all.push(lines);
        }
    }
    all
}

#[test]
fn a_table_that_verify_passes_answers_rightly_whatever_is_wrong_with_its_indexes() {
    for version in VERSIONS {
        let sound = write(version, false, false);
        let expected = sliced(&sound, &sound.open(&sound.with("", b"")).unwrap());
        let (mut passed, mut refused) = (0, 0);
        each_damage(&sound, 150, |name, bytes, what| {
            let is_index = ["Index.db", "Summary.db", "Partitions.db", "Rows.db"];
            if !is_index.iter().any(|component| name.ends_with(component)) {
                return;
            }
            let host = sound.with(name, bytes);
            let Ok(table) = sound.open(&host) else { return refused += 1 };
            if table.verify(&*host.disk, Path::new(FOLDER)).is_err() {
                return refused += 1;
            }
            passed += 1;
            check(&sound, &table, what);
            assert!(sliced(&sound, &table) == expected, "{version} {what}: slices yield other rows");
        });
        assert!(refused > 3 * passed, "{version}: {passed} passed, {refused} refused");
    }
}
