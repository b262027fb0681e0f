//! The logins that wait for a check at the cluster, in the order of a server's own (`helenus_logins::Turns`): addresses take turns, and
//! within an address its roles; the number that waits is limited. A login whose client has gone is passed over.
//!
//! Called by `roles`, once a login. An address has few of the places, so that its guesses are counted nearly one by one, and others find
//! a place at once. A client whose failures are too many at this moment is not refused: its login waits until there is room again
//! (`Attempts::room`), as at a server, so that a right password is checked in its turn, whoever tries wrong ones at the same address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_logins::{Room, Turns, client_key};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Logins that are checked at the same time, and those of one address among them.
const CHECKS_MAX: usize = 16;
const CHECKS_OF_ADDRESS_MAX: usize = 4;
/// The pause between two looks for logins that have waited for room: that comes when a delay ends, of which nobody tells.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A client's address and role (`client_key`).
type Client = (IpAddr, Box<str>);

/// How many logins of a client may be checked now.
type Rooms = Box<dyn Fn(IpAddr, &str) -> Room + Send + Sync>;

/// The logins that wait, and the places of those that are checked.
pub(crate) struct LoginTurns {
    rooms: Rooms,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Turns<oneshot::Sender<Place>>,
    /// The number of checks that run now, by address and role.
    running: HashMap<Client, usize>,
    running_count: usize,
    /// Whether a task looks for logins that have waited for room.
    is_looking: bool,
}

/// The right to check one login, until it is dropped. What the check tells of the client is noted before.
pub(crate) struct Place {
    turns: Arc<LoginTurns>,
    client: Client,
}

impl LoginTurns {
    /// Without logins. `rooms`: what is known of clients.
    pub fn new(rooms: Rooms) -> Arc<LoginTurns> {
        Arc::new(LoginTurns { rooms, state: Mutex::default() })
    }

    /// Waits for the turn of a client's login as a role. If the future is dropped, the login waits no more. `None`: too many wait.
    pub async fn wait(self: &Arc<LoginTurns>, client: IpAddr, role: &str) -> Option<Place> {
        let (sender, receiver) = oneshot::channel();
        let key = client_key(client, role);
        let standing = (self.rooms)(key.0, &key.1).standing;
        let displaced = {
            let waiting = &mut self.state.lock().waiting;
            waiting.push(key, standing, sender, oneshot::Sender::is_closed)
        };
        // The login that is refused, this one or another, learns of it because its sender is gone.
        drop(displaced);
        self.begin();
        self.look_again();
        receiver.await.ok()
    }

    /// Gives places to logins that wait, as long as there are both.
    fn begin(self: &Arc<LoginTurns>) {
        while let Some((client, sender)) = self.next() {
            // One whose client has gone gives its place back at once.
            drop(sender.send(Place { turns: Arc::clone(self), client }));
        }
    }

    fn next(&self) -> Option<(Client, oneshot::Sender<Place>)> {
        let State { waiting, running, running_count, .. } = &mut *self.state.lock();
        while *running_count < CHECKS_MAX {
            let may_go = |address: IpAddr, role: &str| {
                let (of_role, of_address) = running_of(running, address, role);
                let room = (self.rooms)(address, role);
                of_address < room.of_address.min(CHECKS_OF_ADDRESS_MAX) && of_role < room.of_role
            };
            let (client, sender) = waiting.pop(may_go)?;
            if sender.is_closed() {
                continue;
            }
            *running.entry(client.clone()).or_default() += 1;
            *running_count += 1;
            return Some((client, sender));
        }
        None
    }

    /// Looks for logins that have room again, until none waits. Called on a runtime.
    fn look_again(self: &Arc<LoginTurns>) {
        {
            let mut state = self.state.lock();
            if state.waiting.is_empty() || std::mem::replace(&mut state.is_looking, true) {
                return;
            }
        }
        let turns = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_PAUSE).await;
                turns.begin();
                let mut state = turns.state.lock();
                if state.waiting.is_empty() {
                    state.is_looking = false;
                    return;
                }
            }
        });
    }
}

