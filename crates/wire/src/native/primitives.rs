//! Reads and writes the notations of the protocol (`[int]`, `[string]`, `[bytes]`, ...).
//!
//! Every read first checks the number of bytes left and allocates nothing, so a length on the wire costs at most the
//! bytes that have arrived. All numbers are big endian (specification section 3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uuid::Uuid;

use super::{Consistency, Version};
use crate::WireError;

/// Bytes of a malformed string that an error keeps.
const BAD_STRING_KEPT: usize = 32;

/// A bound value of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The bytes of a value, possibly empty.
    Bytes(&'a [u8]),
    /// Null, which deletes the cell.
    Null,
    /// Since v4: leaves the cell unchanged.
    Unset,
}

impl<'a> Value<'a> {
    /// The bytes, if there are any.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        }
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

/// Reads notations from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { left: bytes }
    }

    /// The bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// The bytes between `self` and `later`, a reader further along the same bytes.
    pub(crate) fn passed_by(&self, later: &Reader<'a>) -> &'a [u8] {
        let passed = self.left.len().saturating_sub(later.left.len());
        self.left.get(..passed).unwrap_or_default()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        match self.left.split_at_checked(count) {
            Some((head, tail)) => {
                self.left = tail;
                Ok(head)
            }
            None => Err(WireError::Truncated { needed: count as u64, left: self.left.len() as u64 }),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        match self.left.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.left = tail;
                Ok(*head)
            }
            None => Err(WireError::Truncated { needed: N as u64, left: self.left.len() as u64 }),
        }
    }

    /// `[byte]`
    #[inline]
    pub fn byte(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// `[short]`, unsigned
    #[inline]
    pub fn short(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    /// `[int]`
    #[inline]
    pub fn int(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    /// `[long]`
    #[inline]
    pub fn long(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_be_bytes)
    }

    /// `[uuid]`
    pub fn uuid(&mut self) -> Result<Uuid, WireError> {
        self.array().map(Uuid::from_bytes)
    }

    /// `[consistency]`
    #[inline]
    pub fn consistency(&mut self) -> Result<Consistency, WireError> {
        Consistency::from_code(self.short()?)
    }

    /// `[string]`
    pub fn string(&mut self) -> Result<&'a str, WireError> {
        let short = WireError::ShortOfString { prefix: 2 };
        let Ok(length) = self.short() else { return Err(short) };
        let Ok(bytes) = self.take(usize::from(length)) else { return Err(short) };
        utf8(bytes)
    }

    /// `[long string]`; a negative length is treated as one that exceeds the message, as in Cassandra.
    pub fn long_string(&mut self) -> Result<&'a str, WireError> {
        let short = WireError::ShortOfString { prefix: 4 };
        let Some(length) = self.int().ok().and_then(|length| usize::try_from(length).ok()) else {
            return Err(short);
        };
        let Ok(bytes) = self.take(length) else { return Err(short) };
        utf8(bytes)
    }

    /// `[short bytes]`
    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let Ok(length) = self.short() else { return Err(WireError::ShortOfBytes) };
        self.take(usize::from(length)).map_err(|_| WireError::ShortOfBytes)
    }

    /// `[bytes]`; any negative length is null.
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take_value(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    #[inline]
    fn take_value(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let left = self.left.len() as u64;
        self.take(length).map_err(|_| WireError::ValueTooLong { length: length as u64, left })
    }

    /// `[value]`: before v4 every negative length is null; since v4, -2 means unset and less is an error.
    #[inline]
    pub fn value(&mut self, version: Version) -> Result<Value<'a>, WireError> {
        let length = self.int()?;
        match usize::try_from(length) {
            Ok(length) => self.take_value(length).map(Value::Bytes),
            Err(_) if length == -1 || version < Version::V4 => Ok(Value::Null),
            Err(_) if length == -2 => Ok(Value::Unset),
            Err(_) => Err(WireError::InvalidValueLength { length }),
        }
    }

    /// `[inetaddr]`: an address without port.
    pub fn inet_addr(&mut self) -> Result<IpAddr, WireError> {
        match self.byte()? {
            4 => self.array().map(|bytes: [u8; 4]| IpAddr::V4(Ipv4Addr::from(bytes))),
            16 => self.array().map(|bytes: [u8; 16]| IpAddr::V6(Ipv6Addr::from(bytes))),
            length => Err(WireError::InvalidAddress { length }),
        }
    }

    /// `[inet]`: an address and a port, of which only the low 16 bits are used.
    pub fn inet(&mut self) -> Result<SocketAddr, WireError> {
        let address = self.inet_addr()?;
        let port = self.int()? as u32 & 0xFFFF;
        Ok(SocketAddr::new(address, port as u16))
    }

    /// `[string list]`
    pub fn string_list(&mut self) -> Result<StringList<'a>, WireError> {
        let count = self.short()?;
        let start = *self;
        for _ in 0..count {
            self.string()?;
        }
        Ok(StringList { count, bytes: start.passed_by(self) })
    }

    /// `[string map]`
    pub fn string_map(&mut self) -> Result<StringMap<'a>, WireError> {
        let count = self.short()?;
        let start = *self;
        for _ in 0..count {
            self.string()?;
            self.string()?;
        }
        Ok(StringMap { count, bytes: start.passed_by(self) })
    }

    /// `[string multimap]`
    pub fn string_multimap(&mut self) -> Result<StringMultimap<'a>, WireError> {
        let count = self.short()?;
        let start = *self;
        for _ in 0..count {
            self.string()?;
            self.string_list()?;
        }
        Ok(StringMultimap { count, bytes: start.passed_by(self) })
    }

    /// `[bytes map]`
    pub fn bytes_map(&mut self) -> Result<BytesMap<'a>, WireError> {
        let count = self.short()?;
        let start = *self;
        for _ in 0..count {
            self.string()?;
            self.bytes()?;
        }
        Ok(BytesMap { count, bytes: start.passed_by(self) })
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = error.valid_up_to();
        let rest = bytes.iter().skip(valid).take(BAD_STRING_KEPT).copied().collect();
        WireError::NotUtf8 { valid, rest }
    })
}

