//! `helenus stress mailings`: the job of an old text on Cassandra 0.4, over CQL and over the RPC interface.
//!
//! A user is a row: `email`, `person_id`, and a column `send_dates_YYYY-MM-DD` for each mail. The first day's mails go to all
//! users but a few, the second day's to the text's share of them (1,560,064 of 3,557,584). Then the load is flushed and
//! compacted, each user's email is got, and each user's columns between two dates are sliced: 0, 1 or 2 of them, which are
//! counted and checked. Each mail writes email and person_id too, as the text's program did.
//!
//! Both doors get what they need in one request: three statements in a batch, or one batch_mutate. Requests are encoded once;
//! a user's number stands in them as seven digits, which are set in place.

use super::options::{LoadOptions, MailingsOptions};
use crate::commands::client::{Connection, Received, RpcClient, Session, Template};
use crate::commands::profile::Door;
use anyhow::{Context, Result, bail, ensure};
use helenus_wire::native::{Response, ResultMessage, Version, decode_response};
use helenus_wire::thrift::{
    self, CfDef, Column, ColumnOrSuperColumn, ColumnParent, ColumnPath, ConsistencyLevel, Field, KsDef, Map,
    Method, Mutation, ReplyBody, SlicePredicate, SliceRange, args, begin_call, end_message,
};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Users in ten thousand who got no mail of either day: 4,247 of 3,557,584.
const NOBODY_OF_10_000: u64 = 12;
/// Users in ten thousand who got the second day's: 1,560,064 of 3,557,584.
const BOTH_OF_10_000: u64 = 4_385;
const DATES: [&str; 2] = ["send_dates_2009-09-30", "send_dates_2009-10-01"];
const CAMPAIGNS: [&str; 2] = ["2245", "2247"];
const FROM: &str = "send_dates_2009-09-29";
const TO: &str = "send_dates_2009-10-29";
/// What stands in a request where a user's number does.
const DIGITS: &[u8; 7] = b"0000000";
const FAMILY: &str = "Users";

/// What is done to each user in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The mail of a day.
    Mail(usize),
    Email,
    Slice,
}

/// Days on which a user got mail: a fixed pattern, mixed over the users.
fn mails(user: u64) -> u64 {
    match user.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 {
        mixed if mixed % 10_000 < NOBODY_OF_10_000 => 0,
        mixed if mixed % 10_000 < NOBODY_OF_10_000 + BOTH_OF_10_000 => 2,
        _ => 1,
    }
}

impl Job {
    const ALL: [Job; 4] = [Job::Mail(0), Job::Mail(1), Job::Email, Job::Slice];

    fn title(self) -> &'static str {
        match self {
            Job::Mail(0) => "load, first day",
            Job::Mail(_) => "load, second day",
            Job::Email => "get of each email",
            Job::Slice => "slice of each user",
        }
    }

    /// Whether a user has a part in it.
    fn has(self, user: u64) -> bool {
        match self {
            Job::Mail(day) => mails(user) > day as u64,
            Job::Email => mails(user) > 0,
            Job::Slice => true,
        }
    }

    /// How many columns the answer has.
    fn expected(self, user: u64) -> u64 {
        match self {
            Job::Mail(_) => 0,
            Job::Email => 1,
            Job::Slice => mails(user),
        }
    }
}

/// A request, and where in it the digits of a user's number stand.
struct Request {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Request {
    fn new(bytes: Vec<u8>) -> Result<Request> {
        let places: Vec<usize> =
            (0..bytes.len()).filter(|at| bytes.get(*at..at + DIGITS.len()) == Some(&DIGITS[..])).collect();
        ensure!(!places.is_empty(), "a request without a user");
        Ok(Request { bytes, places })
    }

