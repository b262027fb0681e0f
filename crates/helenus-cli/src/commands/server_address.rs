//! The option that names a server, `HOST[:PORT]`, which all tools share: its parsers, and what stands for it if it is not
//! given.

use anyhow::{Context, Result};
use helenus_server::address::{Address, AddressError};

/// The variable of the environment that names the server for all tools.
pub const VARIABLE: &str = "HELENUS_HOST";
/// The port of CQL.
pub const CQL_PORT: u16 = 9042;
/// The port of the RPC interface (Thrift).
const RPC_PORT: u16 = 9160;

/// Parses the address of a CQL server; the result is `HOST:PORT`.
///
/// # Errors
/// It is no address.
pub fn cql_address(text: &str) -> Result<String, AddressError> {
    text.parse().map(|address: Address| address.with_port(CQL_PORT))
}

/// Parses the address of a server of the RPC interface; the result is `HOST:PORT`.
///
/// # Errors
/// It is no address.
pub fn rpc_address(text: &str) -> Result<String, AddressError> {
    text.parse().map(|address: Address| address.with_port(RPC_PORT))
}

/// The RPC interface of the server whose CQL is at `address`: the same host, and its default port.
pub fn rpc_beside(address: &str) -> String {
    match address.parse::<Address>() {
        Ok(address) => address.without_port().with_port(RPC_PORT),
        Err(_) => format!("127.0.0.1:{RPC_PORT}"),
    }
}

/// The server that the environment names.
///
/// # Errors
/// The variable is set and no address.
pub fn of_environment() -> Result<Option<Address>> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).with_context(|| format!("the environment variable {VARIABLE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_protocol_if_none_is_given() {
        assert_eq!(cql_address("db").unwrap(), "db:9042");
        assert_eq!(cql_address(":9142").unwrap(), "127.0.0.1:9142");
        assert_eq!(rpc_address("::1").unwrap(), "[::1]:9160");
        assert_eq!(rpc_address("db:1").unwrap(), "db:1");
        assert_eq!(rpc_beside("db:9142"), "db:9160");
        assert!(cql_address("9042").is_err());
    }
}
