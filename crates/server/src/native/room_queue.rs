//! The connections that wait for bytes in flight, and which of them are woken when some are released.
//!
//! Each round of a connection costs a poll, so a release wakes only as many connections as its bytes can serve: with a thousand
//! waiting, one release must not cause a thousand polls that find no room.
//!
//! ```text
//! a release:  the account that released is considered first, then, while bytes are left, the others in turn
//!   a connection fits          it is woken; its bytes are promised to it until its next poll ends
//!   its account has no room    its account waits for its own next release
//!   the whole has no room      nothing more of its size is woken, but for the last size
//! a poll ends:  the promise is given back, and those who fit into what the connection did not take are woken
//! ```
//! A promise binds nobody: a connection that reads for the first time may take the bytes. Then the woken one finds no room and
//! waits again at its old place. Wants are sorted into sizes, so that one that is too large for what is free does not stand in
//! front of those that would fit. Those of the last size differ most: there each account is looked at.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use super::in_flight::AddressInFlight;
use super::mailbox::Mailbox;

/// The least that is promised to a woken connection: the bytes of a read. How much it will take is often not known before.
const PROMISED_BYTES_MIN: u64 = 64 << 10;
/// Sizes of wants: each is up to twice the one before, the first up to `PROMISED_BYTES_MIN`. The last but one has no end.
const SIZES: usize = 16;
/// The size of wants that exceed a limit by themselves. They are served when nothing else of their address is in flight and they stay within
/// the limit of all, or when nothing else is in flight.
const ONLY_ALONE: usize = SIZES - 1;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The bytes that it lacks; 0 if it waits until the limits are no longer exceeded.
    pub bytes: u64,
    /// The bytes that it has reserved already.
    pub has: u64,
}

impl Wanted {
    fn promise(self) -> u64 {
        self.bytes.max(PROMISED_BYTES_MIN)
    }

    fn size(self, account: &AddressInFlight) -> usize {
        if self.bytes.saturating_add(self.has) > account.limit() {
            return ONLY_ALONE;
        }
        let doublings = self.promise().div_ceil(PROMISED_BYTES_MIN).next_power_of_two().trailing_zeros();
        (doublings as usize).min(ONLY_ALONE - 1)
    }
}

/// Where a connection stands: its account, its size, and its number, which grows with the time of its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    network: IpAddr,
    size: usize,
    number: u64,
}

struct Waiting {
    mailbox: Arc<Mailbox>,
    wanted: Wanted,
}

/// The connections of one account.
struct OfAccount {
    account: Arc<AddressInFlight>,
    /// Those that wait, by size and number.
    waiting: BTreeMap<(usize, u64), Waiting>,
    /// The promises to those that are woken and whose poll has not ended, by number.
    woken: BTreeMap<u64, u64>,
    /// The sum of `woken`.
    promised: u64,
    /// For each size, whether the account is in the line of those that wait for the whole.
    in_line: [bool; SIZES],
}

/// Why the first of an account's waiting connections of a size is woken or not.
enum Verdict {
    Fits,
    NobodyWaits,
    AccountIsFull,
    AllIsFull,
}

/// All waiting connections.
#[derive(Default)]
pub(super) struct RoomQueue {
    accounts: HashMap<IpAddr, OfAccount>,
    /// For each size, the accounts that may have a connection that fits, each once.
    lines: [VecDeque<IpAddr>; SIZES],
    /// The promises to all woken connections.
    promised: u64,
    waiting_count: usize,
    next_number: u64,
}

impl RoomQueue {
    /// Whether no connection waits.
    pub fn is_empty(&self) -> bool {
        self.waiting_count == 0
    }