    fn put(&self, user: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let (mut digits, mut rest) = (*DIGITS, user);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        for place in &self.places {
            if let Some(bytes) = out.get_mut(start + place..start + place + DIGITS.len()) {
                bytes.copy_from_slice(&digits);
            }
        }
    }
}

/// One connection of either kind.
trait Line {
    /// Puts a request among those to be written; `place` is its place in the window.
    fn put(&mut self, job: Job, user: u64, place: usize);
    /// Writes what was put.
    fn write(&mut self) -> Result<()>;
    /// Reads as many answers as were put, and hands the columns of each to `take` with its place.
    fn read(&mut self, count: usize, job: Job, take: &mut dyn FnMut(usize, u64) -> Result<()>) -> Result<()>;
}

/// Runs the job and prints a line for each part.
///
/// # Errors
/// When the server cannot be reached, refuses anything, or answers with other columns than there must be.
pub(super) fn run(load: &LoadOptions, options: &MailingsOptions) -> Result<()> {
    ensure!(options.users > 0 && options.users < 10_000_000, "--users: 1 to 9,999,999");
    let mut lines: Vec<Box<dyn Line>> = Vec::new();
    let address = options.rpc.as_deref().unwrap_or(&load.host);
    make(load, options)?;
    for _ in 0..load.connections {
        lines.push(match &options.rpc {
            Some(rpc) => Box::new(RpcLine::open(rpc, &load.keyspace)?),
            None => Box::new(CqlLine::open(load)?),
        });
    }
    let window = (load.in_flight as usize / lines.len()).clamp(1, 4_096);
    let protocol = if options.rpc.is_some() { "RPC" } else { "CQL" };
    println!(
        "mailings over {protocol} at {address}: {} users, {} connections, {window} in flight on each",
        options.users,
        lines.len()
    );
    for job in Job::ALL {
        if options.skip_load && matches!(job, Job::Mail(_)) {
            continue;
        }
        let begun = Instant::now();
        let (operations, matches) = each_user(&mut lines, job, (options.users, window))?;
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{:<20} {operations:>9} ops in {seconds:>7.2} s: {:>8.0} ops/s",
            job.title(),
            operations as f64 / seconds
        );
        if job == Job::Slice {
            println!("matches: 0: {}, 1: {}, 2: {}", matches[0], matches[1], matches[2]);
        }
        if job == Job::Mail(1)
            && let Some(data) = &options.server_data
        {
            settle(address, data, &load.keyspace)?;
        }
    }
    Ok(())
}

fn settle(address: &str, data: &std::path::Path, keyspace: &str) -> Result<()> {
    let Some(door) = Door::find(address, Some(data))? else { return Ok(()) };
    let flush = door.flush(keyspace)?;
    let (_, before) = door.footprint(keyspace)?;
    let compact = door.compact(keyspace)?;
    let (_, after) = door.footprint(keyspace)?;
    println!(
        "flush {:.2} s, compact {:.2} s; on disk {:.1} MiB before, {:.1} MiB after",
        flush.as_secs_f64(),
        compact.as_secs_f64(),
        before as f64 / f64::from(1 << 20),
        after as f64 / f64::from(1 << 20)
    );
    Ok(())
}

/// Does a job for every user; how many requests that was, and how many users had 0, 1 and 2 columns.
fn each_user(
    lines: &mut [Box<dyn Line>],
    job: Job,
    (users, window): (u64, usize),
) -> Result<(u64, [u64; 3])> {
    let mut next = (0..users).filter(|user| job.has(*user));
    let (mut operations, mut matches) = (0, [0; 3]);
    loop {
        let mut sent: Vec<Vec<u64>> = Vec::with_capacity(lines.len());
        for line in lines.iter_mut() {
            let some: Vec<u64> = next.by_ref().take(window).collect();
            for (place, user) in some.iter().enumerate() {
                line.put(job, *user, place);
            }
            line.write()?;
            sent.push(some);
        }
        if sent.iter().all(Vec::is_empty) {
            return Ok((operations, matches));
        }
        for (line, sent) in lines.iter_mut().zip(&sent) {
            line.read(sent.len(), job, &mut |place, found| {
                let user = sent.get(place).copied().context("an answer that nobody asked for")?;
                let expected = job.expected(user);
                ensure!(found == expected, "user {user}: {found} columns instead of {expected}");
                operations += 1;
                if let Some(count) = matches.get_mut(found as usize) {
                    *count += 1;
                }
                Ok(())
            })?;
        }
    }
}

/// Makes keyspace and family where they are not there; anew if told so.
fn make(load: &LoadOptions, options: &MailingsOptions) -> Result<()> {
    let keyspace = &load.keyspace;
    if let Some(rpc) = &options.rpc {
        let mut client = RpcClient::open(rpc)?;
        let named = args::OfKeyspace { keyspace };
        if load.fresh {
            let _may_not_be_there = client.ask::<&str>(Method::SystemDropKeyspace, |out| named.write(out))?;
        }
        let known = client.ask::<KsDef<'_>>(Method::DescribeKeyspace, |out| named.write(out))?;
        if matches!(known, ReplyBody::Success(_)) {
            return Ok(());
        }
        let mut family = CfDef::named(keyspace, FAMILY);
        for class in [
            &mut family.comparator_type,
            &mut family.key_validation_class,
            &mut family.default_validation_class,
        ] {
            *class = Some("UTF8Type".into());
        }
        let asked = args::WithKsDef {
            ks_def: KsDef {
                name: keyspace.as_str().into(),
                strategy_class: "org.apache.cassandra.locator.SimpleStrategy".into(),
                strategy_options: Some(Map(vec![("replication_factor".into(), "1".into())])),
                replication_factor: None,
                cf_defs: vec![family],
                durable_writes: Some(true),
            },
        };
        client.call::<&str>(Method::SystemAddKeyspace, |out| asked.write(out))?;
        return Ok(());
    }
    let mut session = Session::open(&load.host, Version::from_number(load.protocol, false)?)?;
    if load.fresh {
        session.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
    }
    session.run(&format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ))?;
    session.run(&format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.\"{FAMILY}\" (key text, column1 text, value text, PRIMARY KEY (key, column1)) \
         WITH COMPACT STORAGE"
    ))
}

