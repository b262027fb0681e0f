//! A server of canned answers: what sockets, framing and the client cost when the database costs nothing.
//!
//!     cargo run --profile optimized -p bench --bin canned -- [--listen 127.0.0.1:0] [--one-write-an-answer]
//!
//! It prints `listening ADDRESS` and answers the statements of `helenus stress` with the rows that `stress` expects,
//! computed from the request alone, on one blocking thread a connection. Answers to all requests that arrived together
//! leave in one write, unless told otherwise. Protocol v4 and v3.

mod answers;
#[allow(dead_code, reason = "the contents of `helenus stress`, of which each program uses a part")]
#[path = "../../../crates/helenus-cli/src/commands/stress/content.rs"]
mod content;

use answers::Answers;
use anyhow::{Context, Result};
use clap::Parser;
use helenus_wire::native::{Direction, EnvelopeReader};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Answers what `helenus stress` asks, without a database.
#[derive(Parser, Clone, Debug)]
struct Options {
    /// Address; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Write each answer alone
    #[arg(long)]
    one_write_an_answer: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let listener = TcpListener::bind(&options.listen).with_context(|| options.listen.clone())?;
    println!("listening {}", listener.local_addr()?);
    for socket in listener.incoming() {
        let (socket, options) = (socket?, options.clone());
        std::thread::spawn(move || {
            if let Err(error) = serve(socket, &options) {
                eprintln!("canned: {error:#}");
            }
        });
    }
    Ok(())
}

/// Answers one connection until it is closed.
fn serve(mut socket: TcpStream, options: &Options) -> Result<()> {
    socket.set_nodelay(true)?;
    let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame: 16 << 20 };
    let (mut input, mut filled) = (vec![0; 256 << 10], 0);
    let (mut answers, mut output) = (Answers::default(), Vec::new());
    loop {
        if filled == input.len() {
            input.resize(filled * 2, 0);
        }
        match socket.read(input.get_mut(filled..).unwrap_or_default())? {
            0 => return Ok(()),
            count => filled += count,
        }
        let mut used = 0;
        loop {
            let rest = input.get(used..filled).unwrap_or_default();
            match reader.read(rest) {
                Ok(Some(envelope)) => {
                    used += envelope.size();
                    answers.put(&envelope, &mut output)?;
                }
                Ok(None) => break,
                Err(refusal) => {
                    refusal.encode(None, &mut output);
                    socket.write_all(&output)?;
                    return Err(refusal.error.into());
                }
            }
            if options.one_write_an_answer {
                socket.write_all(&output)?;
                output.clear();
            }
        }
        socket.write_all(&output)?;
        output.clear();
        input.copy_within(used..filled, 0);
        filled -= used;
    }
}
