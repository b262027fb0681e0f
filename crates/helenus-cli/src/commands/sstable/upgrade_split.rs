//! `helenus sstable upgrade` and `split`: rewrite SSTables into another folder.

use super::find::{Found, find};
use super::known_schema::{KnownSchema, SchemaOption};
use super::names::{FILES, next_id, version_for};
use crate::commands::progress::Progress;
use crate::commands::rewrite::{Rewriting, Rewritten, rewrite};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use helenus_cql::counted;
use helenus_host::Host;
use helenus_server::quantity::parse_mebibytes;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableIds};
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::table::{SsTable, other_partitioner};
use helenus_sstable::transaction_log::{Operation, TransactionLog, recover};
use helenus_sstable::version::Version;
use helenus_sstable::writer::Beyond2038;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UPGRADE_EXAMPLES: &str = "Examples:
  helenus sstable upgrade old/shop/orders --output new/shop/orders
  helenus sstable upgrade --to nb FILE --output for-cassandra-4

Each SSTable is written anew into the other folder, in the version da or the one that is given (da, oa, nb, me); the
files that are read stay as they are. After an error nothing of the SSTable under way is left there.";

const SPLIT_EXAMPLES: &str = "Example:
  helenus sstable split --size 200M data/shop/orders-9ae6.../da-*-Data.db --output smaller

The pieces have about so many MiB, cut between partitions, and the version of the SSTable (ma to md become me, na becomes nb, nc
becomes oa, pa becomes oa, ea becomes da); the files that are read stay as they are.";

/// Options of `upgrade`.
#[derive(Args, Debug, Clone)]
#[command(after_help = UPGRADE_EXAMPLES)]
pub struct UpgradeOptions {
    /// SSTables, by any of their files, or folders of SSTables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder for the new ones; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The version to write
    #[arg(long, value_name = "VERSION", default_value = "da")]
    to: String,
    /// Replace times after 2038-01-19 03:14:06 UTC by that time in nb and me, which end there: data expires early
    #[arg(long)]
    cap_times: bool,
    #[command(flatten)]
    schema: SchemaOption,
    /// Print a line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

/// Options of `split`.
#[derive(Args, Debug, Clone)]
#[command(after_help = SPLIT_EXAMPLES)]
pub struct SplitOptions {
    /// SSTables, by any of their files, or folders of SSTables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder for the new ones; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Size of the data file of each new SSTable, such as 200M; a number alone is MiB
    #[arg(short, long, value_name = "SIZE", default_value = "50M", value_parser = parse_mebibytes)]
    size: u64,
    #[command(flatten)]
    schema: SchemaOption,
    /// Print a line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    data: PathBuf,
    written: Vec<PathBuf>,
    #[serde(skip_serializing_if = "is_zero")]
    times_capped: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is written, and how.
struct Target<'a> {
    files: &'a [PathBuf],
    /// An absolute path.
    output: &'a Path,
    schema: &'a SchemaOption,
    /// `None`: the version of the SSTable, or the next that is written.
    version: Option<Version>,
    bytes_max: Option<u64>,
    beyond_2038: Beyond2038,
    json: bool,
}

/// Runs `upgrade`.
///
/// # Errors
/// A version that cannot be written; damage; failures of the disk.
pub fn upgrade(host: &Host, options: &UpgradeOptions) -> Result<()> {
    let version = Version::parse(&options.to).filter(|version| version.is_written());
    let Some(version) = version else { bail!("--to {}: da, oa, nb and me are written", options.to) };
    rewrite_all(
        host,
        &Target {
            files: &options.files,
            output: &std::path::absolute(&options.output)?,
            schema: &options.schema,
            version: Some(version),
            bytes_max: None,
            beyond_2038: if options.cap_times { Beyond2038::Cap } else { Beyond2038::Refuse },
            json: options.json,
        },
    )
}

/// Runs `split`.
///
/// # Errors
/// Damage; failures of the disk.
pub fn split(host: &Host, options: &SplitOptions) -> Result<()> {
    let most = options.size.max(1 << 20);
    rewrite_all(
        host,
        &Target {
            files: &options.files,
            output: &std::path::absolute(&options.output)?,
            schema: &options.schema,
            version: None,
            bytes_max: Some(most),
            beyond_2038: Beyond2038::Refuse,
            json: options.json,
        },
    )
}

fn rewrite_all(host: &Host, target: &Target<'_>) -> Result<()> {
    let disk = &host.disk;
    let folder = target.output;
    let all = find(&**disk, target.files)?;
    of_one_table(&all)?;
    let known = KnownSchema::new(&**disk, target.schema)?;
    let mut tables = Vec::new();
    for found in all {
        if found.folder == folder {
            bail!("{}: give a folder with --output that is not the one read from", found.folder.display());
        }
        let table = found.open(&**disk, &known)?;
        if table.partitioner() != Partitioner::Murmur3 {
            let class = &table.statistics().validation.partitioner;
            bail!("{}: {}", found.data().display(), other_partitioner(class));
        }
        tables.push((table, found));
    }
    disk.create_dir_all(folder).with_context(|| format!("cannot make {}", target.output.display()))?;
    // What an earlier run left that was ended within an SSTable.
    recover(&**disk, folder)?;
    let total = tables.iter().map(|(table, _)| table.uncompressed_bytes()).sum();
    let mut progress = Progress::begin("write", total);
    let mut random = [0; 8];
    host.random.fill(&mut random);
    let mut ids = SsTableIds::new(u64::from_le_bytes(random));
    let mut out = std::io::stdout().lock();
    let mut before = 0;
    for (table, found) in &tables {
        progress.name(format!("write {}", found.descriptor));
        let source = Source { table, found };
        let written = one(host, &source, target, &mut ids, &mut |position| {
            progress.at(before + position);
        })?;
        before += table.uncompressed_bytes();
        let path = |descriptor: &Descriptor| descriptor.path(folder, Component::Data);
        let Rewritten { written, times_capped } = written;
        let line = Line { data: found.data(), written: written.iter().map(path).collect(), times_capped };
        progress.clear();
        if target.json {
            serde_json::to_writer(&mut out, &line)?;
            writeln!(out)?;
        } else {
            for path in &line.written {
                writeln!(out, "written     {}", path.display())?;
            }
            if times_capped > 0 {
                writeln!(out, "capped      {} after 2038-01-19T03:14:06Z", counted(times_capped, "time"))?;
            }
        }
    }
    Ok(())
}

/// An SSTable to rewrite, and where it was found.
struct Source<'a> {
    table: &'a Arc<SsTable>,
    found: &'a Found,
}

