//! `helenus stress mailings`: the workload of "First Experience With Cassandra" (2009, Cassandra 0.4), over CQL and
//! over Thrift RPC.
//!
//! A user is a row: `email`, `person_id`, and a column `send_dates_YYYY-MM-DD` for each mail. The first day's mails go
//! to all users but a few, the second day's to the same share of them as in the article. Then the load is flushed and
//! compacted, each user's email is read, and each user's columns between two dates are sliced: 0, 1 or 2 columns, which
//! are counted and checked. Each mail writes email and person_id too, as the article's program did.
//!
//! Over both interfaces a mail is one request: three statements in a batch, or one batch_mutate.

use super::interface::Interface;
use super::options::{LoadOptions, MailingsOptions, Part};
use super::permutation::Permutation;
use super::results::{RunResult, ended, table, write_files};
use super::run::{connections, make_keyspace, measure};
use super::workload::{Extent, Workload, Wrong, check_cell, check_columns, check_rows, check_void};
use crate::commands::client::{AnswerBody, BlockingClient, Template, calls, column};
use crate::commands::profile::AdminClient;
use anyhow::{Result, ensure};
use helenus_wire::thrift::Type;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// The article's numbers: the mails of the first and the second day; then the number of users without a mail, and of
/// all users that it sliced.
const TEXT_USERS: u64 = 3_660_761;
const TEXT_SECOND_DAY: u64 = 1_576_592;
const TEXT_NOBODY: (u64, u64) = (4_247, 3_557_584);
const DATES: [&str; 2] = ["send_dates_2009-09-30", "send_dates_2009-10-01"];
const CAMPAIGNS: [&str; 2] = ["2245", "2247"];
const FROM: &str = "send_dates_2009-09-29";
const TO: &str = "send_dates_2009-10-29";
const FAMILY: &str = "Users";
/// Digits of a user's number.
const DIGITS: usize = 7;
/// Bytes before the digits in a key.
const BEFORE_DIGITS: usize = 4;

/// The number of users, and of users by number of mails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Users {
    count: u64,
    /// Number of users without a mail.
    nobody: u64,
    /// Number of users with both mails.
    both: u64,
    order: Permutation,
}

impl Users {
    fn new(options: &MailingsOptions) -> Result<Users> {
        let count = if options.as_in_the_text { TEXT_USERS } else { options.users };
        let share = |(part, whole): (u64, u64)| (count * part).div_ceil(whole);
        let both = options.second_day.unwrap_or(share((TEXT_SECOND_DAY, TEXT_USERS)));
        let nobody = share(TEXT_NOBODY).min(count - 1);
        ensure!(both + nobody <= count, "--second-day: at most {} of {count} users", count - nobody);
        Ok(Users { count, nobody, both, order: Permutation::new(count) })
    }

    /// The number of mails of a user.
    fn mails(&self, user: u64) -> u64 {
        match self.order.image(user) {
            place if place < self.nobody => 0,
            place if place < self.nobody + self.both => 2,
            _ => 1,
        }
    }
}

/// The request that is sent for each user in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The mail of a day.
    Mail(usize),
    Email,
    Slice,
}

impl Job {
    fn title(self) -> &'static str {
        match self {
            Job::Mail(0) => "mailings: load, first day",
            Job::Mail(_) => "mailings: load, second day",
            Job::Email => "mailings: get of each email",
            Job::Slice => "mailings: slice of each user",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Job::Mail(0) => "first_day",
            Job::Mail(_) => "second_day",
            Job::Email => "get",
            Job::Slice => "slice",
        }
    }

    /// Whether the job concerns a user with that number of mails.
    fn has(self, mails: u64) -> bool {
        match self {
            Job::Mail(day) => mails > day as u64,
            Job::Email => mails > 0,
            Job::Slice => true,
        }
    }
}

/// A job as a workload.
struct Work {
    job: Job,
    users: Users,
    /// The users that the job concerns, if not all.
    some: Option<Vec<u32>>,
    template: Template,
    /// The positions of a user's digits in the template: index of the value, and offset in it.
    digits: &'static [(usize, usize)],
    /// The number of users by the number of mails found.
    matches: [AtomicU64; 3],
}

impl Work {
    fn prepare(caller: &mut BlockingClient, keyspace: &str, (job, users): (Job, Users)) -> Result<Work> {
        let (template, digits): (Template, &'static [(usize, usize)]) = match (job, &*caller) {
            (Job::Mail(day), BlockingClient::Cql(_)) => {
                (cql_mail(caller, keyspace, day)?, &[(0, 4), (1, 4), (2, 4), (3, 0), (4, 4)])
            }
            (Job::Mail(day), BlockingClient::Rpc(_)) => (rpc_mail(day)?, &[(0, 4), (2, 4), (5, 0)]),
            _ => (read(caller, keyspace, job)?, &[(0, BEFORE_DIGITS)]),
        };
        let has = |user: &u64| job.has(users.mails(*user));
        let some =
            (job != Job::Slice).then(|| (0..users.count).filter(has).map(|user| user as u32).collect());
        Ok(Work { job, users, some, template, digits, matches: Default::default() })
    }

