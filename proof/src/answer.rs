//! What a SELECT must answer, worked out row by row over the judge.

use crate::judge::{Judge, Live, Path, Version, total};
use crate::statement::{Filter, Keys, Select, Shown};
use crate::table::{Place, Type};
use crate::values::{collection, fields};

/// Rows of serialised values.
pub(crate) type Rows = Vec<Vec<Option<Vec<u8>>>>;

impl Judge {
    pub(crate) fn select(&self, select: &Select, now_s: i64) -> Rows {
        let mut rows = Rows::new();
        let places = self.partitions().filter(|(key, _)| self.selects(&select.keys, key));
        for (key, partition) in places {
            let statics = partition.live_statics(now_s);
            let filters_rows = select.filters.iter().any(|filter| !self.is_static(filter));
            let mut of_partition = Rows::new();
            let mut any = false;
            let fits = |clustering: &[u8], live: &Live| {
                select.preds.iter().all(|pred| pred.holds(clustering))
                    && select.filters.iter().all(|filter| {
                        filter.holds(if self.is_static(filter) { &statics } else { live }, clustering, self)
                    })
            };
            let mut take = |(clustering, live): (&Vec<u8>, Live)| {
                any = true;
                if fits(clustering, &live) {
                    of_partition.push(self.show(select, (key, Some(clustering)), (&statics, &live), now_s));
                }
            };
            if select.reversed {
                partition.live_rows(now_s).rev().for_each(&mut take);
            } else {
                partition.live_rows(now_s).for_each(&mut take);
            }
            if select.distinct {
                of_partition.truncate(1);
            }
            let static_alone = !any && !statics.is_empty() && select.preds.is_empty() && !filters_rows;
            if static_alone && fits(&[], &Live::new()) {
                of_partition.push(self.show(select, (key, None), (&statics, &Live::new()), now_s));
            }
            of_partition.truncate(select.per_partition.unwrap_or(usize::MAX));
            rows.extend(of_partition);
        }
        rows.truncate(select.limit.unwrap_or(usize::MAX));
        rows
    }

    fn is_static(&self, filter: &Filter) -> bool {
        let (Filter::Value(index, ..)
        | Filter::Contains(index, _)
        | Filter::ContainsKey(index, _)
        | Filter::Entry(index, ..)) = filter;
        self.table.columns[*index].place == Place::Static
    }

    fn selects(&self, keys: &Keys, key: &Vec<u8>) -> bool {
        match keys {
            Keys::All => true,
            Keys::One(wanted) => wanted == key,
            Keys::In(wanted) => wanted.contains(key),
            Keys::Tokens(from, to) => {
                let token = self.ring(key).0;
                let after = |(key, inclusive): &(Vec<u8>, bool)| {
                    token > self.ring(key).0 || (*inclusive && token == self.ring(key).0)
                };
                let before = |(key, inclusive): &(Vec<u8>, bool)| {
                    token < self.ring(key).0 || (*inclusive && token == self.ring(key).0)
                };
                from.as_ref().is_none_or(after) && to.as_ref().is_none_or(before)
            }
        }
    }

    fn show(
        &self,
        select: &Select,
        (key, clustering): (&[u8], Option<&Vec<u8>>),
        (statics, live): (&Live, &Live),
        now_s: i64,
    ) -> Vec<Option<Vec<u8>>> {
        let keys = self.table.keys().len();
        let cell = |shown: &Shown| {
            let (Shown::Column(index) | Shown::Writetime(index) | Shown::Ttl(index)) = shown;
            let column = &self.table.columns[*index];
            let from = match column.place {
                Place::Key => return Some(column.pool().bytes(key[*index]).to_vec()),
                Place::Clustering { .. } => {
                    return clustering.map(|values| column.pool().bytes(values[*index - keys]).to_vec());
                }
                Place::Static => statics,
                Place::Regular => live,
            };
            let cells = from.get(index)?;
            let (_, first) = cells.first()?;
            match shown {
                Shown::Column(_) => Some(serialised(&column.ty, cells)),
                Shown::Writetime(_) => Some(first.timestamp_us.to_be_bytes().to_vec()),
                Shown::Ttl(_) => first.ttl_left(now_s).map(|left| left.to_be_bytes().to_vec()),
            }
        };
        select.shown.iter().map(cell).collect()
    }
}

fn serialised(ty: &Type, cells: &[(Path, Version)]) -> Vec<u8> {
    let key = |path: &Path| if let Path::Key(value) = path { *value } else { 0 };
    match ty {
        Type::Simple(_) => cells[0].1.bytes.to_vec(),
        Type::Counter => total(&cells[0].1).to_be_bytes().to_vec(),
        Type::Set(pool) => {
            let parts: Vec<&[u8]> = cells.iter().map(|(path, _)| &**pool.bytes(key(path))).collect();
            collection(parts.len(), &parts)
        }
        Type::List(_) => {
            let parts: Vec<&[u8]> = cells.iter().map(|(_, version)| &*version.bytes).collect();
            collection(parts.len(), &parts)
        }
        Type::Map(pool, _) => {
            let parts: Vec<&[u8]> = cells
                .iter()
                .flat_map(|(path, version)| [&**pool.bytes(key(path)), &*version.bytes])
                .collect();
            collection(cells.len(), &parts)
        }
        Type::Fields(pools) => {
            let of = |field: usize| {
                cells.iter().find(|(path, _)| *path == Path::Field(field)).map(|(_, v)| &*v.bytes)
            };
            fields(&(0..pools.len()).map(of).collect::<Vec<_>>())
        }
    }
}

impl Filter {
    fn holds(&self, live: &Live, clustering: &[u8], judge: &Judge) -> bool {
        match self {
            Filter::Value(index, compare, value) => {
                if let Place::Clustering { .. } = judge.table.columns[*index].place {
                    let at = *index - judge.table.keys().len();
                    return clustering.get(at).is_some_and(|found| compare.holds(found.cmp(value)));
                }
                let found =
                    live.get(index).and_then(|cells| cells.first()).and_then(|(_, version)| version.value);
                found.is_some_and(|found| compare.holds(found.cmp(value)))
            }
            Filter::Contains(index, value) => {
                let is_set = matches!(judge.table.columns[*index].ty, Type::Set(_));
                live.get(index).is_some_and(|cells| {
                    cells.iter().any(|(path, version)| {
                        if is_set { *path == Path::Key(*value) } else { version.value == Some(*value) }
                    })
                })
            }
            Filter::ContainsKey(index, key) => {
                live.get(index).is_some_and(|cells| cells.iter().any(|(path, _)| *path == Path::Key(*key)))
            }
            Filter::Entry(index, key, value) => live.get(index).is_some_and(|cells| {
                cells.iter().any(|(path, version)| *path == Path::Key(*key) && version.value == Some(*value))
            }),
        }
    }
}