/// Rewrites one SSTable. A transaction log lists the new files until all are whole, so that a later run, and every
/// program that loads the folder, knows the files of a run that was ended.
fn one(
    host: &Host,
    Source { table, found }: &Source<'_>,
    target: &Target<'_>,
    ids: &mut SsTableIds,
    progress: &mut dyn FnMut(u64),
) -> Result<Rewritten> {
    let (disk, folder) = (&host.disk, target.output);
    let version = target.version.unwrap_or_else(|| version_for(found.descriptor.version));
    let id = ids.next(host.clock.wall_us()).to_uuid().unwrap_or_default();
    let mut log = TransactionLog::begin(disk.clone(), folder, Operation::Write, id);
    let mut next = || {
        let id = match target.version.is_none() {
            // The pieces take the place of the old one, whose readers may know no other names than numbers.
            true => next_id(host, (found.descriptor.id, folder), ids)?,
            false => ids.next(host.clock.wall_us()),
        };
        let descriptor = Descriptor { version, id };
        log.add(&descriptor, FILES)?;
        Ok(descriptor)
    };
    let mut how = Rewriting {
        version,
        bytes_max: target.bytes_max,
        beyond_2038: target.beyond_2038,
        page_checksums: version == Version::CURRENT,
        folder,
        next: &mut next,
    };
    let rewritten = rewrite(disk, (table, &found.folder), &mut how, progress);
    match rewritten {
        Ok(rewritten) => {
            log.commit()?;
            log.finish()?;
            Ok(rewritten)
        }
        Err(error) => {
            log.abort()?;
            let hint = match error.to_string().contains("have such times capped") {
                true => " (--cap-times)",
                false => "",
            };
            Err(anyhow!("{error}{hint}"))
        }
    }
}

/// Refuses SSTables of different tables, because the new ones all go into one folder.
pub(super) fn of_one_table(all: &[Found]) -> Result<()> {
    let name = |found: &Found| {
        let (keyspace, table, index) = found.owner();
        format!("{keyspace}.{table}{}", index.map(|index| format!(" {index}")).unwrap_or_default())
    };
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    if let Some(other) =
        others.iter().find(|other| other.folder != first.folder && name(other) != name(first))
    {
        bail!(
            "the SSTables are of {} and of {}, by their folders: write those of each table into a folder of its own",
            name(first),
            name(other)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_sstable::names::SsTableId;

    #[test]
    fn sstables_of_two_tables_do_not_go_into_one_folder() {
        let found = |folder: &str| Found {
            folder: folder.into(),
            descriptor: Descriptor { version: Version::CURRENT, id: SsTableId::Sequence(1) },
        };
        let of =
            |folders: &[&str]| of_one_table(&folders.iter().map(|folder| found(folder)).collect::<Vec<_>>());
        assert!(of(&["/d/shop/orders", "/d/shop/orders/snapshots/monday"]).is_ok());
        let text = of(&["/d/shop/orders", "/d/shop/carts"]).unwrap_err().to_string();
        assert!(text.contains("shop.orders and of shop.carts"), "{text}");
    }
}
