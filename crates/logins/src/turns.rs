//! The queue of logins that wait to be checked: the addresses of the clients take turns, and so do the roles that they ask for.
//!
//! Called by the pool of a server and by the gateway, under their locks. Clients of whom nothing bad is known go before those that have failed
//! (`Standing`), and among equals two turns of the addresses are followed by one of the roles. So however many logins of
//! an address wait, one from elsewhere is the next but one, and so is one for another role than that for which many addresses guess;
//! and addresses that have guessed wrong hold up nobody. Each fourth turn begins with the others, in turns with those that have failed and
//! with those of whom nothing is known, so that nobody waits for ever.
//!
//! The number of waiting logins is limited for each address, and in all; a full queue first drops the logins whose clients have gone, and
//! then makes room at the expense of the address that has the most.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::attempts::Standing;

/// The most logins of one address that wait: about ten seconds of work for two cores.
pub const OF_ADDRESS_MAX: usize = 128;
/// The most logins that wait in all: eight addresses with the most.
pub const WAITING_MAX: usize = 1024;
/// Of so many turns one is that of the roles.
const ROLE_EVERY: u64 = 3;
/// Of so many turns one begins with the clients that usually come behind others.
const OTHERS_EVERY: u64 = 4;

/// Logins that wait, by what is known of their clients.
pub struct Turns<T> {
    known: Queue<T>,
    unknown: Queue<T>,
    failed: Queue<T>,
    /// Logins that were taken so far.
    turns: u64,
}

/// Logins that wait, in the order of their addresses' turns.
struct Queue<T> {
    addresses: VecDeque<OfAddress<T>>,
    waiting: usize,
    /// The roles of waiting logins that have had a turn, with its number: the least is the longest ago.
    served: HashMap<Box<str>, u64>,
}

/// The logins of an address, in the order of its roles' turns. There is at least one.
struct OfAddress<T> {
    address: IpAddr,
    waiting: usize,
    roles: VecDeque<OfRole<T>>,
}

/// The logins of a role from an address, in the order in which they came. There is at least one.
struct OfRole<T> {
    role: Box<str>,
    logins: VecDeque<T>,
}

/// The logins that a new one has displaced.
#[derive(Debug, PartialEq, Eq)]
pub struct Displaced<T> {
    /// The one that has no room: the new one, or another for the sake of it.
    pub refused: Option<T>,
    /// Those whose clients have gone.
    pub gone: Vec<T>,
}

impl<T> std::fmt::Debug for Turns<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        let queue = || Queue { addresses: VecDeque::new(), waiting: 0, served: HashMap::new() };
        Turns { known: queue(), unknown: queue(), failed: queue(), turns: 0 }
    }
}

impl<T> Turns<T> {
    fn queues(&self) -> [&Queue<T>; 3] {
        [&self.known, &self.unknown, &self.failed]
    }

    /// The number of logins that wait.
    pub fn len(&self) -> usize {
        self.queues().iter().map(|queue| queue.waiting).sum()
    }

    fn of_address(&self, address: IpAddr) -> usize {
        self.queues().iter().map(|queue| queue.of_address(address)).sum()
    }

    /// Whether no login waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a login. Where there is no room, all logins for which `is_gone` are dropped. If that makes none, one has to go: this one if its
    /// address has too many already, in a full queue the newest of the address that has the most.
    pub fn push(
        &mut self,
        (address, role): (IpAddr, Box<str>),
        standing: Standing,
        login: T,
        is_gone: impl Fn(&T) -> bool,
    ) -> Displaced<T> {
        let mut gone = Vec::new();
        if self.len() >= WAITING_MAX || self.of_address(address) >= OF_ADDRESS_MAX {
            // Before anything is displaced: one that is taken out for this one does not come back.
            gone = self.remove_if(is_gone);
        }
        let refused = self.add((address, role), standing, login);
        Displaced { refused, gone }
    }

    /// Adds a login. Returns one that has no room.
    fn add(&mut self, (address, role): (IpAddr, Box<str>), standing: Standing, login: T) -> Option<T> {
        let own_count = self.of_address(address);
        let mut removed = None;
        if own_count >= OF_ADDRESS_MAX {
            // A role that has logged in from there is not refused for the sake of those that have failed.
            if standing == Standing::Known {
                removed = self.failed.remove_newest(address);
            }
            if removed.is_none() {
                return Some(login);
            }
        } else if self.len() >= WAITING_MAX {
            let queues = [&mut self.failed, &mut self.unknown, &mut self.known];
            let most = queues.into_iter().max_by_key(|queue| queue.most().map(|(_, count)| count));
            let most = most.and_then(|queue| Some((queue.most()?, queue)));
            let Some(((most, _), queue)) = most.filter(|((_, count), _)| *count > own_count + 1) else {
                return Some(login);
            };
            removed = queue.remove_newest(most);
        }
        let queue = match standing {
            Standing::Known => &mut self.known,
            Standing::Unknown => &mut self.unknown,
            Standing::Failed => &mut self.failed,
        };
        queue.add((address, role), login);
        removed
    }

    /// Takes the next login of those addresses and roles that `may_go` lets, with its address and role.
    pub fn pop(&mut self, mut may_go: impl FnMut(IpAddr, &str) -> bool) -> Option<((IpAddr, Box<str>), T)> {
        let turn = self.turns + 1;
        let Turns { known, unknown, failed, .. } = self;
        let queues = match (turn.is_multiple_of(OTHERS_EVERY), turn.is_multiple_of(2 * OTHERS_EVERY)) {
            (false, _) => [known, unknown, failed],
            (true, false) => [failed, unknown, known],
            (true, true) => [unknown, failed, known],
        };
        let popped = queues.into_iter().find_map(|queue| queue.pop(turn, &mut may_go))?;
        self.turns = turn;
        Some(popped)
    }

