//! The command line of `helenus admin`: its verbs and their options.

use super::absent;
use clap::{Arg, ArgAction, Command, value_parser};
use helenus_server::address::Address;
use helenus_server::quantity::parse_size;

const EXAMPLES: &str = "Examples:
  helenus admin status                    of the server in ./data, else of the only one that runs
  helenus admin tablestats shop.orders --data /var/lib/helenus
  helenus admin snapshot -t monday shop
  helenus admin compactionstats -H --socket /run/user/1000/helenus/memory-9042.sock

Verbs, flags and layouts are nodetool's; --json prints data instead. Verbs that mean nothing on one machine (repair,
decommission, ...) say why and what to use, with exit code 1.";

/// Stands for the host of `-h` without one. Before a verb, `-h HOST` is nodetool's; alone it asks for help.
pub const HELP_IS_MEANT: &str = "help-is-meant";

/// Whether a word is a verb.
pub fn is_verb(word: &std::ffi::OsStr) -> bool {
    word.to_str().is_some_and(|word| command().find_subcommand(word).is_some())
}

/// Defines the command.
pub fn command() -> Command {
    let data = Arg::new("data").long("data").value_name("PATH").global(true);
    let socket = Arg::new("socket").long("socket").value_name("PATH").global(true).conflicts_with("data");
    let host = Arg::new("host").long("host").value_name("HOST[:PORT]").global(true);
    let host = host.value_parser(value_parser!(Address));
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).global(true);
    let old_host = Arg::new("old_host").short('h').value_name("HOST").num_args(0..=1).hide(true);
    let old_host = old_host.value_parser(value_parser!(Address)).default_missing_value(HELP_IS_MEANT);
    let port = Arg::new("port").short('p').long("port").value_name("PORT").hide(true);
    // The admin socket belongs to the server's user, and asks for no login.
    let unused = |name: &'static str| Arg::new(name).long(name).value_name("VALUE").hide(true);
    let command = Command::new("admin")
        .about("Ask a running server on this machine, with nodetool's verbs")
        .after_help(EXAMPLES)
        .arg_required_else_help(true)
        .disable_help_flag(true)
        .arg(data.help("Data directory of the server [default: ./data, else the only server that runs]"))
        .arg(socket.help("Its admin socket, as it printed at its start"))
        .arg(json.help("Print the answer as JSON"))
        .arg(host.help(
            "Server on this machine, by the address it listens on [default: HELENUS_HOST, if it is set]",
        ))
        .arg(old_host.help("For scripts of nodetool: this machine and no other"))
        .arg(port.help("For scripts: not used"))
        .arg(unused("username").short('u'))
        .arg(unused("password"))
        .arg(unused("password-file"))
        .arg(idle("print_port", None, "print-port"))
        .arg(help());
    let hidden = absent::verbs().map(|name| {
        let rest = Arg::new("rest").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(name).hide(true).disable_help_flag(true).arg(rest)
    });
    command
        .subcommands(of_node())
        .subcommands(of_networks())
        .subcommands(of_tables())
        .subcommands(of_files())
        .subcommands(of_compactions())
        .subcommands(hidden)
}

/// `--help` of the command itself, without `-h`, because `-h` is nodetool's option of the host there.
fn help() -> Arg {
    Arg::new("help").long("help").action(ArgAction::Help).help("Print help")
}

fn verb(name: &'static str, about: &'static str, example: &str) -> Command {
    let example = format!("Example:\n  helenus admin {example}");
    Command::new(name).about(about).after_help(example).disable_help_flag(true).arg(help().short('h'))
}

fn keyspace() -> Arg {
    Arg::new("keyspace").value_name("KEYSPACE").help("The keyspace; without it all")
}

fn tables() -> Arg {
    Arg::new("tables").value_name("TABLE").num_args(0..).help("Tables of it; without any all")
}

fn needed(name: &'static str, shown: &'static str) -> Arg {
    let help = match name {
        "keyspace" => "The keyspace",
        "table" => "The table",
        "key" => "The partition's key as text; parts of a composite one with : between",
        _ => "The new value",
    };
    Arg::new(name).value_name(shown).required(true).help(help)
}

fn flag(name: &'static str, short: char, long: &'static str, help: &'static str) -> Arg {
    Arg::new(name).short(short).long(long).action(ArgAction::SetTrue).help(help)
}

