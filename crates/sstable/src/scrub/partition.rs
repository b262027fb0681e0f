//! Reads the rows and markers of one partition of a scrub.

use super::output::Output;
use super::overflowed::{is_overflowed, reinsert};
use super::report::Lost;
use super::run::{Run, next_of};
use super::sorter::{Pieces, RowSorter};
use super::source::{Behind, Extent, problem_of};
use crate::error::Result;
use helenus_model::unfiltered::Unfiltered;

/// The receiver of a partition's rows and markers.
pub(super) enum Sink<'s> {
    /// Takes those in order. What is lost is reported.
    Kept(&'s mut Output),
    /// Takes the rows that are out of order.
    Sorted(&'s mut RowSorter),
    /// Takes nothing: the partition is read again later.
    Nowhere,
}

/// Damage within a partition.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    behind: Behind,
    problem: String,
}

impl Run<'_, '_> {
    /// Reads a partition's elements (rows and markers) from the current position on, or, if its front is lost, from
    /// behind it. Returns the position at which the next partition should begin.
    pub(super) fn content(
        &mut self,
        extent: &Extent,
        cut: Option<Behind>,
        sink: &mut Sink<'_>,
    ) -> Result<u64> {
        self.highest.clear();
        if let Some(behind) = cut
            && !self.go_on(behind, sink)?
        {
            return Ok(behind.position);
        }
        loop {
            self.tell_progress();
            let at = self.source.walk.position();
            let damage = match self.damage.get(&at).cloned() {
                Some(damage) => damage,
                None => {
                    let problem =
                        match self.source.walk.advance(self.source.parts.rows(), &mut self.source.cx) {
                            Ok(true) => {
                                self.element(at, sink)?;
                                continue;
                            }
                            Ok(false) => return Ok(self.source.walk.position()),
                            Err(error) => problem_of(&error),
                        };
                    if self.source.walk.pass_refused(self.source.parts.rows(), &mut self.source.cx) {
                        let what = (Lost::Element, at, self.source.walk.position() - at);
                        self.tell(what, &problem, sink)?;
                        continue;
                    }
                    let behind = self.source.behind_damage(extent, at, &self.front.decorated);
                    let damage = Damage { behind, problem };
                    self.damage.insert(at, damage.clone());
                    damage
                }
            };
            let lost = if damage.behind.is_end { Lost::RestOfPartition } else { Lost::Rows };
            let next = damage.behind.position;
            self.tell((lost, at, self.source.end_of_loss(next).saturating_sub(at)), &damage.problem, sink)?;
            if !self.go_on(damage.behind, sink)? {
                return Ok(next);
            }
        }
    }

    /// Continues behind damage. Returns whether the partition goes on there.
    fn go_on(&mut self, behind: Behind, sink: &mut Sink<'_>) -> Result<bool> {
        if let Sink::Kept(output) = sink {
            output.gap(behind.open)?;
        }
        if !behind.is_end {
            self.source.walk.go_to(behind.position);
        }
        Ok(!behind.is_end)
    }

    /// Reports a loss. It is reported only once: when the rest of the partition is written.
    fn tell(&mut self, what: (Lost, u64, u64), problem: &str, sink: &Sink<'_>) -> Result<()> {
        if matches!(sink, Sink::Kept(_)) { self.lose(what, problem) } else { Ok(()) }
    }

    /// Handles the current element.
    fn element(&mut self, at: u64, sink: &mut Sink<'_>) -> Result<()> {
        let Run { source, how, begun, options, disk, reinserted, scrubbed, highest, .. } = self;
        let element = source.walk.current();
        if how.validate
            && let Err(problem) = source.validity.element(element)
        {
            let what = (Lost::Element, at, source.walk.position() - at);
            return self.tell(what, &problem, sink);
        }
        let is_in_order = element.key() > highest.as_slice();
        if is_in_order {
            highest.clear();
            highest.extend_from_slice(element.key());
        }
        let is_row = matches!(element, Unfiltered::Row(_));
        let is_taken = match sink {
            Sink::Kept(_) => is_in_order,
            Sink::Sorted(_) => !is_in_order && is_row,
            Sink::Nowhere => false,
        };
        let element = match element {
            Unfiltered::Row(row) if is_taken && how.reinsert_overflowed && is_overflowed(row.row) => {
                scrubbed.rows_reinserted += 1;
                reinserted.copy_from(row);
                reinsert(reinserted);
                Unfiltered::Row(reinserted.view())
            }
            element => element,
        };
        match (sink, element) {
            (Sink::Kept(output), element) if is_taken => {
                scrubbed.rows += u64::from(is_row);
                if output.add(element)? {
                    let problem = "it closes a range tombstone that is not open";
                    self.lose((Lost::RangeTombstone, at, 0), problem)?;
                }
            }
            (Sink::Kept(_), Unfiltered::Row(_)) => scrubbed.rows_out_of_order += 1,
            // A marker that is out of order is meaningless without the rows around it.
            (Sink::Kept(_), Unfiltered::Marker(_)) => {
                self.lose((Lost::RangeTombstone, at, 0), "a range tombstone's bound is out of order")?;
            }
            (Sink::Sorted(sorter), Unfiltered::Row(row)) if is_taken => {
                let mut next = next_of(how.next, begun);
                sorter.add(row, &mut Pieces { disk, folder: how.folder, options, next: &mut next })?;
            }
            _ => {}
        }
        Ok(())
    }
}