fn key() -> String {
    format!("user{}@example.com", String::from_utf8_lossy(DIGITS))
}

/// Requests by job.
struct Requests {
    mails: [Request; 2],
    email: Request,
    slice: Request,
}

impl Requests {
    fn of(&self, job: Job) -> &Request {
        match job {
            Job::Mail(0) => &self.mails[0],
            Job::Mail(_) => &self.mails[1],
            Job::Email => &self.email,
            Job::Slice => &self.slice,
        }
    }
}

struct CqlLine {
    connection: Connection,
    requests: Requests,
}

impl CqlLine {
    fn open(load: &LoadOptions) -> Result<CqlLine> {
        let version = Version::from_number(load.protocol, false)?;
        let mut session = Session::open(&load.host, version)?;
        let table = format!("{}.\"{FAMILY}\"", load.keyspace);
        let key = key();
        let mut insert = |column: &str| {
            session.prepare(&format!("INSERT INTO {table} (key, column1, value) VALUES (?, '{column}', ?)"))
        };
        let (email, person) = (insert("email")?, insert("person_id")?);
        let days = [insert(DATES[0])?, insert(DATES[1])?];
        let mail = |day: usize| {
            let values = [key.as_bytes(), CAMPAIGNS[day].as_bytes()];
            let statements = [
                (&email, &[key.as_bytes(), key.as_bytes()][..]),
                (&person, &[key.as_bytes(), &DIGITS[..]][..]),
                (&days[day], &values[..]),
            ];
            Request::new(Template::batch_of(version, &statements)?.into_bytes())
        };
        let mails = [mail(0)?, mail(1)?];
        let select =
            session.prepare(&format!("SELECT value FROM {table} WHERE key = ? AND column1 = 'email'"))?;
        let slice = session.prepare(&format!(
            "SELECT column1, value FROM {table} WHERE key = ? AND column1 >= '{FROM}' AND column1 <= '{TO}'"
        ))?;
        let read = |statement| {
            Request::new(Template::execute(version, statement, &[key.as_bytes()], true)?.into_bytes())
        };
        let requests = Requests { mails, email: read(&select)?, slice: read(&slice)? };
        Ok(CqlLine { connection: session.into_connection(), requests })
    }
}

impl Line for CqlLine {
    fn put(&mut self, job: Job, user: u64, place: usize) {
        let request = self.requests.of(job);
        self.connection.put(|out| {
            let start = out.len();
            request.put(user, out);
            if let Some(stream) = out.get_mut(start + 2..start + 4) {
                stream.copy_from_slice(&(place as u16).to_be_bytes());
            }
        });
    }

    fn write(&mut self) -> Result<()> {
        self.connection.write_blocking()
    }

    fn read(&mut self, count: usize, job: Job, take: &mut dyn FnMut(usize, u64) -> Result<()>) -> Result<()> {
        let mut left = count;
        while left > 0 {
            if let Received::Nothing = self.connection.read()? {
                bail!("no answer");
            }
            self.connection.envelopes(|envelope| {
                let header = envelope.header;
                let message = decode_response(header.version, header.opcode, header.flags, envelope.body)?;
                let found = match (message.response, job) {
                    (Response::Result(ResultMessage::Void), Job::Mail(_)) => 0,
                    (Response::Result(ResultMessage::Rows(rows)), Job::Email | Job::Slice) => {
                        rows.row_count as u64
                    }
                    (Response::Error(error), _) => bail!("{}: {}", error.detail.code().name(), error.message),
                    (other, _) => bail!("an answer that does not fit: {other:?}"),
                };
                left -= 1;
                take(usize::try_from(header.stream).unwrap_or(usize::MAX), found)
            })?;
        }
        Ok(())
    }
}

struct RpcLine {
    client: RpcClient,
    requests: Requests,
}

