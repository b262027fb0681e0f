//! Cuts a write into several of the same effect: a request that is too large for a node's frame goes in parts.
//!
//! All parts have the timestamp and the TTL of the whole. An INSERT is cut into INSERTs of fewer columns, with the same marker; one that
//! assigns a collection deletes what is older than itself (`UpdateParameters.setComplexDeletionTimeForOverwrite`), so that several of them with
//! elements of it add up. A cell is never cut.

use super::texts::{StatementKind, written_columns};
use super::write::Write;
use helenus_model::schema::{Column, Table};
use helenus_model::types::CqlType;

/// Bytes of a write that is cut. A node refuses messages of more than `native_transport_max_message_size`, by default the size of a
/// mutation (16 MiB), or less with a small heap; a cell alone needs room for itself there.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// How a bound value can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It is part of every write: a key, a timestamp, a TTL.
    Always,
    /// It goes with one of the writes.
    Whole,
    /// A list or set, by elements.
    Elements,
    /// A map, by entries.
    Entries,
    /// A user type, by fields: those that are null are not written (`UserTypes.Setter`).
    Fields,
}

/// A piece of a value: which value, its first element and the one behind its last.
#[derive(Clone, Copy, Debug)]
struct Piece {
    value: usize,
    elements: Option<(usize, usize)>,
    bytes: usize,
}

/// The write in parts of at most `part_bytes`, or of one cell; the write itself if it is small enough or cannot be cut.
pub fn in_parts(table: &Table, write: &Write, part_bytes: usize) -> Vec<Write> {
    let cuts = cuts(table, write.kind, usize::from(write.values.count()));
    if write.bytes() <= part_bytes || cuts.iter().all(|cut| *cut == Cut::Always) {
        return vec![write.clone()];
    }
    let values: Vec<Result<&[u8], bool>> = write.values.iter().collect();
    let always = cuts.iter().zip(&values).filter(|(cut, _)| **cut == Cut::Always);
    let room =
        part_bytes.saturating_sub(always.map(|(_, value)| value.map_or(4, |value| value.len() + 4)).sum());
    let mut parts: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut used = 0;
    for piece in pieces(&cuts, &values) {
        if used + piece.bytes > room && used > 0 {
            parts.push(Vec::new());
            used = 0;
        }
        used += piece.bytes;
        let Some(part) = parts.last_mut() else { continue };
        match (part.last_mut(), piece.elements) {
            // The next element of the same value.
            (Some(Piece { value, elements: Some((_, end)), .. }), Some((_, next)))
                if *value == piece.value =>
            {
                *end = next;
            }
            _ => part.push(piece),
        }
    }
    let part =
        |pieces: &Vec<Piece>| Write { kind: write.kind, values: write.values.part(&of_part(&cuts, pieces)) };
    parts.iter().map(part).collect()
}

/// How the values of a statement can be cut, in order.
fn cuts(table: &Table, kind: StatementKind, count: usize) -> Vec<Cut> {
    let stamps = || vec![Cut::Always; 2];
    let mut cuts = match kind {
        StatementKind::Insert => {
            let keys = vec![Cut::Always; table.partition_key.len() + table.clustering.len()];
            let values = written_columns(table, false).map(|column| cut_of(&column.ty));
            keys.into_iter().chain(values).collect()
        }
        StatementKind::Update | StatementKind::UpdatePrefix(_) => [stamps(), assigned(table, false)].concat(),
        StatementKind::UpdateStatic => [stamps(), assigned(table, true)].concat(),
        StatementKind::Remove(_) => vec![Cut::Always, Cut::Elements],
        StatementKind::Append(_) => [stamps(), vec![Cut::Elements]].concat(),
        StatementKind::DeleteColumn(_)
        | StatementKind::DeleteRow
        | StatementKind::DeleteRange(_)
        | StatementKind::DeletePartition
        | StatementKind::InsertPrefix(_) => Vec::new(),
    };
    cuts.resize(count, Cut::Always);
    cuts
}

/// The values of UPDATE, where a user type of several cells has one for each field.
fn assigned(table: &Table, is_static: bool) -> Vec<Cut> {
    let of_column = |column: &Column| match &column.ty {
        CqlType::Udt(udt) if !udt.frozen => vec![Cut::Whole; udt.fields.len()],
        ty => vec![cut_of(ty)],
    };
    written_columns(table, is_static).flat_map(of_column).collect()
}

