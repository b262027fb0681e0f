//! Compares files: what `sstabledump` says of some partitions in the SSTables of the source and of all nodes of the target. Beside live
//! cells these are markers of rows, deletions and dead cells, which no SELECT shows.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::compare::Tally;

/// Rows of a partition of the table that is compared.
const ROWS: i64 = 10;
/// The table.
const TABLE: &str = "mixed";

/// A cell: its timestamp, and its value if it lives.
type Cell = (i64, Option<String>);

/// What the files hold of a row, or of the static row.
#[derive(Default)]
struct Row {
    deleted: i64,
    /// The newest marker, and whether it has expired: then it hides the older ones of other files.
    marked: (i64, bool),
    /// Deletions of whole collections by column.
    columns: BTreeMap<String, i64>,
    cells: BTreeMap<(String, String), Cell>,
}

#[derive(Default)]
struct Partition {
    deleted: i64,
    statics: Row,
    rows: BTreeMap<i64, Row>,
}

type Partitions = BTreeMap<String, Partition>;

/// Copies the files of the table below the folder of a keyspace, and returns those with data. A compaction may remove files meanwhile:
/// then all are copied anew.
pub fn files(keyspace: &Path, into: &Path) -> Vec<PathBuf> {
    loop {
        match copy(keyspace, into) {
            Ok(files) => return files,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => panic!("{}: {error}", keyspace.display()),
        }
    }
}