fn call(method: Method, arguments: impl FnOnce(&mut Vec<u8>)) -> Result<Request> {
    let mut bytes = Vec::new();
    let at = begin_call(method, 1, &mut bytes);
    arguments(&mut bytes);
    end_message(at, &mut bytes);
    Request::new(bytes)
}

impl RpcLine {
    fn open(address: &str, keyspace: &str) -> Result<RpcLine> {
        let mut client = RpcClient::open(address)?;
        let named = args::OfKeyspace { keyspace };
        client.call::<i32>(Method::SetKeyspace, |out| named.write(out))?;
        let key = key();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timestamp = Some(i64::try_from(now.as_micros()).unwrap_or(i64::MAX));
        let consistency_level = ConsistencyLevel::One;
        let mail = |day: usize| {
            let columns = [
                ("email", key.as_bytes()),
                ("person_id", &DIGITS[..]),
                (DATES[day], CAMPAIGNS[day].as_bytes()),
            ];
            let mutations = columns.iter().map(|(name, value)| Mutation {
                column_or_supercolumn: Some(ColumnOrSuperColumn {
                    column: Some(Column { name: name.as_bytes(), value: Some(value), timestamp, ttl: None }),
                    super_column: None,
                    counter_column: None,
                    counter_super_column: None,
                }),
                deletion: None,
            });
            let families = Map(vec![(FAMILY, mutations.collect())]);
            let asked =
                args::BatchMutate { mutation_map: Map(vec![(key.as_bytes(), families)]), consistency_level };
            call(Method::BatchMutate, |out| asked.write(out))
        };
        let get = args::Get {
            key: key.as_bytes(),
            column_path: ColumnPath { column_family: FAMILY, super_column: None, column: Some(b"email") },
            consistency_level,
        };
        let range = SliceRange { start: FROM.as_bytes(), finish: TO.as_bytes(), reversed: false, count: 100 };
        let slice = args::GetSlice {
            key: key.as_bytes(),
            column_parent: ColumnParent { column_family: FAMILY, super_column: None },
            predicate: SlicePredicate { column_names: None, slice_range: Some(range) },
            consistency_level,
        };
        let requests = Requests {
            mails: [mail(0)?, mail(1)?],
            email: call(Method::Get, |out| get.write(out))?,
            slice: call(Method::GetSlice, |out| slice.write(out))?,
        };
        Ok(RpcLine { client, requests })
    }
}

impl Line for RpcLine {
    fn put(&mut self, job: Job, user: u64, _place: usize) {
        let request = self.requests.of(job);
        self.client.put_bytes(|out| request.put(user, out));
    }

    fn write(&mut self) -> Result<()> {
        self.client.write()
    }

    fn read(&mut self, count: usize, job: Job, take: &mut dyn FnMut(usize, u64) -> Result<()>) -> Result<()> {
        for place in 0..count {
            let message = self.client.message()?;
            let found = match job {
                Job::Mail(_) => {
                    done(thrift::read_reply::<i32>(Method::BatchMutate, message)?.1)?;
                    0
                }
                Job::Email => {
                    let column =
                        done(thrift::read_reply::<ColumnOrSuperColumn<'_>>(Method::Get, message)?.1)?;
                    u64::from(column.is_some())
                }
                Job::Slice => {
                    let columns =
                        thrift::read_reply::<Vec<ColumnOrSuperColumn<'_>>>(Method::GetSlice, message)?.1;
                    done(columns)?.map_or(0, |columns| columns.len() as u64)
                }
            };
            take(place, found)?;
        }
        Ok(())
    }
}

/// The result of a call that must not fail.
fn done<T>(body: ReplyBody<T>) -> Result<Option<T>> {
    match body {
        ReplyBody::Success(value) => Ok(Some(value)),
        ReplyBody::Void => Ok(None),
        ReplyBody::Exception(exception) => bail!("{}", crate::commands::client::exception_text(&exception)),
        ReplyBody::Failure(text) => bail!("{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_users_are_those_of_the_text() {
        let mut counts = [0_u64; 3];
        (0..100_000).for_each(|user| counts[mails(user) as usize] += 1);
        assert!((60..240).contains(&counts[0]) && (43_000..44_700).contains(&counts[2]), "{counts:?}");
    }

    #[test]
    fn a_users_number_is_set_wherever_it_stands() {
        let request = Request::new(b"a0000000b0000000".to_vec()).unwrap();
        let mut out = b"x".to_vec();
        request.put(1_234, &mut out);
        assert_eq!(out, b"xa0001234b0001234");
    }
}
