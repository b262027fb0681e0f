//! Cuts the input of a connection into envelopes, and puts envelopes into segments, in all versions.

use std::io;

use helenus_wire::WireError;
use helenus_wire::native::{
    BodyCodec, Compression, Direction, EnvelopeReader, Header, SegmentFormat, SegmentReader, SegmentWriter,
    Step, Version,
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Reads answers.
pub(super) struct Deframer {
    input: Vec<u8>,
    /// Bytes of `input` that are used.
    used: usize,
    envelopes: EnvelopeReader,
    codec: Option<BodyCodec>,
    /// Since v5, once STARTUP is answered.
    segments: Option<SegmentReader>,
    bytes_max: u64,
}

impl Deframer {
    /// A reader for a connection that has no version yet.
    pub fn new(bytes_max: u64) -> Deframer {
        let envelopes = EnvelopeReader { from: Direction::Response, connection: None, max_frame: bytes_max };
        Deframer { input: Vec::new(), used: 0, envelopes, codec: None, segments: None, bytes_max }
    }

    /// STARTUP is answered: from now on all messages have this version, and the compression that was asked for.
    pub fn start(&mut self, version: Version, compress: bool) {
        self.envelopes.connection = Some(version);
        if version >= Version::V5 {
            let format = segment_format(compress);
            self.segments = Some(SegmentReader::new(format, Direction::Response, self.bytes_max));
        } else if compress {
            self.codec = Some(BodyCodec::new(Compression::Lz4));
        }
    }

    /// As [`Deframer::start`] for the answer to STARTUP itself, which may be compressed in v3 and v4.
    pub fn expect_compressed(&mut self) {
        self.codec = Some(BodyCodec::new(Compression::Lz4));
    }

    /// Reads what has arrived; 0 at the end of the input.
    pub async fn fill(&mut self, socket: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<usize> {
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        if self.input.is_empty() {
            self.input.shrink_to(4 * READ_BYTES);
        }
        self.input.reserve(READ_BYTES);
        socket.read_buf(&mut self.input).await
    }

    /// Calls `take` with each complete envelope and its body, decompressed, until it says to stop.
    pub fn each(&mut self, mut take: impl FnMut(&Header, &[u8]) -> bool) -> Result<(), WireError> {
        loop {
            let input = self.input.get(self.used..).unwrap_or_default();
            let Some(segments) = &mut self.segments else {
                let Some(envelope) = self.envelopes.read(input).map_err(|refusal| refusal.error)? else {
                    return Ok(());
                };
                self.used += envelope.size();
                let body = match &mut self.codec {
                    Some(codec) => codec.decompress(&envelope, self.bytes_max)?,
                    None => envelope.body,
                };
                if !take(&envelope.header, body) {
                    return Ok(());
                }
                continue;
            };
            let reader = *segments.envelopes();
            match segments.read(input).map_err(|refusal| refusal.error)? {
                Step::Incomplete => return Ok(()),
                Step::Part { used } => self.used += used,
                Step::Envelopes { used, mut payload, .. } => {
                    self.used += used;
                    while !payload.is_empty() {
                        let envelope = reader.read_in_segment(payload).map_err(|refusal| refusal.error)?;
                        take(&envelope.header, envelope.body);
                        payload = payload.get(envelope.size()..).unwrap_or_default();
                    }
                }
            }
        }
    }
}

/// Prepares envelopes for the socket.
pub(super) struct Framer {
    segments: Option<SegmentWriter>,
}

impl Framer {
    /// For a connection of this version whose STARTUP is answered.
    pub fn new(version: Version, compress: bool) -> Framer {
        let segments = (version >= Version::V5).then(|| SegmentWriter::new(segment_format(compress)));
        Framer { segments }
    }

    /// The bytes to write for these envelopes; `buffer` is used where they have to be copied.
    pub fn frame<'a>(&mut self, envelopes: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        match &mut self.segments {
            None => envelopes,
            Some(writer) => {
                buffer.clear();
                writer.append(envelopes, buffer);
                buffer
            }
        }
    }
}

fn segment_format(compress: bool) -> SegmentFormat {
    if compress { SegmentFormat::Lz4 } else { SegmentFormat::Plain }
}
