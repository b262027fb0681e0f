//! Cuts the input of a client into requests.

use std::collections::VecDeque;
use std::io;

use helenus_wire::native::{
    AfterRefusal, Agreed, BodyCodec, Compression, Direction, Envelope, EnvelopeReader, Header, Refusal,
    SegmentFormat, SegmentReader, Step, UnservedInput, Version,
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// What has arrived.
pub(crate) enum Arrived {
    /// A request: its header and its body, decompressed.
    Request(Header, Vec<u8>),
    /// Bytes that are no request, and whether the connection ends with the answer.
    Refused(Refusal),
}

/// The input of one client.
pub(crate) struct Input {
    bytes: Vec<u8>,
    used: usize,
    /// Bytes read in all.
    received: u64,
    /// Bytes that are still to be dropped.
    skip: u64,
    envelopes: EnvelopeReader,
    codec: Option<BodyCodec>,
    segments: Option<SegmentReader>,
    message_bytes_max: u64,
    /// Requests of a segment that are not taken yet.
    queue: VecDeque<Arrived>,
}

impl Input {
    /// For a client without a version yet.
    pub fn new(frame_bytes_max: u64, message_bytes_max: u64) -> Input {
        let envelopes =
            EnvelopeReader { from: Direction::Request, connection: None, max_frame: frame_bytes_max };
        Input {
            bytes: Vec::new(),
            used: 0,
            received: 0,
            skip: 0,
            envelopes,
            codec: None,
            segments: None,
            message_bytes_max,
            queue: VecDeque::new(),
        }
    }

    /// STARTUP is answered.
    pub fn start(&mut self, version: Version, compression: Option<Compression>) {
        self.envelopes.connection = Some(version);
        if version >= Version::V5 {
            let format = match compression {
                Some(_) => SegmentFormat::Lz4,
                None => SegmentFormat::Plain,
            };
            self.segments = Some(SegmentReader::new(format, Direction::Request, self.message_bytes_max));
        } else {
            self.codec = compression.map(BodyCodec::new);
        }
    }

    /// Goes on where another server of this process has stopped reading. Returns the refusal of a frame whose rest is still to come.
    pub fn resume(&mut self, agreed: Option<&Agreed>, unserved: UnservedInput) -> Option<Refusal> {
        if let Some(agreed) = agreed {
            self.start(agreed.version, agreed.compression);
        }
        if let Some(segments) = unserved.segments {
            divide(*segments.envelopes(), &unserved.envelopes, &mut self.queue);
            self.segments = Some(*segments);
        }
        self.bytes = unserved.bytes;
        let (left, refusal) = unserved.skip?;
        self.skip = left;
        Some(refusal)
    }

    /// Reads what the client has sent; 0 at the end.
    pub async fn fill(&mut self, socket: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<usize> {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(READ_BYTES);
        }
        self.bytes.reserve(READ_BYTES);
        let read = socket.read_buf(&mut self.bytes).await?;
        self.received += read as u64;
        Ok(read)
    }

    /// The bytes read in all.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next request, or the next refusal; `None`: more must be read.
    pub fn next(&mut self) -> Option<Arrived> {
        loop {
            if let Some(arrived) = self.queue.pop_front() {
                return Some(arrived);
            }
            if self.skip > 0 {
                let left = self.bytes.len().saturating_sub(self.used);
                let dropped = left.min(usize::try_from(self.skip).unwrap_or(left));
                self.used += dropped;
                self.skip -= dropped as u64;
                if self.skip > 0 {
                    return None;
                }
            }
            let found = match self.segments.is_some() {
                true => self.read_segment(),
                false => self.read_bare(),
            };
            match found {
                Ok(Some(arrived)) => return Some(arrived),
                Ok(None) if self.queue.is_empty() => return None,
                Ok(None) => {}
                Err(refusal) => {
                    match refusal.then {
                        AfterRefusal::Skip(bytes) => self.skip += bytes,
                        AfterRefusal::DiscardReceived => self.used = self.bytes.len(),
                        AfterRefusal::Close | AfterRefusal::CloseUnanswered => {}
                    }
                    return Some(Arrived::Refused(refusal));
                }
            }
        }
    }

    fn read_bare(&mut self) -> Result<Option<Arrived>, Refusal> {
        let input = self.bytes.get(self.used..).unwrap_or_default();
        let Some(envelope) = self.envelopes.read(input)? else {
            return Ok(None);
        };
        self.used += envelope.size();
        let header = envelope.header;
        let max = self.envelopes.max_frame;
        Ok(Some(match &mut self.codec {
            Some(codec) => body(&envelope, codec.decompress(&envelope, max)),
            None => Arrived::Request(header, envelope.body.to_vec()),
        }))
    }

    /// Reads one segment; its requests go to the queue.
    fn read_segment(&mut self) -> Result<Option<Arrived>, Refusal> {
        let Some(segments) = &mut self.segments else {
            return Ok(None);
        };
        loop {
            let input = self.bytes.get(self.used..).unwrap_or_default();
            let reader = *segments.envelopes();
            match segments.read(input)? {
                Step::Incomplete => return Ok(None),
                Step::Part { used } => self.used += used,
                Step::Envelopes { used, payload, .. } => {
                    self.used += used;
                    divide(reader, payload, &mut self.queue);
                    if !self.queue.is_empty() {
                        return Ok(self.queue.pop_front());
                    }
                }
            }
        }
    }
}

/// Puts the requests of a segment into the queue.
fn divide(reader: EnvelopeReader, mut payload: &[u8], queue: &mut VecDeque<Arrived>) {
    while !payload.is_empty() {
        let size = match reader.read_in_segment(payload) {
            Ok(envelope) => {
                queue.push_back(Arrived::Request(envelope.header, envelope.body.to_vec()));
                envelope.size() as u64
            }
            Err(refusal) => {
                let size = match refusal.then {
                    AfterRefusal::Skip(bytes) => bytes,
                    _ => u64::MAX,
                };
                queue.push_back(Arrived::Refused(refusal));
                size
            }
        };
        payload = payload.get(usize::try_from(size).unwrap_or(usize::MAX)..).unwrap_or_default();
    }
}

fn body(envelope: &Envelope<'_>, decompressed: Result<&[u8], helenus_wire::WireError>) -> Arrived {
    match decompressed {
        Ok(body) => Arrived::Request(envelope.header, body.to_vec()),
        Err(error) => {
            let then = AfterRefusal::Skip(0);
            Arrived::Refused(Refusal { error, stream: envelope.header.stream, answer_in: None, then })
        }
    }
}