fn copy(keyspace: &Path, into: &Path) -> std::io::Result<Vec<PathBuf>> {
    if into.exists() {
        std::fs::remove_dir_all(into)?;
    }
    let mut data = Vec::new();
    for table in std::fs::read_dir(keyspace)? {
        let table = table?;
        if !table.file_name().to_string_lossy().starts_with(&format!("{TABLE}-")) {
            continue;
        }
        let folder = into.join(table.file_name());
        std::fs::create_dir_all(&folder)?;
        let names: Vec<String> = std::fs::read_dir(table.path())?
            .map(|file| Ok(file?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<_>>()?;
        // The list of an SSTable's components is written last.
        for sstable in names.iter().filter_map(|name| name.strip_suffix("TOC.txt")) {
            for name in names.iter().filter(|name| name.starts_with(sstable)) {
                std::fs::copy(table.path().join(name), folder.join(name))?;
            }
            data.push(folder.join(format!("{sstable}Data.db")));
        }
    }
    Ok(data)
}

/// Compares these partitions in the files of both sides.
pub fn compare(keys: &[u32], source: &[PathBuf], target: &[PathBuf]) -> Tally {
    let began = Instant::now();
    let mut tally = Tally::new("files of mixed, sampled");
    let [here, there] = [source, target].map(|files| {
        let mut all = Partitions::new();
        files.iter().for_each(|file| read(file, keys, &mut all));
        all
    });
    assert!(!source.is_empty() && !target.is_empty(), "{TABLE} has no files: {source:?} {target:?}");
    let none = Partition::default();
    for key in keys.iter().map(u32::to_string) {
        let (one, other) = (here.get(&key).unwrap_or(&none), there.get(&key).unwrap_or(&none));
        let empty = Row::default();
        let mut rows = vec![("static".to_owned(), &one.statics, &other.statics)];
        for c in 0..ROWS {
            rows.push((
                c.to_string(),
                one.rows.get(&c).unwrap_or(&empty),
                other.rows.get(&c).unwrap_or(&empty),
            ));
        }
        for (name, this, that) in rows {
            let (this, that) = (words(this, one.deleted), words(that, other.deleted));
            tally.rows += 1;
            tally.cells += this.len() as u64;
            for what in this.keys().chain(that.keys().filter(|what| !this.contains_key(*what))) {
                if this.get(what) != that.get(what) {
                    let (this, that) = (this.get(what), that.get(what));
                    tally.differs(format!("files: p = {key}, {name}: {what}: {this:?} here, {that:?} there"));
                }
            }
        }
    }
    tally.seconds = began.elapsed().as_secs_f64();
    tally
}

/// What counts of a row once newer deletions have hidden the rest.
fn words(row: &Row, of_partition: i64) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let deleted = row.deleted.max(of_partition);
    if deleted > i64::MIN && deleted != 0 {
        all.insert("deleted".to_owned(), deleted.to_string());
    }
    let (marked, has_expired) = row.marked;
    if marked > deleted && !has_expired {
        all.insert("marker".to_owned(), marked.to_string());
    }
    for (column, at) in row.columns.iter().filter(|(column, at)| *column != "l" && **at > deleted) {
        all.insert(format!("{column} deleted"), at.to_string());
    }
    let mut list = Vec::new();
    for ((column, path), (at, value)) in &row.cells {
        if *at <= deleted.max(row.columns.get(column).copied().unwrap_or(0)) {
            continue;
        }
        match (column.as_str(), value) {
            // Elements have other ids there.
            ("l", Some(value)) => list.push(value.clone()),
            ("l", None) => {}
            (_, value) => drop(all.insert(format!("{column} {path}"), format!("{value:?} at {at}"))),
        }
    }
    if !list.is_empty() {
        all.insert("l".to_owned(), list.join(", "));
    }
    all
}

fn read(file: &Path, keys: &[u32], into: &mut Partitions) {
    let mut command = Command::new(end_to_end::root().join("tests/tools/cassandra.sh"));
    command.args(["tool", "sstabledump"]).arg(file).arg("-t");
    for key in keys {
        command.args(["-k", &key.to_string()]);
    }
    let output = command.output().expect("sstabledump starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {text}{}", file.display(), String::from_utf8_lossy(&output.stderr));
    if text.trim().is_empty() {
        return;
    }
    let dump: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    for partition in dump.as_array().into_iter().flatten() {
        let key = partition["partition"]["key"][0].as_str().expect("a key").to_owned();
        let of = into.entry(key).or_default();
        of.deleted = of.deleted.max(deletion(&partition["partition"]));
        let mut open: Option<(i64, i64)> = None;
        for item in partition["rows"].as_array().into_iter().flatten() {
            match item["type"].as_str() {
                Some("static_block") => take(item, &mut of.statics),
                Some("row") => {
                    let c = integer(&item["clustering"][0]).expect("a clustering");
                    take(item, of.rows.entry(c).or_default());
                }
                _ => bound(item, &mut open, of),
            }
        }
    }
}

/// A bound of a range that is deleted, or one between two of them.
fn bound(item: &Value, open: &mut Option<(i64, i64)>, of: &mut Partition) {
    // The first row that is not before the bound.
    let edge = |bound: &Value, counts_itself: bool| match integer(&bound["clustering"][0]) {
        Some(c) => c + i64::from((bound["type"] == "inclusive") != counts_itself),
        None => {
            if counts_itself {
                0
            } else {
                ROWS
            }
        }
    };
    if item["end"].is_object() {
        let (from, at) = open.take().expect("a range that has begun");
        for c in from..edge(&item["end"], false).min(ROWS) {
            let row = of.rows.entry(c).or_default();
            row.deleted = row.deleted.max(at);
        }
    }
    if item["start"].is_object() {
        *open = Some((edge(&item["start"], true), deletion(&item["start"])));
    }
}

/// The id of an element of a list, so that texts sort as the elements do: by time.
fn time_first(path: &str) -> String {
    let id = path.trim_matches(|of: char| !of.is_ascii_hexdigit());
    let mut parts = id.splitn(4, '-');
    let [low, mid, high, rest] = std::array::from_fn(|_| parts.next().expect("a UUID"));
    format!("{high}-{mid}-{low}-{rest}")
}

fn deletion(of: &Value) -> i64 {
    number(&of["deletion_info"]["marked_deleted"])
}

/// A timestamp; 0 without one.
fn number(value: &Value) -> i64 {
    integer(value).unwrap_or(0)
}

/// A number, or one in quotes.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn take(item: &Value, row: &mut Row) {
    row.deleted = row.deleted.max(deletion(item));
    let marker = &item["liveness_info"];
    row.marked = row.marked.max((number(&marker["tstamp"]), marker["expired"] == true));
    for cell in item["cells"].as_array().into_iter().flatten() {
        let name = cell["name"].as_str().expect("a column").to_owned();
        // A cell without a timestamp of its own has the marker's, and its expiry.
        let of_marker = cell["tstamp"].is_null() && marker["expired"] == true;
        let is_dead = !cell["deletion_info"].is_null() || cell["expired"] == true || of_marker;
        if !cell["deletion_info"]["marked_deleted"].is_null() {
            let column = row.columns.entry(name).or_default();
            *column = (*column).max(deletion(cell));
            continue;
        }
        let at = if cell["tstamp"].is_null() { number(&marker["tstamp"]) } else { number(&cell["tstamp"]) };
        let value = (!is_dead).then(|| cell["value"].to_string());
        let path = match name.as_str() {
            "l" => time_first(&cell["path"].to_string()),
            _ => cell["path"].to_string(),
        };
        let known = row.cells.entry((name, path)).or_insert_with(|| (at, value.clone()));
        if at > known.0 || at == known.0 && value.is_none() {
            *known = (at, value);
        }
    }
}
