//! Runs the programs of `tests/drivers/` and `tests/texts/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A client under `tests/drivers/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The Python driver.
    Python,
    /// The Python driver against a server with logins and permissions.
    PythonLogins,
    /// cqlsh from PyPI.
    Cqlsh,
    /// The Node.js driver.
    Node,
    /// gocql.
    Go,
    /// The Java driver.
    Java,
    /// The Rust driver.
    Rust,
    /// The Rust driver with TLS, which is a program of its own.
    RustTls,
    /// thriftpy2, over Thrift RPC.
    Thrift,
    /// The client that Thrift generated for Cassandra 2.1, and Hector, over Thrift RPC.
    ThriftJava,
    /// Astyanax, over Thrift RPC.
    Astyanax,
}

impl Client {
    /// All clients of the native protocol.
    pub const ALL: [Self; 6] = [Self::Python, Self::Cqlsh, Self::Node, Self::Go, Self::Java, Self::Rust];

    /// Runs the given cases of the client against `address`; without names, all cases.
    ///
    /// # Panics
    /// A case fails. The message is the program's output, one line for each case.
    pub fn passes(self, address: &str, cases: &[&str]) {
        let mut command = self.command();
        run(command.arg(address).args(cases), &format!("{self:?} against {address}"));
    }

    /// As `passes`, by TLS and with a login. `certificates`: a folder that `helenus cert` has made.
    ///
    /// # Panics
    /// A case fails.
    pub fn passes_by_tls(self, address: &str, certificates: &Path, (user, password): (&str, &str)) {
        let mut command = self.command();
        let files = [
            ("DRIVER_CAFILE", "ca.pem"),
            ("DRIVER_CERT", "client.crt"),
            ("DRIVER_KEY", "client.key"),
            ("DRIVER_TRUSTSTORE", "ca.p12"),
            ("DRIVER_KEYSTORE", "client.p12"),
        ];
        for (name, file) in files {
            command.env(name, certificates.join(file));
        }
        command.env("DRIVER_STORE_PASSWORD", "changeit");
        command.env("DRIVER_USER", user).env("DRIVER_PASSWORD", password);
        run(command.arg(address), &format!("{self:?} against {address} by TLS"));
    }

    /// The command to start a Python driver program of `tests/drivers/`.
    #[must_use]
    pub fn program(name: &str) -> Command {
        python(crate::root().join("tests/drivers").join(name))
    }

