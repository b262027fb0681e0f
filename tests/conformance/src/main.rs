//! `conformance`: runs scripts, or generated statements, on Cassandra and on Helenus. See `README.md`.

use anyhow::{Context, Result, bail};
use conformance::role::Role;
use conformance::rounds::{self, Rounds};
use conformance::run::{Helenus, Place, Runner};
use conformance::script::{Action, Step, parse};
use conformance::server::Server;
use helenus_wire::native::Version;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
conformance [OPTIONS] [SCRIPT..]   scripts: those named, or all of tests/conformance/scripts
conformance [OPTIONS] --statements N [--seed N] [--states]   generated statements

  --cassandra HOST:PORT   the judge [default: $CONFORMANCE_CASSANDRA, or 127.0.0.1:19042]
  --helenus HOST:PORT     a server that runs; without it the binary of $HELENUS_BIN is started
  --gateway               with --helenus: it is a gateway to another Cassandra 5.0.9, and no difference is accepted
  --protocol 3|4|5        [default: 5]
  --as ordinary|none      by a role with the rights that the scripts need, or with none; both servers need logins and permissions
  --keyspace NAME         begins the names of the keyspaces that are made [default: cf]
  --keep                  scripts: leave the keyspaces there
  --seed N                [default: the time]
  --first N               first table of the seed [default: 0]
  --states                with --statements N: N pairs of statements, the second asked with paging states of the first
  --per-table N           statements of a table [default: 300]
  --failures N            give up after so many kinds of differences [default: 20]
  --no-shrink             show all statements of a difference
";

/// Arguments of a server with logins and permissions.
const LOGINS: [&str; 4] = ["--authenticator", "PasswordAuthenticator", "--authorizer", "CassandraAuthorizer"];
/// Differences of a script that are shown.
const SHOWN_MAX: usize = 30;

struct Options {
    cassandra: String,
    helenus: Option<String>,
    is_gateway: bool,
    version: Version,
    keyspace: String,
    keeps: bool,
    role: Role,
    scripts: Vec<PathBuf>,
    generated: bool,
    states: bool,
    rounds: Rounds,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool> {
    let options = options()?;
    let role = options.role;
    let helenus = match &options.helenus {
        Some(address) => Helenus::At(address.clone()),
        None if role.logs_in() => Helenus::Own(Box::new(Server::start_with(&LOGINS))),
        None => Helenus::Own(Box::new(Server::start())),
    };
    let place = Place {
        cassandra: options.cassandra.clone(),
        helenus,
        version: options.version,
        role,
        is_gateway: options.is_gateway,
    };
    let mut runner = Runner::connect(place)?;
    let begin = Instant::now();
    let failures = if options.generated {
        println!("seed {}", options.rounds.seed);
        match options.states {
            true => conformance::states::run(&mut runner, &options.rounds)?,
            false => rounds::run(&mut runner, &options.rounds)?,
        }
    } else {
        scripts(&mut runner, &options)?
    };
    if role.logs_in() {
        println!("{} answers are refusals of a right", runner.refused);
    }
    println!(
        "{} statements, {} answers compared, {} not built yet, {failures} differences, {:.1} s",
        runner.statements,
        runner.answers,
        runner.unbuilt,
        begin.elapsed().as_secs_f64()
    );
    Ok(failures == 0)
}

fn options() -> Result<Options> {
    let cassandra = std::env::var("CONFORMANCE_CASSANDRA").unwrap_or_else(|_| "127.0.0.1:19042".to_owned());
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let rounds = Rounds {
        seed: since_epoch.as_secs(),
        first: 0,
        statements: 10_000,
        per_table: 300,
        failures_max: 20,
        shrinks: true,
        keyspace: String::new(),
    };
    let mut options = Options {
        cassandra,
        helenus: None,
        is_gateway: false,
        version: Version::V5,
        keyspace: "cf".to_owned(),
        keeps: false,
        role: Role::Anonymous,
        scripts: Vec::new(),
        generated: false,
        states: false,
        rounds,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" | "-h" => bail!("\n{USAGE}"),
            "--cassandra" => options.cassandra = value()?,
            "--helenus" => options.helenus = Some(value()?),
            "--gateway" => options.is_gateway = true,
            "--protocol" => {
                options.version = match value()?.as_str() {
                    "3" => Version::V3,
                    "4" => Version::V4,
                    "5" => Version::V5,
                    other => bail!("protocol {other} is not spoken here"),
                }
            }
            "--keyspace" => options.keyspace = value()?,
            "--as" => options.role = Role::of_name(&value()?)?,
            "--states" => options.states = true,
            "--keep" => options.keeps = true,
            "--seed" => options.rounds.seed = value()?.parse()?,
            "--first" => options.rounds.first = value()?.parse()?,
            "--statements" => options.rounds.statements = value()?.parse()?,
            "--per-table" => options.rounds.per_table = value()?.parse()?,
            "--failures" => options.rounds.failures_max = value()?.parse()?,
            "--no-shrink" => options.rounds.shrinks = false,
            _ if arg.starts_with('-') => bail!("there is no option {arg}\n{USAGE}"),
            _ => options.scripts.push(PathBuf::from(&arg)),
        }
        options.generated |= matches!(arg.as_str(), "--seed" | "--statements" | "--states");
    }
    options.rounds.keyspace = format!("{}_generated", options.keyspace);
    if !options.generated && options.scripts.is_empty() {
        options.scripts = conformance::scripts()?;
        if options.role.logs_in() {
            options.scripts.extend(conformance::scripts_of_rights()?);
        }
    }
    Ok(options)
}

fn scripts(runner: &mut Runner, options: &Options) -> Result<usize> {
    let mut failures = 0;
    for path in &options.scripts {
        failures += script(runner, options, path).with_context(|| path.display().to_string())?;
    }
    Ok(failures)
}

fn script(runner: &mut Runner, options: &Options, path: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(path)?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).context("a name in UTF-8")?;
    let keyspace = format!("{}_{}", options.keyspace, stem.replace(['-', '.'], "_"));
    let steps = parse(&text, &keyspace)?;
    let before = runner.statements;
    runner.begin_keyspace(&keyspace)?;
    let mut found = Vec::new();
    for step in &steps {
        found.extend(conformance::run::judged(runner, step)?.into_iter().map(|text| (step, text)));
    }
    if !options.keeps {
        runner.end_keyspace()?;
    }
    let count = runner.statements - before;
    println!("{}: {count} statements, {} differences", path.display(), found.len());
    for (step, text) in found.iter().take(SHOWN_MAX) {
        println!("{}:{}: {}\n{text}", path.display(), step.line, shown(step));
    }
    Ok(found.len())
}

fn shown(step: &Step) -> String {
    match &step.action {
        Action::Run(statement) => statement.text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}
