//! Runs steps on both servers and says where they differ.

use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

use helenus_wire::native::{
    ErrorCode, Execute, Prepare, Query, QueryParameters, Request, Value, Values, Version,
};

use crate::Connection;
use crate::accepted;
use crate::answer::{Answer, Outcome, PreparedStatement};
use crate::compare::difference;
use crate::role::Role;
use crate::script::{Action, Bound, Statement, Step};
use crate::server::Server;

/// Pages after which an answer is taken to have no end.
const PAGES_MAX: usize = 10_000;

/// Pages of a statement whose states are given to others, and pages that are read behind one.
const STATES_MAX: usize = 12;

/// How long Cassandra may build the index of an empty table.
const INDEX_TIME_MAX: Duration = Duration::from_secs(30);

/// Where the two servers are.
pub struct Place {
    /// `HOST:PORT` of Cassandra.
    pub cassandra: String,
    /// Helenus.
    pub helenus: Helenus,
    /// Version of the protocol.
    pub version: Version,
    /// Who runs the statements.
    pub role: Role,
    /// Whether Helenus is a gateway to another Cassandra, so that no difference is accepted.
    pub is_gateway: bool,
}

/// A Helenus: one of ours, which can be restarted, or one that runs already.
pub enum Helenus {
    /// A process of this run.
    Own(Box<Server>),
    /// At `HOST:PORT`.
    At(String),
}

impl Helenus {
    fn address(&self) -> &str {
        match self {
            Helenus::Own(server) => server.address(),
            Helenus::At(address) => address,
        }
    }
}

/// Both servers with a connection each.
pub struct Runner {
    place: Place,
    theirs: Connection,
    ours: Connection,
    /// Connections of the superuser, where there are logins.
    superusers: Option<[Connection; 2]>,
    keyspace: Option<String>,
    /// Statements that Cassandra refused for a right that the role has not.
    pub refused: u64,
    /// Statements sent so far, however often each.
    pub statements: u64,
    /// Answers compared so far.
    pub answers: u64,
    /// Statements that Helenus refused as not built.
    pub unbuilt: u64,
    /// Whether one of those wrote something at Cassandra, or Cassandra failed: the tables may not be the same any more.
    pub diverged: bool,
    /// Paging states that both were given, and those that both answered with rows.
    pub carried: (u64, u64),
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// How the statement was run: `query`, `prepared`, `pages of 3`.
    pub how: String,
    /// What differs.
    pub what: String,
    /// Cassandra's answer.
    pub theirs: Answer,
    /// Ours.
    pub ours: Answer,
}

impl Difference {
    /// For people, a few lines.
    pub fn describe(&self) -> String {
        let (theirs, ours) = (self.theirs.describe(), self.ours.describe());
        format!("  {}: {}\n    Cassandra: {theirs}\n    Helenus:   {ours}", self.how, self.what)
    }
}

impl Runner {
    /// Connects to both.
    ///
    /// # Errors
    /// One does not answer.
    pub fn connect(place: Place) -> Result<Runner> {
        let mut superusers = superusers(&place)?;
        for superuser in superusers.iter_mut().flatten() {
            place.role.make(superuser)?;
        }
        let theirs = place.role.connect(&place.cassandra, place.version).context("Cassandra")?;
        let ours = place.role.connect(place.helenus.address(), place.version).context("Helenus")?;
        Ok(Runner {
            place,
            theirs,
            ours,
            superusers,
            keyspace: None,
            refused: 0,
            statements: 0,
            answers: 0,
            unbuilt: 0,
            diverged: false,
            carried: (0, 0),
        })
    }

    /// An empty keyspace of this name on both, in use.
    ///
    /// # Errors
    /// A server refuses it.
    pub fn begin_keyspace(&mut self, keyspace: &str) -> Result<()> {
        self.must_as_superuser(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        self.must_as_superuser(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ))?;
        for grant in self.place.role.grants(keyspace) {
            self.must_as_superuser(&grant)?;
        }
        self.use_keyspace(keyspace)?;
        self.keyspace = Some(keyspace.to_owned());
        Ok(())
    }

    /// Drops it on both.
    ///
    /// # Errors
    /// A server refuses it.
    pub fn end_keyspace(&mut self) -> Result<()> {
        match self.keyspace.take() {
            Some(keyspace) => self.must_as_superuser(&format!("DROP KEYSPACE IF EXISTS {keyspace}")),
            None => Ok(()),
        }
    }