/// An option of nodetool that has no effect here, or is refused in words (`nodetool_options::refusal`).
fn idle(name: &'static str, short: impl Into<Option<char>>, long: &'static str) -> Arg {
    let option = Arg::new(name).long(long).action(ArgAction::SetTrue).hide(true);
    match short.into() {
        Some(short) => option.short(short),
        None => option,
    }
}

fn long(name: &'static str, long: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(long).action(ArgAction::SetTrue).help(help)
}

fn timeout_kind() -> Arg {
    needed("kind", "TYPE").help("read, range or write").allow_hyphen_values(true)
}

/// The number of concurrent jobs: accepted, but the compactors decide it.
fn jobs() -> Arg {
    Arg::new("jobs").short('j').long("jobs").value_name("COUNT").hide(true)
}

fn human() -> Arg {
    flag("human", 'H', "human-readable", "Sizes as KiB, MiB, GiB")
}

fn format() -> Arg {
    Arg::new("format").short('F').long("format").value_parser(["json"]).value_name("json").help("As --json")
}

/// A whole number with a default.
fn number(name: &'static str, long: &'static str, least: i64, default: &'static str) -> Arg {
    Arg::new(name)
        .long(long)
        .value_name("N")
        .default_value(default)
        .value_parser(value_parser!(u32).range(least..=100_000))
}

/// A disk of a node. One of less than a gigabyte is a mistake.
fn size_of_disk(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    if bytes < 1_000_000_000 { Err("a node's disk has at least 1GB".to_owned()) } else { Ok(bytes) }
}

fn outgrow() -> Command {
    verb(
        "outgrow",
        "Say when this machine will be too small, and what a cluster would need",
        "outgrow --days 365 --node-disk 1TiB",
    )
    .arg(number("days", "days", 0, "365").help("How far to look ahead, days"))
    .arg(number("replicas", "replicas", 1, "3").help("Copies of each row in the cluster"))
    .arg(
        Arg::new("node_disk")
            .long("node-disk")
            .value_name("SIZE")
            .default_value("1TiB")
            .value_parser(size_of_disk)
            .help("Disk of a node of the cluster"),
    )
    .arg(number("node_cores", "node-cores", 1, "8").help("Processors of a node of the cluster"))
}

