//! A random statement of the grammars, and the way it is sent.

use super::productions::{COLUMNS, Growth, Kind, LONG_LIST, PIECES, PLACES, ROW, SCENE};
use end_to_end::Server;
use end_to_end::raw::{self, Raw};
use helenus_wire::thrift::{Compression, ConsistencyLevel, Field, Method, args, begin_call, end_message};
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0A;
const BATCH: u8 = 0x0D;

/// The way a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Query,
    Prepare,
    /// Prepared, then executed without values or with the piece as its only value.
    Execute,
    Batch,
    /// `execute_cql3_query`.
    Rpc,
    /// `execute_cql_query`.
    First,
}

/// A statement and the way it is sent.
#[derive(Clone, Debug)]
pub struct Attack {
    way: Way,
    pub version: u8,
    count: usize,
    growth: Growth,
    place: &'static str,
    text: String,
}

/// Random numbers from a seed (SplitMix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64, round: u64) -> Draw {
        Draw(seed << 32 ^ round)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

impl Attack {
    /// The statement of a round. The first `each` rounds contain each piece and each place at least once. `bytes` is
    /// its approximate maximum length.
    pub fn draw(seed: u64, round: u64, each: u64, bytes: usize) -> Attack {
        let mut draw = Draw::new(seed, round);
        let at = if round < each { Some(round as usize) } else { None };
        let (kind, growth) = match at.and_then(|at| PIECES.get(at)) {
            Some(piece) => *piece,
            None => match at.and_then(|at| PLACES.get(at)) {
                Some((kind, _)) => {
                    draw.of(&PIECES.iter().filter(|piece| piece.0 == *kind).copied().collect::<Vec<_>>())
                }
                None => draw.of(PIECES),
            },
        };
        let places: Vec<&'static str> =
            PLACES.iter().filter(|place| place.0 == kind).map(|place| place.1).collect();
        let place = match at.and_then(|at| PLACES.get(at)) {
            Some((of, place)) if *of == kind => place,
            _ => draw.of(&places),
        };
        // At least a hundred units; usually the maximum, sometimes fewer.
        let most = (bytes / growth.unit_bytes().max(1)).clamp(100, 100_000);
        let count = if draw.below(4) == 0 { 100 + draw.below(most.saturating_sub(99)) } else { most };
        let (place, is_first) = match place.strip_prefix("first: ") {
            Some(place) => (place, true),
            None => (place, matches!(kind, Kind::First | Kind::FirstTerm)),
        };
        let way = match is_first {
            true => Way::First,
            false => draw.of(&[Way::Query, Way::Query, Way::Prepare, Way::Execute, Way::Batch, Way::Rpc]),
        };
        let mut piece = growth.text(count);
        if kind == Kind::Json || place.contains("'@'") {
            piece = piece.replace('\'', "''");
        }
        let text = place
            .replace('@', &piece)
            .replace('$', draw.of(COLUMNS))
            .replace('%', &format!("{round}_{}", draw.below(1000)))
            .replace("k=1 AND c=1", &format!("k={round} AND c=1"));
        Attack { way, version: draw.of(&[3, 4, 5]), count, growth, place, text }
    }

    /// Whether a new connection, with the statement's own protocol version, sends it.
    pub fn reconnects(&self, round: u64) -> bool {
        round.is_multiple_of(7)
    }

    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, bytes) = (self.text.chars().take(90).collect::<String>(), self.text.len());
        write!(
            f,
            "{:?} v{}, {bytes} bytes, {} x {:?} in {:?}: {start}",
            self.way, self.version, self.count, self.growth, self.place
        )
    }
}

/// The connections over which statements are sent.
pub struct Session {
    native: Raw,
    version: u8,
    rpc: TcpStream,
}

impl Session {
    pub fn open(server: &Server, version: u8) -> Session {
        let line =
            server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
        let address = line.split_whitespace().nth(1).expect("an address");
        let mut session = Session {
            native: Raw::ready(server.address(), version),
            version,
            rpc: TcpStream::connect(address).expect("connect to the old interface"),
        };
        let use_keyspace = call(Method::SetKeyspace, &args::OfKeyspace { keyspace: "k" });
        let _ = session.call(&use_keyspace, Duration::from_secs(60));
        session
    }

    /// Creates the tables that the statements use.
    pub fn make_scene(&mut self) {
        SCENE.iter().for_each(|text| self.native.run(text));
        let elements = vec!["1"; LONG_LIST].join(",");
        self.native.run(&format!("INSERT INTO k.long (k, l) VALUES (1, [{elements}])"));
    }