fn cut_of(ty: &CqlType) -> Cut {
    match ty {
        CqlType::Set { frozen: false, .. } => Cut::Elements,
        CqlType::Map { frozen: false, .. } => Cut::Entries,
        CqlType::Udt(udt) if !udt.frozen => Cut::Fields,
        _ => Cut::Whole,
    }
}

fn pieces(cuts: &[Cut], values: &[Result<&[u8], bool>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (value, (cut, bytes)) in cuts.iter().zip(values).enumerate() {
        let (cut, bytes) = match (cut, bytes) {
            // Always there, or not set.
            (Cut::Always, _) | (_, Err(true)) => continue,
            (_, Err(false)) => (Cut::Whole, &[][..]),
            (cut, Ok(bytes)) => (*cut, *bytes),
        };
        let lengths: Vec<usize> = elements(cut, bytes).map(<[u8]>::len).collect();
        if cut == Cut::Whole || lengths.is_empty() {
            pieces.push(Piece { value, elements: None, bytes: bytes.len() + 4 });
            continue;
        }
        let of_element =
            |(at, bytes): (usize, &usize)| Piece { value, elements: Some((at, at + 1)), bytes: *bytes };
        pieces.extend(lengths.iter().enumerate().map(of_element));
    }
    pieces
}

/// The elements of a value with their lengths before them; an entry of a map is one.
fn elements(cut: Cut, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let of_one = if cut == Cut::Entries { 2 } else { 1 };
    let mut rest: &[u8] = match cut {
        Cut::Always | Cut::Whole => &[],
        Cut::Fields => bytes,
        Cut::Elements | Cut::Entries => bytes.get(4..).unwrap_or_default(),
    };
    std::iter::from_fn(move || {
        let whole = rest;
        for _ in 0..of_one {
            let (len, after) = rest.split_first_chunk::<4>()?;
            rest = after.get(usize::try_from(i32::from_be_bytes(*len)).unwrap_or(0)..)?;
        }
        whole.get(..whole.len() - rest.len())
    })
}

/// What a part has of each value: all of it, nothing, or these bytes.
#[derive(Clone, Debug)]
pub(super) enum Share {
    All,
    Unset,
    /// Elements from one to another, behind their count.
    Elements(usize, usize),
    Entries(usize, usize),
    /// The fields from one to another; the others are null.
    Fields(usize, usize),
}

fn of_part(cuts: &[Cut], pieces: &[Piece]) -> Vec<Share> {
    let share = |(at, cut): (usize, &Cut)| match (cut, pieces.iter().find(|piece| piece.value == at)) {
        (Cut::Always, _) => Share::All,
        (_, None) => Share::Unset,
        (Cut::Elements, Some(Piece { elements: Some((from, end)), .. })) => Share::Elements(*from, *end),
        (Cut::Entries, Some(Piece { elements: Some((from, end)), .. })) => Share::Entries(*from, *end),
        (Cut::Fields, Some(Piece { elements: Some((from, end)), .. })) => Share::Fields(*from, *end),
        (_, Some(_)) => Share::All,
    };
    cuts.iter().enumerate().map(share).collect()
}

impl Share {
    /// The bytes of this share of a value.
    pub(super) fn of(&self, bytes: &[u8]) -> Vec<u8> {
        let joined = |cut: Cut, from: usize, end: usize| {
            let parts: Vec<&[u8]> = elements(cut, bytes).skip(from).take(end - from).collect();
            let mut out = (parts.len() as i32).to_be_bytes().to_vec();
            parts.iter().for_each(|part| out.extend_from_slice(part));
            out
        };
        match *self {
            Share::All | Share::Unset => bytes.to_vec(),
            Share::Elements(from, end) => joined(Cut::Elements, from, end),
            Share::Entries(from, end) => joined(Cut::Entries, from, end),
            Share::Fields(from, end) => {
                let mut out = Vec::new();
                for (at, field) in elements(Cut::Fields, bytes).enumerate() {
                    match (from..end).contains(&at) {
                        true => out.extend_from_slice(field),
                        false => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                    }
                }
                out
            }
        }
    }
}
