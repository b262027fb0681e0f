//! The parser of CQL 2.

use super::ast::{
    Alteration, Change, Columns, Comparison, FamilyName, Modify, Operation, Relation, Select, Statement,
    Term, Using,
};
use super::lexer::{Token, tokens};
use crate::error::{Result, invalid};
use helenus_wire::thrift::ConsistencyLevel;

/// Parses a statement. Also returns the number of its markers.
pub(super) fn parse(text: &str) -> Result<(Statement, usize)> {
    let (tokens, places) = tokens(text)?;
    let mut parser = Parser { tokens, places, length: text.len(), at: 0, markers: 0 };
    let statement = parser.statement()?;
    parser.sign(";");
    if parser.at < parser.tokens.len() {
        return parser.unexpected();
    }
    Ok((statement, parser.markers))
}

struct Parser {
    tokens: Vec<Token>,
    /// Where each token begins.
    places: Vec<usize>,
    /// Bytes of the text.
    length: usize,
    at: usize,
    markers: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn unexpected<T>(&self) -> Result<T> {
        let text = match self.peek() {
            None => "<EOF>".to_owned(),
            Some(Token::Word(word)) => word.clone(),
            Some(Token::Text(text)) => format!("'{text}'"),
            Some(Token::Range) => "..".to_owned(),
            Some(Token::Marker) => "?".to_owned(),
            Some(Token::Sign(sign)) => (*sign).to_owned(),
        };
        invalid(format!("Invalid or malformed CQL query string: no viable alternative at input '{text}'"))
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    /// Consumes a word if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { self.unexpected() }
    }

    fn any_of(&mut self, words: &[&str]) -> Result<()> {
        if words.iter().any(|word| self.word(word)) { Ok(()) } else { self.unexpected() }
    }

