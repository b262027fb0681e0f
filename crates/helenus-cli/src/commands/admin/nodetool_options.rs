//! The options of nodetool that the command line's own rules do not cover: short options of several letters (`-cf`), and
//! those that are refused in words because what they ask for is not there.
//!
//! Source: the `@Option`s of `org.apache.cassandra.tools.nodetool`, 5.0.9.

use clap::ArgMatches;
use std::ffi::OsString;

/// A verb, a short option of several letters, and its long form.
const SHORT_OPTIONS: [(&str, &str, &str); 13] = [
    ("compact", "-st", "--start-token"),
    ("compact", "-et", "--end-token"),
    ("getsstables", "-hf", "--hex-format"),
    ("import", "-cd", "--copy-data"),
    ("import", "-ri", "--require-index-components"),
    ("import", "-niv", "--no-index-validation"),
    ("listsnapshots", "-nt", "--no-ttl"),
    ("scrub", "-ns", "--no-snapshot"),
    ("snapshot", "-cf", "--column-family"),
    ("snapshot", "-kt", "--kt-list"),
    ("snapshot", "-kc", "--kt-list"),
    ("snapshot", "--kc.list", "--kt-list"),
    ("snapshot", "-sf", "--skip-flush"),
];
/// The same for options before the verb.
const BEFORE_VERB: [(&str, &str); 3] =
    [("-pw", "--password"), ("-pwf", "--password-file"), ("-pp", "--print-port")];

/// Replaces nodetool's short options of several letters in the arguments of `helenus admin`, which are read letter by letter
/// otherwise. Other commands' arguments stay.
pub fn with_long_options(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|command| command != "admin") {
        return arguments;
    }
    let is_verb = |argument: &OsString| {
        SHORT_OPTIONS.iter().any(|(verb, ..)| argument == verb) || super::command::is_verb(argument)
    };
    let verb_at = arguments.iter().skip(2).position(is_verb).map_or(arguments.len(), |at| at + 2);
    let verb = arguments.get(verb_at).cloned();
    for (at, argument) in arguments.iter_mut().enumerate().skip(2) {
        if argument == "--" {
            break;
        }
        let long = if at < verb_at {
            BEFORE_VERB.iter().find(|(short, _)| argument == short).map(|(_, long)| *long)
        } else {
            let of_verb = |of: &str| verb.as_ref().is_some_and(|verb| verb == of);
            let is_it = |(of, short, _): &&(&str, &str, &str)| of_verb(of) && *argument == **short;
            SHORT_OPTIONS.iter().find(is_it).map(|(.., long)| *long)
        };
        if let Some(long) = long {
            *argument = long.into();
        }
    }
    arguments
}

/// Options that are refused: the verb, the option's id on the command line, and why, with what to do instead.
const REFUSED: [(&str, &str, &str); 16] = [
    (
        "compact",
        "user_defined",
        "--user-defined is not built: compact a table, or helenus sstable split its files while no server has them",
    ),
    (
        "compact",
        "split",
        "--split-output is not built: a compaction of a whole table has one SSTable as its result",
    ),
    ("compact", "start_token", "--start-token is not built: compact the table"),
    ("compact", "end_token", "--end-token is not built: compact the table"),
    ("compact", "partition", "--partition is not built: forcecompact takes keys of partitions"),
    (
        "disablebinary",
        "force",
        "--force is not built: requests that have begun end by themselves, at the latest with their timeout",
    ),
    (
        "import",
        "require_indexes",
        "--require-index-components is not needed: indexes are built from the rows, and files of an index are never used",
    ),
    (
        "import",
        "keep_repaired",
        "--keep-repaired means nothing here: there is no repair that would go by the mark",
    ),
    (
        "scrub",
        "no_validate",
        "--no-validate is not built: values are always checked. Stop the server and run helenus sstable scrub to get what can \
         be read out of a damaged SSTable",
    ),
    (
        "scrub",
        "reinsert_overflowed_ttl",
        "--reinsert-overflowed-ttl is not built here: stop the server and run helenus sstable scrub, which does it",
    ),
    (
        "scrub",
        "skip_corrupted",
        "--skip-corrupted skips nothing here, a damaged SSTable stays as it is: stop the server and run helenus sstable scrub, \
         which skips what is damaged",
    ),
    (
        "toppartitions",
        "interval",
        "--interval is not needed: partitions are counted all the time. Ask again, as with watch -n 60 helenus admin toppartitions",
    ),
    (
        "upgradesstables",
        "max_timestamp",
        "--max-timestamp is not built: without -a only SSTables of earlier versions are written anew; name tables for less",
    ),
    (
        "verify",
        "failure_policy",
        "--dfp is not built: a damaged SSTable is named, and the exit code is 1. The server goes on and refuses what it cannot read",
    ),
    (
        "verify",
        "check_version",
        "--check-version is not built: helenus sstable ls shows the version of each SSTable, upgradesstables writes earlier ones anew",
    ),
    ("verify", "repair_status", "--rsc means nothing here: there is no repair that would go by the mark"),
];

