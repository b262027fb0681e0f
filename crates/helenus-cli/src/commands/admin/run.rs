//! Dispatches each verb to the function that runs it.

use super::clients::Shown;
use super::command::HELP_IS_MEANT;
use super::requests::Server;
use super::snapshots::Cleared;
use super::tables::Wanted;
use super::{
    absent, audit, clients, clocks, compactions, histograms, maintenance, networks, node, nodetool_options,
    outgrow, overview, passwords, paths, pools, single_node, snapshots, tables, timeouts,
};
use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use clap::error::ErrorKind;
use helenus_model::types::{CqlType, parse_text};
use helenus_server::address::Address;
use helenus_server::admin::{AdminRequest, AuditOverrides, ImportOrder, TableSelection};

/// The arguments of a verb.
struct Given<'a>(&'a ArgMatches);

impl<'a> Given<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get_one::<String>(name).map(String::as_str)
    }

    fn needed(&self, name: &str) -> &'a str {
        self.text(name).unwrap_or_default()
    }

    fn many(&self, name: &str) -> Vec<&'a str> {
        self.0.get_many::<String>(name).into_iter().flatten().map(String::as_str).collect()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }

    fn which(&self) -> TableSelection {
        let tables = self.many("tables").into_iter().map(str::to_owned).collect();
        TableSelection { keyspace: self.text("keyspace").map(str::to_owned), tables }
    }
}

/// Runs the verb.
///
/// # Errors
/// No server answers; the server refuses the request; wrong arguments.
pub fn run(matches: &ArgMatches) -> Result<()> {
    run_verb(matches, false)
}

/// Runs the verb as the healthy only node of a cluster does.
///
/// # Errors
/// As [`run`].
pub fn run_as_node(matches: &ArgMatches) -> Result<()> {
    run_verb(matches, true)
}

fn run_verb(matches: &ArgMatches, as_node: bool) -> Result<()> {
    let before_verb = matches;
    let Some((verb, matches)) = matches.subcommand() else {
        let is_help = matches.get_one::<Address>("old_host").is_some_and(|host| host.host() == HELP_IS_MEANT);
        let mut command = super::command().bin_name("helenus admin");
        if is_help {
            return Ok(command.print_help()?);
        }
        command
            .error(ErrorKind::MissingSubcommand, "no verb is given; helenus admin --help lists them")
            .exit()
    };
    if as_node && single_node::has(verb) {
        return single_node::answer(&Server::of(before_verb, matches)?, verb, &Given(matches).many("rest"));
    }
    if let Some(why) = absent::why(verb) {
        bail!("{verb}: {why}");
    }
    if let Some(why) = nodetool_options::refusal(verb, matches) {
        bail!(why);
    }
    if before_verb.get_flag("print_port") {
        bail!("--print-port is not built: all there is has the address that status shows");
    }
    let mut server = Server::of(before_verb, matches)?;
    server.as_node = as_node;
    let given = Given(matches);
    match of_node(&server, verb, &given) {
        Some(done) => done,
        None => match of_tables(&server, verb, &given) {
            Some(done) => done,
            None => {
                of_compactions(&server, verb, &given).unwrap_or_else(|| of_snapshots(&server, verb, &given))
            }
        },
    }
}

