//! Thrift's binary protocol: big-endian numbers; a length before each string and container; a type and a number before
//! each field.
//!
//! No length is trusted: a string must be completely there, and a container must have enough bytes left for the
//! smallest elements of its type, so that nothing is allocated for data that does not arrive.

use super::ThriftError;

/// The deepest nesting of structs and containers that is read.
pub const DEPTH_MAX: usize = 32;

/// The types of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "Thrift's own names")]
pub enum Type {
    Stop = 0,
    Bool = 2,
    Byte = 3,
    Double = 4,
    I16 = 6,
    I32 = 8,
    I64 = 10,
    String = 11,
    Struct = 12,
    Map = 13,
    Set = 14,
    List = 15,
}

impl Type {
    fn of(byte: u8) -> Result<Type, ThriftError> {
        const ALL: [Type; 12] = [
            Type::Stop,
            Type::Bool,
            Type::Byte,
            Type::Double,
            Type::I16,
            Type::I32,
            Type::I64,
            Type::String,
            Type::Struct,
            Type::Map,
            Type::Set,
            Type::List,
        ];
        ALL.into_iter().find(|ty| *ty as u8 == byte).ok_or(ThriftError::UnknownType(byte))
    }

    /// The least number of bytes of a value of this type.
    fn bytes_min(self) -> usize {
        match self {
            Type::Stop => 0,
            Type::Bool | Type::Byte | Type::Struct => 1,
            Type::I16 => 2,
            Type::I32 | Type::String => 4,
            Type::Set | Type::List => 5,
            Type::Map => 6,
            Type::Double | Type::I64 => 8,
        }
    }
}

/// Reads values from a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, depth: 0 }
    }

    /// The bytes that have not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ThriftError> {
        let (array, rest) = self.bytes.split_first_chunk::<N>().ok_or(ThriftError::Short)?;
        self.bytes = rest;
        Ok(*array)
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, ThriftError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A 16-bit number.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, ThriftError> {
        self.array().map(i16::from_be_bytes)
    }

    /// A 32-bit number.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, ThriftError> {
        self.array().map(i32::from_be_bytes)
    }

    /// A 64-bit number.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, ThriftError> {
        self.array().map(i64::from_be_bytes)
    }

    /// A string's bytes.
    #[inline]
    pub fn binary(&mut self) -> Result<&'a [u8], ThriftError> {
        let length = self.i32()?;
        let count = usize::try_from(length).map_err(|_| ThriftError::Length(length))?;
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or(ThriftError::Short)?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// The next field of a struct; `None` at its end.
    #[inline]
    pub fn field(&mut self) -> Result<Option<(Type, i16)>, ThriftError> {
        match Type::of(self.byte()?)? {
            Type::Stop => Ok(None),
            ty => Ok(Some((ty, self.i16()?))),
        }
    }

    /// The type of a list's or set's elements, and their number.
    pub fn list(&mut self) -> Result<(Type, usize), ThriftError> {
        let ty = Type::of(self.byte()?)?;
        Ok((ty, self.count(ty.bytes_min())?))
    }

    /// The types of a map's keys and values, and the number of pairs. An empty map may have no types.
    pub fn map(&mut self) -> Result<(Type, Type, usize), ThriftError> {
        let (key, value) = (Type::of(self.byte()?)?, Type::of(self.byte()?)?);
        Ok((key, value, self.count(key.bytes_min() + value.bytes_min())?))
    }

    fn count(&mut self, bytes_each: usize) -> Result<usize, ThriftError> {
        let count = self.i32()?;
        let many = usize::try_from(count).map_err(|_| ThriftError::Length(count))?;
        // Elements without bytes could be stated in any number.
        if many > 0 && bytes_each == 0 {
            return Err(ThriftError::Length(count));
        }
        if many.saturating_mul(bytes_each) > self.bytes.len() {
            return Err(ThriftError::Short);
        }
        Ok(many)
    }

    /// Skips `bytes` if they come next.
    #[inline]
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes = self.bytes.strip_prefix(bytes)?;
        Some(())
    }

    /// Records that a struct or container begins; `leave` ends it.
    ///
    /// # Errors
    /// `TooDeep`.
    pub fn enter(&mut self) -> Result<(), ThriftError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(ThriftError::TooDeep(DEPTH_MAX)) } else { Ok(()) }
    }

    /// Records the end of a struct or container.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Skips a value.
    pub fn skip(&mut self, ty: Type) -> Result<(), ThriftError> {
        self.parts(ty).map(drop)
    }

    /// Skips a value, and counts its texts, structs and containers: what takes memory of its own once it is decoded.
    pub fn parts(&mut self, ty: Type) -> Result<usize, ThriftError> {
        self.enter()?;
        let mut parts = 1;
        match ty {
            Type::Stop => return Err(ThriftError::UnknownType(0)),
            Type::Bool | Type::Byte => drop(self.array::<1>()?),
            Type::I16 => drop(self.array::<2>()?),
            Type::I32 => drop(self.array::<4>()?),
            Type::Double | Type::I64 => drop(self.array::<8>()?),
            Type::String => drop(self.binary()?),
            Type::Struct => {
                while let Some((ty, _)) = self.field()? {
                    parts += self.parts(ty)?;
                }
            }
            Type::Map => {
                let (key, value, count) = self.map()?;
                for _ in 0..count {
                    parts += self.parts(key)? + self.parts(value)?;
                }
            }
            Type::Set | Type::List => {
                let (ty, count) = self.list()?;
                for _ in 0..count {
                    parts += self.parts(ty)?;
                }
            }
        }
        self.leave();
        let is_number =
            matches!(ty, Type::Bool | Type::Byte | Type::I16 | Type::I32 | Type::Double | Type::I64);
        Ok(if is_number { 0 } else { parts })
    }
}

/// Appends a 16-bit number.
#[inline]
pub fn put_i16(value: i16, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a 32-bit number.
#[inline]
pub fn put_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a 64-bit number.
#[inline]
pub fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a string: its length and its bytes.
#[inline]
pub fn put_binary(bytes: &[u8], out: &mut Vec<u8>) {
    put_i32(bytes.len() as i32, out);
    out.extend_from_slice(bytes);
}

/// Appends a field's header.
#[inline]
pub fn put_field(ty: Type, number: i16, out: &mut Vec<u8>) {
    let [high, low] = number.to_be_bytes();
    out.extend_from_slice(&[ty as u8, high, low]);
}

/// Appends a list's header.
#[inline]
pub fn put_list(ty: Type, count: usize, out: &mut Vec<u8>) {
    out.push(ty as u8);
    put_i32(count as i32, out);
}

/// Appends a map's header.
#[inline]
pub fn put_map(key: Type, value: Type, count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&[key as u8, value as u8]);
    put_i32(count as i32, out);
}
