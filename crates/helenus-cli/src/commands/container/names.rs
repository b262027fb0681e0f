//! Chooses the program by the name under which the process was called (`argv[0]`), as busybox does.

use super::{cqlsh, node, nodetool, scylla};
use anyhow::Result;
use std::ffi::OsStr;
use std::path::Path;

/// A name other than `helenus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The server.
    Cassandra,
    /// The shell.
    Cqlsh,
    /// The admin tool.
    Nodetool,
    /// The server, as ScyllaDB's image calls it.
    Scylla,
}

impl Name {
    /// The name in `argv[0]`; `None` for `helenus` and any other name.
    pub fn of(called: Option<&OsStr>) -> Option<Name> {
        match Path::new(called?).file_name()?.to_str()? {
            "cassandra" => Some(Name::Cassandra),
            "cqlsh" => Some(Name::Cqlsh),
            "nodetool" => Some(Name::Nodetool),
            "scylla" => Some(Name::Scylla),
            _ => None,
        }
    }

    /// The name as text, for messages.
    pub fn text(self) -> &'static str {
        match self {
            Name::Cassandra => "cassandra",
            Name::Cqlsh => "cqlsh",
            Name::Nodetool => "nodetool",
            Name::Scylla => "scylla",
        }
    }
}

/// Runs the program of a name with the arguments of this process.
///
/// # Errors
/// Those of the program. A wrong command line ends the process.
pub fn run(name: Name) -> Result<()> {
    let words = std::env::args_os().skip(1);
    // Files of the server and of the shell contain data.
    helenus_host::real::keep_files_private();
    match name {
        Name::Cassandra => node::run(words.collect()),
        Name::Cqlsh => cqlsh::run(words.collect()),
        Name::Scylla => scylla::run(&words.collect::<Vec<_>>()),
        Name::Nodetool => nodetool::run(words.map(|word| word.to_string_lossy().into_owned()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_the_path_is_the_name() {
        let of = |called: &str| Name::of(Some(OsStr::new(called)));
        assert_eq!(of("/opt/cassandra/bin/cqlsh"), Some(Name::Cqlsh));
        assert_eq!(of("nodetool"), Some(Name::Nodetool));
        assert_eq!(of("./cassandra"), Some(Name::Cassandra));
        assert_eq!((of("helenus"), of("/cqlsh/helenus"), Name::of(None)), (None, None, None));
    }
}
