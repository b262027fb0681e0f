//! The queue of logins that wait to be checked: the addresses of the clients take turns, and within an address its roles.
//!
//! Called by `pool` under its lock. However many logins of an address wait, one from elsewhere is the next but one. The
//! number of waiting logins is limited for each address, and in all; a full queue makes room at the expense of the address
//! that has the most.

use std::collections::VecDeque;
use std::net::IpAddr;

/// The most logins of one address that wait: about ten seconds of work for two cores.
pub(super) const OF_ADDRESS_MAX: usize = 128;
/// The most logins that wait in all: eight addresses with the most.
pub(super) const WAITING_MAX: usize = 1024;

/// Logins that wait, in the order of their addresses' turns.
pub(super) struct Turns<T> {
    addresses: VecDeque<OfAddress<T>>,
    waiting: usize,
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

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns { addresses: VecDeque::new(), waiting: 0 }
    }
}

impl<T> Turns<T> {
    /// The number of logins that wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a login. Returns one that has no room: this one if its address has too many already, in a full queue the newest of
    /// the address that has the most.
    pub fn push(&mut self, (address, role): (IpAddr, Box<str>), login: T) -> Option<T> {
        let place = self.addresses.iter().position(|of| of.address == address);
        let own_count = place.and_then(|at| self.addresses.get(at)).map_or(0, |of| of.waiting);
        if own_count >= OF_ADDRESS_MAX {
            return Some(login);
        }
        let mut removed = None;
        if self.waiting >= WAITING_MAX {
            let most = self.addresses.iter_mut().max_by_key(|of| of.waiting);
            let Some(most) = most.filter(|of| of.waiting > own_count + 1) else { return Some(login) };
            removed = most.remove_newest();
            self.waiting -= usize::from(removed.is_some());
        }
        self.waiting += 1;
        match place.and_then(|at| self.addresses.get_mut(at)) {
            Some(of_address) => of_address.add(role, login),
            None => {
                let roles = VecDeque::from([OfRole { role, logins: VecDeque::from([login]) }]);
                self.addresses.push_back(OfAddress { address, waiting: 1, roles });
            }
        }
        removed
    }

    /// Takes the next login of those addresses that `may_go` lets, with its address.
    pub fn pop(&mut self, may_go: impl Fn(IpAddr) -> bool) -> Option<(IpAddr, T)> {
        let at = self.addresses.iter().position(|of| may_go(of.address))?;
        let mut of_address = self.addresses.remove(at)?;
        let address = of_address.address;
        let login = of_address.remove_next()?;
        self.waiting -= 1;
        if of_address.waiting > 0 {
            self.addresses.push_back(of_address);
        }
        Some((address, login))
    }

    /// Takes all logins for which `is_over`.
    pub fn remove_if(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
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
    fn add(&mut self, role: Box<str>, login: T) {
        self.waiting += 1;
        match self.roles.iter_mut().find(|of_role| of_role.role == role) {
            Some(of_role) => of_role.logins.push_back(login),
            None => self.roles.push_back(OfRole { role, logins: VecDeque::from([login]) }),
        }
    }

    fn remove_next(&mut self) -> Option<T> {
        let mut of_role = self.roles.pop_front()?;
        let login = of_role.logins.pop_front()?;
        self.waiting -= 1;
        if !of_role.logins.is_empty() {
            self.roles.push_back(of_role);
        }
        Some(login)
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
mod tests {
    use super::*;

    fn of(last: u8, role: &str) -> (IpAddr, Box<str>) {
        (IpAddr::from([10, 0, 0, last]), role.into())
    }

    fn all(turns: &mut Turns<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop(|_| true)).map(|(_, login)| login).collect()
    }

    #[test]
    fn addresses_take_turns_and_within_an_address_its_roles() {
        let mut turns = Turns::default();
        for login in ["a1", "a2", "a3"] {
            assert!(turns.push(of(1, "a"), login).is_none());
        }
        assert!(turns.push(of(1, "b"), "b1").is_none());
        assert!(turns.push(of(2, "a"), "elsewhere").is_none());
        assert_eq!(turns.len(), 5);
        assert_eq!(all(&mut turns), ["a1", "elsewhere", "b1", "a2", "a3"]);
        assert_eq!((turns.len(), turns.addresses.len()), (0, 0));
    }

    #[test]
    fn an_address_that_may_not_go_on_lets_others_pass() {
        let mut turns = Turns::default();
        turns.push(of(1, "a"), "first");
        turns.push(of(2, "a"), "second");
        let (address, login) = turns.pop(|address| address != of(1, "").0).unwrap();
        assert_eq!((address, login), (of(2, "").0, "second"));
        assert!(turns.pop(|_| false).is_none());
        assert_eq!(all(&mut turns), ["first"]);
    }

    #[test]
    fn what_finds_no_room_is_of_the_address_that_has_the_most() {
        let mut turns = Turns::default();
        for at in 0..OF_ADDRESS_MAX {
            assert!(turns.push(of(1, "a"), at).is_none());
        }
        assert_eq!(turns.push(of(1, "b"), 1000), Some(1000));
        for address in 2..=8 {
            for at in 0..OF_ADDRESS_MAX {
                assert!(turns.push(of(address, "a"), at).is_none());
            }
        }
        assert_eq!(turns.len(), WAITING_MAX);
        for at in 0..10 {
            assert_eq!(turns.push(of(9, "a"), 2000 + at), Some(OF_ADDRESS_MAX - 1 - at / 8), "{at}");
        }
        assert_eq!(turns.len(), WAITING_MAX);
        let gone = turns.remove_if(|login| *login < 1000);
        assert_eq!((gone.len(), turns.len(), turns.addresses.len()), (WAITING_MAX - 10, 10, 1));
    }
}
