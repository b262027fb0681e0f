//! A connection of Thrift RPC that sends and receives encoded calls.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use helenus_wire::thrift::{Field, Method, begin_call, end_message};

use crate::Server;

/// A framed connection.
pub struct Calls(TcpStream);

impl Calls {
    /// The address of the interface, as a server says at its start.
    pub fn address_of(server: &Server) -> String {
        let line =
            server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
        line.split_whitespace().nth(1).expect("an address").to_owned()
    }

    /// Connects to the interface of a server.
    pub fn of(server: &Server) -> Calls {
        Calls::connect(&Calls::address_of(server))
    }

    /// Connects to HOST:PORT.
    pub fn connect(address: &str) -> Calls {
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        Calls(socket)
    }

    /// The complete answer to a call, which must not be an exception.
    pub fn answer<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Vec<u8> {
        let answer = self.exchange(method, asked);
        assert!(is_result(&answer, method), "{method:?}: {}", String::from_utf8_lossy(&answer));
        answer
    }

    /// The bytes of the exception that a call is answered with.
    pub fn exception<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Vec<u8> {
        let answer = self.exchange(method, asked);
        assert!(!is_result(&answer, method), "{method:?} was done");
        answer
    }

    /// Whether the server closes the connection without another answer. Waits for it.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }

    /// The complete answer to a call, whatever it is.
    pub fn exchange<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Vec<u8> {
        let mut message = Vec::new();
        let at = begin_call(method, 1, &mut message);
        asked.write(&mut message);
        end_message(at, &mut message);
        self.0.write_all(&message).expect("write");
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("a frame");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer).expect("its message");
        answer
    }
}

/// Whether an answer is a result and no exception: a reply, its name and number, and a struct that is empty or begins with field 0, the
/// result.
#[must_use]
pub fn is_result(answer: &[u8], method: Method) -> bool {
    let result = &answer[12 + method.name().len()..];
    answer[3] == 2 && (result == [0] || result[1..3] == [0, 0])
}
