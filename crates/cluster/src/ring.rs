//! The ring: from the token of a partition to the nodes that hold it.
//!
//! The rules are those of `SimpleStrategy.calculateNaturalReplicas` and
//! `NetworkTopologyStrategy.DatacenterEndpoints`: walking the ring from the token on, a data center takes nodes of racks that it
//! does not have yet first, as long as there are such racks.

use std::collections::{BTreeMap, BTreeSet};

use helenus_model::token::Token;

use crate::Replication;

/// A node, as far as the placement of copies goes.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub datacenter: String,
    pub rack: String,
    pub tokens: Vec<i64>,
}

/// All tokens in order, each with the number of its node.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    tokens: Vec<i64>,
    owners: Vec<usize>,
    places: Vec<Place>,
}

/// For each token of the ring, the numbers of the nodes that hold the range which ends there.
#[derive(Debug)]
pub(crate) struct Replicas(Vec<Box<[usize]>>);

impl Ring {
    pub fn new(places: Vec<Place>) -> Ring {
        let mut all: Vec<(i64, usize)> = places
            .iter()
            .enumerate()
            .flat_map(|(number, place)| place.tokens.iter().map(move |token| (*token, number)))
            .collect();
        all.sort_unstable();
        all.dedup_by_key(|(token, _)| *token);
        let (tokens, owners) = all.into_iter().unzip();
        Ring { tokens, owners, places }
    }

    /// The tokens, in order.
    pub fn tokens(&self) -> &[i64] {
        &self.tokens
    }

    /// The place of the range that has this token: the first token that is not smaller, or the first one at all.
    fn range_of(&self, token: Token) -> usize {
        let at = self.tokens.partition_point(|end| *end < token.0);
        if at == self.tokens.len() { 0 } else { at }
    }

    /// The nodes that hold a token.
    pub fn holders<'a>(&self, replicas: &'a Replicas, token: Token) -> &'a [usize] {
        replicas.0.get(self.range_of(token)).map(|nodes| &**nodes).unwrap_or_default()
    }

    /// Computes the holders of all ranges; `None` if the rule is not known.
    pub fn replicas(&self, replication: &Replication) -> Option<Replicas> {
        let find: Box<dyn Fn(usize) -> Box<[usize]>> = match replication {
            Replication::Anywhere => return None,
            Replication::Simple(factor) => {
                let factor = *factor;
                Box::new(move |at| self.next_nodes(at, factor))
            }
            Replication::ByDatacenter(factors) => {
                let racks = self.racks();
                Box::new(move |at| self.by_datacenter(at, factors, &racks))
            }
        };
        Some(Replicas((0..self.tokens.len()).map(find).collect()))
    }

    /// The owners of the ring's tokens from a place on, once around.
    fn walk(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let (before, after) = self.owners.split_at_checked(at).unwrap_or((&[], &self.owners));
        after.iter().chain(before).copied()
    }

    fn next_nodes(&self, at: usize, factor: usize) -> Box<[usize]> {
        let mut found = Vec::with_capacity(factor.min(self.places.len()));
        for node in self.walk(at) {
            if found.len() >= factor {
                break;
            }
            if !found.contains(&node) {
                found.push(node);
            }
        }
        found.into()
    }

    /// For each data center, its racks and the number of its nodes that have tokens.
    fn racks(&self) -> BTreeMap<&str, (BTreeSet<&str>, usize)> {
        let mut racks: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
        for place in self.places.iter().filter(|place| !place.tokens.is_empty()) {
            let (names, nodes) = racks.entry(&place.datacenter).or_default();
            names.insert(&place.rack);
            *nodes += 1;
        }
        racks
    }

    fn by_datacenter(
        &self,
        at: usize,
        factors: &BTreeMap<String, usize>,
        racks: &BTreeMap<&str, (BTreeSet<&str>, usize)>,
    ) -> Box<[usize]> {
        /// What a data center still needs.
        struct Wanted<'a> {
            nodes_left: usize,
            /// Nodes that may share a rack with one that is found already.
            repeats_left: usize,
            seen_racks: BTreeSet<&'a str>,
        }
        let mut wanted: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
        for (name, factor) in factors {
            let Some((names, nodes)) = racks.get(name.as_str()) else { continue };
            let nodes_left = (*factor).min(*nodes);
            let repeats_left = factor.saturating_sub(names.len()).min(nodes_left);
            wanted.insert(name, Wanted { nodes_left, repeats_left, seen_racks: BTreeSet::new() });
        }
        let mut open = wanted.values().filter(|center| center.nodes_left > 0).count();
        let mut found: Vec<usize> = Vec::new();
        for node in self.walk(at) {
            if open == 0 {
                break;
            }
            let Some(place) = self.places.get(node) else { continue };
            let Some(center) = wanted.get_mut(place.datacenter.as_str()) else { continue };
            if center.nodes_left == 0 || found.contains(&node) {
                continue;
            }
            if !center.seen_racks.insert(&place.rack) {
                if center.repeats_left == 0 {
                    continue;
                }
                center.repeats_left -= 1;
            }
            found.push(node);
            center.nodes_left -= 1;
            if center.nodes_left == 0 {
                open -= 1;
            }
        }
        found.into()
    }
}