fn of_node(server: &Server, verb: &str, given: &Given<'_>) -> Option<Result<()>> {
    Some(match verb {
        "status" => node::status(server, given.text("keyspace")),
        "info" => node::info(server, given.flag("all_tokens"), given.flag("out_of_range")),
        "overview" => overview::run(server),
        "outgrow" => {
            let number = |name: &str| given.0.get_one(name).copied().unwrap_or_default();
            let node_disk_bytes = given.0.get_one("node_disk").copied().unwrap_or_default();
            let (days, replicas, node_cores) = (number("days"), number("replicas"), number("node_cores"));
            outgrow::run(server, &outgrow::Wanted { days, replicas, node_disk_bytes, node_cores })
        }
        "version" => node::version(server, given.flag("verbose")),
        "describecluster" => node::describecluster(server),
        "describering" => node::describering(server, given.needed("keyspace")),
        "ring" => node::ring(server, given.text("keyspace")),
        "getendpoints" => {
            node::getendpoints(server, given.needed("keyspace"), given.needed("table"), given.needed("key"))
        }
        "statusbinary" => node::statusbinary(server),
        "enablebinary" => maintenance::done(server, &AdminRequest::ServeClients { serve: true }),
        "disablebinary" => maintenance::done(server, &AdminRequest::ServeClients { serve: false }),
        "clientstats" => {
            let shown = Shown {
                all: given.flag("all_connections"),
                by_protocol: given.flag("by_protocol"),
                clear: given.flag("clear_history"),
                options: given.flag("client_options"),
            };
            clients::clientstats(server, &shown)
        }
        "gettimeout" => timeouts::gettimeout(server, given.needed("kind")),
        "settimeout" => timeouts::settimeout(server, given.needed("kind"), given.needed("value")),
        "getlogginglevels" => timeouts::getlogginglevels(server),
        "setlogginglevel" => timeouts::setlogginglevel(server, given.text("logger"), given.text("level")),
        "tpstats" => pools::tpstats(server),
        "memory" => pools::memory(server),
        "diskusage" => paths::diskusage(server),
        "gettraceprobability" => maintenance::gettraceprobability(server),
        "settraceprobability" => maintenance::settraceprobability(server, given.0.get_one("value").copied()),
        "reloadsettings" => maintenance::reloadsettings(server),
        "reloadssl" => maintenance::done(server, &AdminRequest::ReloadTls),
        "resetclock" => clocks::resetclock(server),
        "listcidrgroups" => networks::listcidrgroups(server, given.text("group")),
        "updatecidrgroup" => networks::updatecidrgroup(server, given.needed("group"), &given.many("cidrs")),
        "dropcidrgroup" => networks::dropcidrgroup(server, given.needed("group")),
        "getcidrgroupsofip" => networks::getcidrgroupsofip(server, given.needed("address")),
        "reloadcidrgroupscache" => networks::reloadcidrgroupscache(server),
        "invalidatecidrpermissionscache" => {
            networks::invalidatecidrpermissionscache(server, &given.many("roles"))
        }
        "cidrfilteringstats" => networks::cidrfilteringstats(server),
        "getauditlog" => audit::getauditlog(server),
        "disableauditlog" => maintenance::done(server, &AdminRequest::DisableAuditLog),
        "enableauditlog" => {
            let text = |name: &str| given.text(name).map(str::to_owned);
            let overrides = AuditOverrides {
                logger: text("logger"),
                included_keyspaces: text("included_keyspaces"),
                excluded_keyspaces: text("excluded_keyspaces"),
                included_categories: text("included_categories"),
                excluded_categories: text("excluded_categories"),
                included_users: text("included_users"),
                excluded_users: text("excluded_users"),
                roll_cycle: text("roll_cycle"),
                block: given.text("blocking").map(|word| word.eq_ignore_ascii_case("true")),
                max_queue_weight: given.0.get_one("max_queue_weight").copied(),
                max_log_size: given.0.get_one("max_log_size").copied(),
                archive_command: text("archive_command"),
                max_archive_retries: given.0.get_one("archive_retries").copied(),
            };
            maintenance::done(server, &AdminRequest::EnableAuditLog(Box::new(overrides)))
        }
        "passwd" => passwords::passwd(server, given.needed("role"), given.text("password_file")),
        "drain" => maintenance::done(server, &AdminRequest::Drain),
        _ => return None,
    })
}

