//! Random operations for random tables.

use crate::plan::Op;
use crate::random::Random;
use crate::statement::{Action, Assign, Compare, Condition, Filter, Keys, Pred, Select, Shown, Term, Write};
use crate::table::{Place, Table, Timing, Type, options};

/// `count` operations on these tables. `keys`: how many values the first key column may have.
pub(crate) fn operations(
    random: &mut Random,
    tables: &[Table],
    (timing, keys): (Timing, usize),
    count: usize,
) -> Vec<Op> {
    let mut maker = Maker { random, tables, timing, keys };
    let mut ops = Vec::with_capacity(count);
    while ops.len() < count {
        let op = maker.op();
        let is_start = matches!(op, Op::Restart { .. });
        ops.push(op);
        // Starts are followed by load, which fills many segments of the log.
        if is_start && maker.random.chance(20) {
            let most = *maker.random.pick(&[100, 200, 900]);
            ops.push(Op::Load { rows: 50 + maker.random.below(most) as u32 });
        }
    }
    ops
}

struct Maker<'a> {
    random: &'a mut Random,
    tables: &'a [Table],
    timing: Timing,
    /// Different values of the first key column.
    keys: usize,
}

impl Maker<'_> {
    fn op(&mut self) -> Op {
        let table = self.random.below(self.tables.len());
        match self.random.below(1000) {
            0..480 => Op::Write(self.write(table, false)),
            480..540 => self.batch(table),
            540..900 => Op::Read(self.select(table)),
            900..925 => Op::Flush(table),
            925..935 => Op::Compact(table),
            935..955 => Op::Background(self.random.below(12)),
            955..960 => Op::Truncate(table),
            960..967 => Op::Restart { clean: self.random.chance(50) },
            967..985 => Op::Advance { seconds: 1 + self.random.below(30) as u64 },
            985..990 => Op::ColdReads(*self.random.pick(&[0, 30, 100])),
            990..994 => Op::Move(table),
            994..997 => self.remake(table).unwrap_or(Op::Flush(table)),
            997..999 => self.seldom(table),
            _ if self.tables[table].indexes.is_empty() => Op::Flush(table),
            _ => Op::Reindex { table, index: self.random.below(self.tables[table].indexes.len()) },
        }
    }

    /// What operators do.
    fn seldom(&mut self, table: usize) -> Op {
        match self.random.below(10) {
            0..2 => Op::Alter { table, options: options(self.random) },
            2..4 => Op::Snapshot(table),
            4 => Op::DropLoaded,
            5..7 => Op::TakeBack(table),
            7..9 => Op::Restore(table),
            _ => Op::ClockBack { seconds: 1 + self.random.below(3000) as u64 },
        }
    }

    fn remake(&mut self, table: usize) -> Option<Op> {
        let of = &self.tables[table];
        let is_free = |column: &usize| {
            // What is in fields of its own cannot be dropped, as in Cassandra.
            !matches!(of.columns[*column].ty, Type::Fields(_))
                && of.indexes.iter().all(|index| index.column != *column)
        };
        let columns: Vec<usize> = of.of(|place| matches!(place, Place::Static | Place::Regular));
        let columns: Vec<usize> = columns.into_iter().filter(is_free).collect();
        // What was written before the drop has a smaller timestamp only where the server gives them.
        let may = self.timing == Timing::Server && !of.is_counter() && !columns.is_empty();
        may.then(|| Op::Remake { table, column: *self.random.pick(&columns) })
    }

    fn batch(&mut self, table: usize) -> Op {
        let count = 1 + self.random.below(5);
        let is_counter = self.tables[table].is_counter();
        let one_partition = self.random.chance(50);
        let key = self.key(table);
        let timestamp_us = self.timestamp();
        // The conditions of a batch are on one partition; one statement has them, as some kinds do not go together.
        let is_conditional =
            one_partition && !is_counter && self.timing == Timing::Server && self.random.chance(25);
        let writes = (0..count).map(|_| {
            let other = self.random.below(self.tables.len());
            let fits = self.tables[other].is_counter() == is_counter && !one_partition;
            let mut write = self.write(if fits { other } else { table }, true);
            write.timestamp_us = timestamp_us;
            if one_partition {
                write.key.clone_from(&key);
            }
            write
        });
        let mut writes: Vec<Write> = writes.collect();
        // What a batch deletes and writes at once is decided otherwise where it has conditions (`Row.updateAllTimestamp`).
        let adds = |write: &Write| matches!(write.action, Action::Insert(_) | Action::Update(_));
        if is_conditional && writes.iter().any(adds) {
            writes.retain(adds);
            if let Some(first) = writes.first_mut() {
                first.condition = self.condition(table, first);
            }
        }
        Op::Batch { writes, logged: self.random.chance(70) }
    }

    fn timestamp(&mut self) -> Option<i64> {
        (self.timing == Timing::Client).then(|| 1000 + self.random.below(12) as i64)
    }

    fn key(&mut self, table: usize) -> Vec<u8> {
        let table = &self.tables[table];
        let keys = table.keys();
        let mut key: Vec<u8> = keys
            .iter()
            .map(|index| self.random.below(table.columns[*index].pool().len().min(3)) as u8)
            .collect();
        key[0] = self.random.below(self.keys.min(table.columns[0].pool().len())) as u8;
        // An empty key is none.
        if keys.len() == 1 && table.columns[0].pool().bytes(key[0]).is_empty() {
            key[0] += 1;
        }
        key
    }

    fn clustering(&mut self, table: usize) -> Vec<u8> {
        let table = &self.tables[table];
        let values = table.clusterings().into_iter();
        values.map(|index| self.random.below(table.columns[index].pool().len()) as u8).collect()
    }

    /// A statement that writes; a simple one in batches.
    fn write(&mut self, number: usize, in_batch: bool) -> Write {
        let table = &self.tables[number];
        let key = self.key(number);
        let timestamp_us = self.timestamp();
        let has_clustering = !table.clusterings().is_empty();
        let statics_only = has_clustering && !table.statics().is_empty() && self.random.chance(15);
        let columns: Vec<usize> = if statics_only {
            table.statics()
        } else {
            table.of(|place| matches!(place, Place::Static | Place::Regular))
        };
        let clustering = (!statics_only).then(|| self.clustering(number));
        let mut write = Write {
            table: number,
            key,
            clustering,
            action: Action::DeleteRows(Vec::new()),
            timestamp_us,
            ttl_s: None,
            condition: Condition::None,
        };
        let what = self.random.below(100);
        write.action = match what {
            0..50 if !table.is_counter() && (what < 35 || columns.is_empty()) => {
                let count = self.random.below(columns.len() + 1).max(usize::from(statics_only));
                let some = self.random.some_below(columns.len(), count);
                let cell =
                    |of: &mut Self, at: u8| (columns[at as usize], of.term(number, columns[at as usize]));
                Action::Insert(some.into_iter().map(|at| cell(self, at)).collect())
            }
            0..78 if !columns.is_empty() => {
                let count = 1 + self.random.below(columns.len());
                let some = self.random.some_below(columns.len(), count);
                Action::Update(
                    some.into_iter().map(|at| self.assign(number, columns[at as usize], in_batch)).collect(),
                )
            }
            // A counter whose cell was deleted counts nothing until the tombstone is purged (`Cells.resolveCounter`).
            78..86 if !columns.is_empty() && !table.is_counter() => {
                // Static columns are named without a clustering or with it; others only with it.
                let column = columns[self.random.below(columns.len())];
                Action::DeleteParts(vec![self.part(number, column)])
            }
            _ => {
                let (clustering, preds) = self.rows_to_delete(number);
                write.clustering = clustering;
                Action::DeleteRows(preds)
            }
        };
        if write.is_static(table) {
            write.clustering = None;
        }
        let takes_ttl = matches!(write.action, Action::Insert(_) | Action::Update(_)) && !table.is_counter();
        if takes_ttl && self.random.chance(18) {
            write.ttl_s = Some(*self.random.pick(&[3, 20, 100]));
        }
        if !in_batch && self.timing == Timing::Server && !table.is_counter() && self.random.chance(20) {
            write.condition = self.condition(number, &write);
        }
        write
    }

    /// A partition, a row of it or a range of rows.
    fn rows_to_delete(&mut self, number: usize) -> (Option<Vec<u8>>, Vec<Pred>) {
        if self.tables[number].clusterings().is_empty() {
            return (Some(Vec::new()), Vec::new());
        }
        match self.random.below(100) {
            0..10 => (None, Vec::new()),
            10..45 => (Some(self.clustering(number)), Vec::new()),
            _ => (None, self.range(number)),
        }
    }

    /// Relations that name rows one after the other, without a gap.
    fn range(&mut self, number: usize) -> Vec<Pred> {
        let values = self.clustering(number);
        if self.random.chance(25) {
            let n = 1 + self.random.below(values.len());
            let sides = [Compare::Greater, Compare::GreaterOrEqual, Compare::Less, Compare::LessOrEqual];
            let first = *self.random.pick(&sides);
            let mut preds = vec![Pred::Tuple(first, values[..n].to_vec())];
            if self.random.chance(50) {
                let upper = [Compare::Less, Compare::LessOrEqual];
                let lower = [Compare::Greater, Compare::GreaterOrEqual];
                let other = if upper.contains(&first) {
                    *self.random.pick(&lower)
                } else {
                    *self.random.pick(&upper)
                };
                preds.push(Pred::Tuple(other, self.clustering(number)[..n].to_vec()));
            }
            return preds;
        }
        let equal = self.random.below(values.len());
        let mut preds: Vec<Pred> =
            values.iter().take(equal).enumerate().map(|(at, v)| Pred::One(at, Compare::Equal, *v)).collect();
        let other = self.clustering(number)[equal];
        match self.random.below(5) {
            0 => preds.push(Pred::One(equal, Compare::Equal, values[equal])),
            1 => preds.push(Pred::One(equal, *self.random.pick(&Compare::ALL), values[equal])),
            _ => {
                let (low, high) = (values[equal].min(other), values[equal].max(other));
                preds.push(Pred::One(
                    equal,
                    *self.random.pick(&[Compare::Greater, Compare::GreaterOrEqual]),
                    low,
                ));
                preds.push(Pred::One(equal, *self.random.pick(&[Compare::Less, Compare::LessOrEqual]), high));
            }
        }
        preds
    }

    fn some(&mut self, pool: &crate::values::Pool, most: usize) -> Vec<u8> {
        let count = self.random.below(most + 1);
        self.random.some_below(pool.len(), count)
    }

    fn term(&mut self, number: usize, column: usize) -> Term {
        if self.random.chance(12) {
            return Term::Null;
        }
        match &self.tables[number].columns[column].ty {
            Type::Simple(pool) => Term::Simple(self.random.below(pool.len()) as u8),
            Type::Set(pool) => Term::Set(self.some(pool, 4)),
            Type::List(pool) => Term::List(self.some(pool, 4)),
            Type::Map(keys, values) => {
                let keys = self.some(keys, 4);
                Term::Map(keys.into_iter().map(|key| (key, self.random.below(values.len()) as u8)).collect())
            }
            Type::Fields(pools) => {
                let fields = pools
                    .iter()
                    .map(|pool| self.random.chance(75).then(|| self.random.below(pool.len()) as u8));
                Term::Fields(fields.collect())
            }
            Type::Counter => unreachable!("counters are counted"),
        }
    }

    fn assign(&mut self, number: usize, column: usize, in_batch: bool) -> Assign {
        let ty = &self.tables[number].columns[column].ty;
        if !matches!(ty, Type::Counter) && self.random.chance(40) {
            return Assign::Set(column, self.term(number, column));
        }
        match ty {
            Type::Simple(_) => Assign::Set(column, self.term(number, column)),
            Type::Set(pool) => {
                let items = self.some_not_empty(pool, 3);
                if self.random.chance(60) {
                    Assign::Add(column, Term::Set(items))
                } else {
                    Assign::Remove(column, items)
                }
            }
            Type::List(pool) => {
                let items = self.some_not_empty(pool, 3);
                let value = self.random.chance(80).then(|| self.random.below(pool.len()) as u8);
                // What reads the list first sees nothing of its own batch.
                match self.random.below(if in_batch { 2 } else { 4 }) {
                    0 => Assign::Add(column, Term::List(items)),
                    1 => Assign::Prepend(column, items),
                    2 => Assign::Remove(column, items),
                    _ => Assign::At(column, self.random.below(3), value),
                }
            }
            Type::Map(keys, values) => match self.random.below(3) {
                0 => {
                    let keys = self.some_not_empty(keys, 3);
                    let value = |key| (key, self.random.below(values.len()) as u8);
                    Assign::Add(column, Term::Map(keys.into_iter().map(value).collect()))
                }
                1 => Assign::Remove(column, self.some_not_empty(keys, 3)),
                _ => {
                    let value = self.random.chance(75).then(|| self.random.below(values.len()) as u8);
                    Assign::Element(column, self.random.below(keys.len()) as u8, value)
                }
            },
            Type::Fields(pools) => {
                let field = self.random.below(pools.len());
                let value = self.random.chance(75).then(|| self.random.below(pools[field].len()) as u8);
                Assign::Field(column, field, value)
            }
            Type::Counter => Assign::Count(column, *self.random.pick(&[1, 1, 2, -1, -3, 1 << 40])),
        }
    }

    fn some_not_empty(&mut self, pool: &crate::values::Pool, most: usize) -> Vec<u8> {
        let count = 1 + self.random.below(most);
        self.random.some_below(pool.len(), count)
    }

    /// A column or a part of it, for DELETE.
    fn part(&mut self, number: usize, column: usize) -> Assign {
        if self.random.chance(50) {
            return Assign::Set(column, Term::Null);
        }
        match &self.tables[number].columns[column].ty {
            Type::Map(keys, _) => Assign::Element(column, self.random.below(keys.len()) as u8, None),
            Type::Fields(pools) => Assign::Field(column, self.random.below(pools.len()), None),
            _ => Assign::Set(column, Term::Null),
        }
    }

    fn condition(&mut self, number: usize, write: &Write) -> Condition {
        let table = &self.tables[number];
        let is_whole = match &write.action {
            Action::Insert(_) => {
                return if self.random.chance(70) { Condition::NotExists } else { Condition::None };
            }
            // Conditions are on one row, or on the static one.
            Action::DeleteRows(_) => {
                write.clustering.as_ref().is_some_and(|c| !c.is_empty()) || table.clusterings().is_empty()
            }
            _ => true,
        };
        // A row that has no regular columns has nothing to be asked for.
        let places =
            |place| place == Place::Static || (place == Place::Regular && write.clustering.is_some());
        let asks = |index: &usize| matches!(table.columns[*index].ty, Type::Simple(_));
        let columns: Vec<usize> = table.of(places).into_iter().filter(asks).collect();
        if !is_whole {
            return Condition::None;
        }
        if columns.is_empty() || self.random.chance(40) {
            return Condition::Exists;
        }
        let count = 1 + self.random.below(2);
        let some = self.random.some_below(columns.len(), count);
        let wanted = some.into_iter().map(|at| {
            let column = columns[at as usize];
            let count = table.columns[column].pool().len();
            (column, self.random.chance(75).then(|| self.random.below(count) as u8))
        });
        Condition::Columns(wanted.collect())
    }

    /// A SELECT of any kind.
    fn select(&mut self, number: usize) -> Select {
        let table = &self.tables[number];
        let mut select = Select {
            table: number,
            shown: Vec::new(),
            distinct: false,
            keys: self.keys(number),
            preds: Vec::new(),
            filters: Vec::new(),
            reversed: false,
            limit: self.random.chance(30).then(|| 1 + self.random.below(6)),
            per_partition: self.random.chance(15).then(|| 1 + self.random.below(3)),
            page: self.page(),
        };
        let clusterings = table.clusterings();
        if !table.statics().is_empty() && self.random.chance(8) {
            select.distinct = true;
            select.per_partition = None;
            if matches!(select.keys, Keys::In(_)) {
                select.keys = Keys::All;
            }
        } else {
            if !clusterings.is_empty() && self.random.chance(55) {
                select.preds = self.preds(number, &select.keys);
            }
            if !matches!(select.keys, Keys::In(_)) && self.random.chance(35) {
                select.filters = self.filters(number);
            }
            // With an index in use there is no order to be asked for.
            let may_turn =
                matches!(select.keys, Keys::One(_)) && select.filters.is_empty() && table.indexes.is_empty();
            select.reversed = !clusterings.is_empty() && may_turn && self.random.chance(45);
        }
        if matches!(select.keys, Keys::In(_)) {
            // Their order is their own.
            select.limit = None;
        }
        select.shown = self.shown(&select);
        select
    }

    fn page(&mut self) -> Option<u32> {
        match self.random.below(100) {
            0..45 => None,
            45..90 => Some(1 + self.random.below(6) as u32),
            90..97 => Some(1 + self.random.below(200) as u32),
            _ => Some(5000),
        }
    }

    fn keys(&mut self, number: usize) -> Keys {
        match self.random.below(100) {
            0..20 => Keys::All,
            20..75 => Keys::One(self.key(number)),
            75..85 => {
                let first = self.key(number);
                let mut keys: Vec<Vec<u8>> = vec![first.clone()];
                for _ in 0..self.random.below(3) {
                    let mut other = first.clone();
                    other.pop();
                    other.extend(self.key(number).last());
                    keys.push(other);
                }
                keys.sort();
                keys.dedup();
                Keys::In(keys)
            }
            _ => {
                let mut end = || self.random.chance(80).then(|| (self.key(number), self.random.chance(50)));
                Keys::Tokens(end(), end())
            }
        }
    }

    fn preds(&mut self, number: usize, keys: &Keys) -> Vec<Pred> {
        // In a range of partitions only plain relations: what others mean there is the filter's business.
        if !matches!(keys, Keys::One(_) | Keys::In(_)) {
            let values = self.clustering(number);
            let at = self.random.below(values.len());
            return vec![Pred::One(at, *self.random.pick(&Compare::ALL), values[at])];
        }
        let values = self.clustering(number);
        match self.random.below(10) {
            0..2 => {
                values.iter().enumerate().map(|(at, value)| Pred::One(at, Compare::Equal, *value)).collect()
            }
            2 => {
                let count = 1 + self.random.below(4);
                let mut tuples: Vec<Vec<u8>> = (0..count).map(|_| self.clustering(number)).collect();
                tuples.sort();
                tuples.dedup();
                vec![Pred::TupleIn(tuples)]
            }
            3..5 => {
                let last = values.len() - 1;
                let mut preds: Vec<Pred> = values[..last]
                    .iter()
                    .enumerate()
                    .map(|(at, value)| Pred::One(at, Compare::Equal, *value))
                    .collect();
                let table = &self.tables[number];
                let column = table.clusterings()[last];
                let count = 1 + self.random.below(6);
                let some = self.random.some_below(table.columns[column].pool().len(), count);
                preds.push(Pred::In(last, some));
                preds
            }
            _ => self.range(number),
        }
    }

    fn filters(&mut self, number: usize) -> Vec<Filter> {
        let table = &self.tables[number];
        let mut columns = table.of(|place| matches!(place, Place::Static | Place::Regular));
        // What has an index is asked for more often.
        let indexed = table.indexes.iter().map(|index| index.column);
        let indexed: Vec<usize> = indexed.filter(|index| columns.contains(index)).collect();
        columns.extend(indexed.iter().copied().cycle().take(indexed.len() * 3));
        if columns.is_empty() {
            return Vec::new();
        }
        let count = 1 + self.random.below(2);
        let mut chosen: Vec<usize> = (0..count).map(|_| *self.random.pick(&columns)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen.into_iter().filter_map(|column| self.filter(number, column)).collect()
    }

    fn filter(&mut self, number: usize, column: usize) -> Option<Filter> {
        let of = &self.tables[number].columns[column];
        let is_static = of.place == Place::Static;
        match &of.ty {
            Type::Simple(pool) => {
                let value = self.random.below(pool.len()) as u8;
                let compare =
                    if self.random.chance(60) { Compare::Equal } else { *self.random.pick(&Compare::ALL) };
                Some(Filter::Value(column, compare, value))
            }
            _ if is_static => None,
            Type::Set(pool) | Type::List(pool) => {
                Some(Filter::Contains(column, self.random.below(pool.len()) as u8))
            }
            Type::Map(keys, values) => {
                let (key, value) =
                    (self.random.below(keys.len()) as u8, self.random.below(values.len()) as u8);
                Some(match self.random.below(3) {
                    0 => Filter::Contains(column, value),
                    1 => Filter::ContainsKey(column, key),
                    _ => Filter::Entry(column, key, value),
                })
            }
            Type::Fields(_) | Type::Counter => None,
        }
    }

    /// The primary key, so that rows can be told apart, and some of the rest.
    fn shown(&mut self, select: &Select) -> Vec<Shown> {
        let table = &self.tables[select.table];
        let all = table
            .of(|place| if select.distinct { matches!(place, Place::Key | Place::Static) } else { true });
        let some = self.random.chance(25);
        let mut shown = Vec::new();
        for index in all {
            let column = &table.columns[index];
            let is_key = matches!(column.place, Place::Key | Place::Clustering { .. });
            if is_key || !some || self.random.chance(50) {
                shown.push(Shown::Column(index));
            }
            let told = !is_key && !select.distinct && matches!(column.ty, Type::Simple(_));
            if told && self.random.chance(10) {
                shown.push(Shown::Ttl(index));
            }
            if told && self.timing == Timing::Client && self.random.chance(10) {
                shown.push(Shown::Writetime(index));
            }
        }
        shown
    }
}
