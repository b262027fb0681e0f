//! Errors of JSON texts, with Jackson's messages.

use super::tree::Json;

/// The error of a text that is not valid JSON: what is wrong, and where, in Jackson's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    /// Java's exception, without Jackson's package.
    pub(super) exception: &'static str,
    pub(super) message: String,
}

/// Why a JSON text was not read to its end.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is not valid.
    Invalid(ParseError),
    /// The request may not go on (`Step`).
    Stopped,
}

/// Called for each value that is read or converted, and before memory is taken, with the number of bytes; false ends the
/// work. The caller knows why.
pub(crate) type Step<'a> = &'a dyn Fn(usize) -> bool;

impl From<ParseError> for Unread {
    fn from(error: ParseError) -> Unread {
        Unread::Invalid(error)
    }
}

const PACKAGE: &str = "com.fasterxml.jackson";
pub(super) const MISMATCHED: &str = "databind.exc.MismatchedInputException";

impl ParseError {
    /// The message of Java's exception.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The exception's class and message, as Java prints both.
    pub(crate) fn java_text(&self) -> String {
        format!("{PACKAGE}.{}: {}", self.exception, self.message)
    }

    /// The error for a text that is valid JSON but not an object, where one is needed.
    pub(crate) fn no_object(found: &Json) -> ParseError {
        let (what, token) = match found {
            Json::List(_) => ("Array", "START_ARRAY"),
            Json::String(_) => ("String", "VALUE_STRING"),
            Json::Boolean(true) => ("Boolean", "VALUE_TRUE"),
            Json::Boolean(false) => ("Boolean", "VALUE_FALSE"),
            Json::Double(_) => ("Floating-point", "VALUE_NUMBER_FLOAT"),
            _ => ("Integer", "VALUE_NUMBER_INT"),
        };
        let message = format!(
            "Cannot deserialize value of type `java.util.LinkedHashMap<java.lang.Object,java.lang.Object>` from {what} value (token `JsonToken.{token}`)\n at {}",
            source(", column: 1", 1)
        );
        ParseError { exception: MISMATCHED, message }
    }
}

/// Jackson's description of a position whose source it does not show.
pub(super) fn source(column: &str, line: usize) -> String {
    format!(
        "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {line}{column}]"
    )
}
