//! `nodetool`: `helenus admin` for the node in this container, with the connection options of nodetool, and with its answers to verbs
//! about other nodes.

use super::place;
use crate::commands::admin;
use anyhow::Result;
use std::path::PathBuf;

/// Options of nodetool about its connection over JMX that take a value. They have no meaning for a socket.
const CONNECTION: [&str; 6] = ["-u", "--username", "-pw", "--password", "-pwf", "--password-file"];

/// Runs a verb.
///
/// # Errors
/// As [`admin::run_as_node`].
pub fn run(words: Vec<String>) -> Result<()> {
    let words = without_connection(words);
    let is_placed = words.iter().any(|word| word.starts_with("--data") || word.starts_with("--socket"));
    let mut call = vec!["nodetool".to_owned()];
    if !is_placed {
        call.extend(place_words());
    }
    call.extend(words);
    admin::run_as_node(&admin::command().name("nodetool").get_matches_from(call))
}

/// The words that name the node: its directory, or the socket of a node in memory.
fn place_words() -> [String; 2] {
    let variable = |name: &str| std::env::var(name).ok();
    if variable("HELENUS_MEMORY").is_some_and(|value| value == "true")
        && let Some(socket) = socket_in_memory()
    {
        return ["--socket".to_owned(), socket.display().to_string()];
    }
    let folder = place::configuration(&variable);
    let yaml = place::yaml(&folder).unwrap_or_default();
    let data = variable("HELENUS_DATA").map_or_else(|| place::data(&yaml, &folder), PathBuf::from);
    ["--data".to_owned(), data.display().to_string()]
}

/// The socket of a server in memory, which may run as another user than this program.
fn socket_in_memory() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/tmp").ok()?.flatten().map(|entry| entry.path());
    let folders = folders
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"helenus-")));
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "sock"))
}

/// The words without options of the JVM and of JMX.
fn without_connection(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let is_value_inside = CONNECTION.iter().any(|name| word.starts_with(&format!("{name}=")));
        // Options of a verb follow it, and may have the same letters: `tablestats -H`, `compact -u`.
        if !word.starts_with('-') {
            kept.push(word);
            kept.extend(words);
            return kept;
        }
        match word.as_str() {
            name if CONNECTION.contains(&name) => drop(words.next()),
            "-h" | "--host" | "-p" | "--port" => {
                kept.push(word);
                kept.extend(words.next());
            }
            "-pp" | "--print-port" | "--ssl" => {}
            jvm if jvm.starts_with("-D") || is_value_inside => {}
            _ => kept.push(word),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_connection_are_dropped_before_the_verb_and_kept_after_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let kept = without_connection(words(
            "-Dcom.sun.x=y --ssl -h localhost -p 7199 -u me -pw secret -pp status -r",
        ));
        assert_eq!(kept, words("-h localhost -p 7199 status -r"));
        assert_eq!(without_connection(words("--password=x compact -u a")), words("compact -u a"));
    }
}