/// The checks that run of a role at an address, and of all roles there. There are no more than places.
fn running_of(running: &HashMap<Client, usize>, address: IpAddr, role: &str) -> (usize, usize) {
    let here = running.iter().filter(|((of, _), _)| *of == address);
    here.fold((0, 0), |(of_role, of_address), ((_, of), count)| {
        (of_role + if **of == *role { *count } else { 0 }, of_address + count)
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let State { running, running_count, .. } = &mut *self.turns.state.lock();
            *running_count -= 1;
            if let Some(count) = running.get_mut(&self.client) {
                *count -= 1;
                if *count == 0 {
                    running.remove(&self.client);
                }
            }
        }
        self.turns.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_logins::{Attempts, OF_ADDRESS_MAX, Standing};
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::task::JoinSet;
    use tokio::time::Instant;

    fn from(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Lets all tasks that can go on do so.
    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_storm_of_one_address_leaves_places_and_its_turn_to_others() {
        let turns = LoginTurns::new(Box::new(|_, _| Room::ANY));
        let mut storm = Vec::new();
        for _ in 0..100 {
            let turns = Arc::clone(&turns);
            storm.push(tokio::spawn(async move { turns.wait(from(1), "app").await }));
        }
        settle().await;
        assert_eq!(turns.state.lock().running_count, CHECKS_OF_ADDRESS_MAX);
        let others = CHECKS_MAX - CHECKS_OF_ADDRESS_MAX;
        let mut places = Vec::new();
        for at in 0..others {
            places.push(turns.wait(from(2 + at as u8 / 2), "app").await.unwrap());
        }
        let late = {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.wait(from(100), "app").await })
        };
        settle().await;
        assert!(!late.is_finished(), "all places are taken");
        places.pop();
        assert!(late.await.unwrap().is_some(), "not behind the storm");
        places.clear();
        for login in storm {
            // Each place that ends is the next one's.
            drop(login.await.unwrap().expect("none of them is refused"));
        }
        let state = turns.state.lock();
        assert_eq!((state.running_count, state.running.len(), state.waiting.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn those_whose_clients_have_gone_take_no_place_and_too_many_are_refused() {
        let turns = LoginTurns::new(Box::new(|_, _| Room::ANY));
        let mut storm = Vec::new();
        for _ in 0..400 {
            let turns = Arc::clone(&turns);
            storm.push(tokio::spawn(async move { turns.wait(from(1), "app").await }));
        }
        settle().await;
        let refused = storm.iter().filter(|login| login.is_finished()).count() - CHECKS_OF_ADDRESS_MAX;
        assert!(refused > 200, "{refused}");
        for login in &storm {
            login.abort();
        }
        for login in storm {
            // Those that have a place give it back here.
            drop(login.await);
        }
        assert!(turns.wait(from(1), "app").await.is_some());
        let state = turns.state.lock();
        assert_eq!((state.running_count, state.waiting.len()), (0, 0));
    }

    /// The room of a client is that of its address and role, also when its login was in the way of another.
    #[tokio::test]
    async fn a_login_that_makes_room_for_another_does_not_take_its_place() {
        let room = |_: IpAddr, role: &str| match role {
            // Logs in from there every day, and is not busy.
            "app" => Room { standing: Standing::Known, ..Room::ANY },
            // Is being guessed.
            _ => Room { of_address: 0, of_role: 0, standing: Standing::Failed },
        };
        for gone in [0, 1, OF_ADDRESS_MAX / 2] {
            let turns = LoginTurns::new(Box::new(room));
            let mut storm = Vec::new();
            for _ in 0..OF_ADDRESS_MAX {
                let turns = Arc::clone(&turns);
                storm.push(tokio::spawn(async move { turns.wait(from(1), "admin").await.is_some() }));
            }
            settle().await;
            for login in storm.drain(..gone) {
                login.abort();
                let _ = login.await;
            }
            let place = turns.wait(from(1), "app").await.expect("it is known there");
            assert_eq!(&*place.client.1, "app", "{gone}");
            drop(place);
            settle().await;
            let state = turns.state.lock();
            assert_eq!(state.running_count, 0);
            let left = storm.iter().filter(|login| !login.is_finished()).count();
            // Where nobody has gone, one is refused for it.
            assert_eq!(left, storm.len() - usize::from(gone == 0), "{gone}");
            assert_eq!(state.waiting.len(), left, "{gone}");
        }
    }

    /// Attempts, and the turns that they decide, by the time of the runtime, which runs as fast as its tasks.
    fn counted() -> (Arc<Attempts>, Arc<LoginTurns>, Instant) {
        let (attempts, begun) = (Arc::new(Attempts::default()), tokio::time::Instant::now());
        let known = Arc::clone(&attempts);
        let rooms = move |address: IpAddr, role: &str| known.room(address, role, now_ns(begun));
        (attempts, LoginTurns::new(Box::new(rooms)), begun)
    }

    fn now_ns(begun: Instant) -> u64 {
        u64::try_from(begun.elapsed().as_nanos()).unwrap()
    }

    const CHECK: Duration = Duration::from_millis(50);

    #[tokio::test(start_paused = true)]
    async fn wrong_passwords_of_a_client_do_not_refuse_the_right_one_of_the_same_address_and_role() {
        for guessers in [1, 2, 12, 40, 100] {
            let (attempts, turns, begun) = counted();
            let checked = Arc::new(AtomicU64::new(0));
            let mut storm = JoinSet::new();
            for _ in 0..guessers {
                let (attempts, turns, checked) =
                    (Arc::clone(&attempts), Arc::clone(&turns), Arc::clone(&checked));
                storm.spawn(async move {
                    loop {
                        let place = turns.wait(from(1), "app").await.expect("a guess is not refused either");
                        tokio::time::sleep(CHECK).await;
                        let wait = attempts.failed(from(1), "app", now_ns(begun));
                        checked.fetch_add(1, Ordering::Relaxed);
                        drop(place);
                        tokio::time::sleep(wait).await;
                    }
                });
            }
            tokio::time::sleep(Duration::from_secs(30)).await;
            let before = tokio::time::Instant::now();
            let place = turns.wait(from(1), "app").await.expect("the right one is not refused");
            let took = before.elapsed();
            // Two a second are checked, in the order in which they came.
            assert!(took < Duration::from_secs(guessers / 2 + 5), "{guessers}: {took:?}");
            tokio::time::sleep(CHECK).await;
            attempts.succeeded(from(1), "app", now_ns(begun));
            drop(place);
            let most = 3 + 8 + 4 + 2 * begun.elapsed().as_secs();
            assert!(checked.load(Ordering::Relaxed) <= most, "{guessers}: {checked:?} of {most} guesses");
            storm.shutdown().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_room_holds_up_nobody_else() {
        let (attempts, turns, begun) = counted();
        while attempts.room(from(1), "app", now_ns(begun)).of_role > 0 {
            attempts.failed(from(1), "app", now_ns(begun));
        }
        let late = {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.wait(from(1), "app").await.is_some() })
        };
        settle().await;
        assert!(!late.is_finished());
        for (client, role) in [(from(1), "other"), (from(2), "app"), (from(2), "other")] {
            let before = tokio::time::Instant::now();
            assert!(turns.wait(client, role).await.is_some());
            assert_eq!(before.elapsed(), Duration::ZERO, "{client} {role}");
        }
        assert!(late.await.unwrap(), "once a delay has ended");
        tokio::time::sleep(2 * LOOK_PAUSE).await;
        assert!(!turns.state.lock().is_looking, "nobody waits");
    }
}