    /// The command to start the program that runs a load on the tables of `keyspace` while a move is cut over.
    ///
    /// # Panics
    /// The client has no such program.
    #[must_use]
    pub fn load_across_a_cut(self, address: &str, keyspace: &str) -> Command {
        let drivers = crate::root().join("tests/drivers");
        let mut command = match self {
            Self::Python => python(drivers.join("python/cut.py")),
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(drivers.join("node/cut.js")).env("NODE_PATH", installed("node/node_modules"));
                command
            }
            Self::Go => Command::new(installed("go/driver")),
            Self::Java => java("java", "Cut"),
            other => panic!("{other:?} has no program for a cut"),
        };
        command.arg(address);
        if self == Self::Go {
            command.arg("cut");
        }
        command.arg(keyspace);
        command
    }

    fn command(self) -> Command {
        let drivers = crate::root().join("tests/drivers");
        match self {
            Self::Python => python(drivers.join("python/driver.py")),
            Self::PythonLogins => python(drivers.join("python/logins.py")),
            Self::Cqlsh => python(drivers.join("cqlsh/driver.py")),
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(drivers.join("node/driver.js")).env("NODE_PATH", installed("node/node_modules"));
                command
            }
            Self::Go => Command::new(installed("go/driver")),
            Self::Java => java("java", "Driver"),
            Self::RustTls => Command::new(installed("rust-tls/driver")),
            Self::Thrift => python(drivers.join("thrift/driver.py")),
            Self::ThriftJava => java("thrift-java", "ThriftDriver"),
            Self::Astyanax => java("astyanax", "AstyanaxDriver"),
            // Cargo builds it with this crate and places it in the folder above the test programs.
            Self::Rust => {
                let test = std::env::current_exe().expect("the path of this test program");
                let folder = test.parent().and_then(|deps| deps.parent()).expect("the folder above deps");
                Command::new(folder.join("rust-driver"))
            }
        }
    }

    /// Runs a file of statements in cqlsh without colours, and returns stdout and stderr.
    ///
    /// # Panics
    /// cqlsh cannot be run.
    pub fn cqlsh(address: &str, script: &Path, args: &[&str]) -> (String, String) {
        let (host, port) = address.rsplit_once(':').expect("HOST:PORT");
        let mut command = python(installed("python/bin/cqlsh"));
        command.args(["--no-color", host, port, "-f"]).arg(script).args(args).stdin(Stdio::null());
        command.env("HOME", std::env::temp_dir()).env_remove("CQLSH_HOST").env_remove("CQLSH_PORT");
        let output = command.output().unwrap_or_else(|error| panic!("cannot start cqlsh: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// Runs a script in `cassandra-cli` and returns its output.
    ///
    /// # Panics
    /// It cannot be run, or reports that a line of the script failed.
    pub fn cassandra_cli(address: &str, script: &Path) -> String {
        let (host, port) = address.rsplit_once(':').expect("HOST:PORT");
        let jars = format!("{}/*", installed("cassandra-cli/dependency").display());
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-cp", &jars, "org.apache.cassandra.cli.CliMain"]);
        command.args(["-h", host, "-p", port, "-f"]).arg(script).stdin(Stdio::null());
        run(&mut command, &format!("cassandra-cli -f {} against {address}", script.display()))
    }

    /// Parses a page of metrics with Prometheus's own parser: returns a list of families, as
    /// `drivers/prometheus/scrape.py` prints them.
    ///
    /// # Panics
    /// Prometheus cannot parse the page.
    pub fn scrape(url: &str) -> serde_json::Value {
        let mut command = python(crate::root().join("tests/drivers/prometheus/scrape.py"));
        let text = run(command.arg(url), &format!("scrape {url}"));
        serde_json::from_str(&text).expect("JSON")
    }

    /// Runs `tests/texts/NAME ARGS`, a Python driver program, and returns its output.
    ///
    /// # Panics
    /// The program fails.
    pub fn text(name: &str, args: &[&str]) -> String {
        let mut command = python(crate::root().join("tests/texts").join(name));
        run(command.args(args), &format!("{name} {args:?}"))
    }
}

/// The command to run a class of an installed folder of jars.
fn java(folder: &str, class: &str) -> Command {
    let jars = format!(
        "{}:{}/*",
        installed(&format!("{folder}/driver.jar")).display(),
        installed(&format!("{folder}/dependency")).display()
    );
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-cp", &jars, class]);
    command
}

/// Runs `tests/tools/analysis.py` with the packages that `cargo xtask analysis` installs, and returns its output.
///
/// # Panics
/// It finds a difference, or the packages are missing.
pub fn analysis(args: &[&str]) -> String {
    let mut command = Command::new(installed("analysis/bin/python"));
    command.arg(crate::root().join("tests/tools/analysis.py")).args(args);
    run(&mut command, "analysis.py")
}

fn python(program: PathBuf) -> Command {
    let mut command = Command::new(installed("python/bin/python"));
    command.arg(program);
    command
}

/// A file that `cargo xtask setup` installs.
fn installed(path: &str) -> PathBuf {
    let path = crate::configured("HELENUS_CLIENTS", "clients").join(path);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask setup` (of analysis: `cargo xtask analysis`), or set HELENUS_CLIENTS",
        path.display()
    );
    path
}

/// Runs a program and returns its output.
///
/// # Panics
/// Its exit status is not 0.
pub(crate) fn run(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: cannot start {command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{text}{errors}", output.status);
    text
}
