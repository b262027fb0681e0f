//! Turns of logins, and attacks on them by a counted clock.

use super::*;
use crate::Attempts;

fn of(last: u8, role: &str) -> (IpAddr, Box<str>) {
    (IpAddr::from([10, 0, 0, last]), role.into())
}

/// Adds a login whose client stays. Returns one that has no room.
fn push<T>(turns: &mut Turns<T>, client: (IpAddr, Box<str>), standing: Standing, login: T) -> Option<T> {
    let Displaced { refused, gone } = turns.push(client, standing, login, |_| false);
    assert!(gone.is_empty());
    refused
}

fn all(turns: &mut Turns<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| turns.pop(|_, _| true)).map(|(_, login)| login).collect()
}

#[test]
fn addresses_take_turns_and_within_an_address_its_roles() {
    let mut turns = Turns::default();
    for login in ["a1", "a2", "a3"] {
        assert!(push(&mut turns, of(1, "a"), Standing::Unknown, login).is_none());
    }
    assert!(push(&mut turns, of(1, "b"), Standing::Unknown, "b1").is_none());
    assert!(push(&mut turns, of(2, "a"), Standing::Unknown, "elsewhere").is_none());
    assert_eq!(turns.len(), 5);
    assert_eq!(all(&mut turns), ["a1", "elsewhere", "b1", "a2", "a3"]);
    assert_eq!((turns.len(), turns.unknown.addresses.len()), (0, 0));
}

#[test]
fn an_address_that_may_not_go_on_lets_others_pass() {
    let mut turns = Turns::default();
    push(&mut turns, of(1, "a"), Standing::Unknown, "first");
    push(&mut turns, of(2, "a"), Standing::Unknown, "second");
    let (client, login) = turns.pop(|address, _| address != of(1, "").0).unwrap();
    assert_eq!((client, login), (of(2, "a"), "second"));
    assert!(turns.pop(|_, _| false).is_none());
    assert_eq!(all(&mut turns), ["first"]);
}

#[test]
fn what_finds_no_room_is_of_the_address_that_has_the_most() {
    let mut turns = Turns::default();
    for at in 0..OF_ADDRESS_MAX {
        assert!(push(&mut turns, of(1, "a"), Standing::Unknown, at).is_none());
    }
    assert_eq!(push(&mut turns, of(1, "b"), Standing::Unknown, 1000), Some(1000));
    for address in 2..=8 {
        for at in 0..OF_ADDRESS_MAX {
            assert!(push(&mut turns, of(address, "a"), Standing::Unknown, at).is_none());
        }
    }
    assert_eq!(turns.len(), WAITING_MAX);
    for at in 0..10 {
        assert_eq!(
            push(&mut turns, of(9, "a"), Standing::Unknown, 2000 + at),
            Some(OF_ADDRESS_MAX - 1 - at / 8),
            "{at}"
        );
    }
    assert_eq!(turns.len(), WAITING_MAX);
    let gone = turns.remove_if(|login| *login < 1000);
    assert_eq!((gone.len(), turns.len(), turns.unknown.addresses.len()), (WAITING_MAX - 10, 10, 1));
}

/// Clients that try passwords by themselves and one with the right one, on a counted clock: each check takes 100 ms, and an answer
/// that waits comes when it is due, after which its client tries the next.
struct Attack {
    attempts: Attempts,
    turns: Turns<usize>,
    /// Who guesses, and from when on each may send its next.
    guessers: Vec<((IpAddr, Box<str>), u64)>,
    now_ns: u64,
}

/// Who has the right password, among the numbers of guessers.
const RIGHTFUL: usize = usize::MAX;
const CHECK_NS: u64 = 100_000_000;

impl Attack {
    fn of(guessers: impl Iterator<Item = (IpAddr, Box<str>)>) -> Attack {
        let guessers = guessers.map(|client| (client, 0)).collect();
        Attack { attempts: Attempts::default(), turns: Turns::default(), guessers, now_ns: 0 }
    }

    fn submit(&mut self, client: (IpAddr, Box<str>), login: usize) {
        let standing = self.attempts.room(client.0, &client.1, self.now_ns).standing;
        assert!(push(&mut self.turns, client, standing, login).is_none(), "{login} is refused");
    }