fn of_tables(server: &Server, verb: &str, given: &Given<'_>) -> Option<Result<()>> {
    Some(match verb {
        "tablestats" => {
            let wanted = Wanted {
                names: given.many("names"),
                ignore: given.flag("ignore"),
                human: given.flag("human"),
                locations: given.flag("locations"),
                sort: given.text("sort"),
                top: given.0.get_one::<usize>("top").copied().unwrap_or(0),
            };
            tables::tablestats(server, &wanted)
        }
        "refreshsizeestimates" => tables::refreshsizeestimates(server),
        "datapaths" => paths::datapaths(server, &given.many("names")),
        "tablehistograms" => histograms::tablehistograms(server, pair(given)),
        "toppartitions" => toppartitions(server, given),
        "getsstables" => {
            let of = ["keyspace", "table", "key"].map(|name| given.needed(name));
            tables::getsstables(server, of, (given.flag("hex"), given.flag("levels")))
        }
        "rebuild_index" => {
            let [keyspace, table] = ["keyspace", "table"].map(|name| given.needed(name).to_owned());
            let indexes = given.many("indexes").into_iter().map(str::to_owned).collect();
            maintenance::done(server, &AdminRequest::RebuildIndexes { keyspace, table, indexes })
        }
        "flush" => maintenance::flush(server, given.which()),
        "cleanup" => maintenance::cleanup(server, given.which()),
        "verify" => {
            // All tokens belong to this server.
            if given.flag("check_tokens") && !given.flag("extended") {
                return Some(Err(anyhow!("Token verification requires --extended-verify")));
            }
            maintenance::verify(server, given.which())
        }
        "scrub" => maintenance::scrub(server, &given.which(), (!given.flag("no_snapshot"), now_ms())),
        "refresh" => maintenance::refresh(server, given.needed("keyspace"), given.needed("table")),
        "import" => {
            let flags = ImportOrder {
                copy: given.flag("copy"),
                no_verify: given.flag("no_verify") || given.flag("quick"),
                keep_level: given.flag("keep_level"),
                ..ImportOrder::default()
            };
            let directories: Vec<String> = given.many("directories").into_iter().map(str::to_owned).collect();
            maintenance::import(
                server,
                (given.needed("keyspace"), given.needed("table")),
                &directories,
                &flags,
            )
        }
        _ => return None,
    })
}

fn of_compactions(server: &Server, verb: &str, given: &Given<'_>) -> Option<Result<()>> {
    let auto = |set| {
        maintenance::done(server, &AdminRequest::AutoCompaction { which: given.which(), set: Some(set) })
    };
    Some(match verb {
        "compact" => compact(server, given),
        "garbagecollect" => {
            compactions::compact(server, &AdminRequest::Compact { which: given.which() }, "compacted")
        }
        "upgradesstables" => {
            let request = AdminRequest::Rewrite { which: given.which(), current: given.flag("all") };
            compactions::compact(server, &request, "upgraded")
        }
        "forcecompact" => {
            let [keyspace, table] = ["keyspace", "table"].map(|name| given.needed(name).to_owned());
            let keys = given.many("keys").into_iter().map(str::to_owned).collect();
            let request = AdminRequest::CompactKeys { keyspace, table, keys };
            compactions::compact(server, &request, "compacted")
        }
        "compactionstats" => compactions::compactionstats(server, given.flag("human")),
        "compactionhistory" => compactions::compactionhistory(server),
        "getcompactionthroughput" => compactions::getcompactionthroughput(server, given.flag("precise")),
        "setcompactionthroughput" => {
            let mib = given.0.get_one::<u32>("mib").copied().unwrap_or_default();
            maintenance::done(server, &AdminRequest::SetCompactionThroughput { mib })
        }
        "enableautocompaction" => auto(true),
        "disableautocompaction" => auto(false),
        "statusautocompaction" => compactions::statusautocompaction(server, given.which(), given.flag("all")),
        _ => return None,
    })
}

fn compact(server: &Server, given: &Given<'_>) -> Result<()> {
    compactions::compact(server, &AdminRequest::Compact { which: given.which() }, "compacted")
}

fn of_snapshots(server: &Server, verb: &str, given: &Given<'_>) -> Result<()> {
    match verb {
        "snapshot" => snapshot(server, given),
        "listsnapshots" => snapshots::listsnapshots(server, given.flag("no_ttl")),
        "clearsnapshot" => clearsnapshot(server, given),
        other => bail!("there is no verb {other}"),
    }
}

fn snapshot(server: &Server, given: &Given<'_>) -> Result<()> {
    let ttl = given.text("ttl").map(|text| anyhow::Ok((text, ttl_seconds(text)?))).transpose()?;
    let name = given.text("name").map_or_else(|| now_ms().to_string(), str::to_owned);
    let keyspaces = given.many("keyspaces");
    let mut of: Vec<TableSelection> = Vec::new();
    if let Some(list) = given.text("list") {
        for pair in list.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (keyspace, table) =
                pair.split_once('.').with_context(|| format!("{pair}: give KEYSPACE.TABLE"))?;
            of.push(TableSelection { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] });
        }
    }
    if given.text("table").is_some() && keyspaces.len() != 1 {
        bail!("When specifying the table for a snapshot, you must specify one and only one keyspace");
    }
    let tables: Vec<String> = given.text("table").map(str::to_owned).into_iter().collect();
    of.extend(
        keyspaces
            .iter()
            .map(|name| TableSelection { keyspace: Some((*name).to_owned()), tables: tables.clone() }),
    );
    snapshots::snapshot(server, (&name, &of), !given.flag("skip_flush"), ttl)
}

