//! Finds out from the rows of a file whether user types that its header does not call frozen are frozen: see
//! `header_schema`.
//!
//! Both readings are tried, row by row. A row without a value of such a type is the same in both. A row with one has
//! its size before it, and only the right reading ends exactly there, with values that are valid.

use super::Index;
use super::index_positions::IndexPositions;
use crate::block::ReadContext;
use crate::compression::DataBlocks;
use crate::data::{ElementReader, RowLayout, Rows, Validity};
use crate::error::Result;
use crate::header_schema::{UserTypes, known_user_types, table_of_header};
use crate::statistics::Header;
use crate::version::Version;
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use std::path::Path;

/// The number of rows by which one reading must be ahead of the other to be chosen before the end of the file.
const CERTAIN_ROWS: i64 = 8;

/// The reading of a header that needs no look at the rows: the only possible one, or that of the table's schema.
pub(super) fn stated_user_types(
    header: &Header,
    version: Version,
    known: Option<&Table>,
) -> Option<UserTypes> {
    UserTypes::certain(header, version).or_else(|| known.and_then(|table| known_user_types(header, table)))
}

/// One reading, and a position in the data.
struct Reading {
    layout: RowLayout,
    validity: Validity,
    reader: ElementReader,
}

/// The result of a step in the data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A valid front, row or marker.
    Read,
    End,
    Bad,
}

impl Reading {
    fn new((header, version, file): (&Header, Version, &Path), user_types: UserTypes) -> Result<Reading> {
        let table = table_of_header(header, user_types, ("", ""), file)?;
        let layout = RowLayout::of_header(header, &table, (version, file))?;
        Ok(Reading { layout, validity: Validity::of(&table), reader: ElementReader::default() })
    }

    fn front(&mut self, data: &DataBlocks, start: u64, cx: &mut ReadContext) -> Step {
        let (mut key, mut static_row) = (Vec::new(), RowBuf::default());
        let rows = Rows { data, layout: &self.layout };
        let front = self.reader.front(rows, start, (&mut key, &mut static_row), cx);
        let is_valid = self.validity.key(&key).is_ok() && self.validity.row(static_row.view()).is_ok();
        if front.is_ok() && is_valid { Step::Read } else { Step::Bad }
    }

    fn element(&mut self, data: &DataBlocks, cx: &mut ReadContext) -> Step {
        match self.reader.advance(Rows { data, layout: &self.layout }, cx) {
            Ok(true) if self.validity.element(self.reader.current()).is_ok() => Step::Read,
            Ok(false) => Step::End,
            _ => Step::Bad,
        }
    }
}

/// The reading that the rows of a header's file have. The index, if there is one, finds the partitions behind damage.
/// `of` has the component that the header comes from, for errors. It waits for the disk.
///
/// # Errors
/// `Corrupt` for types that cannot be read.
pub(super) fn user_types_of_rows(
    of: (&Header, Version, &Path),
    (data, index): (&DataBlocks, Option<&Index>),
) -> Result<UserTypes> {
    let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
    let mut places = IndexPositions::new(index, &mut cx);
    let (mut cells, mut frozen) =
        (Reading::new(of, UserTypes::MultiCell)?, Reading::new(of, UserTypes::Frozen)?);
    let (mut start, mut ahead) = (0, 0_i64);
    while start < data.data_length() && ahead.abs() < CERTAIN_ROWS {
        let steps = (cells.front(data, start, &mut cx), frozen.front(data, start, &mut cx));
        let end = match agree(steps, (&mut cells, &mut frozen), &mut ahead) {
            Step::Bad => None,
            _ => elements(data, (&mut cells, &mut frozen), &mut ahead, &mut cx),
        };
        match end.or_else(|| places.behind(start, &mut cx).first().map(|place| place.start)) {
            Some(next) => start = next,
            None => break,
        }
    }
    Ok(if ahead < 0 { UserTypes::Frozen } else { UserTypes::MultiCell })
}

/// Compares the rest of a partition. Returns its end; `None` if neither reading finds it, or one is certain.
fn elements(
    data: &DataBlocks,
    (cells, frozen): (&mut Reading, &mut Reading),
    ahead: &mut i64,
    cx: &mut ReadContext,
) -> Option<u64> {
    while ahead.abs() < CERTAIN_ROWS {
        let at = cells.reader.position();
        let steps = (cells.element(data, cx), frozen.element(data, cx));
        match agree(steps, (cells, frozen), ahead) {
            Step::Read => {}
            Step::End => return Some(cells.reader.position()),
            Step::Bad => {
                // The reader that refused the element last knows where it ends.
                frozen.reader.go_to(at);
                let rows = Rows { data, layout: &frozen.layout };
                if frozen.reader.advance(rows, cx).is_ok() || !frozen.reader.pass_refused(rows, cx) {
                    return None;
                }
                cells.reader.go_to(frozen.reader.position());
            }
        }
    }
    None
}

/// Counts which reading is right, and continues both where the right one is.
fn agree(steps: (Step, Step), (cells, frozen): (&mut Reading, &mut Reading), ahead: &mut i64) -> Step {
    match steps {
        (Step::Bad, Step::Bad) => Step::Bad,
        (Step::Bad, right) => {
            *ahead -= 1;
            cells.reader.go_to(frozen.reader.position());
            right
        }
        (right, Step::Bad) => {
            *ahead += 1;
            frozen.reader.go_to(cells.reader.position());
            right
        }
        (right, _) => {
            // One may have passed rows that are empty in its reading only.
            frozen.reader.go_to(cells.reader.position());
            right
        }
    }
}
