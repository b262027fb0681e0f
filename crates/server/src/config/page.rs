//! Generates the book's page of options from the table.

use std::fmt::Write;

use super::cassandra_keys::{NoEffect, REFUSED_KEYS, names_without_effect};
use super::options::OPTIONS;

/// Returns the page as Markdown.
pub fn options_page() -> String {
    let mut page = String::from(
        "# Options\n\nEach option is a key of the configuration file (`helenus serve --config FILE`); some are flags too. A flag \
         wins over the\nfile. Keys are Cassandra's where Cassandra has them, and so are their units in a file; flags take sizes as \
         512M and durations as 90s\neverywhere. This page is made from the table in\n\
         `crates/server/src/config/options.rs`; a test compares it.\n\n| key | flag | default | takes |\n|---|---|---|---|\n",
    );
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ok = page.write_fmt(text);
    };
    for option in OPTIONS {
        let flag = option.flag.map(|flag| format!("`--{flag}`")).unwrap_or_default();
        line(format_args!(
            "| `{}` | {flag} | {} | {} |\n",
            option.key,
            option.default,
            if option.is_own() { option.kind.allowed_own() } else { option.kind.allowed() }
        ));
    }
    line(format_args!("\n"));
    for option in OPTIONS {
        let old = |(old, unit): &(&str, &str)| match *unit {
            "" => format!(" Also as `{old}`."),
            unit => format!(" Also as `{old}` ({unit})."),
        };
        let old: Vec<_> = option.old.iter().map(old).collect();
        line(format_args!("- `{}`: {}{}\n", option.key, option.help, old.concat()));
    }
    line(format_args!(
        "\n## Keys that are refused\n\nWithout what they ask for the server would be less safe, or open to more, than its owner \
         thinks.\n\n"
    ));
    for guarded in REFUSED_KEYS {
        line(format_args!("- `{}`: {}\n", guarded.key, guarded.reason));
    }
    for (kind, title) in [
        (NoEffect::NotBuilt, "Keys of Cassandra's that are not built yet"),
        (NoEffect::NotApplicable, "Keys of Cassandra's that mean nothing on one machine"),
    ] {
        let names: Vec<_> = names_without_effect()
            .filter(|(_, why)| *why == kind)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        line(format_args!(
            "\n## {title}\n\nTaken without effect, and named at the start.\n\n{}\n",
            names.join(", ")
        ));
    }
    page
}
