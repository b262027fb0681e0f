//! The k-way merge of unfiltereds: merges several sources of one partition, for reads and compaction alike.
//!
//! A row that is in one source only and that no deletion covers passes through without a copy; other rows are merged
//! into a buffer. Open range deletions are tracked for each source; a marker is emitted where the strongest open
//! deletion changes.

use crate::deletion::DeletionTime;
use crate::range_tombstone::MarkerBuf;
use crate::reconcile::{filter_row, try_merge_rows};
use crate::row::{RowBuf, RowTooLarge};
use crate::schema::Table;
use crate::unfiltered::{Source, Unfiltered};
use std::sync::Arc;

/// Several sources merged into one, in the direction of the read.
pub struct Merge<S> {
    table: Arc<Table>,
    reversed: bool,
    partition_deletion: DeletionTime,
    inputs: Vec<Input<S>>,
    open: DeletionTime,
    row: RowBuf,
    spare: RowBuf,
    marker: MarkerBuf,
    current: Current,
    /// Whether a source was parked since the merge began.
    has_released: bool,
}

struct Input<S> {
    source: S,
    state: State,
    open: DeletionTime,
    /// Number of bytes that its source released (`Source::release_bytes`).
    parked: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its element was consumed: it must advance before the next comparison.
    Due,
    /// It was already at its first element when the merge began.
    Begun,
    /// It has a current element.
    Ready,
    /// It has ended.
    Ended,
}

/// What a step of a merge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStep {
    /// The merge has an element.
    Element,
    /// As many elements as the caller allowed were left out, because deletions hide them or because they change nothing.
    /// `current` is the last of them, as one source has it: not for the answer, but a position of the read.
    LeftOut,
    /// There is nothing more.
    Ended,
}

#[derive(Clone, Copy)]
enum Current {
    Input(usize),
    Row,
    Marker,
}

impl<S> Merge<S> {
    /// Merges sources that are positioned before their first element.
    ///
    /// `partition_deletion` is the strongest of all sources; data that it hides is not emitted.
    pub fn new(
        table: Arc<Table>,
        reversed: bool,
        partition_deletion: DeletionTime,
        sources: Vec<S>,
    ) -> Merge<S> {
        let inputs = sources
            .into_iter()
            .map(|source| Input { source, state: State::Due, open: DeletionTime::LIVE, parked: 0 })
            .collect();
        Merge {
            table,
            reversed,
            partition_deletion,
            inputs,
            open: DeletionTime::LIVE,
            row: RowBuf::default(),
            spare: RowBuf::default(),
            marker: MarkerBuf::default(),
            current: Current::Row,
            has_released: false,
        }
    }

    /// The sources in their current state.
    pub fn sources(&self) -> impl Iterator<Item = &S> {
        self.inputs.iter().map(|input| &input.source)
    }

    /// Begins again with other sources, which are moved out of `sources`. The buffers are kept.
    pub fn restart(
        &mut self,
        table: &Arc<Table>,
        reversed: bool,
        partition_deletion: DeletionTime,
        sources: &mut Vec<S>,
    ) {
        if !Arc::ptr_eq(&self.table, table) {
            self.table = table.clone();
        }
        (self.reversed, self.partition_deletion, self.open) =
            (reversed, partition_deletion, DeletionTime::LIVE);
        self.inputs.clear();
        self.has_released = false;
        let input = |source| Input { source, state: State::Due, open: DeletionTime::LIVE, parked: 0 };
        self.inputs.extend(sources.drain(..).map(input));
    }

    /// Tells that a source is already at its first element, or that it has none. To be called before the merge is used.
    pub fn set_first_element(&mut self, index: usize, has_element: bool) {
        self.inputs[index].state = if has_element { State::Begun } else { State::Ended };
    }

    /// Bytes of memory that buffers for merged rows hold.
    pub fn buffer_bytes(&self) -> usize {
        self.row.memory_bytes() + self.spare.memory_bytes() + self.marker.data.capacity()
    }

