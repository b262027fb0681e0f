//! Splits a script into statements, and each statement into tokens.

use anyhow::{Result, bail};

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word without quotes.
    Word(String),
    /// A text in quotes.
    Text(String),
    Sign(char),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The line where the statement begins.
    pub(super) line: usize,
    pub(super) tokens: Vec<Token>,
}

const SIGNS: &str = "[]{}(),:=<>";

/// Splits a script into statements. The last statement may lack its `;`.
pub(super) fn statements(script: &str) -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    let mut tokens = Vec::new();
    let mut begun = 1;
    let mut line = 1;
    let mut rest = script.chars().peekable();
    while let Some(character) = rest.next() {
        if tokens.is_empty() {
            begun = line;
        }
        match character {
            '\n' => line += 1,
            space if space.is_whitespace() => {}
            ';' => statements.push(Statement { line: begun, tokens: std::mem::take(&mut tokens) }),
            '-' if rest.peek() == Some(&'-') => while rest.next_if(|next| *next != '\n').is_some() {},
            '#' => while rest.next_if(|next| *next != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                for next in rest.by_ref() {
                    line += usize::from(next == '\n');
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
            }
            quote @ ('\'' | '"') => {
                let mut text = String::new();
                loop {
                    match rest.next() {
                        None => bail!("line {line}: a text has no end: {quote}{text}"),
                        Some('\\') => text.push(unescaped(rest.next())),
                        Some(next) if next == quote && rest.peek() == Some(&quote) => {
                            text.extend(rest.next())
                        }
                        Some(next) if next == quote => break,
                        Some(next) => {
                            line += usize::from(next == '\n');
                            text.push(next);
                        }
                    }
                }
                tokens.push(Token::Text(text));
            }
            sign if SIGNS.contains(sign) => tokens.push(Token::Sign(sign)),
            first => {
                let mut word = String::from(first);
                let is_part =
                    |next: &char| !next.is_whitespace() && !SIGNS.contains(*next) && !";'\"".contains(*next);
                while let Some(next) = rest.next_if(is_part) {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
        }
    }
    if !tokens.is_empty() {
        statements.push(Statement { line: begun, tokens });
    }
    Ok(statements)
}

fn unescaped(character: Option<char>) -> char {
    match character {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some(other) => other,
        None => '\\',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_its_statements_with_their_lines() {
        let script = "-- head\nuse ks;\n/* a\nb */ set\n  Users['it\\'s'][name] = \"x\";\nquit";
        let found = statements(script).unwrap();
        assert_eq!(found.iter().map(|statement| statement.line).collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!(found[0].tokens, [Token::Word("use".into()), Token::Word("ks".into())]);
        assert_eq!(found[1].tokens[3], Token::Text("it's".into()));
        assert!(statements("set 'open").is_err());
    }
}
