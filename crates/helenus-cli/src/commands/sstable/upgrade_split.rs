//! `helenus sstable upgrade` and `split`: rewrite SSTables into another folder.

use super::find::{Depth, Found, find};
use crate::commands::progress::Progress;
use crate::commands::rewrite::{Rewriting, rewrite};
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_host::Host;
use helenus_server::quantity::parse_mebibytes;
use helenus_sstable::names::{Descriptor, SsTableIds};
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::table::other_partitioner;
use helenus_sstable::version::Version;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

const UPGRADE_EXAMPLES: &str = "Examples:
  helenus sstable upgrade old/shop/orders --output new/shop/orders
  helenus sstable upgrade --to nb FILE --output for-cassandra-4

Each SSTable is written anew into the other folder, in the version da or the one that is given (da, oa, nb, me); the
files that are read stay as they are.";

const SPLIT_EXAMPLES: &str = "Example:
  helenus sstable split --size 200M data/shop/orders-9ae6.../da-*-Data.db --output smaller

The pieces have about so many MiB, cut between partitions; the files that are read stay as they are.";

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
    /// Print a line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    data: PathBuf,
    written: Vec<PathBuf>,
}

/// Runs `upgrade`.
///
/// # Errors
/// A version that cannot be written; damage; failures of the disk.
pub fn upgrade(host: &Host, options: &UpgradeOptions) -> Result<()> {
    let version = Version::parse(&options.to).filter(|version| version.is_written());
    let Some(version) = version else { bail!("--to {}: da, oa, nb and me are written", options.to) };
    rewrite_all(host, (&options.files, &options.output), (version, None), options.json)
}

/// Runs `split`.
///
/// # Errors
/// Damage; failures of the disk.
pub fn split(host: &Host, options: &SplitOptions) -> Result<()> {
    let most = options.size.max(1 << 20);
    rewrite_all(host, (&options.files, &options.output), (Version::CURRENT, Some(most)), options.json)
}

fn rewrite_all(
    host: &Host,
    (files, output): (&[PathBuf], &PathBuf),
    (version, bytes_max): (Version, Option<u64>),
    json: bool,
) -> Result<()> {
    let disk = &host.disk;
    let folder = std::path::absolute(output)?;
    let all = find(&**disk, files, Depth::Flat)?;
    of_one_table(&all)?;
    let mut tables = Vec::new();
    for found in all {
        if found.folder == folder {
            bail!("{}: give a folder with --output that is not the one read from", found.folder.display());
        }
        let table = found.open(&**disk)?;
        if table.partitioner() != Partitioner::Murmur3 {
            let class = &table.statistics().validation.partitioner;
            bail!("{}: {}", found.data().display(), other_partitioner(class));
        }
        tables.push((table, found));
    }
    disk.create_dir_all(&folder).with_context(|| format!("cannot make {}", output.display()))?;
    let total = tables.iter().map(|(table, _)| table.uncompressed_bytes()).sum();
    let mut progress = Progress::begin("write", total);
    let mut random = [0; 8];
    host.random.fill(&mut random);
    let mut ids = SsTableIds::new(u64::from_le_bytes(random));
    let mut next = || Descriptor { version, id: ids.next(host.clock.wall_us()) };
    let mut out = std::io::stdout().lock();
    let mut before = 0;
    for (table, found) in &tables {
        progress.name(format!("write {}", found.descriptor));
        let mut how = Rewriting {
            version,
            bytes_max,
            page_checksums: version == Version::CURRENT,
            folder: &folder,
            next: &mut next,
        };
        let written = rewrite(disk, (table, &found.folder), &mut how, &mut |position| {
            progress.at(before + position);
        });
        let written = written?;
        before += table.uncompressed_bytes();
        let path =
            |descriptor: &Descriptor| descriptor.path(&folder, helenus_sstable::component::Component::Data);
        let line = Line { data: found.data(), written: written.iter().map(path).collect() };
        progress.clear();
        if json {
            serde_json::to_writer(&mut out, &line)?;
            writeln!(out)?;
        } else {
            for path in &line.written {
                writeln!(out, "written     {}", path.display())?;
            }
        }
    }
    Ok(())
}

/// Refuses SSTables of different tables, because the new ones all go into one folder.
fn of_one_table(all: &[Found]) -> Result<()> {
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
