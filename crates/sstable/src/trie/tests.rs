//! Round trips of tries through writer and walker.
