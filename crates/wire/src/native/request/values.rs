//! The bound values of a request, read in place.

use crate::WireError;
use crate::native::Version;
use crate::native::primitives::{Put, Reader, Value, put_value};

/// The values of one statement: `<n>[name_1]<value_1>...`, checked, in wire order.
///
/// A server gets them from [`super::decode_request`] and reads them in place; a client makes them from a slice.
/// Iterating over them costs nothing. To access them by number, fill a [`ValueIndex`], which can be reused for further
/// requests.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    source: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Wire { count: u16, bytes: &'a [u8], named: bool, version: Version },
    Positional(&'a [Value<'a>]),
    Named(&'a [(&'a str, Value<'a>)]),
}

impl<'a> Values<'a> {
    /// No values.
    pub const NONE: Values<'static> = Values { source: Source::Positional(&[]) };

    /// Values in the order of the markers, for a client.
    pub fn positional(values: &'a [Value<'a>]) -> Self {
        Values { source: Source::Positional(values) }
    }

    /// Values by the names of the markers, for a client.
    pub fn named(values: &'a [(&'a str, Value<'a>)]) -> Self {
        Values { source: Source::Named(values) }
    }

    /// Checks `<n>` and the values once.
    pub(crate) fn read(
        reader: &mut Reader<'a>,
        version: Version,
        named: bool,
    ) -> Result<Values<'a>, WireError> {
        let count = reader.short()?;
        let start = *reader;
        for _ in 0..count {
            if named {
                reader.string()?;
            }
            reader.value(version)?;
        }
        Ok(Values { source: Source::Wire { count, bytes: start.passed_by(reader), named, version } })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self.source {
            Source::Wire { count, .. } => usize::from(count),
            Source::Positional(values) => values.len(),
            Source::Named(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the values are named.
    pub fn has_names(&self) -> bool {
        matches!(self.source, Source::Wire { named: true, .. } | Source::Named(_))
    }

    /// The values in order, with their names if they are named.
    pub fn iter(&self) -> ValuesIter<'a> {
        let rest = match self.source {
            Source::Wire { bytes, .. } => bytes,
            Source::Positional(_) | Source::Named(_) => &[],
        };
        ValuesIter { source: self.source, next: 0, reader: Reader::new(rest) }
    }

    /// Appends `<n>` and the values. Before v4, which has no unset values, `Unset` becomes null.
    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        let Ok(count) = u16::try_from(self.len()) else {
            let count = self.len() as u64;
            return Err(WireError::TooMany { count, max: u64::from(u16::MAX), of: "values" });
        };
        out.put_short(count);
        for (name, value) in self.iter() {
            if let Some(name) = name {
                out.put_string(name);
            }
            put_value(out, value, version);
        }
        Ok(())
    }
}

impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// See [`Values::iter`].
#[derive(Clone, Debug)]
pub struct ValuesIter<'a> {
    source: Source<'a>,
    next: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for ValuesIter<'a> {
    type Item = (Option<&'a str>, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        self.next += 1;
        match self.source {
            Source::Wire { count, .. } if at >= usize::from(count) => None,
            Source::Wire { named, version, .. } => {
                let name = if named { Some(self.reader.string().ok()?) } else { None };
                Some((name, self.reader.value(version).ok()?))
            }
            Source::Positional(values) => values.get(at).map(|value| (None, *value)),
            Source::Named(values) => values.get(at).map(|(name, value)| (Some(*name), *value)),
        }
    }
}

/// The offset of each value of a [`Values`], to access values by number without iterating.
///
/// It borrows nothing, so one index serves many requests with one allocation.
#[derive(Clone, Debug, Default)]
pub struct ValueIndex {
    starts: Vec<u32>,
}

impl ValueIndex {
    /// Fills the index for `values`.
    pub fn fill(&mut self, values: &Values<'_>) {
        self.starts.clear();
        let Source::Wire { count, bytes, named, version } = values.source else { return };
        let mut reader = Reader::new(bytes);
        for _ in 0..count {
            if named && reader.string().is_err() {
                return;
            }
            self.starts.push((bytes.len() - reader.rest().len()) as u32);
            if reader.value(version).is_err() {
                return;
            }
        }
    }

    /// The value with this number. `values` must be those that the index was filled for.
    #[inline]
    pub fn get<'a>(&self, values: &Values<'a>, number: usize) -> Option<Value<'a>> {
        match values.source {
            Source::Wire { bytes, version, .. } => {
                let start = usize::try_from(*self.starts.get(number)?).ok()?;
                Reader::new(bytes.get(start..)?).value(version).ok()
            }
            Source::Positional(values) => values.get(number).copied(),
            Source::Named(values) => values.get(number).map(|(_, value)| *value),
        }
    }
}
