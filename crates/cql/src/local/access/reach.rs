//! From where a role may use the server: the datacenters and networks to which its access is limited.
//!
//! Checked with every statement, as in Cassandra: a login itself succeeds. What the tables say may be as old as
//! `permissions_validity`, the groups of networks as `cidr_groups_cache_refresh_interval`.
//!
//! Source: `ClientState.validateLogin`, `CassandraNetworkAuthorizer`, `CassandraCIDRAuthorizer`.

use super::cidr::{Cidr, CidrGroups};
use super::options::{CidrAuthorizer, NetworkAuthorizer};
use super::state::now_ns;
use super::store::{Changes, value_set};
use crate::backend::Identity;
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::Resource;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

/// The name of no group, in counters (`CIDRAuthorizerMetrics`).
const UNDEFINED: &str = "Undefined";
/// The most groups with counters of their own.
const COUNTED_MAX: usize = 10_000;

const ALL_GROUPS: &str = "SELECT cidr_group, cidrs FROM system_auth.cidr_groups";
const ONE_GROUP: &str = "SELECT cidr_group, cidrs FROM system_auth.cidr_groups WHERE cidr_group = ?";

/// From where a role has access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// From everywhere.
    All,
    /// From these datacenters or groups of networks.
    Only(BTreeSet<Box<str>>),
    /// From nowhere: the role may not log in.
    Nothing,
}

impl Limit {
    fn of(names: Vec<Box<str>>) -> Limit {
        if names.is_empty() { Limit::All } else { Limit::Only(names.into_iter().collect()) }
    }

    fn allows(&self, name: &str) -> bool {
        match self {
            Limit::All => true,
            Limit::Only(names) => names.contains(name),
            Limit::Nothing => false,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::All => f.write_str("ALL"),
            Limit::Only(names) => {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                f.write_str(&names.join(", "))
            }
            Limit::Nothing => f.write_str("n/a"),
        }
    }
}

/// The limits of a role.
#[derive(Debug)]
pub(super) struct Reach {
    datacenters: Limit,
    networks: Limit,
}

/// What was decided by the groups of networks.
#[derive(Default)]
pub(super) struct Networks {
    counts: Mutex<CidrCounts>,
    /// Told of a role that comes from another network, where that is allowed.
    listener: OnceLock<ForeignListener>,
}

/// Takes a role, its client's address and the groups of its network.
type ForeignListener = Box<dyn Fn(&str, IpAddr, &BTreeSet<Box<str>>) + Send + Sync>;

/// What was decided about the networks of clients since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CidrCounts {
    /// Statements that were run, by the group of the client's network.
    pub accepted: BTreeMap<String, u64>,
    /// Statements that were refused.
    pub rejected: BTreeMap<String, u64>,
    /// How often the groups were read.
    pub reloads: u64,
}

impl CidrCounts {
    fn count(counts: &mut BTreeMap<String, u64>, groups: &BTreeSet<Box<str>>) {
        let mut add = |name: &str| {
            if let Some(count) = counts.get_mut(name) {
                *count += 1;
            } else if counts.len() < COUNTED_MAX {
                counts.insert(name.to_owned(), 1);
            }
        };
        if groups.is_empty() {
            add(UNDEFINED);
        }
        groups.iter().for_each(|group| add(group));
    }
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

impl LocalBackend {
    /// Checks that a role may use this datacenter, from its client's address.
    ///
    /// # Errors
    /// It may not, in Cassandra's words; `WouldBlock` if the check needs the disk and may not wait.
    pub(super) fn check_reach(&self, identity: &Identity, role: &str, may_block: bool) -> Result<()> {
        let options = &self.access().options;
        let reach = self.reach(role, may_block)?;
        let datacenter = &self.ddl_settings().datacenter;
        if options.network == NetworkAuthorizer::Cassandra && !reach.datacenters.allows(datacenter) {
            return Err(CqlError::Unauthorized(format!(
                "You do not have access to this datacenter ({datacenter})"
            )));
        }
        let Some(address) = identity.address else { return Ok(()) };
        match options.cidr {
            CidrAuthorizer::AllowAll => return Ok(()),
            CidrAuthorizer::Enforce if reach.networks == Limit::All => return Ok(()),
            CidrAuthorizer::Monitor | CidrAuthorizer::Enforce => {}
        }
        let groups = self.cidr_groups(may_block)?.of_address(address);
        let is_allowed = match &reach.networks {
            Limit::All => true,
            Limit::Only(names) => groups.iter().any(|group| names.contains(group)),
            Limit::Nothing => false,
        };
        let networks = &self.access().networks;
        if let Some(listener) = networks.listener.get().filter(|_| !is_allowed) {
            listener(role, address.to_canonical(), &groups);
        }
        let mut counts = networks.counts.lock();
        if is_allowed || options.cidr == CidrAuthorizer::Monitor {
            CidrCounts::count(&mut counts.accepted, &groups);
            return Ok(());
        }
        CidrCounts::count(&mut counts.rejected, &groups);
        Err(CqlError::Unauthorized(format!("You do not have access from this IP {}", address.to_canonical())))
    }

