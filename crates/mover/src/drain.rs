//! Asks all tails whether they have sent everything, for the cut.
//!
//! A question has a number. A tail answers it with a look at the log that began after the question was asked, found its end, and was
//! acknowledged by the target. So while no client writes, a table that has answered is complete there.

use tokio::sync::watch;

/// The questions, and the answers of the tails.
pub(crate) struct Drain {
    asked: watch::Sender<u64>,
    /// By table, the last question that it has answered.
    answered: watch::Sender<Vec<u64>>,
}

impl Drain {
    /// For this number of tables.
    pub(crate) fn new(tables: usize) -> Drain {
        Drain { asked: watch::Sender::new(0), answered: watch::Sender::new(vec![0; tables]) }
    }

    /// Asks; returns the number of the question.
    pub(crate) fn ask(&self) -> u64 {
        self.asked.send_modify(|asked| *asked += 1);
        *self.asked.borrow()
    }

    /// The last question, and later ones as they come.
    pub(crate) fn questions(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// A table has sent everything that was there at this question.
    pub(crate) fn answer(&self, at: usize, question: u64) {
        self.answered.send_if_modified(|answered| match answered.get_mut(at) {
            Some(last) if *last < question => {
                *last = question;
                true
            }
            _ => false,
        });
    }

    /// Waits until all tables have answered.
    pub(crate) async fn all(&self, question: u64) {
        let mut answered = self.answered.subscribe();
        // The sender lives as long as `self`.
        let _ = answered.wait_for(|answered| answered.iter().all(|last| *last >= question)).await;
    }

    /// The tables that have not answered.
    pub(crate) fn missing(&self, question: u64) -> Vec<usize> {
        let answered = self.answered.borrow();
        answered.iter().enumerate().filter(|(_, last)| **last < question).map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_an_earlier_question_does_not_count() {
        let drain = Drain::new(2);
        let mut questions = drain.questions();
        let first = drain.ask();
        assert!(questions.has_changed().unwrap());
        assert_eq!(*questions.borrow_and_update(), first);
        drain.answer(0, first);
        let second = drain.ask();
        drain.answer(1, second);
        assert_eq!(drain.missing(first), Vec::<usize>::new());
        assert_eq!(drain.missing(second), [0]);
        drain.all(first).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), drain.all(second)).await.is_err());
        drain.answer(0, second);
        drain.all(second).await;
    }
}
