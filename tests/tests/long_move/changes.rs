//! Changes of rows: their CQL, and what they do to the state of a chunk.

use crate::state::{Cell, Cells, Chunk, Span};
use crate::tables::Table;

/// A value of a column.
#[derive(Clone, Debug)]
pub enum Value {
    Int(i32),
    Text(String),
    Map(Vec<(String, i32)>),
    Set(Vec<i32>),
    List(Vec<String>),
    Place(Option<String>, Option<i32>),
    Frozen(Vec<i32>),
}

/// What is done to a column.
#[derive(Clone, Debug)]
pub enum Change {
    Set(Value),
    Null,
    Put(String, i32),
    Take(String),
    Include(i32),
    Exclude(i32),
    Append(String),
    Prepend(String),
    Street(String),
    Number(Option<i32>),
}

/// What is done to a chunk. Columns are numbers in the table's list; a row without a number is the static one.
#[derive(Clone, Debug)]
pub enum Act {
    Insert(u32, Vec<(usize, Value)>),
    Update(Option<u32>, Vec<(usize, Change)>),
    DeleteRow(u32),
    DeleteRange(u32, u32),
    DeleteChunk,
}

/// A write with its timestamp, which is later than those of all writes before to the same chunk.
#[derive(Clone, Debug)]
pub struct Write {
    pub at: i64,
    pub ttl: Option<i64>,
    pub act: Act,
}

impl Value {
    /// The cells of the value: where each is in its column, and its bytes.
    pub fn cells(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = |text: &String| text.clone().into_bytes();
        match self {
            Value::Int(number) => vec![(Vec::new(), number.to_be_bytes().to_vec())],
            Value::Text(word) => vec![(Vec::new(), text(word))],
            Value::Map(entries) => {
                entries.iter().map(|(key, number)| (text(key), number.to_be_bytes().to_vec())).collect()
            }
            // Their order is that of their bytes: none is negative.
            Value::Set(numbers) => {
                numbers.iter().map(|number| (number.to_be_bytes().to_vec(), Vec::new())).collect()
            }
            Value::List(words) => words.iter().map(|word| (Vec::new(), text(word))).collect(),
            Value::Place(street, number) => {
                let street = street.iter().map(|street| (vec![0], text(street)));
                let number = number.iter().map(|number| (vec![1], number.to_be_bytes().to_vec()));
                street.chain(number).collect()
            }
            Value::Frozen(numbers) => {
                let mut bytes = (numbers.len() as i32).to_be_bytes().to_vec();
                for number in numbers {
                    bytes.extend(4_i32.to_be_bytes());
                    bytes.extend(number.to_be_bytes());
                }
                vec![(Vec::new(), bytes)]
            }
        }
    }

    fn text(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Value::Int(number) => number.to_string(),
            Value::Text(text) => format!("'{text}'"),
            Value::Map(entries) => {
                let parts = entries.iter().map(|(key, number)| format!("'{key}': {number}"));
                format!("{{{}}}", joined(parts.collect()))
            }
            Value::Set(numbers) => format!("{{{}}}", joined(numbers.iter().map(i32::to_string).collect())),
            Value::List(words) => {
                format!("[{}]", joined(words.iter().map(|word| format!("'{word}'")).collect()))
            }
            Value::Place(street, number) => {
                let street = street.iter().map(|street| format!("street: '{street}'"));
                let parts = street.chain(number.iter().map(|number| format!("number: {number}")));
                format!("{{{}}}", joined(parts.collect()))
            }
            Value::Frozen(numbers) => format!("[{}]", joined(numbers.iter().map(i32::to_string).collect())),
        }
    }
}

impl Change {
    fn text(&self, column: &str) -> String {
        match self {
            Change::Set(value) => format!("{column} = {}", value.text()),
            Change::Null => format!("{column} = null"),
            Change::Put(key, number) => format!("{column}['{key}'] = {number}"),
            Change::Take(key) => format!("{column} = {column} - {{'{key}'}}"),
            Change::Include(number) => format!("{column} = {column} + {{{number}}}"),
            Change::Exclude(number) => format!("{column} = {column} - {{{number}}}"),
            Change::Append(word) => format!("{column} = {column} + ['{word}']"),
            Change::Prepend(word) => format!("{column} = ['{word}'] + {column}"),
            Change::Street(street) => format!("{column}.street = '{street}'"),
            Change::Number(None) => format!("{column}.number = null"),
            Change::Number(Some(number)) => format!("{column}.number = {number}"),
        }
    }

