//! The replication of a keyspace, as `system_schema.keyspaces` describes it.

use std::collections::BTreeMap;

/// Where the copies of a keyspace's partitions are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Replication {
    /// On every node (`LocalStrategy`, `EverywhereStrategy`), or by a rule that is not known here.
    Anywhere,
    /// `SimpleStrategy`: on this number of nodes, next to each other on the ring.
    Simple(usize),
    /// `NetworkTopologyStrategy`: on so many nodes of each data center.
    ByDatacenter(BTreeMap<String, usize>),
}

impl Replication {
    /// Reads the map `replication`. A factor may be `full/transient`, as in `3/1`; transient copies count.
    pub fn parse(options: &BTreeMap<String, String>) -> Replication {
        let factor = |text: &str| text.split('/').next().and_then(|full| full.trim().parse().ok());
        let class = options.get("class").map(String::as_str).unwrap_or_default();
        match class.rsplit('.').next().unwrap_or_default() {
            "SimpleStrategy" => {
                let found = options.get("replication_factor").and_then(|text| factor(text));
                found.map_or(Replication::Anywhere, Replication::Simple)
            }
            "NetworkTopologyStrategy" => {
                let centers = options
                    .iter()
                    .filter(|(name, _)| !matches!(name.as_str(), "class" | "replication_factor"));
                let factors = centers.filter_map(|(name, text)| Some((name.clone(), factor(text)?)));
                Replication::ByDatacenter(factors.collect())
            }
            _ => Replication::Anywhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_a_keyspace_gives_its_factors() {
        let read = |options: &[(&str, &str)]| {
            Replication::parse(&options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
        };
        let simple = [("class", "org.apache.cassandra.locator.SimpleStrategy"), ("replication_factor", "2")];
        assert_eq!(read(&simple), Replication::Simple(2));
        let network = [("class", "NetworkTopologyStrategy"), ("dc1", "3"), ("dc2", "2/1")];
        let factors = [("dc1".to_owned(), 3), ("dc2".to_owned(), 2)].into_iter().collect();
        assert_eq!(read(&network), Replication::ByDatacenter(factors));
        assert_eq!(read(&[("class", "LocalStrategy")]), Replication::Anywhere);
        assert_eq!(read(&[]), Replication::Anywhere);
    }
}
