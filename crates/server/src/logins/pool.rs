//! The login pool: the few threads that check logins, of whatever interface.
//!
//! A check of a password takes a core for a tenth of a second by design, so it runs here and nowhere else: no other request
//! waits for it. `Turns` decides which login is next. All threads but one may work for the same address, so that another
//! address waits for a thread only while a third one is served. A login whose client has gone is not checked.
//!
//! A client whose failures are too many at this moment is not refused: its login waits in the queue until there is room again
//! (`Backend::login_room`), so that a right password is checked in its turn, whoever tries wrong ones at the same address. The
//! threads look for it by themselves, at short intervals, because room comes with time and nobody tells of it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use helenus_host::{Host, Next, TaskHandle, Worker, contain, real::lower_thread_priority};
use helenus_logins::{Displaced, Room, Standing, Turns, client_key};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

pub(crate) use helenus_logins::TOO_MANY_LOGINS;

use crate::thread_pool::Turn;

/// How often idle threads look whether there is room for logins that wait, nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// A login that waits to be checked.
pub(crate) trait WaitingLogin: Send {
    /// Whether its client has gone.
    fn is_gone(&self) -> bool;
    /// Checks it and leaves the answer for its client.
    fn check(self: Box<Self>);
    /// Leaves the answer for its client that too many wait.
    fn refuse(self: Box<Self>);
}

/// The counters of the pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoginFigures {
    /// Checks that run.
    pub active: u64,
    /// Logins that wait.
    pub pending: u64,
    /// Checks that have ended, since the start.
    pub completed: u64,
    /// Logins that were refused, because too many waited.
    pub refused: u64,
}

/// The threads that check logins, and the logins that wait for them.
pub struct LoginPool {
    host: Host,
    shared: Arc<Shared>,
    threads_max: usize,
}

/// How many logins of a client may be checked now.
type Rooms = Box<dyn Fn(IpAddr, &str) -> Room + Send + Sync>;

struct Shared {
    rooms: Rooms,
    state: Mutex<State>,
    /// Notified when a check ends.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Turns<Box<dyn WaitingLogin>>,
    /// The number of checks that run now, by address and role.
    running: HashMap<(IpAddr, Box<str>), usize>,
    /// The most checks of one address that run at a time.
    of_address_max: usize,
    threads: Vec<Arc<dyn TaskHandle>>,
    idle: Vec<usize>,
    /// Logins that threads have taken so far.
    taken: u64,
    refused: u64,
    stopping: bool,
}

impl std::fmt::Debug for LoginPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginPool").field("threads_max", &self.threads_max).finish_non_exhaustive()
    }
}

impl LoginPool {
    /// A pool of at most `threads_max` threads. They are started when logins come, and end with `stop`.
    pub fn new(host: Host, threads_max: usize) -> Arc<LoginPool> {
        LoginPool::with_rooms(host, threads_max, Box::new(|_, _| Room::ANY))
    }

    /// The same with what is known of clients.
    pub(crate) fn with_rooms(host: Host, threads_max: usize, rooms: Rooms) -> Arc<LoginPool> {
        let threads_max = threads_max.max(1);
        let state = State { of_address_max: (threads_max - 1).max(1), ..State::default() };
        let shared = Shared { rooms, state: Mutex::new(state), ended: Condvar::new() };
        Arc::new(LoginPool { host, shared: Arc::new(shared), threads_max })
    }