    /// Goes on for a time, or until the rightful one has logged in. Returns how long it took.
    fn run(&mut self, rightful: Option<(IpAddr, Box<str>)>, for_ns: u64) -> u64 {
        let begun = self.now_ns;
        if let Some(client) = &rightful {
            self.submit(client.clone(), RIGHTFUL);
        }
        while self.now_ns < begun + for_ns {
            for number in 0..self.guessers.len() {
                if self.guessers[number].1 <= self.now_ns {
                    self.guessers[number].1 = u64::MAX;
                    self.submit(self.guessers[number].0.clone(), number);
                }
            }
            let (attempts, now) = (&self.attempts, self.now_ns);
            let next = self.turns.pop(|address, role| {
                let room = attempts.room(address, role, now);
                room.of_role > 0 && room.of_address > 0
            });
            self.now_ns += CHECK_NS;
            let Some(((address, role), login)) = next else { continue };
            assert_eq!(attempts.admit(address, &role, now), Ok(()), "{login} is refused");
            if login == RIGHTFUL {
                self.attempts.succeeded(address, &role, self.now_ns);
                return self.now_ns - begun;
            }
            let wait = self.attempts.failed(address, &role, self.now_ns);
            self.guessers[login].1 = self.now_ns + u64::try_from(wait.as_nanos()).unwrap();
        }
        self.now_ns - begun
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn wrong_passwords_of_a_client_do_not_refuse_the_right_one_of_the_same_address_and_role() {
    for guessers in [1, 2, 12, 40, 100] {
        let mut attack = Attack::of((0..guessers).map(|_| of(1, "app")));
        attack.run(None, 30 * SECOND);
        let took = attack.run(Some(of(1, "app")), 600 * SECOND);
        // Two a second are checked, in the order in which they came.
        assert!(took < (guessers as u64 / 2 + 5) * SECOND, "{guessers}: {took}");
        assert!(attack.run(Some(of(1, "app")), 600 * SECOND) <= took + SECOND, "again");
    }
}

#[test]
fn forty_addresses_do_not_hold_up_the_rightful_one() {
    let guessers = |role: fn(u8) -> String| {
        (1..=40).flat_map(move |address| (0..4).map(move |_| of(address, &role(address))))
    };
    for (what, role) in [
        ("one role", (|_| "app".to_owned()) as fn(u8) -> String),
        ("a role for each", |address| format!("role {address}")),
    ] {
        let mut attack = Attack::of(guessers(role));
        // All have begun, and nothing is known of anybody.
        attack.run(None, CHECK_NS);
        let took = attack.run(Some(of(200, "admin")), 600 * SECOND);
        // One of each address at most, twice that with the turns of roles and of those that fail meanwhile; a single thread.
        assert!(took <= 2 * 41 * CHECK_NS, "{what}: {took}");
        attack.run(None, 30 * SECOND);
        for client in [of(201, "app"), of(202, "admin"), of(200, "admin")] {
            let took = attack.run(Some(client.clone()), 600 * SECOND);
            assert!(took <= 5 * CHECK_NS, "{what}: {client:?} {took}");
        }
    }
}

#[test]
fn a_role_for_which_nobody_guesses_is_the_next_but_two() {
    let mut turns = Turns::default();
    for address in 1..=40 {
        push(&mut turns, of(address, "app"), Standing::Unknown, "guess");
    }
    push(&mut turns, of(200, "admin"), Standing::Unknown, "rightful");
    let order = all(&mut turns);
    assert!(order.iter().position(|login| *login == "rightful").unwrap() < 3, "{order:?}");
}

#[test]
fn who_has_failed_is_checked_last_and_not_never() {
    let mut turns = Turns::default();
    for at in 0..20 {
        push(&mut turns, of(at, "a"), Standing::Failed, "failed");
        push(&mut turns, of(100 + at, "a"), Standing::Unknown, "unknown");
        push(&mut turns, of(200 + at, "a"), Standing::Known, "known");
    }
    let order = all(&mut turns);
    let of_first = |login: &str| order[..24].iter().filter(|other| **other == login).count();
    assert_eq!((of_first("known"), of_first("failed"), of_first("unknown")), (18, 3, 3), "each fourth");
    assert_eq!(order.len(), 60);
}

/// Whoever goes on and on, the logins of others are checked too: every standing beside every choice of those that are never empty.
#[test]
fn no_standing_waits_for_ever_behind_others_that_never_end() {
    let standings = [Standing::Known, Standing::Unknown, Standing::Failed];
    for late in standings {
        for busy in [[true, true], [true, false], [false, true]] {
            let mut turns = Turns::default();
            let others: Vec<Standing> = standings.into_iter().filter(|other| *other != late).collect();
            let others: Vec<Standing> = others
                .into_iter()
                .zip(busy)
                .filter(|(_, is_busy)| *is_busy)
                .map(|(other, _)| other)
                .collect();
            let refill = |turns: &mut Turns<Standing>| {
                for (number, other) in others.iter().enumerate() {
                    for address in 0..2 {
                        let client = of(10 * number as u8 + address, &format!("{other:?}"));
                        while turns.of_address(client.0) < 4 {
                            assert_eq!(push(turns, client.clone(), *other, *other), None);
                        }
                    }
                }
            };
            for at in 0..4 {
                assert_eq!(push(&mut turns, of(200 + at, "late"), late, late), None);
            }
            let mut taken = 0;
            for _ in 0..40 {
                refill(&mut turns);
                let (_, login) = turns.pop(|_, _| true).unwrap();
                taken += usize::from(login == late);
            }
            assert_eq!(taken, 4, "{late:?} beside {others:?}");
        }
    }
}

/// Draws logins of few addresses, some of whose clients go: each comes out as what it has come for, or is given back once.
#[test]
fn a_login_is_never_another_clients() {
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for addresses in [1, 3, 12] {
        let standings = [Standing::Known, Standing::Unknown, Standing::Failed];
        let mut turns = Turns::default();
        let mut clients: Vec<((IpAddr, Box<str>), Standing)> = Vec::new();
        let mut over = std::collections::HashSet::new();
        let mut displaced = 0;
        for number in 0..6_000_usize {
            let client = of(draw(addresses) as u8, ["admin", "app", "guest"][draw(3) as usize]);
            let standing = standings[draw(3) as usize];
            clients.push((client.clone(), standing));
            // One of a few hundred has gone, now as before.
            let is_gone = |login: &usize| login.is_multiple_of(211) && *login < number;
            let Displaced { refused, gone } = turns.push(client, standing, number, is_gone);
            assert!(gone.iter().all(is_gone));
            displaced += gone.len();
            for login in refused.into_iter().chain(gone) {
                assert!(over.insert(login), "{login} came back twice");
            }
            if draw(8) == 0
                && let Some((client, login)) = turns.pop(|_, role| role != "guest")
            {
                assert_eq!(client, clients[login].0);
                assert!(over.insert(login), "{login} came back twice");
            }
        }
        assert!(displaced > 0);
        for (queue, standing) in [(&turns.known, 0), (&turns.unknown, 1), (&turns.failed, 2)] {
            for of_address in &queue.addresses {
                for of_role in &of_address.roles {
                    for login in &of_role.logins {
                        let as_pushed = ((of_address.address, of_role.role.clone()), standings[standing]);
                        assert_eq!(as_pushed, clients[*login]);
                    }
                }
            }
        }
        while let Some((client, login)) = turns.pop(|_, _| true) {
            assert_eq!(client, clients[login].0);
            assert!(over.insert(login), "{login} came back twice");
        }
        assert_eq!(over.len(), clients.len(), "none is lost");
    }
}

#[test]
fn a_role_that_has_logged_in_takes_the_place_of_one_that_failed() {
    let mut turns = Turns::default();
    for at in 0..OF_ADDRESS_MAX {
        assert!(push(&mut turns, of(1, "a"), Standing::Failed, at).is_none());
    }
    assert_eq!(push(&mut turns, of(1, "b"), Standing::Unknown, 1000), Some(1000));
    assert_eq!(push(&mut turns, of(1, "b"), Standing::Known, 1001), Some(OF_ADDRESS_MAX - 1));
    assert_eq!(turns.pop(|_, _| true), Some((of(1, "b"), 1001)));
}
