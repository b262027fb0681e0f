//! All CQL types: their names, valid bytes, text and order.
//!
//! The enum is `CqlType`; each family of types has its own file. Nothing here depends on the wire protocol, the parser
//! or the disk.

mod civil;
mod class_name;
mod class_parser;
mod collection;
mod composite;
mod constant;
mod cql_type;
mod date;
mod decimal;
mod described;
mod digits;
mod duration;
mod error;
mod float;
mod inet;
mod instant;
mod integer;
mod iso_instant;
mod java_digits;
mod json;
mod json_bytes;
mod literal;
mod name;
mod plain_text;
mod rules;
mod text;
mod timestamp;
mod tuple;
mod uuid;
mod vector;
mod zone;

pub use class_name::composite_class_name;
pub(crate) use class_name::{DATE_CLASS, LEXICAL_UUID_CLASS};
pub use class_parser::{ParsedClass, parse_class_name};
pub use collection::{
    Elements, ElementsWithout, check_bound_list, check_count, collection_size, empty_as_null,
    needs_normalising, normalise, normalise_within, pack, put_value, take_value,
};
pub use composite::KEPT_CLASS_BYTES_MAX;
pub(crate) use composite::{Component as CompositeComponent, Composite, class_names};
pub use constant::{Assignment, parse_constant, parse_text, preferred_type, test_constant};
pub use cql_type::{CqlType, TYPE_DEPTH_MAX, TYPE_PARTS_MAX, UserType};
pub(crate) use decimal::Parts as DecimalParts;
pub use decimal::decimals_need_power;
pub use described::described_bytes;
pub use digits::write_integer;
pub use duration::{Duration, DurationTextError};
pub use error::{ConstantKind, TypeError};
pub use instant::{add_duration, floor_instant, floor_time};
pub use iso_instant::write_instant;
pub use json::{TextRoom, to_json, write_json, write_json_exactly, write_json_string, write_json_within};
pub use json_bytes::{append_integer, append_json, append_json_text};
pub use literal::{to_cql_literal, to_short_literal, write_literal};
pub use name::quote_identifier;
pub use plain_text::{key_text, key_values, parse_key_text, write_text};
pub use tuple::Fields;
pub(crate) use uuid::{
    SIGNED_BYTES, halves as uuid_halves, time_back as uuid_time_back, time_first as uuid_time_first,
    version as uuid_version,
};
pub use vector::{VectorElements, put_element};