    /// Queues the login of a client as `role`, or refuses it or another one if too many wait.
    pub(crate) fn submit(&self, (client, role): (Option<IpAddr>, &str), login: Box<dyn WaitingLogin>) {
        let key = client_key(client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), role);
        let standing: Standing = (self.shared.rooms)(key.0, &key.1).standing;
        let displaced = {
            let mut state = self.shared.state.lock();
            let state = &mut *state;
            let mut displaced = match state.stopping {
                true => Displaced { refused: Some(login), gone: Vec::new() },
                false => state.waiting.push(key, standing, login, |login| login.is_gone()),
            };
            state.refused += u64::from(displaced.refused.is_some());
            self.find_thread(state);
            if state.threads.is_empty() && displaced.refused.is_none() {
                displaced.refused = state.waiting.pop(|_, _| true).map(|(_, login)| login);
            }
            displaced
        };
        refuse(displaced.refused);
    }

    /// Wakes an idle thread, or starts one, unless the pool stops: nobody would wait for its end.
    fn find_thread(&self, state: &mut State) {
        if state.stopping {
            return;
        }
        if let Some(thread) = state.idle.pop() {
            if let Some(thread) = state.threads.get(thread) {
                thread.wake();
            }
        } else if state.threads.len() < self.threads_max && !state.waiting.is_empty() {
            let number = state.threads.len();
            let thread = Thread { shared: Arc::clone(&self.shared), number, has_low_priority: false };
            // If the system gives no further thread, those that there are check the login.
            let started = self.host.tasks.try_start(&format!("login-{number}"), Box::new(thread));
            state.threads.extend(started.ok());
        }
    }

    /// Runs `work` when the login's turn has come, or at once if too many wait; `work` gets which. If this future is dropped
    /// before, `work` is dropped too. `None`: `work` panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        (client, role): (Option<SocketAddr>, &str),
        work: impl FnOnce(Turn) -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        self.submit((client.map(|client| client.ip()), role), Box::new(Function { work, done }));
        result.await.ok()
    }

    /// Drops the logins that wait and whose clients have gone. Otherwise their turn comes first, which may take long.
    pub(crate) fn forget_gone(&self) {
        let gone = self.shared.state.lock().waiting.remove_if(|login| login.is_gone());
        drop(gone);
    }

    /// The pool's counters.
    pub fn figures(&self) -> LoginFigures {
        let state = self.shared.state.lock();
        let active = state.running.values().sum::<usize>() as u64;
        LoginFigures {
            active,
            pending: state.waiting.len() as u64,
            completed: state.taken.saturating_sub(active),
            refused: state.refused,
        }
    }

    /// Waits up to `patience` for all checks to end, then refuses the logins that still wait.
    pub fn drain(&self, patience: Duration) {
        let clock = &self.host.clock;
        let due_ns =
            clock.monotonic_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let mut state = self.shared.state.lock();
        while !state.waiting.is_empty() || !state.running.is_empty() {
            let left = Duration::from_nanos(due_ns.saturating_sub(clock.monotonic_ns()));
            if left.is_zero() || self.shared.ended.wait_for(&mut state, left).timed_out() {
                let waiting = state.waiting.remove_if(|_| true);
                drop(state);
                return refuse(waiting);
            }
        }
    }

    /// Ends the threads once no login waits that there is room for, and waits for them. The other logins are refused, and later ones.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            std::mem::take(&mut state.threads)
        };
        for thread in &threads {
            thread.wake();
        }
        for thread in &threads {
            thread.join();
        }
        let left = self.shared.state.lock().waiting.remove_if(|_| true);
        refuse(left);
        self.shared.ended.notify_all();
    }
}

/// Refuses logins, whoever's they are. The panic hook has logged the panic of one; neither the caller nor the others pay for it.
fn refuse(logins: impl IntoIterator<Item = Box<dyn WaitingLogin>>) {
    for login in logins {
        drop(contain(|| login.refuse()));
    }
}

/// A login that is a function.
struct Function<W, T> {
    work: W,
    done: oneshot::Sender<T>,
}

impl<T: Send, W: FnOnce(Turn) -> T + Send> WaitingLogin for Function<W, T> {
    fn is_gone(&self) -> bool {
        self.done.is_closed()
    }

    fn check(self: Box<Self>) {
        let Function { work, done } = *self;
        let _client_may_be_gone = done.send(work(Turn::Run));
    }

    fn refuse(self: Box<Self>) {
        let Function { work, done } = *self;
        let _client_may_be_gone = done.send(work(Turn::Refuse));
    }
}

struct Thread {
    shared: Arc<Shared>,
    number: usize,
    /// Set in the first step. The event loops run first.
    has_low_priority: bool,
}