    /// Adds a connection, or one that was woken in vain (`before`) at its former place among those of its size.
    pub fn add(
        &mut self,
        account: &Arc<AddressInFlight>,
        mailbox: &Arc<Mailbox>,
        wanted: Wanted,
        before: Option<Place>,
    ) -> Place {
        let number = before.map_or(self.next_number, |place| place.number);
        self.next_number = self.next_number.max(number + 1);
        if let Some(place) = before {
            // The caller has the mailbox too.
            let _not_the_last = self.take_out(place);
        }
        let network = account.network();
        let of_account = self.accounts.entry(network).or_insert_with(|| OfAccount {
            account: Arc::clone(account),
            waiting: BTreeMap::new(),
            woken: BTreeMap::new(),
            promised: 0,
            in_line: [false; SIZES],
        });
        // That of an address whose connections ended, and that came again while it stood in a line, is another one.
        if !Arc::ptr_eq(&of_account.account, account) {
            of_account.account = Arc::clone(account);
        }
        let place = Place { network, size: wanted.size(account), number };
        let waiting = Waiting { mailbox: Arc::clone(mailbox), wanted };
        of_account.waiting.insert((place.size, number), waiting);
        self.waiting_count += 1;
        // It waits for the whole, unless its own account turns out to be full.
        if !std::mem::replace(&mut of_account.in_line[place.size], true) {
            self.lines[place.size].push_back(network);
        }
        place
    }

    /// Removes a connection that waits no more, and gives back what was promised to it.
    ///
    /// Returns the mailbox, which the caller drops after the lock: it may have bytes in flight itself.
    pub fn remove(&mut self, place: Place) -> Option<Arc<Mailbox>> {
        let mailbox = self.take_out(place);
        self.forget_unused(place.network);
        mailbox
    }

    fn take_out(&mut self, place: Place) -> Option<Arc<Mailbox>> {
        let of_account = self.accounts.get_mut(&place.network)?;
        if let Some(waiting) = of_account.waiting.remove(&(place.size, place.number)) {
            self.waiting_count -= 1;
            return Some(waiting.mailbox);
        }
        let promise = of_account.woken.remove(&place.number)?;
        of_account.promised -= promise;
        self.promised -= promise;
        None
    }

    fn forget_unused(&mut self, network: IpAddr) {
        let is_used = |of_account: &OfAccount| {
            !of_account.waiting.is_empty()
                || !of_account.woken.is_empty()
                || of_account.in_line.contains(&true)
        };
        if self.accounts.get(&network).is_some_and(|of_account| !is_used(of_account)) {
            self.accounts.remove(&network);
        }
    }

    /// The connections that fit now, to be woken by the caller. Bytes of the account at `network` were released or given back.
    pub fn fitting(&mut self, network: IpAddr) -> Vec<Arc<Mailbox>> {
        let mut woken = Vec::new();
        // The large ones first: what they leave is enough for small ones more often than the other way round.
        for size in (0..SIZES).rev() {
            if let Some(of_account) = self.accounts.get_mut(&network)
                && !of_account.in_line[size]
                && of_account.first(size).is_some()
            {
                of_account.in_line[size] = true;
                self.lines[size].push_front(network);
            }
            self.wake_of(size, &mut woken);
        }
        self.forget_unused(network);
        woken
    }

    /// Wakes the connections of one size that fit, the accounts in turn.
    fn wake_of(&mut self, size: usize, woken: &mut Vec<Arc<Mailbox>>) {
        // Those for which the whole has no room, if others behind them may want less.
        let mut passed = Vec::new();
        while let Some(network) = self.lines[size].pop_front() {
            let Some(of_account) = self.accounts.get_mut(&network) else { continue };
            match of_account.verdict(size, self.promised) {
                Verdict::Fits => {
                    let Some(((_, number), waiting)) = of_account.take_first(size) else { continue };
                    let promise = waiting.wanted.promise();
                    of_account.woken.insert(number, promise);
                    of_account.promised += promise;
                    self.promised += promise;
                    self.waiting_count -= 1;
                    woken.push(waiting.mailbox);
                    self.lines[size].push_back(network);
                }
                Verdict::NobodyWaits | Verdict::AccountIsFull => {
                    of_account.in_line[size] = false;
                    self.forget_unused(network);
                }
                Verdict::AllIsFull if size == ONLY_ALONE => passed.push(network),
                Verdict::AllIsFull => {
                    self.lines[size].push_front(network);
                    break;
                }
            }
        }
        passed.into_iter().rev().for_each(|network| self.lines[size].push_front(network));
    }
}