/// Defines a checked, borrowed list. Its iterator uses one closure, which reads an element.
macro_rules! borrowed_list {
    ($(#[$doc:meta])* $name:ident yields $item:ty, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<'a> {
            count: u16,
            bytes: &'a [u8],
        }

        impl<'a> $name<'a> {
            /// The number of elements.
            pub fn len(&self) -> usize {
                usize::from(self.count)
            }

            /// Whether the list is empty.
            pub fn is_empty(&self) -> bool {
                self.count == 0
            }

            /// The elements in wire order.
            pub fn iter(&self) -> impl Iterator<Item = $item> + use<'a> {
                let mut reader = Reader::new(self.bytes);
                let read: fn(&mut Reader<'a>) -> Result<$item, WireError> = $read;
                (0..self.count).map_while(move |_| read(&mut reader).ok())
            }
        }
    };
}

borrowed_list! {
    /// A checked `[string list]`, read in place.
    StringList yields &'a str, |reader| reader.string()
}
borrowed_list! {
    /// A checked `[string map]`, read in place.
    StringMap yields (&'a str, &'a str), |reader| Ok((reader.string()?, reader.string()?))
}
borrowed_list! {
    /// A checked `[string multimap]`, read in place.
    StringMultimap yields (&'a str, StringList<'a>), |reader| Ok((reader.string()?, reader.string_list()?))
}
borrowed_list! {
    /// A checked `[bytes map]`, read in place.
    BytesMap yields (&'a str, Option<&'a [u8]>), |reader| Ok((reader.string()?, reader.bytes()?))
}

impl<'a> StringMap<'a> {
    /// The value of the last entry whose key equals `key`, ignoring case. (Cassandra puts STARTUP's keys in upper case
    /// into a hash map, where the last one wins.)
    pub fn get_ignoring_case(&self, key: &str) -> Option<&'a str> {
        self.iter().filter(|(k, _)| k.eq_ignore_ascii_case(key)).last().map(|(_, value)| value)
    }
}

/// Appends notations to a buffer.
///
/// On lengths that do not fit: a `[string]` is cut at a character (only texts of errors and warnings can be that long).
/// The caller keeps list counts and `[short bytes]` under 65 536, which the request encoders check.
pub trait Put {
    /// `[byte]`
    fn put_byte(&mut self, value: u8);
    /// `[short]`
    fn put_short(&mut self, value: u16);
    /// `[int]`
    fn put_int(&mut self, value: i32);
    /// `[long]`
    fn put_long(&mut self, value: i64);
    /// Bytes without a length.
    fn put_raw(&mut self, bytes: &[u8]);

    /// `[consistency]`
    fn put_consistency(&mut self, value: Consistency) {
        self.put_short(value.code());
    }

    /// `[string]`, cut to 65 535 bytes.
    fn put_string(&mut self, text: &str) {
        let mut end = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = text.as_bytes().get(..end).unwrap_or_default();
        self.put_short(end as u16);
        self.put_raw(bytes);
    }

    /// `[short bytes]`, cut to 65 535 bytes.
    fn put_short_bytes(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(..usize::from(u16::MAX)).unwrap_or(bytes);
        self.put_short(bytes.len() as u16);
        self.put_raw(bytes);
    }

    /// `[bytes]` that is not null. It cannot exceed `i32::MAX`, because the envelope would be refused at its end.
    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_int(bytes.len() as i32);
        self.put_raw(bytes);
    }

    /// `[bytes]`, null for `None`.
    fn put_optional_bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.put_bytes(bytes),
            None => self.put_int(-1),
        }
    }

    /// `[string list]`; elements after the 65 535th are omitted.
    fn put_string_list<S: AsRef<str>>(&mut self, list: &[S]) {
        let list = list.get(..usize::from(u16::MAX)).unwrap_or(list);
        self.put_short(list.len() as u16);
        for text in list {
            self.put_string(text.as_ref());
        }
    }

    /// `[inetaddr]`
    fn put_inet_addr(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => {
                self.put_byte(4);
                self.put_raw(&v4.octets());
            }
            IpAddr::V6(v6) => {
                self.put_byte(16);
                self.put_raw(&v6.octets());
            }
        }
    }

    /// `[inet]`
    fn put_inet(&mut self, address: SocketAddr) {
        self.put_inet_addr(address.ip());
        self.put_int(i32::from(address.port()));
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put_byte(&mut self, value: u8) {
        self.push(value);
    }

    #[inline]
    fn put_short(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_int(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_long(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Overwrites the existing `[int]` at offset `at`.
pub(crate) fn patch_int(out: &mut [u8], at: usize, value: i32) {
    if let Some(place) = out.get_mut(at..at.saturating_add(4)) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Appends a `[value]`.
pub(crate) fn put_value(out: &mut Vec<u8>, value: Value<'_>, version: Version) {
    match value {
        Value::Bytes(bytes) => out.put_bytes(bytes),
        Value::Unset if version >= Version::V4 => out.put_int(-2),
        Value::Null | Value::Unset => out.put_int(-1),
    }
}
