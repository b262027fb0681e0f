//! Reads over ranges of rows: get_range_slices and get_paged_slice, in token order.

use super::sink::{ColumnSink, Envelope};
use crate::call_options::CallOptions;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::predicate::Wanted;
use crate::validate::check_read_level;
use helenus_engine::read::{KeyRange as Positions, PartitionKey, Partitions, ReadCommand};
use helenus_model::byte_comparable::{decorated_key_bound, token_bound};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, Limits, Slice};
use helenus_model::token::Token;
use helenus_wire::thrift::{Field, IndexExpression, KeyRange, Reader, Type, args, put_list};

/// A range of rows, with filter expressions and a limit.
pub(crate) struct RowRange<'a> {
    pub(crate) range: Positions,
    /// The expressions that each row must match; empty: all rows match.
    pub(crate) expressions: &'a [IndexExpression<'a>],
    pub(crate) count: i32,
}

/// Which rows of token ranges a call asks for.
#[derive(Clone, Copy)]
pub(super) struct RowFilter<'a> {
    /// The expressions that each row must match; empty: all rows match.
    pub(super) expressions: &'a [IndexExpression<'a>],
    /// The greatest number of rows.
    pub(super) count: i32,
}

impl Rpc {
    pub(crate) fn get_range_slices(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::GetRangeSlices::read(reader)?;
        let family = self.family(work.session, asked.column_parent.column_family)?;
        let wanted = self.wanted(&family, &asked.column_parent, &asked.predicate, asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        check_key_range(&asked.range)?;
        let filter = asked.range.row_filter.as_deref().unwrap_or_default();
        if !filter.is_empty() && asked.column_parent.super_column.is_some() {
            return invalid("super columns are not supported for indexing");
        }
        let filter = RowFilter { expressions: filter, count: asked.range.count };
        self.rows_of(&family, spans(&asked.range)?, filter, &wanted, work)
    }

    pub(crate) fn get_paged_slice(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::GetPagedSlice::read(reader)?;
        let family = self.family(work.session, asked.column_family)?;
        check_key_range(&asked.range)?;
        check_read_level(asked.consistency_level)?;
        work.manner.at(asked.consistency_level);
        if asked.range.row_filter.as_ref().is_some_and(|filter| !filter.is_empty()) {
            return invalid("Cross-row paging is not supported along with index clauses");
        }
        if !asked.start_column.is_empty() {
            family.comparator_within(None).validate(asked.start_column)?;
        }
        self.pages(&family, &asked, work)
    }

    /// Answers with up to `count` rows of some token ranges, including rows without any of the wanted columns.
    pub(super) fn rows_of(
        &self,
        family: &Family,
        spans: Vec<Positions>,
        filter: RowFilter<'_>,
        wanted: &Wanted,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let RowFilter { expressions, count } = filter;
        work.reply.begin_success(Type::List, work.out);
        put_list(Type::Struct, 0, work.out);
        let count_at = work.out.len() - 4;
        let mut rows = 0_i32;
        for range in spans {
            let asked = RowRange { range, expressions, count: count.saturating_sub(rows) };
            let given = self.rows_of_range(family, asked, wanted, (work.manner, work.out))?;
            rows = rows.saturating_add(i32::try_from(given).unwrap_or(i32::MAX));
            if rows >= count {
                break;
            }
        }
        work.out[count_at..count_at + 4].copy_from_slice(&rows.to_be_bytes());
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    /// Writes rows of a token range as `KeySlice`s. Returns their number.
    pub(crate) fn rows_of_range(
        &self,
        family: &Family,
        asked: RowRange<'_>,
        wanted: &Wanted,
        (manner, out): (CallOptions<'_>, &mut Vec<u8>),
    ) -> Result<u64> {
        if !asked.expressions.is_empty() {
            return self.filtered(family, asked, wanted, (manner, out));
        }
        let command = ReadCommand {
            partitions: Partitions::Range(asked.range),
            limits: Limits { rows: u64::try_from(asked.count).unwrap_or(0), per_partition: u64::MAX },
            ..self.command(family, Vec::new(), wanted)
        };
        let mut slicer = ColumnSink::new(family, wanted, command.now_s, Envelope::KeySlice, out);
        self.run_read(&command, &mut slicer, manner)?;
        Ok(slicer.rows)
    }

    /// Writes rows by key as `KeySlice`s, including rows that do not exist.
    pub(crate) fn rows_by_key(
        &self,
        family: &Family,
        keys: &[Vec<u8>],
        wanted: &Wanted,
        (manner, out): (CallOptions<'_>, &mut Vec<u8>),
    ) -> Result<()> {
        for key in keys {
            let command = self.command(family, vec![PartitionKey::new(key.clone())], wanted);
            let mut slicer = ColumnSink::new(family, wanted, command.now_s, Envelope::KeySlice, out);
            self.run_read(&command, &mut slicer, manner)?;
            if slicer.rows == 0 {
                slicer.put_empty(key);
            }
        }
        Ok(())
    }

    /// Answers with `asked.range.count` columns from consecutive rows; in the first row from `start_column` on.
    fn pages(
        &self,
        family: &Family,
        asked: &args::GetPagedSlice<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        work.reply.begin_success(Type::List, work.out);
        put_list(Type::Struct, 0, work.out);
        let count_at = work.out.len() - 4;
        let mut rows = 0;
        let mut left = u64::try_from(asked.range.count).unwrap_or(0);
        let mut start = asked.start_column;
        for mut span in spans(&asked.range)? {
            while left > 0 {
                // Reads only the first row of the range; the next iteration continues after it.
                let wanted = paged_from(family, std::mem::take(&mut start), left)?;
                let command = ReadCommand {
                    partitions: Partitions::Range(span.clone()),
                    limits: Limits { rows: 1, per_partition: u64::MAX },
                    ..self.command(family, Vec::new(), &wanted)
                };
                let at = work.out.len();
                let mut slicer =
                    ColumnSink::new(family, &wanted, command.now_s, Envelope::KeySlice, work.out);
                slicer.keys = Some(Vec::new());
                self.run_read(&command, &mut slicer, work.manner)?;
                let (given, keys) = (slicer.given, slicer.keys.take().unwrap_or_default());
                let Some(key) = keys.last() else { break };
                span.start = key_position(key, false);
                if given == 0 {
                    work.out.truncate(at);
                    continue;
                }
                rows += 1;
                left = left.saturating_sub(given);
            }
        }
        work.out[count_at..count_at + 4].copy_from_slice(&(rows as u32).to_be_bytes());
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }
}

fn paged_from(family: &Family, start: &[u8], limit: u64) -> Result<Wanted> {
    let mut slice = Slice::all();
    slice.start.clear();
    family.comparator_within(None).put_bound(start, true, &mut slice.start)?;
    Ok(Wanted { limit, ..Wanted::slices(family, vec![slice]) })
}

/// Validates the range of rows (`ThriftValidation.validateKeyRange`).
fn check_key_range(range: &KeyRange<'_>) -> Result<()> {
    if range.start_key.is_none() == range.start_token.is_none()
        || range.end_key.is_none() == range.end_token.is_none()
    {
        return invalid(
            "exactly one each of {start key, start token} and {end key, end token} must be specified",
        );
    }
    if range.start_token.is_some() && range.end_key.is_some() {
        return invalid("start token + end key is not a supported key range");
    }
    if let (Some(start), Some(end)) = (range.start_key, range.end_key)
        && token_of(start) > token_of(end)
        && token_of(end) != Token::MIN
    {
        return invalid(
            "start key's token sorts after end key's token.  this is not allowed; you probably should not specify end key \
             at all except with an ordered partitioner",
        );
    }
    if let (Some(start), Some(end)) = (range.start_key, range.end_token) {
        let end = token(end)?;
        if token_of(start) > end && end != Token::MIN {
            return invalid("Start key's token sorts after end token");
        }
    }
    if range.count <= 0 {
        return invalid("maxRows must be positive");
    }
    Ok(())
}

/// The token of a key; an empty key has the least token.
fn token_of(key: &[u8]) -> Token {
    if key.is_empty() { Token::MIN } else { Token::of_key(key) }
}

/// Parses a token.
pub(crate) fn token(text: &str) -> Result<Token> {
    match text.parse() {
        Ok(number) => Ok(Token(number)),
        Err(_) => invalid(format!("For input string: \"{text}\"")),
    }
}

/// The position ranges of a key range: two if it wraps around. Start and end keys are included; a start token is
/// excluded, an end token is included.
pub(crate) fn spans(range: &KeyRange<'_>) -> Result<Vec<Positions>> {
    let after = |token: Token| {
        let mut position = Vec::new();
        token_bound(token, false, &mut position);
        position
    };
    let end_of = |token: Token| if token == Token::MIN { AFTER_ALL.to_vec() } else { after(token) };
    let (start, end) = match (range.start_key, range.start_token) {
        (Some(key), _) => {
            let start = key_position(key, true);
            let end = match (range.end_key, range.end_token) {
                (Some([]), _) | (None, None) => AFTER_ALL.to_vec(),
                (Some(key), _) => key_position(key, false),
                (None, Some(text)) => end_of(token(text)?),
            };
            (start, end)
        }
        (None, Some(text)) => {
            let (left, right) = (token(text)?, token(range.end_token.unwrap_or_default())?);
            if left >= right && right != Token::MIN {
                // The range wraps around, or covers the whole ring.
                let first = Positions { start: start_behind(left), end: AFTER_ALL.to_vec() };
                let second = Positions { start: BEFORE_ALL.to_vec(), end: after(right) };
                return Ok(vec![first, second]);
            }
            (start_behind(left), end_of(right))
        }
        (None, None) => (BEFORE_ALL.to_vec(), AFTER_ALL.to_vec()),
    };
    Ok(vec![Positions { start, end }])
}

fn start_behind(token: Token) -> Vec<u8> {
    let mut position = Vec::new();
    if token != Token::MIN {
        token_bound(token, false, &mut position);
    }
    position
}

/// The position before or after a row.
pub(crate) fn key_position(key: &[u8], before: bool) -> Vec<u8> {
    let mut position = Vec::new();
    if !key.is_empty() {
        decorated_key_bound(Token::of_key(key), key, before, &mut position);
    }
    position
}

/// All rows from a key on.
pub(crate) fn from_key(key: &[u8]) -> Positions {
    Positions { start: key_position(key, true), end: AFTER_ALL.to_vec() }
}