impl Worker for Thread {
    fn step(&mut self) -> Next {
        if !self.has_low_priority {
            lower_thread_priority();
            self.has_low_priority = true;
        }
        let (client, login) = {
            let mut state = self.shared.state.lock();
            let State { waiting, running, of_address_max, idle, .. } = &mut *state;
            idle.retain(|idle| *idle != self.number);
            let next = waiting.pop(|address, role| {
                let (of_role, of_address) = running_of(running, address, role);
                let room = (self.shared.rooms)(address, role);
                of_address < room.of_address.min(*of_address_max) && of_role < room.of_role
            });
            match next {
                Some((client, login)) => {
                    *running.entry(client.clone()).or_default() += 1;
                    state.taken += 1;
                    (client, login)
                }
                None if state.stopping => return Next::Done,
                None => {
                    state.idle.push(self.number);
                    return if state.waiting.is_empty() { Next::Wait } else { Next::WaitAtMost(LOOK_NS) };
                }
            }
        };
        match login.is_gone() {
            true => drop(login),
            // The panic hook has logged the panic. Only this login fails; the thread goes on.
            false => drop(contain(|| login.check())),
        }
        let mut state = self.shared.state.lock();
        if let Some(count) = state.running.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(&client);
            }
        }
        // Its address may have waited for the end of this check.
        if state.waiting.len() > 1
            && let Some(thread) = state.idle.pop().and_then(|idle| state.threads.get(idle).cloned())
        {
            thread.wake();
        }
        drop(state);
        self.shared.ended.notify_all();
        Next::Again
    }
}