    fn apply(&self, cells: &mut Cells, column: usize, stamp: (i64, Option<Span>)) {
        let (first, last) = (list_end(cells, column, true), list_end(cells, column, false));
        let mut put = |path: Vec<u8>, value: Vec<u8>| {
            cells.insert((column, path), Cell { value, at: stamp.0, expires: stamp.1 });
        };
        match self {
            Change::Set(value) => set(cells, (column, value), stamp),
            Change::Null => cells.retain(|(of, _), _| *of != column),
            Change::Put(key, number) => put(key.clone().into_bytes(), number.to_be_bytes().to_vec()),
            Change::Include(number) => put(number.to_be_bytes().to_vec(), Vec::new()),
            Change::Street(street) => put(vec![0], street.clone().into_bytes()),
            Change::Number(Some(number)) => put(vec![1], number.to_be_bytes().to_vec()),
            Change::Take(key) => drop(cells.remove(&(column, key.clone().into_bytes()))),
            Change::Exclude(number) => drop(cells.remove(&(column, number.to_be_bytes().to_vec()))),
            Change::Number(None) => drop(cells.remove(&(column, vec![1]))),
            Change::Append(word) => put(last, word.clone().into_bytes()),
            Change::Prepend(word) => put(first, word.clone().into_bytes()),
        }
    }
}

/// Replaces a column. Elements of lists are numbered.
fn set(cells: &mut Cells, (column, value): (usize, &Value), (at, expires): (i64, Option<Span>)) {
    cells.retain(|(of, _), _| *of != column);
    let is_list = matches!(value, Value::List(_));
    for (path, value) in value.cells() {
        let path = if is_list { list_end(cells, column, false) } else { path };
        cells.insert((column, path), Cell { value, at, expires });
    }
}

/// The place before the first or after the last element of a list.
fn list_end(cells: &Cells, column: usize, is_first: bool) -> Vec<u8> {
    let mut of = cells.keys().filter(|(of, _)| *of == column).map(|(_, path)| path);
    let end = if is_first { of.next() } else { of.next_back() };
    let number = end.and_then(|path| Some(u64::from_be_bytes(path.as_slice().try_into().ok()?)));
    let number = number
        .map_or(1 << 63, |number| if is_first { number.wrapping_sub(1) } else { number.wrapping_add(1) });
    number.to_be_bytes().to_vec()
}

impl Write {
    /// Whether it may be sent twice. Elements of lists get new ids each time.
    pub fn is_repeatable(&self) -> bool {
        let is_list = |change: &Change| {
            matches!(change, Change::Append(_) | Change::Prepend(_) | Change::Set(Value::List(_)))
        };
        match &self.act {
            Act::Insert(_, values) => !values.iter().any(|(_, value)| matches!(value, Value::List(_))),
            Act::Update(_, changes) => !changes.iter().any(|(_, change)| is_list(change)),
            _ => true,
        }
    }

    /// The statement.
    pub fn text(&self, table: &Table, chunk: u32) -> String {
        let name = table.name;
        let at = match self.ttl {
            Some(ttl) => format!("TIMESTAMP {} AND TTL {ttl}", self.at),
            None => format!("TIMESTAMP {}", self.at),
        };
        let column = |number: usize| table.columns[number].name;
        match &self.act {
            Act::Insert(row, values) => {
                let (p, c) = table.key(chunk, *row);
                let names: String = values.iter().map(|(at, _)| format!(", {}", column(*at))).collect();
                let values: String = values.iter().map(|(_, value)| format!(", {}", value.text())).collect();
                format!("INSERT INTO {name} (p, c{names}) VALUES ({p}, {c}{values}) USING {at}")
            }
            Act::Update(row, changes) => {
                let sets: Vec<String> = changes.iter().map(|(at, change)| change.text(column(*at))).collect();
                let key = table.condition(chunk, row.map(|row| (row, row + 1)));
                format!("UPDATE {name} USING {at} SET {} WHERE {key}", sets.join(", "))
            }
            Act::DeleteRow(row) => {
                format!(
                    "DELETE FROM {name} USING {at} WHERE {}",
                    table.condition(chunk, Some((*row, *row + 1)))
                )
            }
            Act::DeleteRange(from, to) => {
                format!("DELETE FROM {name} USING {at} WHERE {}", table.condition(chunk, Some((*from, *to))))
            }
            Act::DeleteChunk => {
                format!("DELETE FROM {name} USING {at} WHERE {}", table.whole_chunk(chunk))
            }
        }
    }

    /// What the write does, if the server took it between these seconds.
    pub fn apply(&self, chunk: &mut Chunk, (from, to): Span) {
        let expires = self.ttl.map(|ttl| (from + ttl, to + ttl + 1));
        let stamp = (self.at, expires);
        match &self.act {
            Act::Insert(row, values) => {
                let row = chunk.rows.entry(*row).or_default();
                row.marker = Some(expires);
                for (column, value) in values {
                    set(&mut row.cells, (*column, value), stamp);
                }
            }
            Act::Update(row, changes) => {
                let cells = match row {
                    Some(row) => &mut chunk.rows.entry(*row).or_default().cells,
                    None => &mut chunk.statics,
                };
                for (column, change) in changes {
                    change.apply(cells, *column, stamp);
                }
            }
            Act::DeleteRow(row) => drop(chunk.rows.remove(row)),
            Act::DeleteRange(from, to) => chunk.rows.retain(|row, _| !(*from..*to).contains(row)),
            Act::DeleteChunk => *chunk = Chunk::default(),
        }
    }
}