impl OfAccount {
    fn first(&self, size: usize) -> Option<&Waiting> {
        self.waiting.range((size, 0)..=(size, u64::MAX)).next().map(|(_, waiting)| waiting)
    }

    fn take_first(&mut self, size: usize) -> Option<((usize, u64), Waiting)> {
        let key = *self.waiting.range((size, 0)..=(size, u64::MAX)).next()?.0;
        self.waiting.remove_entry(&key)
    }

    /// Whether the first of this size fits beside what is in use and promised. One always does that fits beside what is in use
    /// while nothing is promised, because a promise may be more than it will take.
    fn verdict(&self, size: usize, promised_in_all: u64) -> Verdict {
        let Some(Waiting { wanted, .. }) = self.first(size) else { return Verdict::NobodyWaits };
        let (free_of_account, free_in_all) = self.account.free();
        let fits = |free: Option<u64>, promised: u64| {
            free.is_some_and(|free| match promised {
                0 => wanted.bytes <= free,
                promised => promised.saturating_add(wanted.promise()) <= free,
            })
        };
        if size == ONLY_ALONE {
            let (of_account, in_all) = self.account.is_alone(wanted.has);
            return match (of_account && self.promised == 0, in_all && promised_in_all == 0) {
                (false, _) => Verdict::AccountIsFull,
                (true, true) => Verdict::Fits,
                (true, false) if fits(free_in_all, promised_in_all) => Verdict::Fits,
                (true, false) => Verdict::AllIsFull,
            };
        }
        match (fits(free_of_account, self.promised), fits(free_in_all, promised_in_all)) {
            (false, _) => Verdict::AccountIsFull,
            (true, false) => Verdict::AllIsFull,
            (true, true) => Verdict::Fits,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};
    use std::sync::Arc;
    use std::task::Wake;

    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::super::in_flight::{ConnectionShare, InFlightBytes, Reservation, RoomTicket};
    use super::super::mailbox::Mailbox;
    use super::{IpAddr, Wanted};

    /// The connections that are to be polled, each once.
    #[derive(Default)]
    struct Ready(Mutex<(VecDeque<usize>, HashSet<usize>)>);

    impl Ready {
        fn add(&self, connection: usize) {
            let (order, known) = &mut *self.0.lock();
            if known.insert(connection) {
                order.push_back(connection);
            }
        }

        fn next(&self) -> Option<usize> {
            let (order, known) = &mut *self.0.lock();
            let connection = order.pop_front()?;
            known.remove(&connection);
            Some(connection)
        }
    }

    struct Waker(Arc<Ready>, usize);

    impl Wake for Waker {
        fn wake(self: Arc<Self>) {
            self.0.add(self.1);
        }
    }

    /// A connection that sends messages of these lengths, one after the other.
    struct Client {
        share: ConnectionShare,
        mailbox: Arc<Mailbox>,
        ticket: Option<RoomTicket>,
        left: Vec<u64>,
    }

    impl Client {
        /// A poll; the reservation of the next message, if there is room.
        fn poll(&mut self) -> Option<Reservation> {
            let bytes = *self.left.last()?;
            let account = &self.share.account;
            let taken = account.try_take(bytes).or_else(|| {
                account.wait(&mut self.ticket, &self.mailbox, Wanted { bytes, has: 0 });
                account.try_take(bytes)
            });
            if taken.is_some() {
                self.left.pop();
                self.ticket = None;
            }
            taken
        }
    }

    /// Runs the clients until all messages were served. `draw` chooses whose message ends next. Returns the number of polls.
    fn run(limits: (u64, u64), clients: Vec<(u8, Vec<u64>)>, mut draw: impl FnMut(usize) -> usize) -> usize {
        let in_flight = InFlightBytes::new(limits.0, limits.1);
        let ready = Arc::<Ready>::default();
        let mut clients: Vec<Client> = clients
            .into_iter()
            .enumerate()
            .map(|(number, (last, left))| {
                let address = IpAddr::from([10, 0, 0, last]);
                let share = in_flight.enter(address, None).expect("no limit on connections");
                let mailbox = Arc::<Mailbox>::default();
                mailbox.register(&Arc::new(Waker(Arc::clone(&ready), number)).into());
                ready.add(number);
                Client { share, mailbox, ticket: None, left }
            })
            .collect();
        let (mut served, mut polls) = (Vec::new(), 0);
        loop {
            while let Some(number) = ready.next() {
                polls += 1;
                if let Some(reservation) = clients[number].poll() {
                    served.push((number, reservation));
                }
            }
            if served.is_empty() {
                break;
            }
            let (number, reservation) = served.swap_remove(draw(served.len()));
            drop(reservation);
            ready.add(number);
        }
        let forgotten = clients.iter().filter(|client| !client.left.is_empty()).count();
        assert_eq!(forgotten, 0, "clients that wait although nothing is in flight");
        assert_eq!(in_flight.in_flight().0, 0);
        polls
    }

    const KIB: u64 = 1 << 10;

    #[test]
    fn a_release_costs_as_many_polls_as_it_can_serve() {
        let polls_of = |clients: usize| {
            let of = |number: usize| ((number % 50) as u8, vec![200 * KIB; 4]);
            run((1024 * KIB, 512 * KIB), (0..clients).map(of).collect(), |count| count / 2)
        };
        let (few, many) = (polls_of(100), polls_of(1000));
        assert!(many <= 12 * few, "ten times the clients: {few} and {many} polls");
        assert!(many <= 5 * 4 * 1000, "{many} polls for 4000 messages");
    }

    proptest! {
        #[test]
        fn every_message_gets_its_room_with_few_polls(
            in_all in 1..2000_u64,
            of_address in 1..1000_u64,
            clients in prop::collection::vec(
                (0..6_u8, prop::collection::vec(prop_oneof![0..100_u64, 0..3000_u64], 1..5)), 1..60),
            order: u64,
        ) {
            let mut state = order | 1;
            let draw = |count: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % count
            };
            let messages: usize = clients.iter().map(|(_, left)| left.len()).sum();
            let clients: Vec<_> = clients
                .into_iter()
                .map(|(last, left)| (last, left.into_iter().map(|length| length * KIB).collect()))
                .collect();
            let polls = run((in_all * KIB, of_address * KIB), clients, draw);
            prop_assert!(polls <= 8 * messages + 16, "{} polls for {} messages", polls, messages);
        }
    }

