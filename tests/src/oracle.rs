//! The Cassandra 5.0.9 node that all tests share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::run;

/// A running node. It outlives the test, so that the next test program uses it too; `cargo xtask e2e` stops it at the
/// end.
pub struct Oracle {
    folder: PathBuf,
    address: String,
}

impl Oracle {
    /// The shared node; starts it if it does not run. Other tests wait while one of them starts it.
    ///
    /// # Panics
    /// The node does not start; the message contains its log.
    pub fn shared() -> Self {
        let folder = crate::configured("HELENUS_ORACLE", "oracle");
        let port = std::env::var("HELENUS_ORACLE_PORT").unwrap_or_else(|_| "19042".to_owned());
        Self::running(folder, &["--port", &port])
    }

    /// The shared node with PasswordAuthenticator and CassandraAuthorizer, whose rights count at once. It is beside the
    /// other one, three ports on.
    ///
    /// # Panics
    /// The node does not start; the message contains its log.
    pub fn with_logins() -> Self {
        let folder = crate::configured("HELENUS_ORACLE", "oracle").with_extension("logins");
        let port = std::env::var("HELENUS_ORACLE_PORT").unwrap_or_else(|_| "19042".to_owned());
        let port = (port.parse::<u16>().expect("HELENUS_ORACLE_PORT is a port") + 3).to_string();
        fs::create_dir_all(&folder).expect("the oracle's directory");
        let settings = folder.join("settings.yaml");
        let text = "authorizer: CassandraAuthorizer\nroles_validity: 0ms\npermissions_validity: 0ms\n";
        fs::write(&settings, text).expect("the oracle's settings");
        let settings = settings.to_str().expect("UTF-8");
        let arguments = ["--port", &port, "--authenticator", "PasswordAuthenticator", "--settings", settings];
        Self::running(folder, &arguments)
    }

    /// The node of a folder, started with these arguments if it does not run.
    fn running(folder: PathBuf, arguments: &[&str]) -> Self {
        fs::create_dir_all(&folder).expect("the oracle's directory");
        let lock = File::create(folder.join("lock")).expect("the oracle's lock file");
        lock.lock().expect("the oracle's lock");
        let status = script().arg("status").arg(&folder).output().expect("run cassandra.sh");
        if !status.status.success() {
            run(script().arg("start").arg(&folder).args(arguments), "start Cassandra");
        }
        let address =
            run(script().arg("status").arg(&folder), "ask for Cassandra's address").trim().to_owned();
        Self { folder, address }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The data directory: a folder for each keyspace.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of a table.
    ///
    /// # Panics
    /// The table does not exist.
    pub fn table_folder(&self, keyspace: &str, table: &str) -> PathBuf {
        crate::files::table_folder(&self.data(), &crate::Cql::connect(&self.address), keyspace, table)
    }

    /// Runs `nodetool ARGS` and returns its output.
    ///
    /// # Panics
    /// nodetool fails.
    pub fn nodetool(&self, args: &[&str]) -> String {
        run(script().arg("nodetool").arg(&self.folder).args(args), &format!("nodetool {args:?}"))
    }

    /// Imports copies of the SSTables in `folder` into `keyspace.table`, which must exist.
    ///
    /// # Panics
    /// The node refuses a file.
    pub fn import(&self, keyspace: &str, table: &str, folder: &Path) {
        // An import moves the files, and takes keyspace and table from the names of their folders.
        let scratch = tempfile::TempDir::with_prefix("helenus-import-").expect("a temporary directory");
        let copies = scratch.path().join(keyspace).join(table);
        crate::files::copy(folder, &copies);
        let output = self.nodetool(&["import", keyspace, table, copies.to_str().expect("a path in UTF-8")]);
        let left = crate::files::tables(&copies);
        assert!(left.is_empty(), "nodetool import left {left:?}\n{output}");
    }
}

pub(crate) fn script() -> Command {
    Command::new(crate::root().join("tests/tools/cassandra.sh"))
}
