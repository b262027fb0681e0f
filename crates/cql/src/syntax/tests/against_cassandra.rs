//! Compares the parser with Cassandra's recorded answers.

use super::{answers, unescaped};
use crate::syntax::error::content;
use crate::syntax::lexer::Lexer;
use crate::syntax::parse;
use crate::syntax::token::Kind;

#[test]
fn what_cassandra_refuses_is_refused_in_the_same_words() {
    let mut count = 0;
    for (statement, answer) in answers(include_str!("refused.txt")) {
        let error = parse(&statement).expect_err(&statement);
        assert_eq!(error.to_string(), answer, "{statement}");
        if answer.starts_with("line ") {
            assert!(
                answer.starts_with(&format!("line {}:{} ", error.line, error.column)),
                "{statement}: {error:?}"
            );
        }
        count += 1;
    }
    assert!(count > 250);
}

/// For these statements Cassandra looks one token further or gives another reason. Drivers and shells point at the
/// position, which must be the same.
#[test]
fn where_the_words_differ_the_place_is_the_same() {
    for (statement, answer) in answers(include_str!("refused_elsewise.txt")) {
        let error = parse(&statement).expect_err(&statement);
        let place = format!("line {}:{} ", error.line, error.column);
        assert!(error.to_string().starts_with(&place), "{statement}: {error}");
        assert!(answer.starts_with(&place), "{statement}: {error} against {answer}");
    }
}

#[test]
fn what_cassandra_accepts_is_accepted() {
    for line in include_str!("accepted.txt").lines() {
        let statement = unescaped(line);
        if let Err(error) = parse(&statement) {
            panic!("{statement}: {error}");
        }
    }
}

#[test]
fn texts_are_cut_into_the_tokens_that_cassandra_cuts() {
    for (text, answer) in answers(include_str!("lexed.txt")) {
        let mut lexer = Lexer::new(&text);
        let mut tokens = Vec::new();
        let ours = loop {
            match lexer.next_token() {
                Ok(token) if token.kind == Kind::Eof => break tokens.join(" "),
                Ok(token) => {
                    // Cassandra's names for words are those of its grammar; a word with two spellings has one name.
                    let label = token.kind.label().replace('\\', "");
                    tokens.push(format!("{label}({})", content(&text, token)));
                }
                Err(_) => break format!("!! {}", parse(&text).expect_err(&text)),
            }
        };
        let answer = answer.replace("'\\*'", "'*'");
        // The parser may reject a text for what precedes the invalid token, so this is compared only for a first token.
        if ours.starts_with("!! ") && !tokens.is_empty() {
            assert!(answer.starts_with("!! "), "{text}: {answer}");
            continue;
        }
        assert_eq!(ours.trim(), answer, "{text}");
    }
}