    /// Calls `listener` when a role comes from a network that it may not come from, at each statement. Set once.
    pub fn on_foreign_address(
        &self,
        listener: impl Fn(&str, IpAddr, &BTreeSet<Box<str>>) + Send + Sync + 'static,
    ) {
        let _set_before = self.access().networks.listener.set(Box::new(listener));
    }

    /// The limits of a role, at most as old as `permissions_validity`.
    fn reach(&self, role: &str, may_block: bool) -> Result<Arc<Reach>> {
        let now = now_ns(self.database());
        self.access().reaches.get_or_read(role, now, || {
            Ok(Reach {
                datacenters: self.datacenters_of(role, may_block)?,
                networks: self.networks_of(role, may_block)?,
            })
        })
    }

    /// The datacenters of a role; all where nothing limits them.
    pub(super) fn datacenters_of(&self, role: &str, may_block: bool) -> Result<Limit> {
        if self.access().options.network == NetworkAuthorizer::AllowAll {
            return Ok(Limit::All);
        }
        let set = self.role_set(role, may_block)?;
        if !set.can_login() {
            return Ok(Limit::Nothing);
        }
        if set.is_super() {
            return Ok(Limit::All);
        }
        let key = Resource::Role(role.into()).name();
        let query = "SELECT dcs FROM system_auth.network_permissions WHERE role = ?";
        let rows = self.ask(query, &[&key], may_block)?;
        Ok(rows.first().map_or(Limit::All, |row| Limit::of(row.texts(0))))
    }

    fn networks_of(&self, role: &str, may_block: bool) -> Result<Limit> {
        let options = &self.access().options;
        if options.cidr == CidrAuthorizer::AllowAll {
            return Ok(Limit::All);
        }
        let set = self.role_set(role, may_block)?;
        if !set.can_login() {
            return Ok(Limit::Nothing);
        }
        if set.is_super() && !options.checks_cidrs_of_superusers {
            return Ok(Limit::All);
        }
        let query = "SELECT cidr_groups FROM system_auth.cidr_permissions WHERE role = ?";
        let rows = self.ask(query, &[role], may_block)?;
        Ok(rows.first().map_or(Limit::All, |row| Limit::of(row.texts(0))))
    }

    /// The groups of networks, at most as old as `cidr_groups_cache_refresh_interval`.
    fn cidr_groups(&self, may_block: bool) -> Result<Arc<CidrGroups>> {
        let now = now_ns(self.database());
        self.access().cidr_groups.get_or_read("", now, || {
            let mut found = Vec::new();
            for row in self.ask(ALL_GROUPS, &[], may_block)? {
                let name = row.text(0).unwrap_or_default();
                found.extend(row.elements(1).filter_map(Cidr::of_tuple).map(|cidr| (cidr, Box::from(name))));
            }
            self.access().networks.counts.lock().reloads += 1;
            Ok(CidrGroups::new(found))
        })
    }

