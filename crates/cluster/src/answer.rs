//! The answer of a node to one request, as bytes.

use std::sync::Arc;

use helenus_wire::WireError;
use helenus_wire::native::{
    ErrorMessage, Flags, Opcode, Reader, Response, ResponseMessage, ResultMessage, Rows, Version,
    decode_response,
};

use crate::ClusterError;
use crate::answer_room::{AnswerRoom, Taken};

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
    /// The room of a long answer. Who copies the body keeps it as long as the copy.
    pub room: Option<&'a Arc<Taken>>,
}

impl<'a> Answer<'a> {
    /// Decodes the body.
    ///
    /// # Errors
    /// The body is damaged.
    pub fn decode(&self) -> Result<ResponseMessage<'a>, WireError> {
        decode_response(self.version, self.opcode, self.flags, self.body)
    }

    /// The part of the body that is the message: what follows what the flags announce.
    ///
    /// # Errors
    /// The body ends too early.
    pub fn message(&self) -> Result<&'a [u8], WireError> {
        let mut reader = Reader::new(self.body);
        if self.flags.has(Flags::TRACING) {
            reader.uuid()?;
        }
        if self.flags.has(Flags::WARNING) {
            reader.string_list()?;
        }
        if self.flags.has(Flags::CUSTOM_PAYLOAD) {
            reader.bytes_map()?;
        }
        Ok(reader.rest())
    }

    /// A copy that lives on.
    pub fn to_owned(&self) -> OwnedAnswer {
        OwnedAnswer {
            version: self.version,
            flags: self.flags,
            opcode: self.opcode,
            body: self.body.to_vec(),
            room: self.room.cloned(),
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
    /// The room of a long answer.
    pub(crate) room: Option<Arc<Taken>>,
}

impl OwnedAnswer {
    /// The same answer, borrowed.
    pub fn borrow(&self) -> Answer<'_> {
        let OwnedAnswer { version, flags, opcode, ref body, ref room } = *self;
        Answer { version, flags, opcode, body, room: room.as_ref() }
    }

    /// The same answer, counted by `room` although it is short: for callers that keep many. `None`: there is no room for it.
    pub fn counted(mut self, room: &Arc<AnswerRoom>) -> Option<OwnedAnswer> {
        if self.room.is_none() {
            self.room = Some(Arc::new(room.try_take(self.body.len() as u64)?));
        }
        Some(self)
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
