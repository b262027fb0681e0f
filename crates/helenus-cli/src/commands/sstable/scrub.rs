//! `helenus sstable scrub`: rewrites SSTables with everything that can be read of them, as Cassandra's sstablescrub
//! does.

use super::find::{Found, find};
use super::known_schema::{KnownSchema, SchemaOption};
use super::names::{FILES, version_for};
use super::upgrade_split::of_one_table;
use crate::commands::progress::{Progress, size};
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_cql::counted;
use helenus_host::{Disk, Host};
use helenus_model::schema::Table;
use helenus_model::types::key_text;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::header_schema::{UserTypes, table_of_header};
use helenus_sstable::names::{Descriptor, SsTableId, SsTableIds};
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::scrub::{Loss, SORTED_BYTES_DEFAULT, Scrubbed, Scrubbing, scrub};
use helenus_sstable::table::{SsTable, other_partitioner, read_statistics};
use helenus_sstable::transaction_log::{Operation, TransactionLog, recover};
use helenus_sstable::version::Version;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  helenus sstable scrub data/shop/orders-9ae6...             in place; the old files stay in snapshots/pre-scrub-TIME
  helenus sstable scrub --output saved nb-12-big-Data.db     into another folder; the files that are read stay as they are
  helenus sstable scrub --json data/shop/orders-9ae6... | jq .lost

Stop the server, or the Cassandra node, that uses the files first. Data.db is read by its own checksums: rows of blocks that can
be read are kept, also behind damage; what is lost is said, and the exit code is 1 then. In place the old SSTable stays, and
nothing is written, when half of its data or more is lost: --output saves the rest. Partitions and rows that are out of order are
put in order, in SSTables of their own. Statistics.db must be sound: without it nothing says what a row looks like. Indexes, filter
and checksums are made anew, and are checked before they take the place of the old ones. The version stays, or is the next that is
written (ma to md become me, na becomes nb, nc becomes oa), or the last (pa becomes oa, ea becomes da).";

/// Maximum number of losses of an SSTable that are listed in JSON.
const LOSSES_TOLD: usize = 1000;

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct ScrubOptions {
    /// SSTables, by any of their files, or folders of SSTables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A folder for the new ones, created if it does not exist; by default they replace the old ones
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue in tables of counters too: lost data makes their counts too small
    #[arg(short, long)]
    skip_corrupted: bool,
    /// Keep rows with values that are invalid in their columns' types
    #[arg(short, long)]
    no_validate: bool,
    /// Write rows whose time of expiry overflowed (CASSANDRA-14092) again, to expire on 2038-01-19 at 03:14:06 UTC
    #[arg(short, long)]
    reinsert_overflowed_ttl: bool,
    #[command(flatten)]
    schema: SchemaOption,
    /// A line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    data: PathBuf,
    written: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<PathBuf>,
    partitions: u64,
    rows: u64,
    empty_partitions: u64,
    partitions_out_of_order: u64,
    rows_out_of_order: u64,
    rows_reinserted: u64,
    times_capped: u64,
    losses: u64,
    bytes_lost: u64,
    /// The first losses.
    lost: Vec<LostLine>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct LostLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    lost: &'static str,
    position: u64,
    bytes: u64,
    problem: String,
}

/// Runs the command.
///
/// # Errors
/// Arguments that are not SSTables, files that are entirely unreadable, failures of the disk; at the end, that something
/// was lost.
pub fn run(host: &Host, options: &ScrubOptions) -> Result<()> {
    let disk = &host.disk;
    let mut all = find(&**disk, &options.files)?;
    if options.output.is_some() {
        of_one_table(&all)?;
    }
    let mut place = Place::new(host, options)?;
    let _held = place.prepare(&all)?;
    // `prepare` has removed the files of unfinished transactions.
    all.retain(|found| disk.exists(&found.data()));
    let bytes: Vec<u64> = all.iter().map(|found| size_of(&**disk, found)).collect();
    let total: u64 = bytes.iter().sum();
    let mut progress = Progress::begin("scrub", total);
    let known = KnownSchema::new(&**disk, &options.schema)?;
    let (mut before, mut failed, mut lossy) = (0, 0, 0);
    for (found, bytes) in all.iter().zip(bytes) {
        progress.name(format!("scrub {}", found.descriptor));
        let scrubbed = one(&mut place, (found, &known), options, &mut |done, of| {
            let share = done as f64 / of.max(1) as f64;
            progress.at(before + (bytes as f64 * share) as u64);
        });
        before += bytes;
        progress.clear();
        match scrubbed {
            Ok(line) => {
                lossy += u64::from(line.losses > 0);
                print(&line, options.json)?;
            }
            Err(error) => {
                failed += 1;
                note!("left as it is: {}: {error:#}", found.data().display());
            }
        }
    }
    drop(progress);
    let all = counted(all.len(), "SSTable");
    match (failed, lossy) {
        (0, 0) => Ok(()),
        (0, lossy) => bail!("{lossy} of {all} lost data, as said above"),
        (failed, 0) => bail!("{failed} of {all} left as before"),
        (failed, lossy) => bail!("{failed} of {all} left as before, and {lossy} lost data, as said above"),
    }
}

