//! No circles between the top-level modules of a crate: a module uses only what does not use it again.
//!
//! A module uses another one if a path in its files begins there: `crate::x`, `super::x` from the depth of the file,
//! or a name that the crate's root re-exports from `x`. Unit tests do not count, nor do items of the root itself.
//! `LIST` has the circles that are left, which may only shrink.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use super::Source;
use super::tokens::{Token, group_end, product};

/// The circles that are known: lines of `crate: module module ...`.
const LIST: &str = "xtask/module-circles.txt";

/// Modules that use each other, directly or through others.
type Circle = BTreeSet<String>;

/// For each module the modules that it uses, with the first place where it does, as `path:line`.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let mut known = known(&text)?;
    let mut breaches = Vec::new();
    let crates: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("crates/")?.split_once("/src/"))
        .map(|(name, _)| name)
        .collect();
    for name in crates {
        let graph = graph(name, sources, &mut breaches);
        breaches.extend(compare(name, &graph, &known.remove(name).unwrap_or_default()));
    }
    breaches.extend(known.keys().map(|name| format!("{LIST}: there is no crate `{name}`; remove its lines")));
    Ok(breaches)
}

/// The circles that `LIST` allows, by crate.
fn known(text: &str) -> Result<BTreeMap<String, Vec<Circle>>, String> {
    let mut known = BTreeMap::<String, Vec<Circle>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let (name, modules) = line
            .split_once(": ")
            .ok_or_else(|| format!("{LIST}: `{line}` is not `crate: module module ...`"))?;
        known
            .entry(name.to_owned())
            .or_default()
            .push(modules.split_whitespace().map(str::to_owned).collect());
    }
    Ok(known)
}

/// Reads the files of one crate. A path that names everything of the root at once is a breach: it hides its ends.
fn graph(name: &str, sources: &[Source], breaches: &mut Vec<String>) -> Graph {
    let folder = format!("crates/{name}/src/");
    let files: Vec<(&str, &Source)> = sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_test)
        .filter_map(|source| Some((source.path.strip_prefix(&folder)?.strip_suffix(".rs")?, source)))
        .collect();
    let is_root = |stem: &str| ["lib", "main"].contains(&stem);
    let mut graph = Graph::new();
    let mut exported = BTreeMap::new();
    for (_, root) in files.iter().filter(|(stem, _)| is_root(stem)) {
        let tokens = product(&root.text);
        for window in tokens.windows(3).filter(|window| window[0].text == "mod" && window[2].text == ";") {
            graph.entry(window[1].text.to_owned()).or_default();
        }
        exports(&tokens, &mut exported);
    }
    for (stem, source) in files.iter().filter(|(stem, _)| !is_root(stem)) {
        let parts: Vec<&str> = stem.split('/').filter(|part| *part != "mod").collect();
        let Some(module) = parts.first().filter(|module| graph.contains_key(**module)).copied() else {
            continue;
        };
        for head in root_paths(&product(&source.text), parts.len()) {
            let place = format!("{}:{}", source.path, head.line);
            if head.text == "*" {
                breaches.push(format!("{place}: everything of the crate's root; name what is used"));
            }
            let used = exported.get(head.text).map_or(head.text, String::as_str);
            if used != module && graph.contains_key(used) {
                let uses = graph.entry(module.to_owned()).or_default();
                uses.entry(used.to_owned()).or_insert(place);
            }
        }
    }
    graph
}

/// The names that the `use` lines of the crate's root bring into it, each with the module that it comes from.
fn exports(tokens: &[Token<'_>], exported: &mut BTreeMap<String, String>) {
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "use") {
        let line = tokens[at + 1..].split(|token| token.text == ";").next().unwrap_or_default();
        let mut words = line.iter().filter(|token| token.is_identifier()).map(|token| token.text);
        let Some(module) = words.find(|word| !["crate", "self"].contains(word)) else { continue };
        for word in words.filter(|word| !["as", "self"].contains(word)) {
            exported.insert(word.to_owned(), module.to_owned());
        }
    }
}

/// The first names behind the crate's root of all paths that go there, in a file `depth` modules below it.
fn root_paths<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let mut heads = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    // Modules written within the file are deeper: their closing brackets.
    let mut inner_ends = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        inner_ends.retain(|end| *end > at);
        if text(at) == "mod" && text(at + 2) == "{" {
            inner_ends.push(group_end(tokens, at + 2));
        }
        let up = match text(at) {
            "crate" if text(at + 1) == "::" => Some(0),
            "super" if text(at + 1) == "::" => Some(depth + inner_ends.len() - 1),
            _ => None,
        };
        at = up.map_or(at + 1, |up| path_heads(tokens, at + 2, up, &mut heads));
    }
    heads
}