    /// Refuses an operation where AllowAllCIDRAuthorizer is in force, in its words.
    fn needs_cidr_authorizer(&self, operation: &str) -> Result<()> {
        match self.access().options.cidr {
            CidrAuthorizer::AllowAll => {
                invalid(format!("{operation} operation not supported by AllowAllCIDRAuthorizer"))
            }
            CidrAuthorizer::Monitor | CidrAuthorizer::Enforce => Ok(()),
        }
    }

    /// The names of the groups of networks.
    ///
    /// # Errors
    /// Those of a read.
    pub fn list_cidr_groups(&self) -> Result<Vec<String>> {
        let rows = self.ask(ALL_GROUPS, &[], true)?;
        let mut names: Vec<String> = rows.iter().filter_map(|row| row.text(0)).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// The networks of a group; none if there is no such group.
    ///
    /// # Errors
    /// Those of a read.
    pub fn cidrs_of_group(&self, group: &str) -> Result<Vec<String>> {
        if group.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.ask(ONE_GROUP, &[group], true)?;
        let of_row = rows.iter().flat_map(|row| row.elements(1).filter_map(Cidr::of_tuple));
        let mut cidrs: Vec<Cidr> = of_row.collect();
        cidrs.sort();
        Ok(cidrs.iter().map(Cidr::to_string).collect())
    }

    /// Sets the networks of a group, which is made if it is not there.
    ///
    /// # Errors
    /// One is not a network; those of a write.
    pub fn update_cidr_group(&self, group: &str, cidrs: &[String]) -> Result<()> {
        if group.is_empty() || cidrs.is_empty() {
            return invalid("a group of networks has a name and at least one network");
        }
        let mut networks = BTreeSet::new();
        for cidr in cidrs {
            let Some(parsed) = Cidr::parse(cidr) else {
                return invalid(format!("{cidr} is not a valid CIDR String"));
            };
            networks.insert(parsed);
        }
        let mut networks: Vec<Cidr> = networks.into_iter().collect();
        networks.sort_by_key(Cidr::key);
        let tuples: Vec<Vec<u8>> = networks.iter().map(Cidr::tuple).collect();
        let mut changes = Changes::default();
        let statement = "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES (?, ?)";
        changes.add(statement, &[group.as_bytes(), &value_set(&tuples)]);
        Ok(self.change(&changes, None)?.wait()?)
    }

    /// Removes a group of networks.
    ///
    /// # Errors
    /// There is no such group; those of a write.
    pub fn drop_cidr_group(&self, group: &str) -> Result<()> {
        if self.cidrs_of_group(group)?.is_empty() {
            return invalid(format!("CIDR group '{group}' doesn't exists"));
        }
        let mut changes = Changes::default();
        changes.add_texts("DELETE FROM system_auth.cidr_groups WHERE cidr_group = ?", &[group]);
        Ok(self.change(&changes, None)?.wait()?)
    }

    /// The groups of an address.
    ///
    /// # Errors
    /// Networks are not checked; those of a read.
    pub fn cidr_groups_of_address(&self, address: IpAddr) -> Result<Vec<String>> {
        self.needs_cidr_authorizer("'Get CIDR groups for IP'")?;
        let groups = self.cidr_groups(true)?.of_address(address);
        Ok(groups.into_iter().map(String::from).collect())
    }

    /// Reads the groups of networks again.
    ///
    /// # Errors
    /// Networks are not checked; those of a read.
    pub fn reload_cidr_groups(&self) -> Result<()> {
        self.needs_cidr_authorizer("Load CIDR groups cache")?;
        self.access().cidr_groups.clear();
        self.cidr_groups(true).map(|_| ())
    }

    /// Forgets the limits of a role, or of all roles. Returns whether there was something to forget.
    ///
    /// # Errors
    /// Networks are not checked.
    pub fn invalidate_cidr_permissions(&self, role: Option<&str>) -> Result<bool> {
        self.needs_cidr_authorizer("Invalidate CIDR permissions cache")?;
        match role {
            Some(role) => Ok(self.access().reaches.forget(role)),
            None => {
                self.access().reaches.clear();
                Ok(true)
            }
        }
    }

    /// What was decided about the networks of clients.
    pub fn cidr_counts(&self) -> CidrCounts {
        self.access().networks.counts.lock().clone()
    }
}