/// The token of a partition key by `Murmur3Partitioner`: of the one column's bytes, or of all columns' bytes, each with its length
/// before and a zero byte behind it (`CompositeType`). `None`: a column is longer than 65,535 bytes.
pub fn partition_key_token(columns: &[&[u8]]) -> Option<Token> {
    if let [column] = columns {
        return Some(Token::of_key(column));
    }
    let mut key = Vec::with_capacity(columns.iter().map(|column| column.len() + 3).sum());
    for column in columns {
        key.extend_from_slice(&u16::try_from(column.len()).ok()?.to_be_bytes());
        key.extend_from_slice(column);
        key.push(0);
    }
    Some(Token::of_key(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(datacenter: &str, rack: &str, tokens: &[i64]) -> Place {
        Place { datacenter: datacenter.to_owned(), rack: rack.to_owned(), tokens: tokens.to_vec() }
    }

    fn holders(ring: &Ring, replication: &Replication, token: i64) -> Vec<usize> {
        ring.holders(&ring.replicas(replication).unwrap(), Token(token)).to_vec()
    }

    #[test]
    fn simple_strategy_takes_the_next_nodes_of_the_ring() {
        let ring = Ring::new(vec![place("a", "r", &[0, 30]), place("a", "r", &[10]), place("a", "r", &[20])]);
        let two = Replication::Simple(2);
        assert_eq!(holders(&ring, &two, 0), [0, 1]);
        assert_eq!(holders(&ring, &two, 1), [1, 2]);
        assert_eq!(holders(&ring, &two, 20), [2, 0]);
        // 30 and what comes around after it: both tokens are of node 0.
        assert_eq!(holders(&ring, &two, 25), [0, 1]);
        assert_eq!(holders(&ring, &two, 31), [0, 1]);
        assert_eq!(holders(&ring, &Replication::Simple(9), 5), [1, 2, 0]);
    }

    #[test]
    fn a_data_center_takes_each_rack_before_it_takes_one_twice() {
        let ring = Ring::new(vec![
            place("a", "r1", &[0]),
            place("a", "r1", &[10]),
            place("a", "r2", &[20]),
            place("b", "r1", &[5]),
            place("b", "r1", &[15]),
        ]);
        let by = |factors: &[(&str, usize)]| {
            Replication::ByDatacenter(factors.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect())
        };
        assert_eq!(holders(&ring, &by(&[("a", 2)]), 0), [0, 2]);
        assert_eq!(holders(&ring, &by(&[("a", 3)]), 0), [0, 1, 2]);
        assert_eq!(holders(&ring, &by(&[("a", 1), ("b", 2)]), 1), [3, 1, 4]);
        assert_eq!(holders(&ring, &by(&[("b", 3)]), 1), [3, 4]);
        assert_eq!(holders(&ring, &by(&[("c", 3)]), 1), [] as [usize; 0]);
    }

    #[test]
    fn an_empty_ring_holds_nothing() {
        let ring = Ring::new(Vec::new());
        assert_eq!(holders(&ring, &Replication::Simple(1), 7), [] as [usize; 0]);
    }

    #[test]
    fn a_key_of_several_columns_is_hashed_as_a_composite() {
        assert_eq!(partition_key_token(&[b"ab"]), Some(Token::of_key(b"ab")));
        assert_eq!(partition_key_token(&[b"a", b"b"]), Some(Token::of_key(b"\0\x01a\0\0\x01b\0")));
        assert_eq!(partition_key_token(&[b"a", &[0; 70_000]]), None);
    }
}