    /// Takes all logins for which `is_over`.
    pub fn remove_if(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        let queues = [&mut self.known, &mut self.unknown, &mut self.failed];
        queues.into_iter().flat_map(|queue| queue.remove_if(&is_over)).collect()
    }
}

impl<T> Queue<T> {
    fn of_address(&self, address: IpAddr) -> usize {
        self.addresses.iter().find(|of| of.address == address).map_or(0, |of| of.waiting)
    }

    /// The address that has the most, and their number.
    fn most(&self) -> Option<(IpAddr, usize)> {
        let most = self.addresses.iter().max_by_key(|of| of.waiting)?;
        Some((most.address, most.waiting))
    }

    fn add(&mut self, (address, role): (IpAddr, Box<str>), login: T) {
        self.waiting += 1;
        match self.addresses.iter_mut().find(|of| of.address == address) {
            Some(of_address) => of_address.add(role, login),
            None => {
                let roles = VecDeque::from([OfRole { role, logins: VecDeque::from([login]) }]);
                self.addresses.push_back(OfAddress { address, waiting: 1, roles });
            }
        }
    }

    fn pop(
        &mut self,
        turn: u64,
        may_go: &mut impl FnMut(IpAddr, &str) -> bool,
    ) -> Option<((IpAddr, Box<str>), T)> {
        let (at, role_at) = match turn.is_multiple_of(ROLE_EVERY) {
            true => self.next_role(may_go)?,
            false => self.next_address(may_go)?,
        };
        let mut of_address = self.addresses.remove(at)?;
        let address = of_address.address;
        let (role, login) = of_address.remove(role_at)?;
        self.waiting -= 1;
        if of_address.waiting > 0 {
            self.addresses.push_back(of_address);
        }
        self.served.insert(role.clone(), turn);
        if self.waiting == 0 {
            self.served.clear();
        } else if self.served.len() > WAITING_MAX {
            let waiting = |role: &str| self.addresses.iter().any(|of| of.has(role));
            let over: Vec<Box<str>> = self.served.keys().filter(|role| !waiting(role)).cloned().collect();
            over.iter().for_each(|role| _ = self.served.remove(role));
        }
        Some(((address, role), login))
    }

    /// The next address with a role that may go: the places of both.
    fn next_address(&self, may_go: &mut impl FnMut(IpAddr, &str) -> bool) -> Option<(usize, usize)> {
        self.addresses.iter().enumerate().find_map(|(at, of)| {
            let role_at = of.roles.iter().position(|of_role| may_go(of.address, &of_role.role))?;
            Some((at, role_at))
        })
    }

    /// The role that may go and whose turn is longest ago, at the next of its addresses: the places of both.
    fn next_role(&self, may_go: &mut impl FnMut(IpAddr, &str) -> bool) -> Option<(usize, usize)> {
        let mut found: Option<(u64, (usize, usize))> = None;
        for (at, of) in self.addresses.iter().enumerate() {
            for (role_at, of_role) in of.roles.iter().enumerate() {
                let served = self.served.get(&of_role.role).copied().unwrap_or(0);
                let is_earlier = found.is_none_or(|(earliest, _)| served < earliest);
                if is_earlier && may_go(of.address, &of_role.role) {
                    found = Some((served, (at, role_at)));
                }
            }
        }
        found.map(|(_, places)| places)
    }

    /// Takes the newest login of an address.
    fn remove_newest(&mut self, address: IpAddr) -> Option<T> {
        let at = self.addresses.iter().position(|of| of.address == address)?;
        let of_address = self.addresses.get_mut(at)?;
        let login = of_address.remove_newest()?;
        self.waiting -= 1;
        if of_address.waiting == 0 {
            self.addresses.remove(at);
        }
        Some(login)
    }

    fn remove_if(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for of_address in &mut self.addresses {
            for of_role in &mut of_address.roles {
                let all = std::mem::take(&mut of_role.logins).into_iter();
                let (over, left): (VecDeque<T>, VecDeque<T>) = all.partition(&is_over);
                of_role.logins = left;
                of_address.waiting -= over.len();
                removed.extend(over);
            }
            of_address.roles.retain(|of_role| !of_role.logins.is_empty());
        }
        self.addresses.retain(|of_address| of_address.waiting > 0);
        self.waiting -= removed.len();
        removed
    }
}

impl<T> OfAddress<T> {
    fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|of_role| *of_role.role == *role)
    }

    fn add(&mut self, role: Box<str>, login: T) {
        self.waiting += 1;
        match self.roles.iter_mut().find(|of_role| of_role.role == role) {
            Some(of_role) => of_role.logins.push_back(login),
            None => self.roles.push_back(OfRole { role, logins: VecDeque::from([login]) }),
        }
    }

    /// Takes the oldest login of the role at this place, whose next turn comes after those of the others.
    fn remove(&mut self, at: usize) -> Option<(Box<str>, T)> {
        let mut of_role = self.roles.remove(at)?;
        let login = of_role.logins.pop_front()?;
        let role = of_role.role.clone();
        self.waiting -= 1;
        if !of_role.logins.is_empty() {
            self.roles.push_back(of_role);
        }
        Some((role, login))
    }

    /// The newest login of the role that has the most.
    fn remove_newest(&mut self) -> Option<T> {
        let login = self.roles.iter_mut().max_by_key(|of_role| of_role.logins.len())?.logins.pop_back()?;
        self.waiting -= 1;
        self.roles.retain(|of_role| !of_role.logins.is_empty());
        Some(login)
    }
}

#[cfg(test)]
mod tests;
