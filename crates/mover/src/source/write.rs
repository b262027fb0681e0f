//! One write: a statement of its table and its bound values, in the bytes in which the protocol carries them.

use super::split::Share;
use super::texts::StatementKind;
use helenus_model::deletion::NO_EXPIRY;

/// Length that stands for null.
const NULL: i32 = -1;
/// Length that stands for a value that is not set (v4 and later).
const UNSET: i32 = -2;

/// The least TTL that CQL takes, seconds: that of what has expired meanwhile.
const LEAST_TTL_S: i64 = 1;

/// Where a TTL is among the bytes, and what it is what is left of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry {
    at: usize,
    expires_s: i64,
}

/// Bound values in order, each a length and its bytes (`[value]` of the native protocol).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    bytes: Vec<u8>,
    count: u16,
    expiry: Option<Expiry>,
}

/// What is left until an expiry, as CQL takes it.
fn ttl_s(expires_s: i64, now_s: i64) -> i32 {
    expires_s.saturating_sub(now_s).clamp(LEAST_TTL_S, i64::from(i32::MAX)) as i32
}

impl Values {
    /// Appends the TTL of the statement: what is left until the expiry, or 0 without one. What is left when the values are sent
    /// is less: see `put_into`.
    pub fn put_ttl(&mut self, expires_s: i64, now_s: i64) {
        if expires_s == NO_EXPIRY {
            return self.put(&0_i32.to_be_bytes());
        }
        self.expiry = Some(Expiry { at: self.bytes.len() + 4, expires_s });
        self.put(&ttl_s(expires_s, now_s).to_be_bytes());
    }

    /// Appends the values to a request that is sent now, as the protocol carries them, without their count. A TTL counts from the
    /// moment at which the target runs the statement, so a write that has waited, or that is sent again, has less of it left.
    pub fn put_into(&self, now_s: i64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let Some(Expiry { at, expires_s }) = self.expiry else { return };
        if let Some(ttl) = out.get_mut(start + at..start + at + size_of::<i32>()) {
            ttl.copy_from_slice(&ttl_s(expires_s, now_s).to_be_bytes());
        }
    }

    /// Appends values that have no TTL among them.
    pub(crate) fn append(&mut self, others: &Values) {
        self.bytes.extend_from_slice(&others.bytes);
        self.count += others.count;
    }

    /// Appends a value.
    pub fn put(&mut self, value: &[u8]) {
        self.bytes.reserve(4 + value.len());
        self.bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// Appends a null.
    pub fn put_null(&mut self) {
        self.bytes.extend_from_slice(&NULL.to_be_bytes());
        self.count += 1;
    }

    /// Appends a value that is not set: its column keeps what it has.
    pub fn put_unset(&mut self) {
        self.bytes.extend_from_slice(&UNSET.to_be_bytes());
        self.count += 1;
    }

    /// Appends a list or set of elements, or a map of alternating keys and values.
    pub(crate) fn put_collection<'v>(&mut self, count: usize, parts: impl Iterator<Item = &'v [u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&(count as i32).to_be_bytes());
        for part in parts {
            self.bytes.extend_from_slice(&(part.len() as i32).to_be_bytes());
            self.bytes.extend_from_slice(part);
        }
        self.end_value(start);
    }