    /// Creates the row that the statement of a round uses, so that no statement finds the remains of another.
    pub fn make_row(&mut self, round: u64) {
        self.native.run(&ROW.replace('%', &round.to_string()));
        // The row of the previous round is deleted, so that reads of all rows read only a few.
        self.native.run(&format!("DELETE FROM k.t WHERE k = {}", round.wrapping_sub(1) as i32));
    }

    /// Sends a statement and waits for its answer.
    ///
    /// # Errors
    /// There was no answer in time, or the connection has closed.
    pub fn send(&mut self, attack: &Attack, wait: Duration) -> Result<(), String> {
        let text = attack.text.as_str();
        match attack.way {
            Way::Query => self.native(raw::QUERY, &raw::query(self.version, text, &[]), wait).map(drop),
            Way::Prepare => self.native(PREPARE, &self.prepare(text), wait).map(drop),
            Way::Execute => {
                let reply = self.native(PREPARE, &self.prepare(text), wait)?;
                match prepared_id(&reply, self.version) {
                    Some((id, metadata)) => {
                        let mut body = id;
                        body.extend(metadata);
                        body.extend(parameters(self.version, &[]));
                        self.native(EXECUTE, &body, wait).map(drop)
                    }
                    None => Ok(()),
                }
            }
            Way::Batch => {
                let mut body = vec![0, 0, 1, 0];
                body.extend_from_slice(&(text.len() as u32).to_be_bytes());
                body.extend_from_slice(text.as_bytes());
                body.extend_from_slice(&[0, 0, 0, 1]);
                body.extend_from_slice(if self.version >= 5 { &[0; 4] } else { &[0] });
                self.native(BATCH, &body, wait).map(drop)
            }
            Way::Rpc | Way::First => {
                let (compression, consistency) = (Compression::None, ConsistencyLevel::One);
                let query = text.as_bytes();
                let call = match attack.way {
                    Way::Rpc => {
                        call(Method::ExecuteCql3Query, &args::Cql3Query { query, compression, consistency })
                    }
                    _ => call(Method::ExecuteCqlQuery, &args::CqlQuery { query, compression }),
                };
                self.call(&call, wait)
            }
        }
    }

    fn prepare(&self, text: &str) -> Vec<u8> {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        if self.version >= 5 {
            body.extend_from_slice(&[0; 4]);
        }
        body
    }

    /// Sends a request of the native protocol and returns the answer.
    pub fn native(&mut self, opcode: u8, body: &[u8], wait: Duration) -> Result<raw::Reply, String> {
        let frame = raw::frame(self.version, 0, 1, opcode, body);
        let bytes = if self.version >= 5 { raw::segments(&frame) } else { frame };
        self.native.socket.set_read_timeout(Some(wait)).expect("a socket option");
        self.native.send(&bytes);
        let native = &mut self.native;
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| native.receive())) {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err("the server closed the connection".to_owned()),
            Err(_) => Err(format!("no answer within {wait:?}")),
        }
    }

    /// Sends a Thrift RPC call.
    fn call(&mut self, call: &[u8], wait: Duration) -> Result<(), String> {
        self.rpc.set_read_timeout(Some(wait)).expect("a socket option");
        let mut exchange = || {
            self.rpc.write_all(call)?;
            let mut length = [0; 4];
            self.rpc.read_exact(&mut length)?;
            let mut answer = vec![0; u32::from_be_bytes(length) as usize];
            self.rpc.read_exact(&mut answer)
        };
        exchange().map_err(|error| format!("no answer to the call: {error}"))
    }
}

fn call<'a>(method: Method, arguments: &impl Field<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(method, 1, &mut bytes);
    arguments.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

/// The encoded parameters of a request: consistency ONE, and values.
pub fn parameters(version: u8, values: &[Option<&[u8]>]) -> Vec<u8> {
    // The same bytes that follow the text of a QUERY.
    raw::query(version, "", values)[4..].to_vec()
}

/// The id of a prepared statement as EXECUTE carries it, and the id of its result metadata (v5).
pub fn prepared_id(reply: &raw::Reply, version: u8) -> Option<(Vec<u8>, Vec<u8>)> {
    const PREPARED: &[u8] = &[0, 0, 0, 4];
    let rest = (reply.opcode == raw::RESULT).then(|| reply.body.strip_prefix(PREPARED)).flatten()?;
    let short = |from: &[u8]| Some(2 + usize::from(u16::from_be_bytes([*from.first()?, *from.get(1)?])));
    let (id, rest) = rest.split_at_checked(short(rest)?)?;
    let metadata = if version >= 5 { rest.get(..short(rest)?)? } else { &[] };
    Some((id.to_vec(), metadata.to_vec()))
}
