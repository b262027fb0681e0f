//! STARTUP: the options of a connection.

use crate::WireError;
use crate::native::primitives::{Reader, StringMap};
use crate::native::{Compression, Version};

/// The option that every STARTUP must have.
pub const CQL_VERSION: &str = "CQL_VERSION";
/// The requested compression.
pub const COMPRESSION: &str = "COMPRESSION";
/// The list of versions in SUPPORTED.
pub const PROTOCOL_VERSIONS: &str = "PROTOCOL_VERSIONS";
/// Name of the driver.
pub const DRIVER_NAME: &str = "DRIVER_NAME";
/// Version of the driver.
pub const DRIVER_VERSION: &str = "DRIVER_VERSION";
/// If "1", overload is answered with OVERLOADED, instead of by not reading.
pub const THROW_ON_OVERLOAD: &str = "THROW_ON_OVERLOAD";

/// The first message of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Startup<'a> {
    /// All options. Cassandra ignores the case of their names.
    pub options: StringMap<'a>,
}

impl<'a> Startup<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Startup { options: reader.string_map()? })
    }

    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&'a str> {
        self.options.get_ignoring_case(name)
    }

    /// Checks CQL_VERSION, then returns the requested compression, as `StartupMessage.execute` does. Any version from
    /// 2.99.0 on is accepted (the Rust driver sends 4.0.0).
    pub fn check(&self, version: Version) -> Result<Option<Compression>, WireError> {
        let cql = self.option(CQL_VERSION).ok_or(WireError::MissingCqlVersion)?;
        let Some((major, minor)) = leading_numbers(cql) else {
            return Err(WireError::CqlVersionUnreadable { version: cql.to_owned() });
        };
        if (major, minor) < (2, 99) {
            return Err(WireError::CqlVersionTooOld { version: cql.to_owned() });
        }
        self.option(COMPRESSION).map(|name| Compression::from_name(name, version)).transpose()
    }

    /// Whether the client wants OVERLOADED errors instead of back-pressure.
    pub fn throws_on_overload(&self) -> bool {
        self.option(THROW_ON_OVERLOAD) == Some("1")
    }
}

/// Major and minor number of `major.minor[.patch...]`.
fn leading_numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-', '~', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