fn of_node() -> Vec<Command> {
    vec![
        verb("status", "Show the server as the node of a ring of one", "status").arg(keyspace()).arg(idle(
            "resolve_ip",
            'r',
            "resolve-ip",
        )),
        verb("info", "Show identity, load, uptime and caches", "info")
            .arg(flag("all_tokens", 'T', "tokens", "Show every token"))
            .arg(idle("out_of_range", 'O', "out-of-range-ops")),
        verb("overview", "Show the server's figures and its tables at a glance", "overview"),
        outgrow(),
        verb("version", "Show the Cassandra release whose features the server has", "version -v").arg(flag(
            "verbose",
            'v',
            "verbose",
            "Show the program's version too",
        )),
        verb("describecluster", "Show name, partitioner, schema version and keyspaces", "describecluster"),
        verb("describering", "Show the token ranges of a keyspace", "describering shop")
            .arg(needed("keyspace", "KEYSPACE")),
        verb("ring", "Show the tokens, which are all here", "ring").arg(keyspace()).arg(idle(
            "resolve_ip",
            'r',
            "resolve-ip",
        )),
        verb("getendpoints", "Show who has a partition: this server", "getendpoints shop orders 42")
            .arg(needed("keyspace", "KEYSPACE"))
            .arg(needed("table", "TABLE"))
            .arg(needed("key", "KEY").allow_hyphen_values(true)),
        verb("refreshsizeestimates", "Nothing: estimates are always of now", "refreshsizeestimates"),
        verb("statusbinary", "Show whether clients are served", "statusbinary"),
        verb("enablebinary", "Let clients in again", "enablebinary"),
        verb("disablebinary", "Close connections of clients and let none in, until enablebinary or the next start", "disablebinary")
            .arg(idle("force", 'f', "force")),
        verb("clientstats", "Show who is connected", "clientstats --all")
            .arg(long("all_connections", "all", "Every connection"))
            .arg(long("by_protocol", "by-protocol", "Addresses by the version of the protocol, since the start"))
            .arg(long("clear_history", "clear-history", "Forget what --by-protocol shows"))
            .arg(long("client_options", "client-options", "Every connection, with what its driver says of itself")),
        verb("gettimeout", "Show how long requests may take, in milliseconds", "gettimeout read").arg(timeout_kind()),
        verb("settimeout", "Set how long requests may take, until the next start", "settimeout read 10000")
            .arg(timeout_kind())
            .arg(needed("value", "MILLISECONDS").allow_hyphen_values(true)),
        verb("getlogginglevels", "Show how much is logged", "getlogginglevels"),
        verb(
            "setlogginglevel",
            "Set how much is logged, until the next start; without a level as much as at the start",
            "setlogginglevel ROOT debug",
        )
        .arg(Arg::new("logger").value_name("LOGGER").help("ROOT: there is one"))
        .arg(Arg::new("level").value_name("LEVEL").help("error, warn, info, debug or off")),
        verb("tpstats", "Show threads and their queues", "tpstats").arg(format()),
        verb("diskusage", "Show what holds space on the disk", "diskusage --json"),
        verb("memory", "Show where memory is, in place of gcstats", "memory --json"),
        verb("gettraceprobability", "Show how many requests are traced unasked", "gettraceprobability"),
        verb(
            "settraceprobability",
            "Set how many requests are traced unasked, from 0 to 1",
            "settraceprobability 0.001",
        )
        .arg(needed("value", "VALUE").value_parser(value_parser!(f64)).allow_negative_numbers(true)),
        verb(
            "reloadsettings",
            "Read the configuration again, and take over what can change at run time",
            "reloadsettings",
        ),
        verb(
            "reloadssl",
            "Read the keys and certificates of TLS again, for new connections; changes are noticed within half a minute anyway",
            "reloadssl",
        ),
        verb("resetclock", "Set timestamps of writes back to the machine's clock, after it was wrong", "resetclock").after_help(
            "Timestamps never go back by themselves: after a clock that was ahead they go on from where it was, so that\n\
             each write is later than all before it; what expires goes by the machine's clock all the while. After this\n\
             verb they go on from the machine's clock, and a jump ahead that maximum_timestamp_fail_threshold refused is\n\
             believed. Set the machine's clock right first.\n\n\
             Rows that were written with later timestamps stay newer than what is written from now on, until the clock has\n\
             passed them: a write or DELETE of them has no effect unless it gives a later timestamp (USING TIMESTAMP) or\n\
             has a condition (IF). TRUNCATE and changes of the schema work as always.\n\n\
             Example:\n  helenus admin resetclock",
        ),
        verb("passwd", "Set the password of a role, asked for at the terminal or read from the standard input", "passwd app")
            .arg(Arg::new("role").value_name("ROLE").default_value("cassandra").help("The role"))
            .arg(
                Arg::new("password_file")
                    .long("password-file")
                    .value_name("FILE")
                    .help("File whose first line is the password"),
            ),
        verb("getauditlog", "Show the options of the audit log, and whether it is on", "getauditlog"),
        verb("disableauditlog", "Switch the audit log off, until the next start", "disableauditlog"),
        enableauditlog(),
        verb("drain", "Serve no client any more and write everything to SSTables", "drain"),
    ]
}

fn of_networks() -> Vec<Command> {
    let group = || Arg::new("group").value_name("GROUP").help("Name of the group");
    vec![
        verb(
            "listcidrgroups",
            "Show the groups of networks, or the networks of one",
            "listcidrgroups office",
        )
        .arg(group()),
        verb(
            "updatecidrgroup",
            "Set the networks of a group",
            "updatecidrgroup office 10.1.0.0/16 192.168.7.0/24",
        )
        .arg(group().required(true))
        .arg(Arg::new("cidrs").value_name("CIDR").num_args(0..).help("Its networks")),
        verb("dropcidrgroup", "Remove a group of networks", "dropcidrgroup office")
            .arg(group().required(true)),
        verb("getcidrgroupsofip", "Show the groups of an address", "getcidrgroupsofip 10.1.2.3")
            .arg(Arg::new("address").value_name("ADDRESS").required(true).help("The address")),
        verb(
            "reloadcidrgroupscache",
            "Take changes of system_auth.cidr_groups over at once",
            "reloadcidrgroupscache",
        ),
        verb(
            "invalidatecidrpermissionscache",
            "Take changes of system_auth.cidr_permissions over at once",
            "invalidatecidrpermissionscache app",
        )
        .arg(Arg::new("roles").value_name("ROLE").num_args(0..).help("Only of these roles")),
        verb(
            "cidrfilteringstats",
            "Show how many statements came from which groups of networks",
            "cidrfilteringstats",
        ),
    ]
}

