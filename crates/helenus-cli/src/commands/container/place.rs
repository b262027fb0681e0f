//! Where a node in a container has its configuration and its data, and single keys of its configuration files.
//!
//! The whole of `cassandra.yaml` is read by `helenus_server::config`. The few keys that decide how the server is called
//! are found here by their line, because they stand at the left margin in every file that Cassandra reads.

use anyhow::{Context, Result, bail};
use helenus_engine::is_cassandra_node;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder of `cassandra.yaml` and `cassandra-rackdc.properties`: `CASSANDRA_CONF`, as in the official image.
pub fn configuration(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    variable("CASSANDRA_CONF").map_or_else(|| PathBuf::from("/etc/cassandra"), PathBuf::from)
}

/// The configuration file of a folder: `scylla.yaml` in the image that stands in for ScyllaDB's, else `cassandra.yaml`.
pub fn file(folder: &Path) -> PathBuf {
    let of_scylla = folder.join("scylla.yaml");
    if of_scylla.exists() { of_scylla } else { folder.join("cassandra.yaml") }
}

/// The text of the configuration file.
///
/// # Errors
/// It cannot be read.
pub fn yaml(folder: &Path) -> Result<String> {
    let file = file(folder);
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// The directory of the database: that of `data_file_directories`, else `/var/lib/cassandra` or `/var/lib/scylla`, by the
/// configuration file of the folder.
///
/// A volume may belong to another user than the server, as in OpenShift, which chooses the user and lets its group write.
/// The server takes no such folder for its own, because others may put files into it; it gets a folder in there.
pub fn data(yaml: &str, folder: &Path) -> PathBuf {
    let is_scylla = file(folder).ends_with("scylla.yaml");
    let named = named_directory(yaml, if is_scylla { "/var/lib/scylla" } else { "/var/lib/cassandra" });
    let inside = named.join("helenus");
    let us = rustix::process::geteuid().as_raw();
    let is_others = std::fs::metadata(&named).is_ok_and(|found| found.uid() != us && us != 0);
    if inside.is_dir() || is_others { inside } else { named }
}

/// Refuses the directory of a Cassandra node before anything of it is changed, its owner included.
///
/// # Errors
/// It is one.
pub fn refuse_foreign(directory: &Path) -> Result<()> {
    if !is_cassandra_node(&*helenus_host::real::host().disk, directory) {
        return Ok(());
    }
    let shown = directory.display();
    bail!(
        "{shown} has the files of a Cassandra node, and nothing of it was changed. Give this container a volume of its own; to move \
         the data, drain the node, copy the directory, and run helenus serve --adopt COPY"
    )
}

fn named_directory(yaml: &str, usual: &str) -> PathBuf {
    let parent = first_data_directory(yaml).and_then(|first| Path::new(first).parent());
    parent.unwrap_or(Path::new(usual)).to_owned()
}

/// The first of `data_file_directories`, in either form of a YAML list.
fn first_data_directory(yaml: &str) -> Option<&str> {
    if let Some(list) = top_level(yaml, "data_file_directories").filter(|value| !value.is_empty()) {
        return list.trim_matches(['[', ']', ' ']).split(',').next().map(plain).filter(|one| !one.is_empty());
    }
    let mut lines = yaml.lines().skip_while(|line| !line.starts_with("data_file_directories:")).skip(1);
    let item = lines.find(|line| !line.trim().is_empty() && !line.trim().starts_with('#'))?;
    item.trim().strip_prefix("- ").map(plain)
}

/// The value of a key at the left margin; empty if the value stands on the next lines.
pub fn top_level<'a>(yaml: &'a str, key: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix(':');
    yaml.lines().find_map(value).map(plain)
}

/// The class of a top-level key: its value, or the `class_name` of the map below it, as Cassandra 5.0 writes it.
pub fn class<'a>(yaml: &'a str, key: &str) -> Option<&'a str> {
    let of_key = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    let mut lines = yaml.lines().skip_while(|line| !of_key(line));
    let first = plain(lines.next()?.strip_prefix(key)?.strip_prefix(':')?);
    if !first.is_empty() {
        return Some(first);
    }
    let below = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t', '-', '#']));
    let class = |line: &'a str| {
        let line = line.trim_start_matches([' ', '\t', '-']);
        Some(plain(line.strip_prefix("class_name")?.trim_start().strip_prefix(':')?))
    };
    below.filter_map(class).next()
}

/// The value of a key in a file of Java properties.
pub fn property<'a>(properties: &'a str, key: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.trim().strip_prefix(key)?.trim_start().strip_prefix('=').map(str::trim);
    properties.lines().find_map(value).filter(|value| !value.is_empty())
}

/// A scalar without its comment and quotes.
fn plain(value: &str) -> &str {
    let value = value.split(" #").next().unwrap_or_default().trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_the_parent_of_the_first_data_directory() {
        let of = |yaml| named_directory(yaml, "/var/lib/cassandra");
        assert_eq!(of("# data_file_directories:\n#  - /x/data\n"), Path::new("/var/lib/cassandra"));
        assert_eq!(of("data_file_directories:\n    # one\n    - /mnt/a/data\n"), Path::new("/mnt/a"));
        assert_eq!(of("data_file_directories: ['/mnt/b/data']\n"), Path::new("/mnt/b"));
        assert_eq!(of("data_file_directories:\n"), Path::new("/var/lib/cassandra"));
    }

    #[test]
    fn keys_are_found_with_and_without_quotes_and_comments() {
        let yaml =
            "cluster_name: 'Test Cluster' # ours\n  endpoint_snitch: no\nendpoint_snitch: SimpleSnitch\n";
        assert_eq!(top_level(yaml, "endpoint_snitch"), Some("SimpleSnitch"));
        assert_eq!(top_level(yaml, "cluster_name"), Some("Test Cluster"));
        assert_eq!(top_level(yaml, "cluster"), None);
        assert_eq!(property("# dc=no\ndc= eu\nrack =r2\n", "dc"), Some("eu"));
        assert_eq!(property("dc=eu\nrack =r2\n", "rack"), Some("r2"));
        assert_eq!(property("dc=\n", "dc"), None);
    }
}