    /// The source, if it is the only one and no deletion hides its rows. The caller may advance it to its next row,
    /// which is then the merge's current element; markers must be left to `advance`.
    #[inline]
    pub fn only_source(&mut self) -> Option<&mut S> {
        let is_bare = self.open.is_live() && self.partition_deletion.is_live();
        match &mut self.inputs[..] {
            [input] if is_bare && !matches!(input.state, State::Begun | State::Ended) => {
                input.state = State::Ready;
                self.current = Current::Input(0);
                Some(&mut input.source)
            }
            _ => None,
        }
    }

    /// Moves the sources back to the caller, in their current state.
    pub fn give_back(&mut self, sources: &mut Vec<S>) {
        sources.extend(self.inputs.drain(..).map(|input| input.source));
    }

    /// Returns the sources in their current state.
    pub fn into_sources(self) -> Vec<S> {
        self.inputs.into_iter().map(|input| input.source).collect()
    }
}

impl<Cx, S: Source<Cx>> Source<Cx> for Merge<S>
where
    S::Error: From<RowTooLarge>,
{
    type Error = S::Error;

    #[inline]
    fn advance(&mut self, cx: &mut Cx) -> Result<bool, S::Error> {
        // Nobody leaves out so many.
        self.advance_some(usize::MAX, cx).map(|step| step == MergeStep::Element)
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        match self.current {
            Current::Input(index) => self.inputs[index].source.current(),
            Current::Row => Unfiltered::Row(self.row.view()),
            Current::Marker => Unfiltered::Marker(self.marker.view()),
        }
    }
}

impl<S> Merge<S> {
    /// Moves to the next element, over at most `most` elements that are left out. So the caller can look at its deadline
    /// in a read over much that is hidden.
    #[inline]
    pub fn advance_some<Cx>(&mut self, most: usize, cx: &mut Cx) -> Result<MergeStep, S::Error>
    where
        S: Source<Cx>,
        S::Error: From<RowTooLarge>,
    {
        if self.inputs.len() == 1 {
            return self.advance_single(most, cx);
        }
        let mut left = most;
        loop {
            for input in &mut self.inputs {
                match input.state {
                    State::Due => {
                        let has_element = input.source.advance(cx)?;
                        input.state = if has_element { State::Ready } else { State::Ended };
                        input.parked = if has_element { input.source.release_bytes() } else { 0 };
                        self.has_released |= input.parked > 0;
                    }
                    State::Begun => {
                        input.state = State::Ready;
                        input.parked = input.source.release_bytes();
                        self.has_released |= input.parked > 0;
                    }
                    State::Ready | State::Ended => {}
                }
            }
            let Some(first) = self.first() else { return Ok(MergeStep::Ended) };
            if self.has_released {
                self.unpark(first, cx)?;
            }
            let found = match self.inputs[first].source.current() {
                Unfiltered::Row(_) => self.take_row(first)?,
                Unfiltered::Marker(_) => self.take_marker(first),
            };
            if found {
                return Ok(MergeStep::Element);
            }
            left -= 1;
            if left == 0 {
                self.current = Current::Input(first);
                return Ok(MergeStep::LeftOut);
            }
        }
    }

    /// Advances a merge of one source. It needs no comparisons and so no keys: only data that the source's own range
    /// deletions or the partition deletion hide is left out.
    #[inline]
    fn advance_single<Cx>(&mut self, most: usize, cx: &mut Cx) -> Result<MergeStep, S::Error>
    where
        S: Source<Cx>,
        S::Error: From<RowTooLarge>,
    {
        let mut left = most;
        loop {
            let Some(input) = self.inputs.first_mut() else { return Ok(MergeStep::Ended) };
            let has_element = match input.state {
                State::Begun => true,
                State::Ended => false,
                State::Due | State::Ready => input.source.advance(cx)?,
            };
            if !has_element {
                input.state = State::Ended;
                return Ok(MergeStep::Ended);
            }
            input.state = State::Ready;
            let found = match input.source.current() {
                Unfiltered::Row(row) if self.open.is_live() && self.partition_deletion.is_live() => {
                    self.current = Current::Input(0);
                    !row.is_empty()
                }
                Unfiltered::Row(_) => self.take_row(0)?,
                Unfiltered::Marker(_) => self.take_marker(0),
            };
            if found {
                return Ok(MergeStep::Element);
            }
            left -= 1;
            if left == 0 {
                self.current = Current::Input(0);
                return Ok(MergeStep::LeftOut);
            }
        }
    }