/// Why the given options of a verb are refused; `None` if they are not.
pub fn refusal(verb: &str, given: &ArgMatches) -> Option<String> {
    let is_given = |id: &str| {
        given.try_contains_id(id).unwrap_or(false)
            && given.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    };
    let found = REFUSED.iter().find(|(of, id, _)| *of == verb && is_given(id));
    found.map(|(_, _, why)| format!("{verb} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of the verbs that are here, with a value where one is taken.
    const NODETOOL: [(&str, &str); 26] = [
        ("cleanup", "-j=1 --jobs=1"),
        ("clearsnapshot", "-t=s --all --older-than=1d --older-than-timestamp=2026-11-22T10:15:30Z"),
        ("clientstats", "--all --by-protocol --clear-history --client-options"),
        (
            "compact",
            "-s --split-output --user-defined -st=1 --start-token=1 -et=2 --end-token=2 --partition=k",
        ),
        ("compactionhistory", "-F=json --format=json"),
        ("compactionstats", "-H --human-readable -V --vtable"),
        ("datapaths", "-F=json --format=json"),
        ("disablebinary", "-f --force"),
        (
            "enableauditlog",
            "--logger=FileAuditLogger --included-keyspaces=a --excluded-keyspaces=a --included-categories=DDL \
             --excluded-categories=DDL --included-users=a --excluded-users=a --roll-cycle=DAILY --blocking=true \
             --max-queue-weight=1 --max-log-size=1 --archive-command=x --max-archive-retries=1",
        ),
        ("garbagecollect", "-g=ROW --granularity=CELL -j=1 --jobs=1"),
        ("getcompactionthroughput", "-d --precise-mib"),
        ("getsstables k t 1", "-hf --hex-format -l --show-levels"),
        (
            "import k t d",
            "-l --keep-level -r --keep-repaired -v --no-verify -t --no-tokens -c --no-invalidate-caches -q --quick -e \
             --extended-verify -cd --copy-data -ri --require-index-components -niv --no-index-validation",
        ),
        ("info", "-T --tokens -O --out-of-range-ops"),
        ("listsnapshots", "-nt --no-ttl -e --ephemeral"),
        ("ring", "-r --resolve-ip"),
        (
            "scrub",
            "-ns --no-snapshot -s --skip-corrupted -n --no-validate -r --reinsert-overflowed-ttl -j=1 --jobs=1",
        ),
        (
            "snapshot",
            "-cf=t --column-family=t --table=t -t=s --tag=s -kt=k.t --kt-list=k.t -kc=k.t --kc.list=k.t -sf --skip-flush \
             --ttl=1h",
        ),
        ("status", "-r --resolve-ip"),
        ("statusautocompaction", "-a --all"),
        (
            "tablestats",
            "-i -H --human-readable -F=json --format=json -s=reads --sort=reads -l --sstable-location-check",
        ),
        ("toppartitions", "-s=100 -k=5 -a=READS -i=10000 --interval=10000 -t --stop -l --list"),
        ("tpstats", "-F=json --format=json"),
        ("upgradesstables", "-a --include-all-sstables -t=1 --max-timestamp=1 -j=1 --jobs=1"),
        (
            "verify",
            "-e --extended-verify -c --check-version -f --force -d --dfp -r --rsc -t --check-tokens -q --quick",
        ),
        ("version", "-v --verbose"),
    ];

    fn parsed(line: &str) -> Result<ArgMatches, clap::Error> {
        let arguments = line.split_whitespace().map(OsString::from);
        let arguments = with_long_options(arguments).into_iter().skip(1);
        super::super::command().try_get_matches_from(arguments)
    }

    #[test]
    fn every_option_of_nodetool_is_known_in_each_of_its_forms() {
        for (verb, options) in NODETOOL {
            for option in options.split_whitespace() {
                // nodetool takes the value as an argument of its own.
                let line = format!("helenus admin {verb} {}", option.replacen('=', " ", 1));
                let matches = parsed(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                let (name, given) = matches.subcommand().unwrap();
                let is_read = given.ids().any(|id| {
                    given.value_source(id.as_str()) == Some(clap::parser::ValueSource::CommandLine)
                });
                assert!(is_read, "{line}");
                if let Some(why) = refusal(name, given) {
                    assert!(why.starts_with(name), "{why}");
                }
            }
        }
        parsed("helenus admin tablestats -s reads -t 3").unwrap();
        parsed("helenus admin tablestats --sort reads --top 3").unwrap();
        let line = "helenus admin -h 127.0.0.1 -p 7199 -u me -pw secret -pwf file status";
        parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }

    #[test]
    fn every_refusal_is_of_an_option_that_there_is() {
        let command = super::super::command();
        for (verb, id, _) in REFUSED {
            let of_verb = command.find_subcommand(verb).unwrap();
            assert!(of_verb.get_arguments().any(|argument| argument.get_id() == id), "{verb} {id}");
        }
    }

    #[test]
    fn the_arguments_of_others_stay() {
        let same = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(with_long_options(arguments.clone().into_iter()), arguments);
        };
        same("helenus shell -cf x");
        same("helenus admin flush -cf");
        same("helenus admin snapshot -- -cf");
    }
}
