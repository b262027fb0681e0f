//! A partition of a table as a model, what clients do to it, and the statements for it.
//!
//! Each [`Kind`] is a table of its own. Every value that is written is written once in a history, so that a read says whose it
//! is.

use crate::check::Model;
use crate::draw::Draw;

/// Rows of a partition of [`Kind::Rows`].
pub const ROWS: usize = 3;

/// What a table holds, and with it which operations a history has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One value: plain writes and deletions, conditional ones.
    Register,
    /// A list: additions at both ends, replacements, changes by index and by value.
    List,
    /// Rows of one partition: written alone, by batches, by batches with a condition, deleted together.
    Rows,
    /// A counter.
    Counter,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Register, Kind::List, Kind::Rows, Kind::Counter];

    /// The table's name.
    pub const fn table(self) -> &'static str {
        match self {
            Kind::Register => "registers",
            Kind::List => "lists",
            Kind::Rows => "several",
            Kind::Counter => "counters",
        }
    }

    /// The statement that makes the table.
    pub fn definition(self) -> String {
        let columns = match self {
            Kind::Register => "k int PRIMARY KEY, v int",
            Kind::List => "k int PRIMARY KEY, l list<int>",
            Kind::Rows => "k int, c int, v int, PRIMARY KEY (k, c)",
            Kind::Counter => "k int PRIMARY KEY, n counter",
        };
        format!("CREATE TABLE {} ({columns})", self.table())
    }
}

/// What a partition holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Values by clustering; a register is the first.
    pub rows: [Option<i32>; ROWS],
    /// Elements.
    pub list: Vec<i32>,
    /// The counter.
    pub count: i64,
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads all of the partition.
    Read,
    /// Writes one row.
    Write(usize, i32),
    /// Deletes all of the partition.
    Delete,
    /// Writes a register that has no value.
    WriteIfAbsent(i32),
    /// Writes a register that has this value: expected, new.
    WriteIf(i32, i32),
    /// Deletes a register that has this value.
    DeleteIf(i32),
    /// Writes all rows in one batch.
    WriteAll(i32),
    /// Writes all rows in one batch if the first has this value: expected, new.
    WriteAllIf(i32, i32),
    /// Puts an element behind a list.
    Append(i32),
    /// Puts an element before a list.
    Prepend(i32),
    /// Replaces a list.
    Replace(i32, i32),
    /// Sets the element at an index.
    SetAt(usize, i32),
    /// Removes elements by value.
    Discard(i32),
    /// Adds to a counter.
    Count(i64),
}

/// A request with what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A read, and what it saw.
    Saw(State),
    /// A write: whether its condition held, which is not known of one that was not answered.
    Did(Request, Option<bool>),
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Null.
    Null,
    /// A boolean.
    Flag(bool),
    /// An int.
    Int(i32),
    /// A list of ints.
    List(Vec<i32>),
    /// A counter.
    Counter(i64),
}

impl Request {
    /// Draws a request. `fresh` is a value that was never written; `seen` are values that the client knows of.
    pub fn draw(kind: Kind, draw: &mut Draw, fresh: i32, seen: &[i32]) -> Request {
        let known = match seen.len() {
            0 => fresh - 1,
            len => seen[len - 1 - draw.below(len.min(3) as u64) as usize],
        };
        match (kind, draw.below(10)) {
            (_, 0..=3) => Request::Read,
            (Kind::Register, 4..=5) => Request::Write(0, fresh),
            (Kind::Register, 6) => Request::Delete,
            (Kind::Register, 7) => Request::WriteIfAbsent(fresh),
            (Kind::Register, 8) => Request::WriteIf(known, fresh),
            (Kind::Register, _) => Request::DeleteIf(known),
            (Kind::Rows, 4) => Request::Delete,
            (Kind::Rows, 5..=6) => Request::WriteAll(fresh),
            (Kind::Rows, 7) => Request::Write(draw.below(ROWS as u64) as usize, fresh),
            (Kind::Rows, _) => Request::WriteAllIf(known, fresh),
            (Kind::List, 4..=5) => Request::Append(fresh),
            (Kind::List, 6) => Request::Prepend(fresh),
            (Kind::List, 7) => match draw.below(4) {
                0 => Request::Delete,
                _ => Request::Replace(fresh, fresh + 1),
            },
            (Kind::List, 8) => Request::SetAt(draw.below(3) as usize, fresh),
            (Kind::List, _) => Request::Discard(known),
            (Kind::Counter, _) => Request::Count(draw.below(9) as i64 - 4),
        }
    }