    /// Appends a user type: a value or null for each field.
    pub(super) fn put_fields<'v>(&mut self, fields: impl Iterator<Item = Option<&'v [u8]>>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        for field in fields {
            match field {
                None => self.bytes.extend_from_slice(&NULL.to_be_bytes()),
                Some(bytes) => {
                    self.bytes.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                    self.bytes.extend_from_slice(bytes);
                }
            }
        }
        self.end_value(start);
    }

    fn end_value(&mut self, start: usize) {
        let len = (self.bytes.len() - start - 4) as i32;
        self.bytes[start..start + 4].copy_from_slice(&len.to_be_bytes());
        self.count += 1;
    }

    /// A share of each value. The TTL keeps what it is what is left of.
    pub(super) fn part(&self, shares: &[Share]) -> Values {
        let mut part = Values::default();
        let mut at = 0;
        for (value, share) in self.iter().zip(shares) {
            if let Some(expiry) = self.expiry.filter(|expiry| expiry.at == at + 4) {
                part.expiry = Some(Expiry { at: part.bytes.len() + 4, ..expiry });
            }
            at += 4 + value.map_or(0, <[u8]>::len);
            match (value, share) {
                (_, Share::Unset) | (Err(true), _) => part.put_unset(),
                (Err(false), _) => part.put_null(),
                (Ok(bytes), Share::All) => part.put(bytes),
                (Ok(bytes), share) => part.put(&share.of(bytes)),
            }
        }
        part
    }

    /// Number of values.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The values one by one: `Err(false)` is null, `Err(true)` is not set.
    pub fn iter(&self) -> impl Iterator<Item = Result<&[u8], bool>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk::<4>()?;
            match i32::from_be_bytes(*len) {
                NULL => {
                    rest = after;
                    Some(Err(false))
                }
                UNSET => {
                    rest = after;
                    Some(Err(true))
                }
                len => {
                    let (value, after) = after.split_at_checked(usize::try_from(len).ok()?)?;
                    rest = after;
                    Some(Ok(value))
                }
            }
        })
    }
}

/// One write of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its statement.
    pub kind: StatementKind,
    /// The bound values.
    pub values: Values,
}

impl Write {
    /// An estimate of its bytes in a mutation and in a batch.
    pub fn bytes(&self) -> usize {
        /// Kind, id of a prepared statement, count; or the clustering's and the cells' headers in a mutation.
        const HEAD_BYTES: usize = 21;
        HEAD_BYTES + self.values.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever stands around it, and however long the write has waited, the TTL ends at the expiry.
    #[test]
    fn a_ttl_is_what_is_left_when_the_values_are_sent() {
        const NOW_S: i64 = 1_795_000_000;
        for (before, after) in [(0, 0), (1, 0), (0, 2), (3, 5)] {
            for left_s in [-10, 0, 1, 2, 35, 36, 37, 86_400, i64::from(i32::MAX) + 50] {
                for waited_s in [0, 1, 36, 100_000] {
                    let mut values = Values::default();
                    (0..before).for_each(|at| values.put(&vec![7; at]));
                    values.put_ttl(NOW_S + left_s, NOW_S);
                    (0..after).for_each(|_| values.put_unset());
                    let as_encoded = values.clone();
                    let mut out = b"head".to_vec();
                    values.put_into(NOW_S + waited_s, &mut out);
                    let sent = Values { bytes: out.split_off(4), ..values };
                    let ttl = |values: &Values| {
                        let ttl = values.iter().nth(before).unwrap().unwrap();
                        i64::from(i32::from_be_bytes(ttl.try_into().unwrap()))
                    };
                    let wanted = |left_s: i64| left_s.clamp(1, i64::from(i32::MAX));
                    assert_eq!(ttl(&as_encoded), wanted(left_s));
                    assert_eq!(
                        ttl(&sent),
                        wanted(left_s - waited_s),
                        "{left_s} s left, sent after {waited_s} s"
                    );
                    let others = |values: &Values| -> Vec<_> {
                        let all = values.iter().map(|value| value.map(<[u8]>::to_vec));
                        all.enumerate().filter(|(at, _)| *at != before).collect()
                    };
                    assert_eq!(others(&sent), others(&as_encoded));
                }
            }
        }
        let mut values = Values::default();
        values.put_ttl(NO_EXPIRY, NOW_S);
        let mut out = Vec::new();
        values.put_into(NOW_S + 1_000, &mut out);
        assert_eq!(out, [0, 0, 0, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn values_are_read_back_as_they_were_put() {
        let mut values = Values::default();
        values.put(b"ab");
        values.put_null();
        values.put_unset();
        values.put(b"");
        values.put_collection(2, [&b"x"[..], b""].into_iter());
        assert_eq!(values.count(), 5);
        let read: Vec<_> = values.iter().collect();
        let collection = [0, 0, 0, 2, 0, 0, 0, 1, b'x', 0, 0, 0, 0];
        assert_eq!(read, [Ok(&b"ab"[..]), Err(false), Err(true), Ok(b""), Ok(&collection)]);
    }
}
