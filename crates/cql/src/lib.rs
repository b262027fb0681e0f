//! What a statement is: syntax, analysis, plan, execution.

pub mod syntax;