fn size_of(disk: &dyn Disk, found: &Found) -> u64 {
    disk.open(&found.data()).and_then(|file| file.size()).unwrap_or_default()
}

/// The folder and the names of the new SSTables.
struct Place<'a> {
    host: &'a Host,
    /// The output folder. `None`: the new SSTables replace the old ones.
    output: Option<PathBuf>,
    ids: SsTableIds,
    /// The last number used in a name.
    number: u32,
    snapshot: String,
}

/// Locks on the databases that the folders belong to.
type Held = Vec<Box<dyn Send + Sync>>;

impl<'a> Place<'a> {
    fn new(host: &'a Host, options: &ScrubOptions) -> Result<Place<'a>> {
        let mut random = [0; 8];
        host.random.fill(&mut random);
        let output = options.output.as_ref().map(std::path::absolute).transpose()?;
        if let Some(output) = &output {
            host.disk.create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
        }
        let snapshot = format!("pre-scrub-{}", host.clock.wall_us() / 1000);
        let ids = SsTableIds::new(u64::from_le_bytes(random));
        Ok(Place { host, output, ids, number: 0, snapshot })
    }

    /// Prepares the replacement of files: locks the databases, so that no other process has the files open, and
    /// finishes interrupted transactions.
    fn prepare(&self, all: &[Found]) -> Result<Held> {
        let disk = &*self.host.disk;
        let folders: BTreeSet<&Path> = all.iter().map(|found| found.folder.as_path()).collect();
        if let Some(output) = &self.output {
            if folders.contains(output.as_path()) {
                bail!("{}: give a folder with --output that is not the one read from", output.display());
            }
            // What an earlier run left that was ended within an SSTable.
            recover(disk, output)?;
            return Ok(Vec::new());
        }
        let mut held = Held::new();
        let databases: BTreeSet<&Path> =
            folders.iter().filter_map(|folder| folder.ancestors().nth(3)).collect();
        for database in databases {
            if !disk.exists(&database.join("helenus.lock")) {
                continue;
            }
            let holder = format!("process {} (sstable scrub)", std::process::id());
            let lock = disk.lock_folder(database, "helenus.lock", &holder);
            let lock = lock.with_context(|| {
                format!("{} is in use: stop the server first, or give --output", database.display())
            })?;
            held.push(lock);
        }
        for folder in folders {
            recover(disk, folder)?;
        }
        Ok(held)
    }

    /// Hard-links the files of an SSTable into a snapshot.
    fn snapshot(&self, found: &Found) -> Result<PathBuf> {
        let disk = &*self.host.disk;
        let folder = found.folder.join("snapshots").join(&self.snapshot);
        disk.create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for path in files_of(disk, found)? {
            let target = folder.join(path.file_name().unwrap_or_default());
            disk.hard_link(&path, &target).with_context(|| format!("cannot link {}", target.display()))?;
        }
        disk.sync_dir(&folder)?;
        Ok(folder)
    }

    /// A new name of the same kind as the old one. Names with numbers are readable by every version of Cassandra.
    fn next(&mut self, version: Version, old: SsTableId, folder: &Path) -> std::io::Result<Descriptor> {
        let id = match old {
            SsTableId::Time { .. } => self.ids.next(self.host.clock.wall_us()),
            SsTableId::Sequence(_) => {
                let files = self.host.disk.list(folder)?;
                let names = files.iter().filter_map(|path| path.file_name()?.to_str());
                let numbers = names.filter_map(|name| match Descriptor::parse(name)?.0.id {
                    SsTableId::Sequence(number) => Some(number),
                    SsTableId::Time { .. } => None,
                });
                self.number = numbers.max().unwrap_or_default().max(self.number) + 1;
                SsTableId::Sequence(self.number)
            }
        };
        Ok(Descriptor { version, id })
    }
}

fn files_of(disk: &dyn Disk, found: &Found) -> Result<Vec<PathBuf>> {
    let prefix = found.descriptor.prefix();
    let is_its = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&*prefix))
    };
    let files =
        disk.list(&found.folder).with_context(|| format!("cannot list {}", found.folder.display()))?;
    Ok(files.into_iter().filter(is_its).collect())
}

