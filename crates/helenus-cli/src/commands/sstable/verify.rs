//! `helenus sstable verify`: reads SSTables completely and reports damage.

use super::find::{Found, find_all};
use super::known_schema::{KnownSchema, SchemaOption};
use super::ls::components;
use crate::commands::progress::Progress;
use anyhow::{Result, bail};
use clap::Args;
use helenus_cql::counted;
use helenus_host::{Disk, Host};
use helenus_sstable::component::Component;
use helenus_sstable::statistics::MURMUR3_PARTITIONER;
use helenus_sstable::table::{Verified, read_statistics};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus sstable verify data                   all of a data directory, while nobody writes there
  helenus sstable verify --quick backup/shop

Checked are: that what TOC.txt lists and nothing can do without is there, the digest of Data.db, the checksums of chunks, pages and
Statistics.db, the order of partitions and rows, that range tombstones are closed, that values are of their columns' types,
and that filter, summary and indexes lead to every partition and every block of rows. Exit code 1 when something is
wrong, or a file of a version that is not read here was left out; helenus sstable scrub saves what can be read.";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct VerifyOptions {
    /// SSTables, by any of their files, or folders; folders in folders are looked into
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Check only what opening reads: components, Statistics.db, filter, index footers, chunk offsets
    #[arg(short, long)]
    quick: bool,
    #[command(flatten)]
    schema: SchemaOption,
    /// A line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    data: PathBuf,
    sound: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The reason why it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<&'static str>,
    partitions: u64,
    rows: u64,
    range_tombstone_bounds: u64,
}

/// Runs the command.
///
/// # Errors
/// Arguments that do not exist; at the end, that some SSTables are damaged or were skipped.
pub fn run(host: &Host, options: &VerifyOptions) -> Result<()> {
    let disk = &*host.disk;
    let findings = find_all(disk, &options.files)?;
    let all = &findings.sstables;
    let known = KnownSchema::new(disk, &options.schema)?;
    let bytes: Vec<u64> = all.iter().map(|found| size_of(disk, found)).collect();
    let mut progress = Progress::begin("verify", bytes.iter().sum());
    let mut out = std::io::stdout().lock();
    let (count, mut damaged, mut before) = (all.len(), 0, 0);
    for (found, bytes) in all.iter().zip(bytes) {
        progress.name(format!("verify {}", found.descriptor));
        let passed_over = is_of_a_nodes_index(disk, found).then_some(OF_AN_INDEX);
        let verified = match passed_over {
            None => verify(disk, (found, &known), options.quick, &mut |done, of| {
                let share = done as f64 / of.max(1) as f64;
                progress.at(before + (bytes as f64 * share) as u64);
            }),
            Some(_) => Ok(Verified::default()),
        };
        before += bytes;
        progress.at(before);
        let problem = verified.as_ref().err().map(|error| short(found, error));
        damaged += u64::from(problem.is_some());
        let Verified { partitions, rows, markers } = verified.unwrap_or_default();
        let line = Line {
            data: found.data(),
            sound: problem.is_none() && passed_over.is_none(),
            problem,
            passed_over,
            partitions,
            rows,
            range_tombstone_bounds: markers,
        };
        progress.clear();
        if options.json {
            serde_json::to_writer(&mut out, &line)?;
            writeln!(out)?;
        } else if let Some(problem) = &line.problem {
            writeln!(out, "DAMAGED  {}: {problem}", line.data.display())?;
        } else if let Some(why) = passed_over {
            writeln!(out, "passed   {}: {why}", line.data.display())?;
        } else if options.quick {
            writeln!(out, "opens    {}", line.data.display())?;
        } else {
            writeln!(
                out,
                "sound    {}: {}, {}",
                line.data.display(),
                counted(partitions, "partition"),
                counted(rows, "row")
            )?;
        }
    }
    drop(progress);
    findings.tell_refused(options.json, &mut out)?;
    match (damaged, findings.end()) {
        (0, end) => end,
        (_, Ok(())) => bail!("{damaged} of {} damaged", counted(count, "SSTable")),
        (_, Err(left_out)) => bail!("{damaged} of {} damaged, and {left_out}", counted(count, "SSTable")),
    }
}

/// SSTables of a Cassandra node's own secondary indexes are ordered by indexed value, an order that no code here reads.
const OF_AN_INDEX: &str = "of a secondary index, which is made anew wherever its table is taken";

fn is_of_a_nodes_index(disk: &dyn Disk, found: &Found) -> bool {
    let Found { folder, descriptor } = found;
    found.owner().2.is_some()
        && read_statistics(disk, folder, *descriptor)
            .is_ok_and(|statistics| statistics.validation.partitioner != MURMUR3_PARTITIONER)
}

/// The error without the folder, which the line contains already.
fn short(found: &Found, error: &anyhow::Error) -> String {
    let folder = format!("{}/", found.folder.display());
    error.root_cause().to_string().replace(&folder, "")
}

fn size_of(disk: &dyn Disk, found: &Found) -> u64 {
    disk.open(&found.data()).and_then(|file| file.size()).unwrap_or_default()
}

/// Checks one SSTable. Reports the bytes done and the total to `progress`.
fn verify(
    disk: &dyn Disk,
    (found, known): (&Found, &KnownSchema),
    quick: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Verified> {
    let missing: Vec<String> = components(disk, found)
        .into_iter()
        .filter(|(name, size)| size.is_none() && Component::parse(name).is_some_and(Component::is_needed))
        .map(|(name, _)| name)
        .collect();
    if !missing.is_empty() {
        bail!("TOC.txt lists components that are not there: {}", missing.join(", "));
    }
    let table = found.open(disk, known)?;
    match quick {
        true => Ok(Verified::default()),
        false => Ok(table.verify_telling(disk, &found.folder, progress)?),
    }
}