    /// Reads the released bytes of all elements at the position of input `first` again.
    #[cold]
    fn unpark<Cx>(&mut self, first: usize, cx: &mut Cx) -> Result<(), S::Error>
    where
        S: Source<Cx>,
    {
        let is_here =
            |input: &Input<S>, key: &[u8]| input.state == State::Ready && input.source.current().key() == key;
        let key = self.inputs[first].source.current().key().to_vec();
        let here = || self.inputs.iter().filter(|input| is_here(input, &key));
        let parked: usize = here().map(|input| input.parked).sum();
        // Rows that are merged are in memory together with the result.
        let mut expected = if here().count() > 1 { 2 * parked } else { parked };
        for input in self.inputs.iter_mut().filter(|input| is_here(input, &key)) {
            if input.parked > 0 {
                input.source.reload(expected, cx)?;
                (expected, input.parked) = (0, 0);
            }
        }
        Ok(())
    }

    /// The input with the next element. At equal positions (the edge of a slice can put a marker at a row's position)
    /// the marker comes before the row in clustering order.
    fn first<Cx>(&self) -> Option<usize>
    where
        S: Source<Cx>,
    {
        let mut best: Option<(usize, (&[u8], bool))> = None;
        for (index, input) in self.inputs.iter().enumerate() {
            if input.state != State::Ready {
                continue;
            }
            let element = input.source.current();
            let place = (element.key(), matches!(element, Unfiltered::Row(_)));
            let before =
                best.is_none_or(|(_, least)| if self.reversed { place > least } else { place < least });
            if before {
                best = Some((index, place));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Takes the rows at the position of input `first`; returns false if nothing of them remains.
    fn take_row<Cx>(&mut self, first: usize) -> Result<bool, RowTooLarge>
    where
        S: Source<Cx>,
    {
        let covering = self.open.max(self.partition_deletion);
        let mut merged = false;
        for index in first + 1..self.inputs.len() {
            if self.inputs[index].state != State::Ready {
                continue;
            }
            let (Unfiltered::Row(one), Unfiltered::Row(other)) =
                (self.inputs[first].source.current(), self.inputs[index].source.current())
            else {
                continue;
            };
            if one.row.key != other.row.key {
                continue;
            }
            let left = if merged { self.row.view() } else { one };
            try_merge_rows(&self.table, left, other, covering, &mut self.spare)?;
            std::mem::swap(&mut self.row, &mut self.spare);
            merged = true;
            self.inputs[index].state = State::Due;
        }
        self.inputs[first].state = State::Due;
        if merged {
            self.current = Current::Row;
            return Ok(!self.row.view().is_empty());
        }
        let Unfiltered::Row(row) = self.inputs[first].source.current() else { return Ok(false) };
        if covering.is_live() {
            self.current = Current::Input(first);
            return Ok(!row.is_empty());
        }
        filter_row(row, covering, &mut self.row);
        self.current = Current::Row;
        Ok(!self.row.view().is_empty())
    }

    /// Takes the markers at the position of input `first`; returns false if the strongest open deletion stays the same.
    fn take_marker<Cx>(&mut self, first: usize) -> bool
    where
        S: Source<Cx>,
    {
        let Unfiltered::Marker(marker) = self.inputs[first].source.current() else { return false };
        self.marker.copy_from(marker);
        for index in first..self.inputs.len() {
            if self.inputs[index].state != State::Ready {
                continue;
            }
            let Unfiltered::Marker(other) = self.inputs[index].source.current() else { continue };
            if other.marker.key != self.marker.key {
                continue;
            }
            let open = if self.reversed { other.marker.close } else { other.marker.open };
            self.inputs[index].open = open;
            self.inputs[index].state = State::Due;
        }
        let strongest =
            self.inputs.iter().map(|input| input.open).fold(DeletionTime::LIVE, DeletionTime::max);
        let open = if strongest.supersedes(self.partition_deletion) { strongest } else { DeletionTime::LIVE };
        if open == self.open {
            return false;
        }
        (self.marker.close, self.marker.open) =
            if self.reversed { (open, self.open) } else { (self.open, open) };
        self.open = open;
        self.current = Current::Marker;
        true
    }
}
