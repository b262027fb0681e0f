//! The errors of values, constants and type names.
//!
//! `Display` gives the text that Cassandra 5.0 sends to clients for the same mistake.

use super::CqlType;

/// The kind of a constant in a statement, as the grammar distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantKind {
    /// `'text'` or `$$text$$`, given without its quotes.
    String,
    /// Digits, with or without a minus sign.
    Integer,
    /// A number with a fraction or an exponent, `NaN` or `Infinity`.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A bare UUID.
    Uuid,
    /// `0x` and hexadecimal digits.
    Hex,
    /// `1y2mo`, `P1Y2M` and the like.
    Duration,
}

impl ConstantKind {
    /// The name in Cassandra's messages.
    pub fn name(self) -> &'static str {
        match self {
            ConstantKind::String => "STRING",
            ConstantKind::Integer => "INTEGER",
            ConstantKind::Float => "FLOAT",
            ConstantKind::Boolean => "BOOLEAN",
            ConstantKind::Uuid => "UUID",
            ConstantKind::Hex => "HEX",
            ConstantKind::Duration => "DURATION",
        }
    }
}

/// All errors of this module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// A value whose length is wrong for its type. `expected` is the start of Cassandra's sentence.
    #[error("{expected} ({length_bytes})")]
    Length {
        /// What the type expects.
        expected: &'static str,
        /// The actual length.
        length_bytes: usize,
    },
    /// A byte of 0x80 or more in `ascii`.
    #[error("Invalid byte for ascii: {byte}")]
    NotAscii {
        /// The byte, signed as Cassandra prints it.
        byte: i8,
    },
    /// `text` that is not UTF-8.
    #[error("String didn't validate.")]
    NotUtf8,
    /// An address of neither 4 nor 16 bytes.
    #[error("Expected 4 or 16 byte inetaddress; got {hex}")]
    Inet {
        /// The bytes.
        hex: String,
    },
    /// A value of type `empty` that has bytes.
    #[error("EmptyType only accept empty values")]
    NotEmpty,
    /// A timeuuid whose version is not 1. The nibble is the one that Cassandra prints: the first of the value.
    #[error("Invalid version for TimeUUID type: 0x{nibble:x}")]
    TimeUuidVersion {
        /// First nibble of the value.
        nibble: u8,
    },
    /// A part of a duration that does not fit 32 bits.
    #[error("The duration {part} must be a 32 bits integer but was: {value}")]
    DurationPart {
        /// `months` or `days`.
        part: &'static str,
        /// The value found.
        value: i64,
    },
    /// A duration with parts of both signs.
    #[error(
        "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanoseconds})"
    )]
    DurationSigns {
        /// Months found.
        months: i32,
        /// Days found.
        days: i32,
        /// Nanoseconds found.
        nanoseconds: i64,
    },
    /// Text that is not a duration, and why.
    #[error(transparent)]
    DurationText(#[from] super::duration::DurationTextError),
    /// A collection or vector that ends before its last element. `what` is `list`, `set`, `map`, or the vector type.
    #[error("Not enough bytes to read a {what}")]
    CutShort {
        /// What was being read.
        what: String,
    },
    /// A collection whose count of elements is negative (`SetSerializer.deserialize`).
    #[error("The data cannot be deserialized as a {what}")]
    NegativeCount {
        /// `list`, `set` or `map`.
        what: &'static str,
    },
    /// A null inside a collection.
    #[error("Null value read when not allowed")]
    NullElement,
    /// Bytes after the last element of a collection.
    #[error("Unexpected extraneous bytes after {what} value")]
    Extraneous {
        /// `list`, `set` or `map`.
        what: &'static str,
    },
    /// Bytes after the last element of a vector.
    #[error("Unexpected {count} extraneous bytes after {vector} value")]
    VectorExtraneous {
        /// Bytes left over.
        count: usize,
        /// The vector type.
        vector: CqlType,
    },
    /// A vector without any bytes.
    #[error("Invalid empty vector value")]
    VectorEmpty,
    /// A vector built from the wrong number of elements.
    #[error("Required {expected} elements, but saw {found}")]
    VectorDimension {
        /// Dimension of the type.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// A tuple that ends inside a field's length.
    #[error("Not enough bytes to read size of {index}th component")]
    TupleSizeCut {
        /// Index of the field, from 0.
        index: usize,
    },
    /// A tuple that ends inside a field.
    #[error("Not enough bytes to read {index}th component")]
    TupleCut {
        /// Index of the field, from 0.
        index: usize,
    },
    /// Bytes after the last field of a tuple.
    #[error("Invalid remaining data after end of tuple value")]
    TupleExtraneous,
    /// A user-defined type's value that ends inside a field's length.
    #[error("Not enough bytes to read size of {index}th field {name}")]
    UdtSizeCut {
        /// Index of the field, from 0.
        index: usize,
        /// Its name.
        name: String,
    },
    /// A user-defined type's value that ends inside a field.
    #[error("Not enough bytes to read {index}th field {name}")]
    UdtCut {
        /// Index of the field, from 0.
        index: usize,
        /// Its name.
        name: String,
    },
    /// An invalid field of a user-defined type.
    #[error("Failure validating the {index}th field {name}; {error}")]
    UdtField {
        /// Index of the field, from 0.
        index: usize,
        /// Its name.
        name: String,
        /// The field's error.
        error: Box<TypeError>,
    },
    /// Bytes after the last field of a user-defined type.
    #[error("Invalid remaining data after end of UDT value")]
    UdtExtraneous,
    /// Text that does not denote a value: `before 'text' after`, in Cassandra's words.
    #[error("{before} '{text}'{after}")]
    Text {
        /// Words before the text.
        before: &'static str,
        /// The text refused.
        text: String,
        /// Words after it.
        after: &'static str,
    },
    /// More components than a composite type has.
    #[error("Too many bytes for comparator")]
    TooManyComponents,
    /// A composite value that ends inside a component.
    #[error("Not enough bytes to {what}{index}")]
    ComponentCut {
        /// What was being read.
        what: &'static str,
        /// Index of the component, from 0.
        index: usize,
    },
    /// A component of a dynamic composite value whose alias or class is unknown.
    #[error("Cannot find comparator for component {index}")]
    UnknownComponent {
        /// Index of the component, from 0.
        index: usize,
    },
    /// Bytes after the component of a composite value that is a bound.
    #[error("Invalid bytes remaining after an end-of-component at component{index}")]
    ComponentExtraneous {
        /// Index of the component, from 0.
        index: usize,
    },
    /// The name of a type class whose parameters are wrong.
    #[error("Invalid definition for comparator {class}.")]
    ClassDefinition {
        /// The class, without parameters.
        class: String,
        /// The error in the parameters.
        #[source]
        cause: Box<TypeError>,
    },
    /// The name of an abstract class, which is not a type itself.
    #[error(
        "Invalid comparator class {class}: must define a public static instance field or a public static method \
         getInstance(TypeParser)."
    )]
    AbstractClass {
        /// The class.
        class: String,
    },
    /// A string constant with a character outside ASCII for an `ascii` column.
    #[error(
        "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = {length}"
    )]
    AsciiText {
        /// UTF-16 units of the character.
        length: usize,
    },
    /// A version other than 1 in a timeuuid constant.
    #[error("TimeUUID supports only version 1 UUIDs")]
    TimeUuidConstant,
    /// Text that is not a timeuuid.
    #[error("Unknown timeuuid representation: {text}")]
    TimeUuidText {
        /// The text refused.
        text: String,
    },
    /// A date outside the range of `date`, which has 32 bits of days.
    #[error("Input date {text} is {direction} supported date {limit}")]
    DateRange {
        /// The text refused.
        text: String,
        /// `less than min` or `greater than max`.
        direction: &'static str,
        /// The limit, as Cassandra prints it.
        limit: &'static str,
    },
    /// More fields in a tuple's text than in its type.
    #[error("Invalid tuple literal: too many elements. Type {tuple} expects {expected} but got {found}")]
    TupleText {
        /// The tuple type.
        tuple: CqlType,
        /// Fields of the type.
        expected: usize,
        /// Fields in the text.
        found: usize,
    },
    /// The timestamp constant `now`: this crate has no clock, so the caller must supply the time.
    #[error("'now' needs the time of the statement")]
    Now,
    /// A kind of constant that the type does not take. [`TypeError::for_column`] prints it as Cassandra does.
    #[error("Invalid {} constant ({text}) of type {ty}", kind.name())]
    InvalidConstant {
        /// Kind written.
        kind: ConstantKind,
        /// Text written, without quotes.
        text: String,
        /// Type of the value.
        ty: Box<CqlType>,
    },
    /// A broken type class name.
    #[error("Syntax error parsing '{text}' at char {position}: {problem}")]
    ClassSyntax {
        /// The whole name.
        text: String,
        /// Byte offset of the error.
        position: usize,
        /// The error.
        problem: &'static str,
    },
    /// A class of Cassandra's package that does not exist.
    #[error("Unable to find abstract-type class '{class}'")]
    UnknownClass {
        /// Full name of the class.
        class: String,
    },
    /// Wrong parameters of a class; the text is Cassandra's.
    #[error("{problem}")]
    ClassParameters {
        /// The error.
        problem: &'static str,
    },
    /// Bytes that are not the ordered encoding of a value of their type.
    #[error("broken ordered encoding at byte {position}: {problem}")]
    Ordered {
        /// Offset in the encoding.
        position: usize,
        /// The error.
        problem: &'static str,
    },
}

/// The most bytes of a refused text that an error quotes: a text may have megabytes, and an error is copied several
/// times.
const QUOTED_BYTES_MAX: usize = 4096;

/// A refused text, or its beginning.
pub(crate) fn quoted(text: &str) -> String {
    if text.len() <= QUOTED_BYTES_MAX {
        return text.to_owned();
    }
    let begin = text.get(..text.floor_char_boundary(QUOTED_BYTES_MAX)).unwrap_or_default();
    format!("{begin}...")
}

impl TypeError {
    /// The message for a statement that assigns this value to `column`. Cassandra names the column only if the kind of
    /// the constant is wrong (`Constants.Literal.prepare`).
    pub fn for_column(&self, column: &str) -> String {
        match self {
            TypeError::InvalidConstant { kind, text, ty } => {
                format!("Invalid {} constant ({text}) for \"{column}\" of type {ty}", kind.name())
            }
            other => other.to_string(),
        }
    }

    /// The error of text that cannot be parsed: `before 'text'`.
    pub(crate) fn text(before: &'static str, text: &str) -> TypeError {
        TypeError::Text { before, text: quoted(text), after: "" }
    }
}
