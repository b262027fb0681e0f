//! Keyspaces and column families: the interface's definitions made from the schema, and the schema changed by them.

mod calls;
mod define;
mod describe;
mod server;
mod texts;