/// The checks that run of a role at an address, and of all roles there. There are no more than threads.
fn running_of(running: &HashMap<(IpAddr, Box<str>), usize>, address: IpAddr, role: &str) -> (usize, usize) {
    let here = running.iter().filter(|((of, _), _)| *of == address);
    here.fold((0, 0), |(of_role, of_address), ((_, of), count)| {
        (of_role + if **of == *role { *count } else { 0 }, of_address + count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{SyncSender, sync_channel};

    /// A login that tells the test its turn.
    struct Told(SyncSender<Turn>);

    impl WaitingLogin for Told {
        fn is_gone(&self) -> bool {
            false
        }

        fn check(self: Box<Self>) {
            self.0.send(Turn::Run).expect("the test listens");
        }

        fn refuse(self: Box<Self>) {
            self.0.send(Turn::Refuse).expect("the test listens");
        }
    }

    /// A pool of a client whose room opens when it was asked for so often.
    fn pool_with_room_after(looks: usize) -> Arc<LoginPool> {
        let asked = AtomicUsize::new(0);
        let rooms = move |_: IpAddr, _: &str| match asked.fetch_add(1, Ordering::Relaxed) < looks {
            true => Room { of_address: 0, of_role: 0, ..Room::ANY },
            false => Room::ANY,
        };
        LoginPool::with_rooms(helenus_host::real::host(), 2, Box::new(rooms))
    }

    #[test]
    fn a_login_that_waits_for_room_is_checked_though_nobody_else_calls_the_pool() {
        let pool = pool_with_room_after(5);
        let (told, turns) = sync_channel(4);
        pool.submit((None, "a"), Box::new(Told(told)));
        assert_eq!(turns.recv(), Ok(Turn::Run));
        pool.stop();
    }

    #[test]
    fn logins_without_room_are_refused_when_the_pool_stops() {
        let pool = pool_with_room_after(usize::MAX);
        let (told, turns) = sync_channel(4);
        for role in ["a", "b", "a"] {
            pool.submit((None, role), Box::new(Told(told.clone())));
        }
        drop(told);
        pool.stop();
        assert_eq!(turns.iter().collect::<Vec<_>>(), [Turn::Refuse; 3]);
        assert_eq!(pool.figures().pending, 0);
    }

    /// A login that panics when it is refused, and one whose client has gone.
    struct Panics;
    struct Gone;

    impl WaitingLogin for Panics {
        fn is_gone(&self) -> bool {
            false
        }

        fn check(self: Box<Self>) {}

        fn refuse(self: Box<Self>) {
            panic!("a login that cannot be refused");
        }
    }

    impl WaitingLogin for Gone {
        fn is_gone(&self) -> bool {
            true
        }

        fn check(self: Box<Self>) {
            panic!("nobody waits for it");
        }

        fn refuse(self: Box<Self>) {
            panic!("nobody waits for it");
        }
    }

    #[test]
    fn a_login_that_panics_when_it_is_refused_costs_no_other() {
        let full = || {
            let pool = pool_with_room_after(usize::MAX);
            for _ in 0..helenus_logins::OF_ADDRESS_MAX / 2 {
                pool.submit((None, "a"), Box::new(Panics));
            }
            pool
        };
        let (told, turns) = sync_channel(4);
        let pool = full();
        pool.submit((None, "b"), Box::new(Told(told.clone())));
        pool.stop();
        assert_eq!(turns.recv(), Ok(Turn::Refuse), "at the end");
        let pool = full();
        pool.submit((None, "b"), Box::new(Told(told.clone())));
        pool.drain(Duration::ZERO);
        assert_eq!(turns.recv(), Ok(Turn::Refuse), "before the end");
        pool.stop();
        // A login after the end, and one too many.
        pool.submit((None, "b"), Box::new(Panics));
        let pool = full();
        for _ in 0..helenus_logins::OF_ADDRESS_MAX {
            pool.submit((None, "a"), Box::new(Panics));
        }
        pool.submit((None, "b"), Box::new(Told(told)));
        assert_eq!(turns.recv(), Ok(Turn::Refuse), "one too many");
        pool.stop();
    }

    #[test]
    fn a_login_while_the_pool_stops_starts_no_thread() {
        let pool = pool_with_room_after(usize::MAX);
        let (told, turns) = sync_channel(4);
        pool.submit((None, "a"), Box::new(Told(told.clone())));
        // As `stop` begins.
        let threads = {
            let mut state = pool.shared.state.lock();
            state.stopping = true;
            std::mem::take(&mut state.threads)
        };
        pool.submit((None, "a"), Box::new(Told(told)));
        assert_eq!(turns.recv(), Ok(Turn::Refuse));
        assert!(pool.shared.state.lock().threads.is_empty());
        pool.shared.state.lock().threads = threads;
        pool.stop();
        assert_eq!(turns.recv(), Ok(Turn::Refuse));
    }

    /// A guess must not be checked beyond the room of its role because it was in the way of another login.
    #[test]
    fn a_login_that_makes_room_for_another_is_not_checked_as_that() {
        let rooms = |_: IpAddr, role: &str| match role {
            "app" => Room { standing: Standing::Known, ..Room::ANY },
            _ => Room { of_address: 0, of_role: 0, standing: Standing::Failed },
        };
        for gone in [0, 1, 40] {
            let pool = LoginPool::with_rooms(helenus_host::real::host(), 2, Box::new(rooms));
            let (told, guesses) = sync_channel(2 * helenus_logins::OF_ADDRESS_MAX);
            for at in 0..helenus_logins::OF_ADDRESS_MAX {
                match at < gone {
                    true => pool.submit((None, "admin"), Box::new(Gone)),
                    false => pool.submit((None, "admin"), Box::new(Told(told.clone()))),
                }
            }
            let (told_app, app) = sync_channel(1);
            pool.submit((None, "app"), Box::new(Told(told_app)));
            assert_eq!(app.recv(), Ok(Turn::Run), "{gone}");
            let refused = usize::from(gone == 0);
            let left = helenus_logins::OF_ADDRESS_MAX - gone - refused;
            assert_eq!(pool.figures().pending, left as u64, "{gone}");
            pool.stop();
            drop(told);
            let guesses: Vec<Turn> = guesses.iter().collect();
            assert_eq!(guesses, vec![Turn::Refuse; left + refused], "{gone}");
        }
    }
}
