//! Keyspaces and column families: creates definitions from the schema, and changes the schema by definitions.

mod calls;
mod define;
mod describe;
mod elsewhere;
mod server;
mod texts;
