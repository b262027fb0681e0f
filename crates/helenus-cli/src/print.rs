//! Macros that print where the standard library's `print!` and `eprintln!` would panic: their reader may have closed the pipe.
//!
//! `cargo xtask tidy` refuses the others in this crate. An error of [`say!`] and [`put!`] goes up with `?`, so that destructors run; `main`
//! ends without a message where it is a closed pipe.

/// A line on standard output. Evaluates to an `io::Result<()>`.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout(), $($argument)*)
    }};
}

/// A text without a line feed at its end on standard output. Evaluates to an `io::Result<()>`.
macro_rules! put {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        write!(std::io::stdout(), $($argument)*)
    }};
}

/// A line on standard error. The command goes on without a reader of it.
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}