    /// Takes a keyspace into use on every connection.
    fn use_keyspace(&mut self, keyspace: &str) -> Result<()> {
        let statement = format!("USE {keyspace}");
        if self.superusers.is_some() {
            self.must_as_superuser(&statement)?;
        }
        self.must(&statement)
    }

    /// The same as `must`, by the superusers where there are logins.
    fn must_as_superuser(&mut self, text: &str) -> Result<()> {
        let Some([theirs, ours]) = &mut self.superusers else { return self.must(text) };
        theirs.must(text).context("Cassandra")?;
        ours.must(text).context("Helenus")
    }

    /// Runs a statement by the superusers, whatever they answer, so that later statements meet what it makes.
    fn as_superuser(&mut self, statement: &Statement) -> Result<()> {
        let values = values(&statement.bound);
        let parameters = parameters(statement, &values, None, None);
        let request = Request::Query(Query { query: &statement.text, parameters });
        for superuser in self.superusers.iter_mut().flatten() {
            superuser.send(&request)?;
            superuser.receive()?;
        }
        Ok(())
    }

    /// Runs a statement that both must accept, whatever they answer.
    ///
    /// # Errors
    /// One refuses it.
    pub fn must(&mut self, text: &str) -> Result<()> {
        let (theirs, ours) = self.query(&Statement::plain(text), None, [None, None])?;
        for (who, answer) in [("Cassandra", theirs), ("Helenus", ours)] {
            ensure!(answer.error().is_none(), "{who} refuses {text}: {}", answer.describe());
        }
        Ok(())
    }