    #[test]
    fn an_address_that_comes_again_while_it_stands_in_line_waits_for_its_own_room() {
        let in_flight = InFlightBytes::new(1000 * KIB, 500 * KIB);
        let enter = |last: u8| in_flight.enter(IpAddr::from([10, 0, 0, last]), None).expect("no limit");
        let (holders, first, gone) = ([enter(1), enter(2)], enter(3), enter(4));
        let held = [holders[0].account.take(500 * KIB), holders[1].account.take(450 * KIB)];
        let ready = Arc::<Ready>::default();
        let wait = |share: &ConnectionShare, number: usize| {
            let (mailbox, mut ticket) = (Arc::<Mailbox>::default(), None);
            mailbox.register(&Arc::new(Waker(Arc::clone(&ready), number)).into());
            share.account.wait(&mut ticket, &mailbox, Wanted { bytes: 100 * KIB, has: 0 });
            ticket
        };
        let of_first = wait(&first, 0);
        // Behind the first in the line, so it is not looked at when it goes.
        drop(wait(&gone, 1));
        drop(gone);
        let again = enter(4);
        let own = again.account.take(500 * KIB);
        let of_again = wait(&again, 2);
        drop(held);
        assert_eq!((ready.next(), ready.next()), (Some(0), None), "the one whose address has room");
        drop(of_first);
        assert_eq!(ready.next(), None);
        drop(own);
        assert_eq!((ready.next(), ready.next()), (Some(2), None), "its address has room now");
        drop(of_again);
    }