    /// The statement, for the partition of this key.
    pub fn text(&self, kind: Kind, key: i32) -> String {
        let table = kind.table();
        let update = |set: String| format!("UPDATE {table} SET {set} WHERE k = {key}");
        let all = |value: i32, first: &str| {
            let row = |row: usize| {
                let guard = if row == 0 { first } else { "" };
                format!("UPDATE {table} SET v = {value} WHERE k = {key} AND c = {row}{guard}; ")
            };
            format!("BEGIN UNLOGGED BATCH {}APPLY BATCH", (0..ROWS).map(row).collect::<String>())
        };
        match (self, kind) {
            (Request::Read, _) => format!("SELECT * FROM {table} WHERE k = {key}"),
            (Request::Write(row, value), Kind::Rows) => {
                format!("INSERT INTO {table} (k, c, v) VALUES ({key}, {row}, {value})")
            }
            (Request::Write(_, value), _) => format!("INSERT INTO {table} (k, v) VALUES ({key}, {value})"),
            (Request::Delete, _) => format!("DELETE FROM {table} WHERE k = {key}"),
            (Request::WriteIfAbsent(value), _) => {
                format!("INSERT INTO {table} (k, v) VALUES ({key}, {value}) IF NOT EXISTS")
            }
            (Request::WriteIf(expected, value), _) => {
                update(format!("v = {value}")) + &format!(" IF v = {expected}")
            }
            (Request::DeleteIf(expected), _) => {
                format!("DELETE FROM {table} WHERE k = {key} IF v = {expected}")
            }
            (Request::WriteAll(value), _) => all(*value, ""),
            (Request::WriteAllIf(expected, value), _) => all(*value, &format!(" IF v = {expected}")),
            (Request::Append(value), _) => update(format!("l = l + [{value}]")),
            (Request::Prepend(value), _) => update(format!("l = [{value}] + l")),
            (Request::Replace(first, second), _) => update(format!("l = [{first}, {second}]")),
            (Request::SetAt(index, value), _) => update(format!("l[{index}] = {value}")),
            (Request::Discard(value), _) => update(format!("l = l - [{value}]")),
            (Request::Count(by), _) => update(format!("n = n + {by}")),
        }
    }

    /// The request with the rows that answer it. `None`: nothing was written, and nothing was read.
    ///
    /// # Panics
    /// If they are no answer to it.
    pub fn answered(self, kind: Kind, rows: &[Vec<Cell>]) -> Action {
        match self {
            Request::Read => Action::Saw(State::read(kind, rows)),
            Request::WriteIfAbsent(_)
            | Request::WriteIf(..)
            | Request::DeleteIf(_)
            | Request::WriteAllIf(..) => match rows.first().and_then(|row| row.first()) {
                Some(Cell::Flag(applied)) => Action::Did(self, Some(*applied)),
                other => panic!("{self:?}: [applied] is {other:?}"),
            },
            other => Action::Did(other, Some(true)),
        }
    }

    /// The request, of which nobody knows what became of it.
    pub fn unanswered(self) -> Action {
        Action::Did(self, None)
    }

    /// The request that the server refused for what it found: a list without such an element.
    pub fn refused(self) -> Action {
        Action::Did(self, Some(false))
    }

    /// Whether an error may say that the list has no such element.
    pub fn may_be_refused(&self) -> bool {
        matches!(self, Request::SetAt(..))
    }

    /// What it does to a state; `None`: its condition does not hold there.
    fn applied(&self, state: &State) -> Option<State> {
        let mut after = state.clone();
        match self {
            Request::Read => {}
            Request::Write(row, value) => after.rows[*row] = Some(*value),
            Request::Delete => after = State { count: state.count, ..State::default() },
            Request::WriteIfAbsent(value) if state.rows[0].is_none() => after.rows[0] = Some(*value),
            Request::WriteIf(expected, value) if state.rows[0] == Some(*expected) => {
                after.rows[0] = Some(*value);
            }
            Request::DeleteIf(expected) if state.rows[0] == Some(*expected) => after.rows[0] = None,
            Request::WriteAll(value) => after.rows = [Some(*value); ROWS],
            Request::WriteAllIf(expected, value) if state.rows[0] == Some(*expected) => {
                after.rows = [Some(*value); ROWS];
            }
            Request::Append(value) => after.list.push(*value),
            Request::Prepend(value) => after.list.insert(0, *value),
            Request::Replace(first, second) => after.list = vec![*first, *second],
            Request::SetAt(index, value) => *after.list.get_mut(*index)? = *value,
            Request::Discard(value) => after.list.retain(|element| element != value),
            Request::Count(by) => after.count += by,
            Request::WriteIfAbsent(_)
            | Request::WriteIf(..)
            | Request::DeleteIf(_)
            | Request::WriteAllIf(..) => return None,
        }
        Some(after)
    }
}

impl State {
    fn read(kind: Kind, rows: &[Vec<Cell>]) -> State {
        let mut state = State::default();
        for row in rows {
            match (kind, &row[1..]) {
                (Kind::Register, [Cell::Int(value)]) => state.rows[0] = Some(*value),
                (Kind::Rows, [Cell::Int(row), Cell::Int(value)]) => state.rows[*row as usize] = Some(*value),
                (Kind::List, [Cell::List(list)]) => state.list.clone_from(list),
                (Kind::List, [Cell::Null]) => {}
                (Kind::Counter, [Cell::Counter(count)]) => state.count = *count,
                other => panic!("a row of another table: {other:?}"),
            }
        }
        state
    }

    /// Values that a client may expect to find again.
    pub fn values(&self) -> impl Iterator<Item = i32> {
        self.rows.iter().flatten().copied().chain(self.list.iter().copied())
    }
}

/// The partition, empty at first.
#[derive(Clone, Copy, Debug)]
pub struct Partition;

impl Model for Partition {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        State::default()
    }

    fn step(&self, state: &State, action: &Action) -> Option<State> {
        match action {
            Action::Saw(seen) => (seen == state).then(|| state.clone()),
            Action::Did(request, held) => match (request.applied(state), held) {
                (Some(after), None | Some(true)) => Some(after),
                (None, None | Some(false)) => Some(state.clone()),
                (Some(_), Some(false)) | (None, Some(true)) => None,
            },
        }
    }
}
