//! The history file, and the choice of statements that it keeps.

use std::path::PathBuf;

/// The path of the history file: that of `HELENUS_SHELL_HISTORY`, otherwise `~/.helenus_shell_history`.
pub fn file() -> Option<PathBuf> {
    match std::env::var_os("HELENUS_SHELL_HISTORY") {
        Some(file) if file.is_empty() => None,
        Some(file) => Some(PathBuf::from(file)),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".helenus_shell_history")),
    }
}

/// Whether a statement is kept. Statements that may contain a password are not.
pub fn keeps(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_secret = lower.contains("password") || lower.trim_start().starts_with("login");
    !text.trim().is_empty() && !has_secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        assert!(keeps("SELECT 1;"));
        for secret in ["LOGIN me 'x'", " login me", "CREATE ROLE r WITH PASSWORD = 'x';", "  "] {
            assert!(!keeps(secret), "{secret}");
        }
    }
}
