//! The doors: sockets in, Backend calls, frames out.