fn one(
    place: &mut Place<'_>,
    (found, known): (&Found, &KnownSchema),
    options: &ScrubOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Line> {
    let host = place.host;
    let disk: &Arc<dyn Disk> = &host.disk;
    let (keyspace, table, _) = found.owner();
    let statistics = read_statistics(&**disk, &found.folder, found.descriptor)
        .map_err(|error| found.unreadable(&**disk, error))?;
    // It only names the keys of losses, whose types have one reading.
    let keys = table_of_header(&statistics.header, UserTypes::Frozen, (&keyspace, &table), &found.data())?;
    let class = &statistics.validation.partitioner;
    if place.output.is_none() && Partitioner::of(class) != Partitioner::Murmur3 {
        bail!("{}; whoever uses the old ones could not use them in their place", other_partitioner(class));
    }
    let known = known.of(&**disk, found);
    let folder = place.output.clone().unwrap_or_else(|| found.folder.clone());
    let version = version_for(found.descriptor.version);
    let id = place.ids.next(host.clock.wall_us()).to_uuid().unwrap_or_default();
    let mut log = TransactionLog::begin(disk.clone(), &folder, Operation::Scrub, id);
    let mut lost = Vec::new();
    let is_ours = version == Version::CURRENT && place.output.is_none();
    let mut next = || {
        let io = |source| helenus_sstable::Error::Io { file: folder.clone(), source };
        let descriptor = place.next(version, found.descriptor.id, &folder).map_err(io)?;
        log.add(&descriptor, FILES)?;
        Ok(descriptor)
    };
    let how = Scrubbing {
        folder: &folder,
        names: (&keyspace, &table),
        known: known.as_deref(),
        version,
        validate: !options.no_validate,
        skip_corrupted: options.skip_corrupted,
        reinsert_overflowed: options.reinsert_overflowed_ttl,
        page_checksums: is_ours,
        sorted_bytes: SORTED_BYTES_DEFAULT,
        next: &mut next,
        lost: &mut |loss| {
            if lost.len() < LOSSES_TOLD {
                lost.push(told(&keys, loss));
            }
        },
        progress,
    };
    let scrubbed = scrub(disk, (&found.folder, found.descriptor), how).map_err(anyhow::Error::from);
    let scrubbed = scrubbed.and_then(|scrubbed| {
        prove(&**disk, (&folder, (&keyspace, &table)), &scrubbed)?;
        if place.output.is_none() {
            refuse_ruins(&scrubbed)?;
        }
        Ok(scrubbed)
    });
    let replaced = scrubbed.and_then(|scrubbed| {
        let snapshot = match place.output {
            Some(_) => None,
            None => Some(place.snapshot(found)?),
        };
        Ok((scrubbed, snapshot))
    });
    let (scrubbed, snapshot) = match replaced {
        Ok(replaced) => replaced,
        Err(error) => {
            log.abort()?;
            return Err(error);
        }
    };
    if snapshot.is_some() {
        log.remove(&found.descriptor, files_of(&**disk, found)?.len(), 0)?;
    }
    log.commit()?;
    log.finish()?;
    Ok(line(found, &folder, scrubbed, (lost, snapshot)))
}

/// Checks that the new SSTables are sound and hold what was kept.
fn prove(disk: &dyn Disk, (folder, names): (&Path, (&str, &str)), scrubbed: &Scrubbed) -> Result<()> {
    let mut rows = 0;
    for descriptor in &scrubbed.written {
        // The new files say themselves which of their types are frozen.
        let table = SsTable::open_without_schema(disk, (folder, *descriptor), names, BufferPool::offline())?;
        rows += table.verify(disk, folder)?.rows;
    }
    if rows != scrubbed.rows {
        bail!("the new files hold {rows} rows where {} were kept; please report this", scrubbed.rows);
    }
    Ok(())
}

/// Refuses to replace an SSTable by what is left of it, if that is less than half.
fn refuse_ruins(scrubbed: &Scrubbed) -> Result<()> {
    let Scrubbed { losses, bytes_lost, data_bytes, written, .. } = scrubbed;
    if *losses > 0 && (written.is_empty() || bytes_lost.saturating_mul(2) >= *data_bytes) {
        bail!(
            "{} of {} of its data cannot be read; give --output to write the rest into another folder",
            size(*bytes_lost),
            size(*data_bytes)
        );
    }
    Ok(())
}

fn told(schema: &Table, loss: &Loss) -> LostLine {
    let types: Vec<_> = schema.partition_key.iter().map(|column| &column.ty).collect();
    LostLine {
        partition: loss.key.as_ref().map(|key| key_text(&types, key)),
        lost: loss.lost.name(),
        position: loss.position,
        bytes: loss.bytes,
        problem: loss.problem.clone(),
    }
}

fn line(
    found: &Found,
    folder: &Path,
    scrubbed: Scrubbed,
    (lost, snapshot): (Vec<LostLine>, Option<PathBuf>),
) -> Line {
    let data = |descriptor: &Descriptor| descriptor.path(folder, Component::Data);
    Line {
        data: found.data(),
        written: scrubbed.written.iter().map(data).collect(),
        snapshot,
        partitions: scrubbed.partitions,
        rows: scrubbed.rows,
        empty_partitions: scrubbed.empty_partitions,
        partitions_out_of_order: scrubbed.partitions_out_of_order,
        rows_out_of_order: scrubbed.rows_out_of_order,
        rows_reinserted: scrubbed.rows_reinserted,
        times_capped: scrubbed.times_capped,
        losses: scrubbed.losses,
        bytes_lost: scrubbed.bytes_lost,
        lost,
        notes: scrubbed.notes,
    }
}

fn print(line: &Line, json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, line)?;
        writeln!(out)?;
        return Ok(());
    }
    for lost in &line.lost {
        let LostLine { partition, lost, position, bytes, problem } = lost;
        let of =
            partition.as_ref().map_or("an unknown partition".to_owned(), |key| format!("partition {key}"));
        let what = lost.replace('_', " ");
        writeln!(out, "lost        {what} of {of}, {} at byte {position}: {problem}", size(*bytes))?;
    }
    let untold = line.losses - line.lost.len() as u64;
    if untold > 0 {
        writeln!(out, "lost        and {untold} more")?;
    }
    if line.partitions_out_of_order + line.rows_out_of_order > 0 {
        let partitions = counted(line.partitions_out_of_order, "partition");
        let rows = counted(line.rows_out_of_order, "row");
        writeln!(out, "in order    {partitions} and {rows} that were out of order")?;
    }
    if line.rows_reinserted > 0 {
        writeln!(
            out,
            "reinserted  {} whose time of expiry had overflowed",
            counted(line.rows_reinserted, "row")
        )?;
    }
    if line.times_capped > 0 {
        let times = counted(line.times_capped, "time");
        writeln!(
            out,
            "capped      {times} after 2038-01-19T03:14:06Z, which this version cannot hold, became that"
        )?;
    }
    for note in &line.notes {
        writeln!(out, "note        {note}")?;
    }
    let lost = match line.losses {
        0 => "nothing lost".to_owned(),
        1 => format!("1 loss, {} of data", size(line.bytes_lost)),
        losses => format!("{losses} losses, {} of data", size(line.bytes_lost)),
    };
    let (data, partitions, rows) =
        (&line.data, counted(line.partitions, "partition"), counted(line.rows, "row"));
    writeln!(out, "scrubbed    {}: {partitions}, {rows} kept, {lost}", data.display())?;
    for path in &line.written {
        writeln!(out, "written     {}", path.display())?;
    }
    if line.written.is_empty() {
        writeln!(out, "written     nothing: no partition was left")?;
    }
    if let Some(snapshot) = &line.snapshot {
        writeln!(out, "snapshot    {}: the files as they were", snapshot.display())?;
    }
    Ok(())
}
