//! The login pool: the few threads that check logins, of whatever interface.
//!
//! A check of a password takes a core for a tenth of a second by design, so it runs here and nowhere else: no other request
//! waits for it. `turns` decides which login is next. All threads but one may work for the same address, so that another
//! address waits for a thread only while a third one is served. A login whose client has gone is not checked.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use helenus_host::{Host, Next, TaskHandle, Worker, contain, real::lower_thread_priority};
use helenus_logins::client_key;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::turns::Turns;

/// The text for a client whose login finds no room.
pub(crate) const TOO_MANY_LOGINS: &str = "Too many logins wait; try again later";

/// A login that waits to be checked.
pub(crate) trait WaitingLogin: Send {
    /// Whether its client has gone.
    fn is_gone(&self) -> bool;
    /// Checks it and leaves the answer for its client.
    fn check(self: Box<Self>);
    /// Leaves the answer for its client that too many wait.
    fn refuse(self: Box<Self>);
}

/// Whose turn has come: the argument of a login that is a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The login is to be checked.
    Check,
    /// Too many wait.
    Refuse,
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

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a check ends.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Turns<Box<dyn WaitingLogin>>,
    /// The number of checks that run now, by address.
    running: HashMap<IpAddr, usize>,
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
        let threads_max = threads_max.max(1);
        let state = State { of_address_max: (threads_max - 1).max(1), ..State::default() };
        let shared = Shared { state: Mutex::new(state), ended: Condvar::new() };
        Arc::new(LoginPool { host, shared: Arc::new(shared), threads_max })
    }

    /// Queues the login of a client as `role`, or refuses it or another one if too many wait.
    pub(crate) fn submit(&self, (client, role): (Option<IpAddr>, &str), login: Box<dyn WaitingLogin>) {
        let (refused, gone) = {
            let mut state = self.shared.state.lock();
            let state = &mut *state;
            let key = client_key(client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), role);
            let mut gone = Vec::new();
            let mut refused = match state.stopping {
                true => Some(login),
                false => state.waiting.push(key.clone(), login),
            };
            if !state.stopping
                && let Some(login) = refused.take()
            {
                // Those whose clients have gone need no room.
                gone = state.waiting.remove_if(|login| login.is_gone());
                refused = if gone.is_empty() { Some(login) } else { state.waiting.push(key, login) };
            }
            state.refused += u64::from(refused.is_some());
            self.find_thread(state);
            (refused, gone)
        };
        drop(gone);
        if let Some(refused) = refused {
            refused.refuse();
        }
    }

    /// Wakes an idle thread, or starts one.
    fn find_thread(&self, state: &mut State) {
        if let Some(thread) = state.idle.pop() {
            if let Some(thread) = state.threads.get(thread) {
                thread.wake();
            }
        } else if state.threads.len() < self.threads_max && state.waiting.len() > 0 {
            let number = state.threads.len();
            let thread = Thread { shared: Arc::clone(&self.shared), number, has_low_priority: false };
            state.threads.push(self.host.tasks.start(&format!("login-{number}"), Box::new(thread)));
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
        while state.waiting.len() > 0 || !state.running.is_empty() {
            let left = Duration::from_nanos(due_ns.saturating_sub(clock.monotonic_ns()));
            if left.is_zero() || self.shared.ended.wait_for(&mut state, left).timed_out() {
                let waiting = state.waiting.remove_if(|_| true);
                drop(state);
                return waiting.into_iter().for_each(|login| login.refuse());
            }
        }
    }

    /// Ends the threads once no login waits, and waits for them. Later logins are refused.
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
        let _client_may_be_gone = done.send(work(Turn::Check));
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
        let (address, login) = {
            let mut state = self.shared.state.lock();
            let State { waiting, running, of_address_max, .. } = &mut *state;
            let next =
                waiting.pop(|address| running.get(&address).is_none_or(|count| *count < *of_address_max));
            match next {
                Some((address, login)) => {
                    *running.entry(address).or_default() += 1;
                    state.taken += 1;
                    (address, login)
                }
                None if state.stopping => return Next::Done,
                None => {
                    if !state.idle.contains(&self.number) {
                        state.idle.push(self.number);
                    }
                    return Next::Wait;
                }
            }
        };
        match login.is_gone() {
            true => drop(login),
            // The panic hook has logged the panic. Only this login fails; the thread goes on.
            false => drop(contain(|| login.check())),
        }
        let mut state = self.shared.state.lock();
        if let Some(count) = state.running.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(&address);
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
