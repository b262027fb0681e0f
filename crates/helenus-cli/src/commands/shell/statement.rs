//! Splits typed text, or the text of a file, into statements.
//!
//! A semicolon ends a statement, except in texts, names, comments, `$$` bodies and batches. As in cqlsh, the end of a
//! line ends the shell's own commands, except COPY.

/// Words that begin a command which the end of the line ends.
const ENDED_BY_LINE: [&str; 22] = [
    "help",
    "?",
    "consistency",
    "serial",
    "describe",
    "desc",
    "show",
    "source",
    "capture",
    "login",
    "tracing",
    "expand",
    "paging",
    "timing",
    "format",
    "exit",
    "quit",
    "clear",
    "cls",
    "history",
    "debug",
    "unicode",
];

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text from the first word on, without the semicolon.
    pub text: String,
    /// The line where it begins, from 1.
    pub line: usize,
}

/// The result of splitting a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub statements: Vec<Statement>,
    /// The offset of the statement that has no end yet, if there is one.
    pub open: Option<usize>,
}

/// Splits a text into statements.
pub fn take_apart(text: &str) -> Taken {
    let mut scanner = Scanner { text, at: 0, line: 1, begun: None };
    let mut taken = Taken::default();
    while scanner.at < text.len() {
        if scanner.step()
            && let Some((start, line)) = scanner.begun.take()
        {
            let found = text.get(start..scanner.at).unwrap_or_default();
            let found = found.trim_end().trim_end_matches(';').trim_end();
            if !found.is_empty() {
                taken.statements.push(Statement { text: found.to_owned(), line });
            }
        }
    }
    taken.open = scanner.begun.map(|(start, _)| start);
    taken
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    /// The offset and the line where the current statement begins.
    begun: Option<(usize, usize)>,
}

impl Scanner<'_> {
    /// Moves over the next piece. Returns whether a statement ends with it.
    fn step(&mut self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else { return false };
        let length = match first {
            '\n' => {
                let ends = self.begun.is_some_and(|(start, _)| is_ended_by_line(self.text, start));
                self.advance(1);
                return ends;
            }
            _ if rest.starts_with("--") || rest.starts_with("//") => {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
                return false;
            }
            _ if rest.starts_with("/*") => {
                let length = match rest.find("*/") {
                    Some(end) => end + 2,
                    None => {
                        // An unclosed comment waits for its end, as a statement does.
                        self.begin();
                        rest.len()
                    }
                };
                self.advance(length);
                return false;
            }
            ';' => {
                self.advance(1);
                return self.begun.is_some_and(|(start, _)| !self.is_in_batch(start));
            }
            _ if first.is_whitespace() => first.len_utf8(),
            '\'' | '"' => {
                self.begin();
                1 + rest.get(1..).and_then(|inner| inner.find(first)).map_or(rest.len() - 1, |end| end + 1)
            }
            _ if rest.starts_with("$$") => {
                self.begin();
                2 + rest.get(2..).and_then(|inner| inner.find("$$")).map_or(rest.len() - 2, |end| end + 2)
            }
            _ => {
                self.begin();
                first.len_utf8()
            }
        };
        self.advance(length);
        // A text without a closing quote is still open at the end.
        false
    }

    fn begin(&mut self) {
        if self.begun.is_none() {
            self.begun = Some((self.at, self.line));
        }
    }

    fn advance(&mut self, length: usize) {
        let end = self.at + length;
        self.line += self.text.get(self.at..end).unwrap_or_default().matches('\n').count();
        self.at = end;
    }

    /// Whether the statement that begins at `start` is a batch that does not end here.
    fn is_in_batch(&self, start: usize) -> bool {
        let so_far = self.text.get(start..self.at).unwrap_or_default();
        let mut words = so_far.split(|letter: char| letter.is_whitespace() || letter == ';');
        if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("begin")) {
            return false;
        }
        let mut last = words.filter(|word| !word.is_empty()).rev();
        let ends = last.next().is_some_and(|word| word.eq_ignore_ascii_case("batch"))
            && last.next().is_some_and(|word| word.eq_ignore_ascii_case("apply"));
        !ends
    }
}

fn is_ended_by_line(text: &str, start: usize) -> bool {
    let text = text.get(start..).unwrap_or_default();
    let word = first_word(text);
    text.starts_with('\\') || ENDED_BY_LINE.iter().any(|ended| ended.eq_ignore_ascii_case(word))
}

/// The first word of a statement.
pub fn first_word(text: &str) -> &str {
    if text.starts_with('?') {
        return "?";
    }
    let end =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        take_apart(text).statements.into_iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn semicolons_in_texts_names_comments_bodies_and_batches_end_nothing() {
        let text = "-- a; b\nSELECT ';' FROM \"x;y\" /* ; */ ; // c;\nSELECT $$;'$$;";
        assert_eq!(texts(text), ["SELECT ';' FROM \"x;y\" /* ; */", "SELECT $$;'$$"]);
        let batch = "BEGIN UNLOGGED BATCH INSERT 1; UPDATE 2;\nAPPLY BATCH; SELECT 3;";
        assert_eq!(texts(batch), ["BEGIN UNLOGGED BATCH INSERT 1; UPDATE 2;\nAPPLY BATCH", "SELECT 3"]);
        let lines: Vec<usize> = take_apart(text).statements.iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn the_shells_own_commands_end_with_their_line() {
        assert_eq!(
            texts("DESCRIBE TABLES\nexpand on\n\\dt\nSELECT\n1;"),
            ["DESCRIBE TABLES", "expand on", "\\dt", "SELECT\n1"]
        );
    }

    #[test]
    fn what_has_no_end_is_open() {
        for open in ["SELECT 1", "SELECT 'a;", "/* never", "BEGIN BATCH x;", "COPY a TO 'b'\n"] {
            assert!(take_apart(open).open.is_some(), "{open}");
        }
        for closed in ["", " \n", "SELECT 1;", "-- only a comment", "exit\n"] {
            assert_eq!(take_apart(closed).open, None, "{closed}");
        }
    }
}