fn clearsnapshot(server: &Server, given: &Given<'_>) -> Result<()> {
    let (name, all) = (given.text("name"), given.flag("all"));
    let age = given.text("older_than");
    let before = given.text("older_than_timestamp");
    if name.is_none() && !all && age.is_none() && before.is_none() {
        bail!("Specify snapshot name or --all");
    }
    if name.is_some() && all {
        bail!("Specify only one of snapshot name or --all");
    }
    let moment = |text: &'_ str| {
        let bytes = parse_text(&CqlType::Timestamp, text).ok().and_then(|bytes| bytes.try_into().ok());
        let bytes =
            bytes.context("Parameter --older-than-timestamp has to be a valid instant in ISO format.");
        bytes.map(i64::from_be_bytes)
    };
    let cleared = Cleared {
        name,
        keyspaces: given.many("keyspaces").into_iter().map(str::to_owned).collect(),
        older_than_s: age.map(seconds).transpose()?,
        before: before.map(|text| anyhow::Ok((text, moment(text)?))).transpose()?,
    };
    snapshots::clearsnapshot(server, &cleared, now_ms())
}

/// The time to live of a snapshot, in seconds.
fn ttl_seconds(text: &str) -> Result<u32> {
    u32::try_from(seconds(text)?)
        .ok()
        .with_context(|| format!("{text}: a snapshot is kept for 68 years at most"))
}

/// A duration in Cassandra's notation: a whole number and a unit.
fn seconds(text: &str) -> Result<i64> {
    let wrong = || anyhow!("{text} is no time span: give a whole number with s, m, h or d");
    let end = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    number.parse::<i64>().ok().and_then(|number| number.checked_mul(scale)).ok_or_else(wrong)
}

/// `KEYSPACE TABLE` or `KEYSPACE.TABLE`.
fn pair(given: &Given<'_>) -> TableSelection {
    let (keyspace, table) = (given.text("keyspace"), given.text("table"));
    let (keyspace, table) = match (keyspace, table) {
        (Some(both), None) => {
            both.split_once('.').map_or((Some(both), None), |(of, table)| (Some(of), Some(table)))
        }
        given => given,
    };
    TableSelection {
        keyspace: keyspace.map(str::to_owned),
        tables: table.map(str::to_owned).into_iter().collect(),
    }
}

fn toppartitions(server: &Server, given: &Given<'_>) -> Result<()> {
    let mut args = given.many("args");
    let duration_ms = match args.last().and_then(|last| last.parse().ok()) {
        Some(ms) if args.len() != 2 => {
            args.pop();
            Some(ms)
        }
        _ => None,
    };
    let name = |at: usize| args.get(at).filter(|name| **name != "*").map(|name| (*name).to_owned());
    let which = TableSelection { keyspace: name(0), tables: name(1).into_iter().collect() };
    let most = given.0.get_one::<usize>("count").copied().unwrap_or(10);
    if given.flag("list") || given.flag("stop") {
        return tables::scheduled_samplings(server, &which, given.flag("stop"));
    }
    let mut kinds = Vec::new();
    for word in given.needed("samplers").split(',').map(|word| word.trim().to_ascii_uppercase()) {
        match word.as_str() {
            "READS" => kinds.push("reads"),
            "WRITES" => kinds.push("writes"),
            _ => bail!("'{word}' sampler is not available from: [READS, WRITES]"),
        }
    }
    tables::toppartitions(server, &which, duration_ms, (most, &kinds))
}

fn now_ms() -> i64 {
    helenus_host::real::host().clock.wall_us() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_verb_is_done_or_explained() {
        let command = super::super::command();
        command.clone().debug_assert();
        for verb in command.get_subcommands().map(clap::Command::get_name) {
            let is_done = ["status", "snapshot", "compact", "tablestats"].contains(&verb);
            assert!(!is_done || absent::why(verb).is_none(), "{verb}");
        }
        assert!(absent::why("repair").is_some_and(|why| why.contains("helenus")));
    }

    #[test]
    fn time_spans_have_a_unit() {
        assert_eq!(seconds("12h").unwrap(), 43_200);
        assert!(seconds("12").is_err() && seconds("h").is_err() && seconds("1y").is_err());
    }
}