/// `enableauditlog` (`EnableAuditLog.java`).
fn enableauditlog() -> Command {
    let list = |name: &'static str, long: &'static str, help: &'static str| {
        Arg::new(name).long(long).value_name("NAME,...").help(help)
    };
    let number = |name: &'static str, long: &'static str| Arg::new(name).long(long).value_name("N");
    verb(
        "enableauditlog",
        "Switch the audit log on, until the next start; what is not given is as in audit_logging_options",
        "enableauditlog --logger FileAuditLogger --included-categories AUTH,DCL,DDL",
    )
    .arg(Arg::new("logger").long("logger").value_name("CLASS").help("FileAuditLogger"))
    .arg(list("included_keyspaces", "included-keyspaces", "Only statements in these"))
    .arg(list("excluded_keyspaces", "excluded-keyspaces", "No statements in these"))
    .arg(list(
        "included_categories",
        "included-categories",
        "QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE",
    ))
    .arg(list("excluded_categories", "excluded-categories", "None of these"))
    .arg(list("included_users", "included-users", "Only these roles"))
    .arg(list("excluded_users", "excluded-users", "Not these roles"))
    .arg(Arg::new("roll_cycle").long("roll-cycle").value_name("CYCLE").help("MINUTELY, HOURLY or DAILY"))
    .arg(
        Arg::new("blocking")
            .long("blocking")
            .value_name("BOOL")
            .ignore_case(true)
            .value_parser(["true", "false"])
            .help("Whether requests wait when the queue is full; otherwise lines are lost"),
    )
    .arg(
        number("max_queue_weight", "max-queue-weight")
            .value_parser(value_parser!(u64))
            .help("Bytes that may wait to be written"),
    )
    .arg(
        number("max_log_size", "max-log-size")
            .value_parser(value_parser!(u64))
            .help("Bytes of rolled files that are kept"),
    )
    .arg(Arg::new("archive_command").long("archive-command").value_name("COMMAND").hide(true))
    .arg(number("archive_retries", "max-archive-retries").value_parser(value_parser!(i64)).hide(true))
}

fn of_tables() -> Vec<Command> {
    let names =
        Arg::new("names").value_name("KEYSPACE[.TABLE]").num_args(0..).help("Only these; without any all");
    vec![
        verb(
            "tablestats",
            "Show all that is known of tables; cfstats is another name",
            "tablestats -H shop.orders",
        )
        .visible_alias("cfstats")
        .arg(names)
        .arg(Arg::new("ignore").short('i').action(ArgAction::SetTrue).help("All but these"))
        .arg(human())
        .arg(format())
        .arg(flag(
            "locations",
            'l',
            "sstable-location-check",
            "Show whether SSTables lie where they belong, which they always do",
        ))
        .arg(Arg::new("sort").short('s').long("sort").value_name("FIGURE").help("Sort tables by a figure"))
        .arg(
            Arg::new("top")
                .short('t')
                .long("top")
                .value_name("COUNT")
                .requires("sort")
                .value_parser(value_parser!(usize))
                .help("Only so many of the sorted"),
        ),
        verb("datapaths", "Show the folders of tables", "datapaths shop.orders")
            .arg(
                Arg::new("names")
                    .value_name("KEYSPACE[.TABLE]")
                    .num_args(0..)
                    .help("Only these; without any all"),
            )
            .arg(format()),
        verb(
            "tablehistograms",
            "Show how latencies and partitions of tables are spread; cfhistograms is another name",
            "tablehistograms shop orders",
        )
        .visible_alias("cfhistograms")
        .arg(
            Arg::new("keyspace")
                .value_name("KEYSPACE[.TABLE]")
                .help("The keyspace, or one table of it; without it all"),
        )
        .arg(Arg::new("table").value_name("TABLE").help("The table of the keyspace")),
        verb(
            "toppartitions",
            "Show the partitions that are read and written most",
            "toppartitions shop orders 5000",
        )
        .arg(
            Arg::new("args")
                .value_name("KEYSPACE TABLE MILLISECONDS")
                .num_args(0..=3)
                .help("Which table, or * for all; how long to look. Without a time: since the start"),
        )
        .arg(
            Arg::new("count")
                .short('k')
                .value_name("COUNT")
                .default_value("10")
                .value_parser(value_parser!(usize))
                .help("Most shown"),
        )
        .arg(
            Arg::new("capacity")
                .short('s')
                .value_name("COUNT")
                .value_parser(value_parser!(u16).range(1..=1024))
                .hide(true),
        )
        .arg(
            Arg::new("samplers")
                .short('a')
                .value_name("READS,WRITES")
                .default_value("READS,WRITES")
                .help("What is shown"),
        )
        .arg(Arg::new("interval").short('i').long("interval").value_name("MILLISECONDS").hide(true))
        .arg(idle("stop", 't', "stop"))
        .arg(idle("list", 'l', "list")),
        verb("getsstables", "Show the SSTables that hold a partition", "getsstables shop orders 42")
            .arg(needed("keyspace", "KEYSPACE"))
            .arg(needed("table", "TABLE"))
            .arg(needed("key", "KEY").allow_hyphen_values(true))
            .arg(
                Arg::new("hex")
                    .long("hex-format")
                    .action(ArgAction::SetTrue)
                    .help("The key is its bytes in hexadecimal digits"),
            )
            .arg(flag("levels", 'l', "show-levels", "Show the level of each")),
        verb("rebuild_index", "Build the indexes of a table anew", "rebuild_index shop orders orders_by_day")
            .arg(needed("keyspace", "KEYSPACE"))
            .arg(needed("table", "TABLE"))
            .arg(
                Arg::new("indexes")
                    .value_name("INDEX")
                    .num_args(1..)
                    .required(true)
                    .help("Its indexes to build"),
            ),
    ]
}

