//! Encodes requests: used by the load generator and by tests.

use crate::WireError;
use crate::native::primitives::Put;
use crate::native::{BodyCodec, Direction, Flags, Header, Opcode, OpenEnvelope, Version};

use super::Request;

/// The fields of a request's envelope besides its body.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Version of the connection.
    pub version: Version,
    /// Stream id, not negative.
    pub stream: i16,
    /// Whether to trace the request.
    pub tracing: bool,
    /// Since v4: the custom payload, if not empty.
    pub custom_payload: &'a [(&'a str, Option<&'a [u8]>)],
}

impl RequestHead<'_> {
    /// A head without extras.
    pub fn new(version: Version, stream: i16) -> Self {
        RequestHead { version, stream, tracing: false, custom_payload: &[] }
    }

    fn open(&self, opcode: Opcode, out: &mut Vec<u8>) -> OpenEnvelope {
        let payload = if self.version >= Version::V4 { self.custom_payload } else { &[] };
        let payload = payload.get(..usize::from(u16::MAX)).unwrap_or(payload);
        let mut flags = 0;
        if self.tracing {
            flags |= Flags::TRACING;
        }
        if !payload.is_empty() {
            flags |= Flags::CUSTOM_PAYLOAD;
        }
        let header =
            Header { version: self.version, flags: Flags(flags), stream: self.stream, opcode, length: 0 };
        let open = OpenEnvelope::open(out, Direction::Request, header);
        if !payload.is_empty() {
            out.put_short(payload.len() as u16);
            for (key, value) in payload {
                out.put_string(key);
                out.put_optional_bytes(*value);
            }
        }
        open
    }
}

impl Request<'_> {
    /// The opcode of this request.
    pub fn opcode(&self) -> Opcode {
        match self {
            Request::Startup(_) => Opcode::Startup,
            Request::Options => Opcode::Options,
            Request::Query(_) => Opcode::Query,
            Request::Prepare(_) => Opcode::Prepare,
            Request::Execute(_) => Opcode::Execute,
            Request::Batch(_) => Opcode::Batch,
            Request::Register(_) => Opcode::Register,
            Request::AuthResponse(_) => Opcode::AuthResponse,
        }
    }

    /// Appends the request's envelope to `out`. On an error, `out` is left as it was.
    pub fn encode(&self, head: &RequestHead<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let open = self.begin(head, out)?;
        open.finish(out)
    }

    /// As [`Request::encode`], with the body compressed, in v3 and v4. STARTUP and OPTIONS stay uncompressed.
    pub fn encode_compressed(
        &self,
        head: &RequestHead<'_>,
        codec: &mut BodyCodec,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let open = self.begin(head, out)?;
        match self {
            Request::Startup(_) | Request::Options => open.finish(out),
            _ => open.finish_compressed(out, codec),
        }
    }

    fn begin(&self, head: &RequestHead<'_>, out: &mut Vec<u8>) -> Result<OpenEnvelope, WireError> {
        let open = head.open(self.opcode(), out);
        let version = head.version;
        let written = match self {
            Request::Startup(startup) => {
                out.put_short(startup.options.len() as u16);
                for (key, value) in startup.options.iter() {
                    out.put_string(key);
                    out.put_string(value);
                }
                Ok(())
            }
            Request::Options => Ok(()),
            Request::Query(query) => query.put(out, version),
            Request::Prepare(prepare) => {
                prepare.put(out, version);
                Ok(())
            }
            Request::Execute(execute) => execute.put(out, version),
            Request::Batch(batch) => batch.put(out, version),
            Request::Register(events) => {
                events.put(out);
                Ok(())
            }
            Request::AuthResponse(token) => {
                out.put_optional_bytes(*token);
                Ok(())
            }
        };
        match written {
            Ok(()) => Ok(open),
            Err(error) => {
                open.abort(out);
                Err(error)
            }
        }
    }
}

/// Appends a STARTUP with `options`, such as `[("CQL_VERSION", "3.0.0")]`.
pub fn encode_startup(
    options: &[(&str, &str)],
    head: &RequestHead<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let open = head.open(Opcode::Startup, out);
    let options = options.get(..usize::from(u16::MAX)).unwrap_or(options);
    out.put_short(options.len() as u16);
    for (key, value) in options {
        out.put_string(key);
        out.put_string(value);
    }
    open.finish(out)
}

/// `[long string]`; with a text over 2 GiB the envelope is too long, and is refused at its end.
pub(super) fn put_long_string(out: &mut Vec<u8>, text: &str) {
    out.put_bytes(text.as_bytes());
}
