//! The jobs that wait for a thread of the disk pool: connections take turns, and a connection's jobs keep their order.
//!
//! Called by `disk_pool` under its lock. However many jobs a connection has here, the first of another is among the next. A
//! full queue makes room at the expense of the connection that has the most.

use std::collections::{HashMap, VecDeque};

/// Jobs that wait, each of a connection that is known by a number.
pub(super) struct JobQueue<T> {
    /// The connections that have jobs here, in the order of their turns.
    turns: VecDeque<usize>,
    jobs: HashMap<usize, VecDeque<T>>,
    waiting: usize,
}

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        JobQueue { turns: VecDeque::new(), jobs: HashMap::new(), waiting: 0 }
    }
}

impl<T> JobQueue<T> {
    /// The number of jobs.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a job of a connection. If there are `max` already, returns one that has no room: this one, or the newest of the
    /// connection that has the most.
    pub fn push(&mut self, connection: usize, job: T, max: usize) -> Option<T> {
        let mut removed = None;
        if self.waiting >= max {
            let own = self.jobs.get(&connection).map_or(0, VecDeque::len);
            let most = self.jobs.iter().map(|(other, jobs)| (jobs.len(), *other)).max();
            let Some((_, other)) = most.filter(|(count, _)| *count > own + 1) else { return Some(job) };
            removed = self.jobs.get_mut(&other).and_then(VecDeque::pop_back);
            self.waiting -= usize::from(removed.is_some());
        }
        let jobs = self.jobs.entry(connection).or_default();
        if jobs.is_empty() {
            self.turns.push_back(connection);
        }
        jobs.push_back(job);
        self.waiting += 1;
        removed
    }

    /// Takes the next job: the oldest of the connection whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let connection = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&connection)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&connection);
        } else {
            self.turns.push_back(connection);
        }
        self.waiting -= usize::from(job.is_some());
        job
    }

    /// All jobs, in any order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.jobs.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_and_each_keeps_its_order() {
        let mut queue = JobQueue::default();
        for job in ["a1", "a2", "a3"] {
            assert!(queue.push(1, job, 10).is_none());
        }
        assert!(queue.push(2, "b1", 10).is_none());
        assert_eq!(queue.len(), 4);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(all, ["a1", "b1", "a2", "a3"]);
        assert_eq!((queue.len(), queue.turns.len(), queue.jobs.len()), (0, 0, 0));
    }

    #[test]
    fn a_full_queue_refuses_the_newest_of_whoever_has_the_most() {
        let mut queue = JobQueue::default();
        for job in 0..8 {
            assert!(queue.push(1, job, 8).is_none());
        }
        assert_eq!(queue.push(1, 100, 8), Some(100), "its own");
        assert_eq!(queue.push(2, 200, 8), Some(7));
        assert_eq!(queue.push(3, 300, 8), Some(6));
        assert_eq!(queue.push(2, 201, 8), Some(5));
        assert_eq!(queue.len(), 8);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(all, [0, 200, 300, 1, 201, 2, 3, 4]);
    }

    /// A connection that fills the queue cannot keep the others from being served: with drawn arrivals, a job waits for at most one job of
    /// each other connection before the first of its own.
    #[test]
    fn no_connection_waits_for_the_second_job_of_another() {
        let mut queue = JobQueue::default();
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as usize
        };
        for round in 0..2000 {
            let connection = draw(5);
            // `None` where the connection had jobs before: only its first has a promise.
            let is_first = !queue.jobs.contains_key(&connection);
            if queue.push(connection, (connection, round), 64).is_none() && is_first {
                let mut before: Vec<usize> = queue.turns.iter().copied().collect();
                before.truncate(before.len() - 1);
                let count = before.len();
                before.sort_unstable();
                before.dedup();
                assert_eq!(before.len(), count, "a connection has two turns before this one's");
            }
            for _ in 0..draw(2) {
                queue.pop();
            }
        }
        assert_eq!(queue.iter().count(), queue.len());
    }
}
