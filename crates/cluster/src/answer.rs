//! The answer of a node to one request, as bytes.

use helenus_wire::WireError;
use helenus_wire::native::{
    ErrorMessage, Flags, Opcode, Response, ResponseMessage, ResultMessage, Rows, Version, decode_response,
};

use crate::ClusterError;

/// An answer inside the buffer of its connection.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The version of the connection, by which the body is encoded.
    pub version: Version,
    /// The flags, which say what precedes the message in the body.
    pub flags: Flags,
    /// The kind of message.
    pub opcode: Opcode,
    /// The body, not compressed.
    pub body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Decodes the body.
    ///
    /// # Errors
    /// The body is damaged.
    pub fn decode(&self) -> Result<ResponseMessage<'a>, WireError> {
        decode_response(self.version, self.opcode, self.flags, self.body)
    }

    /// A copy that lives on.
    pub fn to_owned(&self) -> OwnedAnswer {
        OwnedAnswer {
            version: self.version,
            flags: self.flags,
            opcode: self.opcode,
            body: self.body.to_vec(),
        }
    }
}

/// As [`Answer`], with its own bytes.
#[derive(Clone, Debug)]
pub struct OwnedAnswer {
    /// The version of the connection, by which the body is encoded.
    pub version: Version,
    /// The flags, which say what precedes the message in the body.
    pub flags: Flags,
    /// The kind of message.
    pub opcode: Opcode,
    /// The body, not compressed.
    pub body: Vec<u8>,
}

impl OwnedAnswer {
    /// The same answer, borrowed.
    pub fn borrow(&self) -> Answer<'_> {
        Answer { version: self.version, flags: self.flags, opcode: self.opcode, body: &self.body }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The body is damaged.
    pub fn decode(&self) -> Result<ResponseMessage<'_>, WireError> {
        self.borrow().decode()
    }

    /// The error in this answer, if it is one.
    ///
    /// # Errors
    /// The body is damaged.
    pub fn error(&self) -> Result<Option<ErrorMessage>, WireError> {
        if self.opcode != Opcode::Error {
            return Ok(None);
        }
        match self.decode()?.response {
            Response::Error(error) => Ok(Some(error)),
            _ => Ok(None),
        }
    }

    /// The result in this answer.
    ///
    /// # Errors
    /// The answer is an ERROR, is damaged, or is no RESULT.
    pub fn result(&self) -> Result<ResultMessage<'_>, ClusterError> {
        match self.decode()?.response {
            Response::Result(result) => Ok(result),
            Response::Error(error) => Err(ClusterError::Server(error)),
            _ => Err(ClusterError::Unexpected { opcode: self.opcode }),
        }
    }

    /// The rows in this answer.
    ///
    /// # Errors
    /// Those of [`OwnedAnswer::result`]; the result has no rows.
    pub fn rows(&self) -> Result<Rows<'_>, ClusterError> {
        match self.result()? {
            ResultMessage::Rows(rows) => Ok(rows),
            _ => Err(ClusterError::Unexpected { opcode: self.opcode }),
        }
    }
}
