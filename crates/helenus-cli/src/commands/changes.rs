//! `helenus changes`: prints the changes of a table, and manages the consumers of changes.

use super::target::{Target, TargetOptions};
use anyhow::{Result, anyhow, bail};
use clap::{ArgGroup, Args};
use helenus_host::Host;
use helenus_model::types::write_instant;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, ChangeConsumerLine, ChangesOrder, answer_changes, ask,
};
use std::io::Write;

const EXAMPLES: &str = "Examples:
  helenus changes shop.orders --from beginning                     the present rows, then the changes since
  helenus changes shop.orders --follow --json                      the changes that come, a JSON object a line
  helenus changes shop.orders --from 5f0c2a91-0000000300001a2b-000001 --json
  helenus changes shop.orders --consumer billing --from beginning --ack-all --follow --json
  helenus changes shop.orders --consumer billing --ack-all --json  goes on where billing has acknowledged
  helenus changes shop.orders --consumer billing --ack 5f0c2a91-0000000300001a2b-000001
  helenus changes --consumers

The table needs cdc = true (ALTER TABLE shop.orders WITH cdc = true). From the running server that answers at --data or
--socket; with --offline from the directory itself where none does. Every event has a position; reading on from it misses nothing and repeats nothing,
across restarts and crashes. The log is kept for named consumers, up to cdc_total_space and cdc_retention.";

/// Events of a request.
const EVENTS: usize = 2_000;

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("what").args(["table", "consumers"]).required(true))]
pub struct ChangesCommand {
    /// Keyspace and table
    #[arg(value_name = "KEYSPACE.TABLE")]
    table: Option<String>,
    /// Where to begin: now, beginning (the present rows first), oldest (what is kept), or the position of an event
    /// [default: now, or where the consumer goes on]
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    /// Go on with the changes that come, until interrupted
    #[arg(long)]
    follow: bool,
    /// End after so many events; 0 only makes the consumer
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Read as this consumer, for whom the log is kept; --from makes it, or sets it to another position
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Acknowledge for the consumer everything up to this position, and end
    #[arg(long, value_name = "POSITION", requires = "consumer", conflicts_with_all = ["from", "follow", "ack_all", "limit"])]
    ack: Option<String>,
    /// Acknowledge what was printed, once it is
    #[arg(long, requires = "consumer")]
    ack_all: bool,
    /// Forget the consumer, and end
    #[arg(long, requires = "consumer", conflicts_with_all = ["from", "follow", "ack", "ack_all", "limit"])]
    drop_consumer: bool,
    /// List the consumers of all tables
    #[arg(long, conflicts_with_all = ["from", "follow", "consumer", "limit"])]
    consumers: bool,
    /// A JSON object a line
    #[arg(long)]
    json: bool,
    /// Where no server runs, read the directory itself; no server can start on it meanwhile
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    at: TargetOptions,
}

/// Runs the command.
///
/// # Errors
/// A table that is not watched, a position that is not kept any more; failures of the server.
pub fn run(host: &Host, command: &ChangesCommand) -> Result<()> {
    let target = match (command.at.find_server(host)?, command.offline) {
        (Some(socket), _) => Target::Server(socket),
        (None, true) => command.at.find_existing(host)?,
        // A consumer that asks again and again would hold the directory just when a server is to start on it.
        (None, false) => bail!(
            "no server runs on {}; --offline reads the directory itself, and no server can start on it meanwhile",
            command.at.data().display()
        ),
    };
    let done = run_on(&target, command);
    if let Target::Directory(opened) = &target {
        opened.database.close()?;
    }
    done
}

fn run_on(target: &Target, command: &ChangesCommand) -> Result<()> {
    let Some(name) = &command.table else { return list_consumers(target, command.json) };
    let (keyspace, table) = table_name(name)?;
    match (&command.consumer, &command.ack) {
        (Some(consumer), Some(position)) => {
            let (consumer, position) = (consumer.clone(), position.clone());
            done(target, &AdminRequest::AcknowledgeChanges { keyspace, table, consumer, position })
        }
        (Some(consumer), None) if command.drop_consumer => {
            let consumer = consumer.clone();
            done(target, &AdminRequest::DropChangeConsumer { keyspace, table, consumer })
        }
        _ => read(target, command, (keyspace, table)),
    }
}

fn read(target: &Target, command: &ChangesCommand, (keyspace, table): (String, String)) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut left = command.limit.unwrap_or(usize::MAX);
    let mut order = ChangesOrder {
        keyspace: keyspace.clone(),
        table: table.clone(),
        from: command.from.clone(),
        consumer: command.consumer.clone(),
        events: 0,
        wait: false,
    };
    if left == 0 {
        return begin_only(target, order);
    }
    while left > 0 {
        order.events = left.min(EVENTS);
        let AdminAnswer::Changes(mut found) = answer(target, &AdminRequest::Changes(order.clone()))? else {
            bail!("the server gave another answer");
        };
        // Static rows may come beside the rows of a page.
        found.events.truncate(left);
        if let Some(last) = found.events.last().filter(|_| found.events.len() == left) {
            let last: serde_json::Value = serde_json::from_str(last)?;
            last["position"].as_str().unwrap_or_default().clone_into(&mut found.next);
        }
        for event in &found.events {
            match command.json {
                true => writeln!(out, "{event}")?,
                false => writeln!(out, "{}", for_people(event)?)?,
            }
        }
        out.flush()?;
        left = left.saturating_sub(found.events.len());
        if let Some(consumer) = command.consumer.as_ref().filter(|_| command.ack_all) {
            let (keyspace, table) = (keyspace.clone(), table.clone());
            let (consumer, position) = (consumer.clone(), found.next.clone());
            done(target, &AdminRequest::AcknowledgeChanges { keyspace, table, consumer, position })?;
        }
        if found.is_end && !command.follow {
            if !command.json {
                writeln!(out, "next position: {}", found.next)?;
            }
            return Ok(());
        }
        (order.from, order.consumer, order.wait) = (Some(found.next), None, command.follow);
    }
    Ok(())
}