/// Follows a path from behind a `crate::` or `super::`, `up` modules below the root. Returns the index behind the
/// name or the group that it goes to.
fn path_heads<'a>(tokens: &[Token<'a>], at: usize, up: usize, heads: &mut Vec<Token<'a>>) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    match token.text {
        "super" if up > 0 => path_heads(tokens, at + 2, up - 1, heads),
        "{" => {
            let end = group_end(tokens, at);
            let mut inner = at + 1;
            while inner + 1 < end {
                inner = path_heads(tokens, inner, up, heads);
                while inner + 1 < end && tokens[inner].text != "," {
                    inner = group_end(tokens, inner);
                }
                inner += 1;
            }
            end
        }
        "self" => at + 1,
        _ => {
            if up == 0 {
                heads.push(*token);
            }
            at + 1
        }
    }
}

/// Every module that reaches itself again, in the set of those that it reaches and that reach it.
fn circles(graph: &Graph) -> Vec<Circle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached(graph, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, theirs) in &reached {
        let circle: Circle = theirs
            .iter()
            .filter(|other| reached[*other].contains(module))
            .map(|other| (*other).to_owned())
            .collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = graph[from].keys().map(String::as_str).collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(graph[module].keys().map(String::as_str));
        }
    }
    found
}

/// The ratchet: no circle that is not listed, none with a module more, and the list follows when one shrinks.
fn compare(name: &str, graph: &Graph, known: &[Circle]) -> Vec<String> {
    let mut breaches = Vec::new();
    let circles = circles(graph);
    for circle in circles.iter().filter(|circle| !known.iter().any(|listed| circle.is_subset(listed))) {
        let joined = circle.iter().filter(|module| !known.iter().any(|listed| listed.contains(*module)));
        let joined: Vec<&String> = joined.collect();
        // Listed circles that have become one have no new module.
        let blamed = if joined.is_empty() { circle.first().into_iter().collect() } else { joined };
        breaches.extend(blamed.into_iter().map(|module| way_round(graph, module)));
    }
    for listed in known {
        let inside: Vec<&Circle> = circles.iter().filter(|circle| circle.is_subset(listed)).collect();
        let line = |circle: &Circle| {
            format!("`{name}: {}`", circle.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
        };
        if inside.is_empty() && circles.iter().all(|circle| circle.is_disjoint(listed)) {
            breaches.push(format!("{LIST}: a circle is gone, well done; remove {}", line(listed)));
        } else if !inside.is_empty() && !inside.contains(&listed) {
            let now: Vec<String> = inside.into_iter().map(line).collect();
            breaches.push(format!(
                "{LIST}: a circle shrank, well done; replace {} by {}",
                line(listed),
                now.join(" and ")
            ));
        }
    }
    breaches
}

/// A breach that shows the shortest way from a module back to itself.
fn way_round(graph: &Graph, module: &str) -> String {
    let mut before = BTreeMap::<&str, &str>::new();
    let mut open = VecDeque::from([module]);
    while let Some(at) = open.pop_front() {
        for next in graph[at].keys() {
            if !before.contains_key(next.as_str()) {
                before.insert(next, at);
                open.push_back(next);
            }
        }
    }
    let mut steps = Vec::new();
    let mut to = module;
    while let Some(from) = before.get(to) {
        steps.push(format!("`{from}` uses `{to}` ({})", graph[*from][to]));
        to = from;
        if to == module {
            break;
        }
    }
    steps.reverse();
    let steps = steps.join(", ");
    format!("a circle of modules: {steps}; move what both need to a module below them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: format!("crates/c/src/{path}"),
            text: text.into(),
            is_test: path.ends_with("tests.rs"),
        }
    }

    /// The uses of a crate `c`, as `from to`.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| source(path, text)).collect();
        let graph = graph("c", &sources, &mut Vec::new());
        graph.iter().flat_map(|(from, to)| to.keys().map(move |to| format!("{from} {to}"))).collect()
    }

    fn drawn(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*to).to_owned()).or_default();
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned(), format!("{from}.rs:1"));
        }
        graph
    }

    fn circle(modules: &str) -> Circle {
        modules.split(' ').map(str::to_owned).collect()
    }

    const ROOT: (&str, &str) =
        ("lib.rs", "mod a;\nmod b;\npub mod d;\npub use b::{Thing, inner::Deep as Low};\n");

    #[test]
    fn a_module_uses_what_its_paths_name() {
        assert_eq!(uses(&[ROOT, ("a.rs", "use crate::b;")]), ["a b"]);
        assert_eq!(uses(&[ROOT, ("a.rs", "use crate::{b::{Thing, d}, a::X};")]), ["a b"]);
        assert_eq!(uses(&[ROOT, ("a.rs", "fn f(x: &crate::b::X) -> crate::d::Y {}")]), ["a b", "a d"]);
        assert_eq!(uses(&[ROOT, ("a.rs", "pub(crate) use std::b; // crate::b")]), [""; 0]);
    }

    #[test]
    fn names_of_the_root_count_as_the_module_they_come_from() {
        assert_eq!(
            uses(&[ROOT, ("a.rs", "use crate::Thing;"), ("d.rs", "use crate::{Low, Other};")]),
            ["a b", "d b"]
        );
    }

    #[test]
    fn supers_are_counted_from_the_depth_of_the_file_and_of_modules_in_it() {
        assert_eq!(uses(&[ROOT, ("a.rs", "use super::b;")]), ["a b"]);
        assert_eq!(uses(&[ROOT, ("a/mod.rs", "use super::b;")]), ["a b"]);
        assert_eq!(uses(&[ROOT, ("a/e.rs", "use super::b;")]), [""; 0]);
        assert_eq!(uses(&[ROOT, ("a/e.rs", "use super::{super::b, d};")]), ["a b"]);
        assert_eq!(uses(&[ROOT, ("a.rs", "mod e { use super::b; } use super::d;")]), ["a d"]);
        assert_eq!(uses(&[ROOT, ("a.rs", "mod e { use super::super::b; }")]), ["a b"]);
    }

    #[test]
    fn tests_use_what_they_like() {
        assert_eq!(uses(&[ROOT, ("a.rs", "#[cfg(test)] mod tests { use crate::b; }")]), [""; 0]);
        assert_eq!(uses(&[ROOT, ("a/tests.rs", "use crate::b;")]), [""; 0]);
    }

    #[test]
    fn a_glob_of_the_root_is_refused() {
        let mut breaches = Vec::new();
        graph("c", &[source("lib.rs", "mod a;"), source("a.rs", "use super::*;")], &mut breaches);
        assert_eq!(breaches.len(), 1);
    }

    #[test]
    fn a_circle_is_what_reaches_itself_and_nothing_beside_it() {
        let graph =
            drawn(&[("a", "b"), ("b", "a"), ("b", "d"), ("e", "a"), ("f", "g"), ("g", "h"), ("h", "f")]);
        assert_eq!(circles(&graph), [circle("a b"), circle("f g h")]);
    }

    #[test]
    fn a_circle_must_be_listed_as_it_is() {
        let graph = drawn(&[("a", "b"), ("b", "a"), ("b", "d")]);
        for (known, breaches) in [("", 2), ("a b", 0), ("a b d", 1), ("d e", 3), ("a x", 1)] {
            let known: Vec<Circle> = (!known.is_empty()).then(|| circle(known)).into_iter().collect();
            assert_eq!(compare("c", &graph, &known).len(), breaches, "{known:?}");
        }
    }

    #[test]
    fn a_breach_says_what_to_write_or_shows_the_way_round() {
        let graph = drawn(&[("a", "b"), ("b", "a"), ("b", "d")]);
        let shrunk = compare("c", &graph, &[circle("a b d")]);
        assert!(shrunk[0].ends_with("replace `c: a b d` by `c: a b`"), "{shrunk:?}");
        let new = compare("c", &graph, &[]);
        assert!(new[0].contains("`a` uses `b` (a.rs:1), `b` uses `a` (b.rs:1)"), "{new:?}");
    }

    #[test]
    fn the_list_is_read_by_crate() {
        let known = known("# said\n\nc: a b\nc: e f\n").expect("the lines are right");
        assert_eq!(known, BTreeMap::from([("c".to_owned(), vec![circle("a b"), circle("e f")])]));
        assert!(super::known("a b").is_err());
    }
}
