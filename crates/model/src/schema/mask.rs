//! Dynamic data masking: how a column's values are hidden from users without permission (`ColumnMask`).

use crate::types::CqlType;
use std::fmt;
use std::sync::Arc;

/// A masking function: its first argument is the column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMask {
    /// Keyspace of the function: `system` for native ones.
    pub keyspace: Arc<str>,
    /// Its name.
    pub function: Arc<str>,
    /// The arguments after the column's value.
    pub arguments: Vec<MaskArgument>,
}

/// An argument, as stored in `system_schema.column_masks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskArgument {
    /// Its type.
    pub ty: CqlType,
    /// Its value as text, without quotes (`AbstractType.getString`); `None` for null.
    pub value: Option<String>,
}

impl fmt::Display for ColumnMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<String> = self.arguments.iter().map(MaskArgument::literal).collect();
        write!(f, "{}.{}({})", self.keyspace, self.function, arguments.join(", "))
    }
}

impl MaskArgument {
    /// The value as a CQL literal.
    fn literal(&self) -> String {
        let is_quoted = matches!(
            self.ty,
            CqlType::Ascii
                | CqlType::Text
                | CqlType::Date
                | CqlType::Time
                | CqlType::Timestamp
                | CqlType::Inet
        );
        match &self.value {
            None => "null".to_owned(),
            Some(text) if is_quoted => format!("'{}'", text.replace('\'', "''")),
            Some(text) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_numbers_are_not() {
        let argument = |ty, value: &str| MaskArgument { ty, value: Some(value.to_owned()) };
        let mask = ColumnMask {
            keyspace: "system".into(),
            function: "mask_inner".into(),
            arguments: vec![
                argument(CqlType::Int, "1"),
                MaskArgument { ty: CqlType::Int, value: None },
                argument(CqlType::Text, "'"),
            ],
        };
        assert_eq!(mask.to_string(), "system.mask_inner(1, null, '''')");
    }
}