/// Makes or sets the consumer of an order for no event, and says where it begins.
fn begin_only(target: &Target, order: ChangesOrder) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let Some(name) = order.consumer.clone() else {
        writeln!(out, "nothing was read: --limit is 0")?;
        return Ok(());
    };
    let (keyspace, table) = (order.keyspace.clone(), order.table.clone());
    answer(target, &AdminRequest::Changes(ChangesOrder { events: 1, ..order }))?;
    let AdminAnswer::ChangeConsumers(consumers) = answer(target, &AdminRequest::ChangeConsumers)? else {
        bail!("the server gave another answer");
    };
    let is_this =
        |line: &&ChangeConsumerLine| (&line.name, &line.keyspace, &line.table) == (&name, &keyspace, &table);
    let found = consumers.iter().find(is_this);
    let found = found.ok_or_else(|| anyhow!("the server has made no consumer {name}"))?;
    writeln!(
        out,
        "consumer {name} of {keyspace}.{table} goes on after {}; nothing was read",
        found.position
    )?;
    Ok(())
}

fn list_consumers(target: &Target, json: bool) -> Result<()> {
    let AdminAnswer::ChangeConsumers(consumers) = answer(target, &AdminRequest::ChangeConsumers)? else {
        bail!("the server gave another answer");
    };
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &consumers)?;
        writeln!(out)?;
        return Ok(());
    }
    if consumers.is_empty() {
        writeln!(out, "no consumers")?;
    }
    for consumer in consumers {
        let mut time = String::new();
        write_instant(consumer.acknowledged_s, 0, &mut time);
        let lost = if consumer.is_kept { "" } else { "  changes after it are gone: begin anew" };
        let table = format!("{}.{}", consumer.keyspace, consumer.table);
        writeln!(out, "{}  {table}  {}  acknowledged {time}{lost}", consumer.name, consumer.position)?;
    }
    Ok(())
}

fn done(target: &Target, request: &AdminRequest) -> Result<()> {
    match answer(target, request)? {
        AdminAnswer::Done => Ok(()),
        _ => bail!("the server gave another answer"),
    }
}

fn answer(target: &Target, request: &AdminRequest) -> Result<AdminAnswer> {
    let answer = match target {
        Target::Server(socket) => ask(socket, request)?,
        Target::Directory(opened) => {
            answer_changes(&opened.database, request).unwrap_or_else(AdminAnswer::Error)
        }
    };
    match answer {
        AdminAnswer::Error(text) => Err(anyhow!(text)),
        answer => Ok(answer),
    }
}

/// Keyspace and table of `KEYSPACE.TABLE`; names in double quotes keep their capitals, as in CQL.
fn table_name(text: &str) -> Result<(String, String)> {
    let names = split_names(text);
    match names.as_deref() {
        Some([keyspace, table]) => Ok((keyspace.clone(), table.clone())),
        _ => bail!("'{text}' is no keyspace and table: give them as KEYSPACE.TABLE"),
    }
}

fn split_names(text: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                (quoted.get(..end)?.to_owned(), quoted.get(end + 1..)?)
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest.get(..end)?.to_lowercase(), rest.get(end..)?)
            }
        };
        if name.is_empty() {
            return None;
        }
        names.push(name);
        if after.is_empty() {
            return Some(names);
        }
        rest = after.strip_prefix('.')?;
    }
}

/// An event as a line for people: position, operation, key, and what was written.
fn for_people(event: &str) -> Result<String> {
    let event: serde_json::Value = serde_json::from_str(event)?;
    let text = |name: &str| event.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    let json = |name: &str| event.get(name).filter(|value| !value.is_null()).map(|value| value.to_string());
    let operation = match (text("op"), text("scope")) {
        ("c", _) => "insert".to_owned(),
        ("u", _) => "update".to_owned(),
        ("r", _) => "row".to_owned(),
        ("d", scope) => format!("delete {scope}"),
        ("t", _) => "truncate".to_owned(),
        ("schema", _) => format!("table {}", text("change")),
        (other, _) => other.to_owned(),
    };
    let mut line = format!("{}  {operation}", text("position"));
    if event.get("static").is_some() {
        line.push_str(" static");
    }
    for name in ["key", "range", "after", "sstables"] {
        if let Some(value) = json(name) {
            line.push_str(&format!("  {}{value}", if name == "range" { "from " } else { "" }));
        }
    }
    if let Some(us) = event.get("ts_us").and_then(serde_json::Value::as_i64) {
        line.push_str(&format!("  @{us}"));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        let read = |text| table_name(text).ok();
        let names = |keyspace: &str, table: &str| Some((keyspace.to_owned(), table.to_owned()));
        assert_eq!(read("Shop.Orders"), names("shop", "orders"));
        assert_eq!(read("\"Shop\".\"a.b\""), names("Shop", "a.b"));
        for bad in ["", "shop", "shop.", ".orders", "a.b.c", "\"shop.orders", "\"a\"b.c"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