fn of_files() -> Vec<Command> {
    let which = |command: Command| command.arg(keyspace()).arg(tables());
    let name = |command: Command| {
        command.arg(Arg::new("name").short('t').long("tag").value_name("NAME").help("The snapshot's name"))
    };
    vec![
        which(verb("flush", "Write what is in memory to SSTables", "flush shop orders")),
        which(verb("cleanup", "Remove partitions of other nodes: there are none", "cleanup shop"))
            .arg(jobs()),
        which(verb("verify", "Read all SSTables and say what is wrong", "verify shop orders"))
            .arg(idle("extended", 'e', "extended-verify"))
            .arg(idle("force", 'f', "force"))
            .arg(idle("check_version", 'c', "check-version"))
            .arg(idle("failure_policy", 'd', "dfp"))
            .arg(idle("repair_status", 'r', "rsc"))
            .arg(idle("check_tokens", 't', "check-tokens"))
            .arg(idle("quick", 'q', "quick")),
        which(verb(
            "scrub",
            "Take a snapshot, check SSTables and write the sound ones anew",
            "scrub shop orders",
        ))
        .arg(
            Arg::new("no_snapshot")
                .long("no-snapshot")
                .action(ArgAction::SetTrue)
                .help("Take no snapshot first"),
        )
        .arg(idle("skip_corrupted", 's', "skip-corrupted"))
        .arg(idle("no_validate", 'n', "no-validate"))
        .arg(idle("reinsert_overflowed_ttl", 'r', "reinsert-overflowed-ttl"))
        .arg(jobs()),
        verb("refresh", "Take in SSTables that were put into a table's folder", "refresh shop orders")
            .arg(needed("keyspace", "KEYSPACE"))
            .arg(needed("table", "TABLE")),
        verb("import", "Take SSTables of directories into a table", "import shop orders /backup/shop/orders")
            .arg(needed("keyspace", "KEYSPACE"))
            .arg(needed("table", "TABLE"))
            .arg(
                Arg::new("directories")
                    .value_name("DIR")
                    .num_args(1..)
                    .required(true)
                    .help("Folders with SSTables"),
            )
            .arg(flag(
                "copy",
                'p',
                "copy-data",
                "Copy files even where they could be linked; they are never moved",
            ))
            .arg(flag("no_verify", 'v', "no-verify", "Do not read every row first"))
            .arg(flag("keep_level", 'l', "keep-level", "Keep the levels of levelled compaction"))
            .arg(flag("quick", 'q', "quick", "As --no-verify"))
            .arg(idle("keep_repaired", 'r', "keep-repaired"))
            .arg(idle("no_tokens", 't', "no-tokens"))
            .arg(idle("no_caches", 'c', "no-invalidate-caches"))
            .arg(idle("require_indexes", None, "require-index-components"))
            .arg(idle("no_index_validation", None, "no-index-validation"))
            .arg(idle("extended", 'e', "extended-verify")),
        name(verb("snapshot", "Take a snapshot, in Cassandra's place and form", "snapshot -t monday shop"))
            .arg(
                Arg::new("keyspaces")
                    .value_name("KEYSPACE")
                    .num_args(0..)
                    .help("Only these; without any all of users"),
            )
            .arg(
                Arg::new("table")
                    .long("table")
                    .visible_alias("column-family")
                    .value_name("TABLE")
                    .help("Only this table of the one keyspace"),
            )
            .arg(
                Arg::new("list")
                    .long("kt-list")
                    .value_name("KEYSPACE.TABLE,...")
                    .conflicts_with_all(["keyspaces", "table"])
                    .help("Only these tables"),
            )
            .arg(
                Arg::new("skip_flush")
                    .long("skip-flush")
                    .action(ArgAction::SetTrue)
                    .help("Leave out what is in memory"),
            )
            .arg(
                Arg::new("ttl")
                    .long("ttl")
                    .value_name("TIME")
                    .help("Remove it after this, a minute at least, such as 12h or 30d"),
            ),
        verb("listsnapshots", "Show the snapshots there are", "listsnapshots")
            .arg(long("no_ttl", "no-ttl", "Only those that do not expire"))
            .arg(idle("ephemeral", 'e', "ephemeral")),
        name(verb("clearsnapshot", "Remove snapshots", "clearsnapshot -t monday shop"))
            .arg(
                Arg::new("keyspaces")
                    .value_name("KEYSPACE")
                    .num_args(0..)
                    .help("Only of these; without any of all"),
            )
            .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Every snapshot"))
            .arg(
                Arg::new("older_than")
                    .long("older-than")
                    .value_name("TIME")
                    .help("Older than this, such as 12h or 30d"),
            )
            .arg(
                Arg::new("older_than_timestamp")
                    .long("older-than-timestamp")
                    .value_name("MOMENT")
                    .conflicts_with("older_than")
                    .help("Older than this, such as 2026-11-22T10:15:30Z"),
            ),
    ]
}