    /// Consumes a sign if it is next.
    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { self.unexpected() }
    }

    /// Parses a word or text.
    fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(text) | Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => self.unexpected(),
        }
    }

    fn term(&mut self) -> Result<Term> {
        if self.peek() == Some(&Token::Marker) {
            self.at += 1;
            self.markers += 1;
            return Ok(Term::Marker(self.markers - 1));
        }
        Ok(Term::Text(self.name()?))
    }

    fn terms(&mut self) -> Result<Vec<Term>> {
        let mut terms = vec![self.term()?];
        while self.sign(",") {
            terms.push(self.term()?);
        }
        Ok(terms)
    }

    fn integer<T: std::str::FromStr>(&mut self) -> Result<T> {
        let text = self.name()?;
        match text.parse() {
            Ok(number) => Ok(number),
            Err(_) => invalid(format!("'{text}' is not a number")),
        }
    }

    fn family(&mut self) -> Result<FamilyName> {
        let first = self.name()?;
        if self.sign(".") {
            return Ok(FamilyName { keyspace: Some(first), name: self.name()? });
        }
        Ok(FamilyName { keyspace: None, name: first })
    }

    fn statement(&mut self) -> Result<Statement> {
        let Some(Token::Word(word)) = self.peek() else { return self.unexpected() };
        let word = word.to_ascii_uppercase();
        match word.as_str() {
            "SELECT" => self.select().map(Statement::Select),
            "INSERT" | "UPDATE" | "DELETE" => self.modify().map(Statement::Modify),
            "BEGIN" => self.batch(),
            "CREATE" => self.create(),
            "DROP" => self.drop(),
            "ALTER" => self.alter(),
            "USE" => {
                self.at += 1;
                Ok(Statement::Use(self.name()?))
            }
            "TRUNCATE" => {
                self.at += 1;
                Ok(Statement::Truncate(self.family()?))
            }
            _ => self.unexpected(),
        }
    }

    fn select(&mut self) -> Result<Select> {
        self.expect("SELECT")?;
        let counts = self.is_word("COUNT") && self.tokens.get(self.at + 1) == Some(&Token::Sign("("));
        if counts {
            self.at += 2;
        }
        let first = if self.word("FIRST") { Some(self.integer()?) } else { None };
        let reversed = self.word("REVERSED");
        let columns = if self.sign("*") {
            Columns::All
        } else {
            let start = self.term()?;
            if self.peek() == Some(&Token::Range) {
                self.at += 1;
                Columns::Range(start, self.term()?)
            } else {
                let mut names = vec![start];
                while self.sign(",") {
                    names.push(self.term()?);
                }
                Columns::Names(names)
            }
        };
        if counts {
            self.expect_sign(")")?;
        }
        self.expect("FROM")?;
        let family = self.family()?;
        let mut level = None;
        if self.word("USING") {
            self.expect("CONSISTENCY")?;
            level = Some(self.level()?);
        }
        let (mut relations, mut keys) = (Vec::new(), None);
        if self.word("WHERE") {
            let name = self.term()?;
            if self.word("IN") {
                keys = Some((name, self.in_list()?));
            } else {
                relations.push(self.relation(name)?);
                while self.word("AND") {
                    let name = self.term()?;
                    relations.push(self.relation(name)?);
                }
            }
        }
        let limit = if self.word("LIMIT") { Some(self.integer()?) } else { None };
        Ok(Select { counts, first, reversed, columns, family, level, relations, keys, limit })
    }

    fn in_list(&mut self) -> Result<Vec<Term>> {
        self.expect_sign("(")?;
        let terms = self.terms()?;
        self.expect_sign(")")?;
        Ok(terms)
    }

    fn relation(&mut self, name: Term) -> Result<Relation> {
        let signs = [
            ("=", Comparison::Equal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        for (sign, comparison) in signs {
            if self.sign(sign) {
                return Ok(Relation { name, comparison, value: self.term()? });
            }
        }
        self.unexpected()
    }

    fn level(&mut self) -> Result<ConsistencyLevel> {
        let name = self.name()?;
        Ok(match name.to_ascii_uppercase().as_str() {
            "ONE" => ConsistencyLevel::One,
            "TWO" => ConsistencyLevel::Two,
            "THREE" => ConsistencyLevel::Three,
            "QUORUM" => ConsistencyLevel::Quorum,
            "ALL" => ConsistencyLevel::All,
            "ANY" => ConsistencyLevel::Any,
            "LOCAL_QUORUM" => ConsistencyLevel::LocalQuorum,
            "EACH_QUORUM" => ConsistencyLevel::EachQuorum,
            "LOCAL_ONE" => ConsistencyLevel::LocalOne,
            _ => return invalid(format!("Unknown consistency level {name}")),
        })
    }

    fn using(&mut self) -> Result<Using> {
        let mut using = Using::default();
        if !self.word("USING") {
            return Ok(using);
        }
        loop {
            if self.word("CONSISTENCY") {
                using.level = Some(self.level()?);
            } else if self.word("TIMESTAMP") {
                using.timestamp_us = Some(self.integer()?);
            } else if self.word("TTL") {
                using.ttl_s = Some(self.integer()?);
            } else {
                return self.unexpected();
            }
            if !self.word("AND") {
                return Ok(using);
            }
        }
    }

    /// Where the next token begins.
    fn place(&self) -> usize {
        self.places.get(self.at).copied().unwrap_or(self.length)
    }

    fn modify(&mut self) -> Result<Modify> {
        let begin = self.place();
        let modify = self.modification()?;
        Ok(Modify { place: (begin, self.place()), ..modify })
    }

    fn modification(&mut self) -> Result<Modify> {
        if self.word("INSERT") {
            return self.insert();
        }
        if self.word("DELETE") {
            let columns = if self.is_word("FROM") { Vec::new() } else { self.terms()? };
            self.expect("FROM")?;
            let family = self.family()?;
            let using = self.using()?;
            let (key_name, keys) = self.of_keys()?;
            return Ok(Modify {
                family,
                key_name,
                keys,
                using,
                change: Change::Delete(columns),
                place: (0, 0),
            });
        }
        self.expect("UPDATE")?;
        let family = self.family()?;
        let using = self.using()?;
        self.expect("SET")?;
        let mut columns = vec![self.assignment()?];
        while self.sign(",") {
            columns.push(self.assignment()?);
        }
        let (key_name, keys) = self.of_keys()?;
        Ok(Modify { family, key_name, keys, using, change: Change::Set(columns), place: (0, 0) })
    }

    fn insert(&mut self) -> Result<Modify> {
        self.expect("INTO")?;
        let family = self.family()?;
        let mut names = self.in_list()?;
        self.expect("VALUES")?;
        let mut values = self.in_list()?;
        if names.len() != values.len() {
            return invalid("unmatched column names/values");
        }
        if names.len() < 2 {
            return invalid("no columns specified for INSERT");
        }
        let (key_name, key) = (names.remove(0), values.remove(0));
        let using = self.using()?;
        let columns = names.into_iter().zip(values.into_iter().map(Operation::Set)).collect();
        Ok(Modify { family, key_name, keys: vec![key], using, change: Change::Set(columns), place: (0, 0) })
    }

    /// Parses `column = value`, `column = column + 1`, `column = column - 1`.
    fn assignment(&mut self) -> Result<(Term, Operation)> {
        let column = self.term()?;
        self.expect_sign("=")?;
        let value = self.term()?;
        if self.sign("+") {
            return Ok((column, Operation::Count(value, self.term()?, false)));
        }
        if self.sign("-") {
            return Ok((column, Operation::Count(value, self.term()?, true)));
        }
        // In `c = c -1`, the lexer has made the sign part of the number.
        if matches!(self.peek(), Some(Token::Word(word)) if word.starts_with('-')) {
            return Ok((column, Operation::Count(value, self.term()?, false)));
        }
        Ok((column, Operation::Set(value)))
    }

    fn of_keys(&mut self) -> Result<(Term, Vec<Term>)> {
        self.expect("WHERE")?;
        let name = self.term()?;
        if self.word("IN") {
            return Ok((name, self.in_list()?));
        }
        self.expect_sign("=")?;
        Ok((name, vec![self.term()?]))
    }

    fn batch(&mut self) -> Result<Statement> {
        self.expect("BEGIN")?;
        self.expect("BATCH")?;
        let using = self.using()?;
        let mut statements = Vec::new();
        while !self.is_word("APPLY") {
            statements.push(self.modify()?);
            self.sign(";");
        }
        self.expect("APPLY")?;
        self.expect("BATCH")?;
        Ok(Statement::Batch(using, statements))
    }

    fn create(&mut self) -> Result<Statement> {
        self.expect("CREATE")?;
        if self.word("KEYSPACE") {
            let name = self.name()?;
            return Ok(Statement::CreateKeyspace(name, self.properties()?));
        }
        if self.word("INDEX") {
            let name = if self.is_word("ON") { None } else { Some(self.name()?) };
            self.expect("ON")?;
            let family = self.name()?;
            self.expect_sign("(")?;
            let column = self.term()?;
            self.expect_sign(")")?;
            return Ok(Statement::CreateIndex { name, family, column });
        }
        self.any_of(&["COLUMNFAMILY", "TABLE"])?;
        let name = self.name()?;
        let (mut key, mut columns) = (None, Vec::new());
        if self.sign("(") {
            loop {
                let column = self.term()?;
                let ty = self.ty()?;
                if self.word("PRIMARY") {
                    self.expect("KEY")?;
                    if key.is_some() {
                        return invalid("You must specify exactly one PRIMARY KEY");
                    }
                    key = Some((column, ty));
                } else {
                    columns.push((column, ty));
                }
                if !self.sign(",") {
                    break;
                }
            }
            self.expect_sign(")")?;
        }
        let properties = self.properties()?;
        Ok(Statement::CreateFamily { name, key, columns, properties })
    }

    /// The name or class of a type.
    fn ty(&mut self) -> Result<String> {
        self.name()
    }

    fn properties(&mut self) -> Result<Vec<(String, String)>> {
        let mut properties = Vec::new();
        if !self.word("WITH") {
            return Ok(properties);
        }
        loop {
            let name = self.name()?;
            self.expect_sign("=")?;
            // The part after a colon may be the name of a datacenter, so its case is kept.
            let name = match name.split_once(':') {
                Some((group, option)) => format!("{}:{option}", group.to_ascii_lowercase()),
                None => name.to_ascii_lowercase(),
            };
            properties.push((name, self.name()?));
            if !self.word("AND") {
                return Ok(properties);
            }
        }
    }

    fn drop(&mut self) -> Result<Statement> {
        self.expect("DROP")?;
        if self.word("KEYSPACE") {
            return Ok(Statement::DropKeyspace(self.name()?));
        }
        if self.word("INDEX") {
            return Ok(Statement::DropIndex(self.name()?));
        }
        self.any_of(&["COLUMNFAMILY", "TABLE"])?;
        Ok(Statement::DropFamily(self.name()?))
    }

    fn alter(&mut self) -> Result<Statement> {
        self.expect("ALTER")?;
        self.any_of(&["COLUMNFAMILY", "TABLE"])?;
        let name = self.name()?;
        if self.is_word("WITH") {
            return Ok(Statement::AlterFamily(name, Alteration::With(self.properties()?)));
        }
        if self.word("DROP") {
            return Ok(Statement::AlterFamily(name, Alteration::Drop(self.term()?)));
        }
        let is_new = self.word("ADD");
        if !is_new {
            self.expect("ALTER")?;
        }
        let column = self.term()?;
        if !is_new {
            self.expect("TYPE")?;
        }
        Ok(Statement::AlterFamily(name, Alteration::Column(column, self.ty()?, is_new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_the_old_benchmark_are_read() {
        let text = "UPDATE Standard1 USING CONSISTENCY ONE SET C1=d41d8cd98f00, C2=03c7c0ace395 WHERE KEY=00000000000001";
        let (statement, markers) = parse(text).unwrap();
        let Statement::Modify(update) = statement else { panic!("an update") };
        assert_eq!((markers, update.keys), (0, vec![Term::Text("00000000000001".to_owned())]));
        let (statement, _) = parse("SELECT FIRST 5 ''..'' FROM Standard1 WHERE KEY = ab;").unwrap();
        let Statement::Select(select) = statement else { panic!("a select") };
        let empty = || Term::Text(String::new());
        assert_eq!((select.first, select.columns), (Some(5), Columns::Range(empty(), empty())));
        parse("UPDATE Counter1 SET C0=C0+1, C1 = C1 - 2, C2 = C2 -3 WHERE KEY IN (a, ?)").unwrap();
        parse("BEGIN BATCH USING TIMESTAMP 5 INSERT INTO a (KEY, x) VALUES (k, v); DELETE x, y FROM a WHERE KEY = k APPLY BATCH").unwrap();
        for wrong in ["", "SELECT", "SELECT a FROM b WHERE", "UPDATE a SET WHERE KEY=1", "SELECT a FROM b c"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