    /// Others always have something in flight, and the message is longer than one address may have.
    #[test]
    fn a_message_longer_than_an_address_may_have_is_taken_beside_those_of_others() {
        let in_flight = InFlightBytes::new(1000 * KIB, 500 * KIB);
        let enter = |last: u8| in_flight.enter(IpAddr::from([10, 0, 0, last]), None).expect("no limit");
        let (holder, long) = (enter(1), enter(2));
        let held = [holder.account.try_take(200 * KIB), holder.account.try_take(200 * KIB)];
        let own = long.account.try_take(KIB);
        let ready = Arc::<Ready>::default();
        let (mailbox, mut ticket) = (Arc::<Mailbox>::default(), None);
        mailbox.register(&Arc::new(Waker(Arc::clone(&ready), 0)).into());
        long.account.wait(&mut ticket, &mailbox, Wanted { bytes: 700 * KIB, has: 0 });
        let [first, _second] = held;
        drop(first);
        assert_eq!(ready.next(), None, "its address has another one");
        drop(own);
        assert_eq!(ready.next(), Some(0));
        assert!(long.account.try_take(700 * KIB).is_some());
    }

    #[test]
    fn a_large_want_does_not_stand_in_front_of_small_ones() {
        let in_flight = InFlightBytes::new(1000 * KIB, 1000 * KIB);
        let enter = |last: u8| in_flight.enter(IpAddr::from([10, 0, 0, last]), None).expect("no limit");
        let (holder, large, small) = (enter(1), enter(2), enter(3));
        let held = [holder.account.try_take(500 * KIB), holder.account.try_take(450 * KIB)];
        let ready = Arc::<Ready>::default();
        let mut tickets = [None, None];
        for (number, (share, bytes)) in [(&large, 900 * KIB), (&small, 100 * KIB)].into_iter().enumerate() {
            let mailbox = Arc::<Mailbox>::default();
            mailbox.register(&Arc::new(Waker(Arc::clone(&ready), number)).into());
            share.account.wait(&mut tickets[number], &mailbox, Wanted { bytes, has: 0 });
        }
        let [first, second] = held;
        drop(first);
        assert_eq!((ready.next(), ready.next()), (Some(1), None), "the small one");
        tickets[1] = None;
        drop(second);
        assert_eq!((ready.next(), ready.next()), (Some(0), None), "the large one");
    }

    #[test]
    fn a_want_that_exceeds_its_limit_does_not_stand_in_front_of_one_that_exceeds_it_by_less() {
        // Each exceeds the limit of an address, and what is free in the end is enough for the smaller one alone.
        for (first, second) in [(900, 600), (950, 501), (999, 700)] {
            let in_flight = InFlightBytes::new(1000 * KIB, 500 * KIB);
            let enter = |last: u8| in_flight.enter(IpAddr::from([10, 0, 0, last]), None).expect("no limit");
            let (holder, other_holder, large, less) = (enter(1), enter(2), enter(3), enter(4));
            let held = holder.account.try_take(400 * KIB);
            let rest = other_holder.account.try_take((1000 - second) * KIB);
            assert!(held.is_some() && rest.is_some());
            let ready = Arc::<Ready>::default();
            let mut tickets = [None, None];
            for (number, (share, kib)) in [(&large, first), (&less, second)].into_iter().enumerate() {
                let mailbox = Arc::<Mailbox>::default();
                mailbox.register(&Arc::new(Waker(Arc::clone(&ready), number)).into());
                share.account.wait(&mut tickets[number], &mailbox, Wanted { bytes: kib * KIB, has: 0 });
            }
            assert_eq!(ready.next(), None);
            drop(held);
            assert_eq!((ready.next(), ready.next()), (Some(1), None), "{second} KiB fit");
            tickets[1] = None;
            drop(rest);
            assert_eq!((ready.next(), ready.next()), (Some(0), None), "{first} KiB, in turn");
        }
    }
}