fn of_compactions() -> Vec<Command> {
    let which = |command: Command| command.arg(keyspace()).arg(tables());
    let refused =
        |name: &'static str, long: &'static str| Arg::new(name).long(long).value_name("VALUE").hide(true);
    vec![
        which(
            verb("compact", "Compact the SSTables of tables, and show how far it is", "compact shop orders").after_help(
                "What is in memory is not written first: flush before it to have everything in one place.\n\
                 It goes on in the server if this command is ended.\n\nExample:\n  helenus admin compact shop orders",
            ),
        )
        .arg(idle("split", 's', "split-output"))
        .arg(Arg::new("user_defined").long("user-defined").action(ArgAction::SetTrue).hide(true))
        .arg(refused("start_token", "start-token"))
        .arg(refused("end_token", "end-token"))
        .arg(refused("partition", "partition")),
        which(verb("garbagecollect", "Compact tables so that deleted data goes", "garbagecollect shop orders"))
            .arg(Arg::new("granularity").short('g').long("granularity").value_name("ROW|CELL").hide(true))
            .arg(jobs()),
        which(verb("upgradesstables", "Write SSTables of earlier versions anew", "upgradesstables -a shop"))
            .arg(flag("all", 'a', "include-all-sstables", "Those of the present version too"))
            .arg(refused("max_timestamp", "max-timestamp").short('t'))
            .arg(jobs()),
        verb(
            "forcecompact",
            "Compact the SSTables of some partitions and drop their tombstones, however young",
            "forcecompact shop orders 17 18",
        )
        .arg(needed("keyspace", "KEYSPACE"))
        .arg(needed("table", "TABLE"))
        .arg(
            Arg::new("keys")
                .value_name("KEY")
                .num_args(1..)
                .required(true)
                .allow_negative_numbers(true)
                .help("Keys of partitions as text; parts of a composite one with : between"),
        ),
        verb("compactionstats", "Show the compactions that are due and under way", "compactionstats -H")
            .arg(human())
            .arg(idle("vtable", 'V', "vtable")),
        verb("compactionhistory", "Show the compactions since the server's start", "compactionhistory").arg(format()),
        verb("getcompactionthroughput", "Show how compactions are throttled", "getcompactionthroughput -d")
            .arg(flag("precise", 'd', "precise-mib", "As a number with decimals")),
        verb("setcompactionthroughput", "Throttle compactions to so many MiB a second, 0 for not at all", "setcompactionthroughput 32")
            .arg(needed("mib", "MIB").value_parser(value_parser!(u32))),
        which(verb("enableautocompaction", "Have tables compacted by themselves again", "enableautocompaction shop")),
        which(verb("disableautocompaction", "Compact tables only when asked to, until the next start", "disableautocompaction shop orders")),
        which(verb("statusautocompaction", "Show whether tables are compacted by themselves", "statusautocompaction -a shop"))
            .arg(flag("all", 'a', "all", "Table by table")),
    ]
}