    fn user(&self, operation: u64) -> u64 {
        let listed = self.some.as_ref().and_then(|some| some.get(operation as usize));
        listed.map_or(operation, |user| u64::from(*user))
    }

    fn matches(&self) -> [u64; 3] {
        self.matches.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

fn key(user: u64) -> String {
    format!("user{user:0width$}@example.com", width = DIGITS)
}

fn digits(user: u64) -> [u8; DIGITS] {
    let (mut digits, mut rest) = ([b'0'; DIGITS], user);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

fn cql_mail(caller: &mut BlockingClient, keyspace: &str, day: usize) -> Result<Template> {
    let BlockingClient::Cql(session) = caller else { anyhow::bail!("statements over CQL alone") };
    let mut insert = |column: &str| {
        session.prepare(&format!(
            "INSERT INTO {keyspace}.\"{FAMILY}\" (key, column1, value) VALUES (?, '{column}', ?)"
        ))
    };
    let (email, person, mail) = (insert("email")?, insert("person_id")?, insert(DATES[day])?);
    let (key, digits) = (key(0), digits(0));
    let values: [[&[u8]; 2]; 3] = [
        [key.as_bytes(), key.as_bytes()],
        [key.as_bytes(), &digits],
        [key.as_bytes(), CAMPAIGNS[day].as_bytes()],
    ];
    let statements = [(&email, &values[0][..]), (&person, &values[1][..]), (&mail, &values[2][..])];
    Template::batch_of(session.version(), &statements)
}

fn rpc_mail(day: usize) -> Result<Template> {
    let (key, digits) = (key(0), digits(0));
    let columns: [(&[u8], &[u8]); 3] = [
        (b"email", key.as_bytes()),
        (b"person_id", &digits),
        (DATES[day].as_bytes(), CAMPAIGNS[day].as_bytes()),
    ];
    calls::write_columns(FAMILY, key.as_bytes(), &columns)
}

fn read(caller: &mut BlockingClient, keyspace: &str, job: Job) -> Result<Template> {
    let key = key(0);
    let key = key.as_bytes();
    match (caller, job) {
        (BlockingClient::Cql(session), job) => {
            let (columns, which) = match job {
                Job::Slice => ("column1, value", format!("column1 >= '{FROM}' AND column1 <= '{TO}'")),
                _ => ("value", "column1 = 'email'".to_owned()),
            };
            let query = format!("SELECT {columns} FROM {keyspace}.\"{FAMILY}\" WHERE key = ? AND {which}");
            let statement = session.prepare(&query)?;
            Template::execute(session.version(), &statement, &[key], true)
        }
        (BlockingClient::Rpc(_), Job::Slice) => {
            calls::get_slice(FAMILY, key, calls::range(FROM.as_bytes(), TO.as_bytes(), false, 100))
        }
        (BlockingClient::Rpc(_), _) => calls::get(FAMILY, key, b"email"),
    }
}

impl Workload for Work {
    fn name(&self) -> String {
        self.job.title().to_owned()
    }

    fn extent(&self) -> Extent {
        Extent::Each(self.some.as_ref().map_or(self.users.count, |some| some.len() as u64))
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let digits = digits(self.user(operation));
        let mut copy = self.template.put(stream, out);
        for (value, offset) in self.digits {
            copy.set(*value, *offset, &digits);
        }
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        let user = self.user(operation);
        match self.job {
            Job::Mail(_) => check_void(answer).map(|()| 1),
            Job::Email => {
                let expected = key(user);
                let found = if let AnswerBody::Value(Type::Struct, reader) = answer {
                    column(&mut reader.clone())?.value
                } else {
                    let row = check_rows(answer, 1)?.iter().next().and_then(Result::ok).ok_or(Wrong::Cut)?;
                    row.cells().next().flatten()
                };
                check_cell((0, 0), found, expected.as_bytes()).map(|()| 1)
            }
            Job::Slice => {
                let expected = self.users.mails(user);
                let found = check_columns(answer, expected, |at, found| {
                    let day = at as usize;
                    let of = |texts: [&'static str; 2]| texts.get(day).copied().unwrap_or_default();
                    check_cell((at, 0), found.name, of(DATES).as_bytes())?;
                    check_cell((at, 1), found.value, of(CAMPAIGNS).as_bytes())
                })?;
                if let Some(count) = self.matches.get(found as usize) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(found)
            }
        }
    }
}

/// Runs the job and prints a line for each part.
///
/// # Errors
/// The server cannot be reached, refuses a request, or answers with other columns than expected.
pub(super) fn run(load: &LoadOptions, options: &MailingsOptions) -> Result<()> {
    let users = Users::new(options)?;
    load.ensure_known("mailings", &[Interface::Prepared, Interface::Rpc])?;
    let mut all = Vec::new();
    let mut caller = BlockingClient::open(load.endpoint()?)?;
    if options.parts.contains(&Part::Load) {
        make_keyspace(&mut caller, load)?;
        caller.run(&format!(
            "CREATE TABLE IF NOT EXISTS {}.\"{FAMILY}\" (key text, column1 text, value text, PRIMARY KEY (key, \
             column1)) WITH COMPACT STORAGE",
            load.keyspace
        ))?;
    } else {
        ensure!(!load.fresh, "--fresh would drop what is to be read");
    }
    let mut told = json!({
        "users": users.count, "without_mail": users.nobody, "with_both": users.both,
        "interface": if load.interface().is_rpc() { "RPC" } else { "CQL" },
    });
    if !load.prints_json() {
        say!(
            "{} users: {} got no mail of either day, {} those of both",
            users.count,
            users.nobody,
            users.both
        )?;
    }
    for part in &options.parts {
        let jobs: &[Job] = match part {
            Part::Load => &[Job::Mail(0), Job::Mail(1)],
            Part::Get => &[Job::Email],
            Part::Slice => &[Job::Slice],
            Part::Settle => {
                told["settled"] = settle(load, options)?;
                continue;
            }
        };
        for job in jobs {
            let work = Work::prepare(&mut caller, &load.keyspace, (*job, users))?;
            let figures = measure(load, connections(load, &work)?, None, &work)?;
            told[job.key()] = tell(load, &figures, (*job == Job::Slice).then(|| work.matches()))?;
            ended(&figures)?;
            all.push(figures);
        }
    }
    write_files(load, &told, &all)
}

fn tell(load: &LoadOptions, figures: &RunResult, matches: Option<[u64; 3]>) -> Result<serde_json::Value> {
    let mut told = serde_json::to_value(figures)?;
    if !load.prints_json() || figures.error_count() > 0 {
        say!("{}", table(figures))?;
    }
    if let Some([none, one, two]) = matches {
        told["matches"] = json!([none, one, two]);
        if !load.prints_json() {
            say!("matches: 0: {none}, 1: {one}, 2: {two}")?;
        }
    }
    Ok(told)
}

/// Flushes and compacts, if the server's admin socket is reachable.
fn settle(load: &LoadOptions, options: &MailingsOptions) -> Result<serde_json::Value> {
    let found = AdminClient::find(load.endpoint()?.address(), options.server_data.as_deref())?;
    let Some(door) = found else {
        note!(
            "NOT FLUSHED AND NOT COMPACTED: this server cannot be told to from here. A Helenus on this machine can, with \
             --server-data DIR"
        );
        return Ok(serde_json::Value::Null);
    };
    let flush = door.flush(&load.keyspace)?.as_secs_f64();
    let (_, before) = door.footprint(&load.keyspace)?;
    let compact = door.compact(&load.keyspace)?.as_secs_f64();
    let (_, after) = door.footprint(&load.keyspace)?;
    if !load.prints_json() {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        say!(
            "flush {flush:.2} s, compact {compact:.2} s; on disk {:.1} MiB before, {:.1} MiB after",
            mib(before),
            mib(after)
        )?;
    }
    Ok(
        json!({"flush_s": flush, "compact_s": compact, "disk_bytes_before": before, "disk_bytes_after": after}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(users: u64, second_day: Option<u64>, as_in_the_text: bool) -> Users {
        let parts = vec![Part::Load];
        Users::new(&MailingsOptions { users, second_day, as_in_the_text, parts, server_data: None }).unwrap()
    }

    #[test]
    fn as_many_users_as_asked_got_the_second_days_mail_and_the_texts_share_got_none() {
        for (users, both, nobody) in [
            (users(100_000, None, false), 43_068, 120),
            (users(5_003, Some(17), false), 17, 6),
            (users(2, Some(1), false), 1, 1),
        ] {
            let mut counts = [0_u64; 3];
            (0..users.count).for_each(|user| counts[users.mails(user) as usize] += 1);
            assert_eq!(counts, [nobody, users.count - nobody - both, both]);
        }
        assert_eq!(users(1, None, true).both, TEXT_SECOND_DAY);
    }

    #[test]
    fn a_key_holds_the_digits_where_requests_set_them() {
        assert_eq!(key(1_234).as_bytes()[BEFORE_DIGITS..][..DIGITS], digits(1_234));
        assert_eq!(&digits(3_660_760), b"3660760");
    }
}
