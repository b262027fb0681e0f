//! Consistency levels, with the codes of Cassandra's `ConsistencyLevel`.

use std::fmt;

use crate::WireError;

macro_rules! levels {
    ($($variant:ident = $code:literal, $text:literal;)*) => {
        /// A consistency level; the numbers are the protocol's `[consistency]` codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Consistency {
            $(#[doc = $text] $variant = $code,)*
        }

        impl Consistency {
            /// All levels, by code.
            pub const ALL: &'static [Consistency] = &[$(Consistency::$variant,)*];

            /// The level with a code.
            pub fn from_code(code: u16) -> Result<Consistency, WireError> {
                match code {
                    $($code => Ok(Consistency::$variant),)*
                    code => Err(WireError::UnknownConsistency { code }),
                }
            }
        }

        impl fmt::Display for Consistency {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Consistency::$variant => $text,)*
                })
            }
        }
    };
}

levels! {
    Any = 0, "ANY";
    One = 1, "ONE";
    Two = 2, "TWO";
    Three = 3, "THREE";
    Quorum = 4, "QUORUM";
    All = 5, "ALL";
    LocalQuorum = 6, "LOCAL_QUORUM";
    EachQuorum = 7, "EACH_QUORUM";
    Serial = 8, "SERIAL";
    LocalSerial = 9, "LOCAL_SERIAL";
    LocalOne = 10, "LOCAL_ONE";
    NodeLocal = 11, "NODE_LOCAL";
}

impl Consistency {
    /// The code of this level.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Whether this level is a serial consistency.
    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }
}