    /// Runs a CREATE; an index that it makes is ready afterwards.
    ///
    /// # Errors
    /// A server is gone; Cassandra does not come to an end with an index.
    pub fn create(&mut self, text: &str) -> Result<Vec<Difference>> {
        let differences = self.statement(&Statement::plain(text))?;
        let (Some(name), Some(keyspace)) = (text.strip_prefix("CREATE INDEX "), self.keyspace.clone()) else {
            return Ok(differences);
        };
        let name = name.split(' ').next().unwrap_or_default();
        let table = name.rsplit_once("_i").map_or("", |(table, _)| table);
        let rows = |(answer, _): &(Answer, Answer)| match &answer.outcome {
            Outcome::Rows { rows, .. } => rows.len(),
            _ => 0,
        };
        let listed = format!(
            "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '{keyspace}' AND table_name = '{table}' AND index_name = '{name}'"
        );
        let built = format!(
            "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{keyspace}' AND index_name = '{name}'"
        );
        let begin = Instant::now();
        while rows(&self.query(&Statement::plain(&*listed), None, [None, None])?) > 0
            && rows(&self.query(&Statement::plain(&*built), None, [None, None])?) == 0
        {
            ensure!(begin.elapsed() < INDEX_TIME_MAX, "Cassandra does not end building {name}");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(differences)
    }

    /// Runs a step; the differences it shows.
    ///
    /// # Errors
    /// A server is gone.
    pub fn step(&mut self, step: &Step) -> Result<Vec<Difference>> {
        match &step.action {
            Action::Run(statement) if statement.by_superuser && self.superusers.is_some() => {
                self.as_superuser(statement)?;
                Ok(Vec::new())
            }
            Action::Run(statement) => {
                let differences = self.statement(statement)?;
                if self.place.role == Role::Powerless {
                    self.as_superuser(statement)?;
                }
                Ok(differences)
            }
            Action::Flush => self.admin(&["flush"]),
            Action::Compact => self.admin(&["compact"]),
            Action::Restart => self.restart(),
        }
    }

    fn admin(&mut self, args: &[&str]) -> Result<Vec<Difference>> {
        if let Helenus::Own(server) = &self.place.helenus {
            server.admin(args);
        }
        Ok(Vec::new())
    }

    fn restart(&mut self) -> Result<Vec<Difference>> {
        if let Helenus::Own(server) = &mut self.place.helenus {
            server.stop();
            server.restart();
            self.superusers = superusers(&self.place)?;
            let (role, version) = (self.place.role, self.place.version);
            self.ours = role.connect(self.place.helenus.address(), version)?;
            // Both anew: some warnings come once a connection.
            self.theirs = role.connect(&self.place.cassandra, version)?;
            if let Some(keyspace) = self.keyspace.clone() {
                self.use_keyspace(&keyspace)?;
            }
        }
        Ok(Vec::new())
    }

    /// Runs a statement in all its ways.
    ///
    /// # Errors
    /// A server is gone.
    pub fn statement(&mut self, statement: &Statement) -> Result<Vec<Difference>> {
        self.statements += 1;
        let sorts_json = accepted::is_sorted_json(&statement.text);
        let mut found = Found {
            text: &statement.text,
            any_order: statement.any_order,
            sorts_json,
            differences: Vec::new(),
        };
        let verb = statement.verb();
        let prepares =
            statement.only_prepared || matches!(&*verb, "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "BEGIN");
        let prepared = if prepares { self.prepare(&statement.text, &mut found)? } else { None };
        if !statement.only_prepared {
            let answers = self.query(statement, None, [None, None])?;
            self.note("query", answers, &mut found);
        }
        let Some(prepared) = prepared else { return Ok(found.differences) };
        if verb == "SELECT" {
            if let Some(size) = statement.settings.pages.first() {
                self.pages(statement, None, *size, &mut found)?;
            }
            for size in &statement.settings.pages {
                self.pages(statement, Some(&prepared), *size, &mut found)?;
            }
        } else if statement.only_prepared {
            let answers = self.execute(statement, &prepared, None, [None, None])?;
            self.note("prepared", answers, &mut found);
        }
        Ok(found.differences)
    }

    fn note(&mut self, how: &str, (theirs, ours): (Answer, Answer), found: &mut Found<'_>) {
        self.answers += 1;
        self.refused += u64::from(theirs.error().is_some_and(|(code, _)| code == ErrorCode::Unauthorized));
        if accepted::is_unbuilt(&ours) && !accepted::is_unbuilt(&theirs) {
            self.unbuilt += 1;
            self.diverged |= matches!(theirs.outcome, Outcome::Void);
        } else if accepted::is_server_error(&theirs)
            || accepted::is_early_deletion(&theirs, &ours)
            || accepted::is_long_constant(&theirs, &ours)
        {
            self.diverged = true;
        } else if accepted::is_order_of_rights(&theirs, &ours)
            || accepted::is_cast_of_descending(&theirs, &ours)
            || found.sorts_json && theirs.error().is_none() && ours.error().is_none()
            || accepted::is_order_of_json(&theirs, &ours)
            || accepted::is_order_of_conditions(found.text, &theirs, &ours)
            || accepted::is_short_of_statics(found.text, &theirs, &ours)
        {
        } else if let Some(what) = difference(&theirs, &ours, found.any_order) {
            found.differences.push(Difference { how: how.to_owned(), what, theirs, ours });
        }
    }

    fn prepare(&mut self, text: &str, found: &mut Found<'_>) -> Result<Option<[PreparedStatement; 2]>> {
        let request = Request::Prepare(Prepare { query: text, keyspace: None });
        let answers = self.ask([&request, &request])?;
        let both = match (&answers.0.outcome, &answers.1.outcome) {
            (Outcome::Prepared(theirs), Outcome::Prepared(ours)) => Some([theirs.clone(), ours.clone()]),
            _ => None,
        };
        self.note("prepare", answers, found);
        Ok(both)
    }

    /// All pages of `size` rows, compared as one answer, and page by page how many rows they have.
    fn pages(
        &mut self,
        statement: &Statement,
        prepared: Option<&[PreparedStatement; 2]>,
        size: i32,
        found: &mut Found<'_>,
    ) -> Result<()> {
        let how = format!("{}pages of {size}", if prepared.is_some() { "prepared, " } else { "" });
        let mut whole: Option<(Answer, Answer)> = None;
        let mut lengths = [Vec::new(), Vec::new()];
        let mut states: [Option<Vec<u8>>; 2] = [None, None];
        for _ in 0..PAGES_MAX {
            let page = [states[0].as_deref(), states[1].as_deref()];
            let (theirs, ours) = match prepared {
                Some(prepared) => self.execute(statement, prepared, Some(size), page)?,
                None => self.query(statement, Some(size), page)?,
            };
            states = [&theirs, &ours].map(state_of);
            for (lengths, answer) in lengths.iter_mut().zip([&theirs, &ours]) {
                if let Outcome::Rows { rows, .. } = &answer.outcome {
                    lengths.push(rows.len());
                }
            }
            match &mut whole {
                None => whole = Some((theirs, ours)),
                Some(whole) => {
                    append(&mut whole.0, theirs);
                    append(&mut whole.1, ours);
                }
            }
            if states.iter().any(Option::is_none) {
                break;
            }
        }
        let Some((theirs, ours)) = whole else { return Ok(()) };
        if accepted::is_unpaged_group(&statement.text, &lengths[0], size)
            || accepted::is_short_of_statics(&statement.text, &theirs, &ours)
        {
            return Ok(());
        }
        let before = found.differences.len();
        self.note(&how, (theirs.clone(), ours.clone()), found);
        let whole = theirs.error().is_none();
        if found.differences.len() == before && whole && lengths[0] != lengths[1] {
            let what = format!("rows a page: {:?} there, {:?} here", lengths[0], lengths[1]);
            found.differences.push(Difference { how, what, theirs, ours });
        }
        Ok(())
    }

    /// Gives both servers a damaged state: what is none to one of them is none to the other, and both go on.
    ///
    /// # Errors
    /// A server is gone.
    pub fn forge(
        &mut self,
        statement: &Statement,
        size: Option<i32>,
        state: &[u8],
    ) -> Result<Option<Difference>> {
        let (theirs, ours) = self.query(statement, size, [Some(state), Some(state)])?;
        self.answers += 1;
        let is_none = |answer: &Answer| answer.error().is_some_and(|(code, _)| code == ErrorCode::Protocol);
        let same = is_none(&theirs) == is_none(&ours) || accepted::is_server_error(&theirs);
        let what = "what is a paging state".to_owned();
        Ok((!same).then(|| Difference { how: "a forged state".to_owned(), what, theirs, ours }))
    }

    /// The paging states that both servers give for a statement in pages of `size` rows.
    ///
    /// # Errors
    /// A server is gone.
    pub fn states(&mut self, statement: &Statement, size: i32) -> Result<Vec<Vec<u8>>> {
        let (mut all, mut states) = (Vec::new(), [None, None]);
        for _ in 0..STATES_MAX {
            let page = [&states[0], &states[1]].map(|state: &Option<Vec<u8>>| state.as_deref());
            let (theirs, ours) = self.query(statement, Some(size), page)?;
            states = [&theirs, &ours].map(state_of);
            // Over protocol 3 Cassandra takes a state of the later layout, and then gives no answer (`PagingState.serialize`).
            let taken = if self.place.version == Version::V3 { 1 } else { 2 };
            all.extend(states.iter().take(taken).flatten().cloned());
            if states.iter().any(Option::is_none) {
                break;
            }
        }
        Ok(all)
    }

    /// Gives both servers a paging state with a statement and compares all pages that follow.
    ///
    /// # Errors
    /// A server is gone.
    pub fn carry(
        &mut self,
        statement: &Statement,
        size: Option<i32>,
        state: &[u8],
    ) -> Result<Option<Difference>> {
        self.carried.0 += 1;
        let mut states = [Some(state.to_vec()), Some(state.to_vec())];
        for page in 0..STATES_MAX {
            let given = [states[0].as_deref(), states[1].as_deref()];
            let (theirs, ours) = self.query(statement, size, given)?;
            self.answers += 1;
            if accepted::is_other_state((&statement.text, state), &theirs, &ours) {
                return Ok(None);
            }
            if let Some(what) = difference(&theirs, &ours, false) {
                let how = format!("page {} behind the state", page + 1);
                return Ok(Some(Difference { how, what, theirs, ours }));
            }
            if page == 0 && theirs.error().is_none() {
                self.carried.1 += 1;
            }
            states = [&theirs, &ours].map(state_of);
            if states.iter().any(Option::is_none) {
                break;
            }
        }
        Ok(None)
    }

    fn query(
        &mut self,
        statement: &Statement,
        page_size: Option<i32>,
        states: [Option<&[u8]>; 2],
    ) -> Result<(Answer, Answer)> {
        let values = values(&statement.bound);
        let requests = states.map(|state| {
            let parameters = parameters(statement, &values, page_size, state);
            Request::Query(Query { query: &statement.text, parameters })
        });
        self.ask([&requests[0], &requests[1]])
    }

    fn execute(
        &mut self,
        statement: &Statement,
        prepared: &[PreparedStatement; 2],
        page_size: Option<i32>,
        states: [Option<&[u8]>; 2],
    ) -> Result<(Answer, Answer)> {
        let values = values(&statement.bound);
        let request = |at: usize| {
            Request::Execute(Execute {
                id: &prepared[at].id,
                result_metadata_id: prepared[at].metadata_id.as_deref(),
                parameters: parameters(statement, &values, page_size, states[at]),
            })
        };
        self.ask([&request(0), &request(1)])
    }

    /// Sends a request to each before it waits for either.
    fn ask(&mut self, [theirs, ours]: [&Request<'_>; 2]) -> Result<(Answer, Answer)> {
        self.theirs.send(theirs).context("Cassandra")?;
        self.ours.send(ours).context("Helenus")?;
        let theirs = self.theirs.receive().context("Cassandra")?;
        Ok((theirs, self.ours.receive().context("Helenus")?))
    }
}

/// Runs a step and says what is wrong with it: differences that are not accepted, or an accepted one that is none any
/// more.
///
/// # Errors
/// A server is gone; `docs/conformance.md` does not list what the step accepts.
pub fn judged(runner: &mut Runner, step: &Step) -> Result<Vec<String>> {
    let differences = runner.step(step)?;
    let accepts = match &step.action {
        Action::Run(statement) => statement.accepts.as_deref(),
        _ => None,
    };
    let Some(name) = accepts.filter(|_| !runner.place.is_gateway) else {
        // The first tells of the others: the same statement, run in another way.
        return Ok(differences.iter().take(1).map(Difference::describe).collect());
    };
    accepted::check_listed(&accepted::page()?, name)?;
    let gone = format!("  differs no more, though it is said to: remove `@accept {name}`");
    // A role without rights is refused before what differs is reached.
    let is_reached = runner.place.role != Role::Powerless;
    Ok(if differences.is_empty() && is_reached { vec![gone] } else { Vec::new() })
}

/// Connections of the superuser to both servers, where there are logins.
fn superusers(place: &Place) -> Result<Option<[Connection; 2]>> {
    let theirs = place.role.superuser(&place.cassandra, place.version).context("Cassandra")?;
    let ours = place.role.superuser(place.helenus.address(), place.version).context("Helenus")?;
    Ok(theirs.zip(ours).map(<[Connection; 2]>::from))
}

struct Found<'a> {
    text: &'a str,
    any_order: bool,
    /// See `accepted::is_sorted_json`.
    sorts_json: bool,
    differences: Vec<Difference>,
}

fn state_of(answer: &Answer) -> Option<Vec<u8>> {
    match &answer.outcome {
        Outcome::Rows { paging_state, .. } => paging_state.clone(),
        _ => None,
    }
}

fn values(bound: &[Bound]) -> Vec<Value<'_>> {
    let value = |bound| match bound {
        &Bound::Unset => Value::Unset,
        Bound::Value(None) => Value::Null,
        Bound::Value(Some(bytes)) => Value::Bytes(bytes),
    };
    bound.iter().map(value).collect()
}

fn parameters<'a>(
    statement: &'a Statement,
    values: &'a [Value<'a>],
    page_size: Option<i32>,
    paging_state: Option<&'a [u8]>,
) -> QueryParameters<'a> {
    let settings = &statement.settings;
    QueryParameters {
        consistency: settings.consistency,
        serial_consistency: settings.serial,
        timestamp: settings.timestamp_us,
        values: if values.is_empty() { Values::NONE } else { Values::positional(values) },
        page_size,
        paging_state,
        ..QueryParameters::default()
    }
}

/// Adds the rows and warnings of a page; a page that is something else takes the place of all.
fn append(whole: &mut Answer, page: Answer) {
    match (&mut whole.outcome, page.outcome) {
        (Outcome::Rows { rows, .. }, Outcome::Rows { rows: more, .. }) => {
            rows.extend(more);
            whole.warnings.extend(page.warnings);
        }
        (outcome, other) => *outcome = other,
    }
}
