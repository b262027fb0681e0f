//! Parses one statement of the `cassandra-cli` language.

use super::ast::{Condition, Options, Path, Statement, Value, Written};
use super::lexer::{self, Token};
use anyhow::{Result, bail};

/// Parses a statement.
pub(super) fn parse(statement: lexer::Statement) -> Result<Statement> {
    let mut parser = Parser { tokens: statement.tokens, at: 0 };
    if parser.tokens.is_empty() {
        return Ok(Statement::Nothing);
    }
    let parsed = parser.statement()?;
    if parser.at < parser.tokens.len() {
        return parser.unexpected();
    }
    Ok(parsed)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn unexpected<T>(&self) -> Result<T> {
        match self.peek() {
            None => bail!("Syntax error: the statement ends too early"),
            Some(Token::Word(text)) => bail!("Syntax error: unexpected `{text}`"),
            Some(Token::Text(text)) => bail!("Syntax error: unexpected '{text}'"),
            Some(Token::Sign(sign)) => bail!("Syntax error: unexpected `{sign}`"),
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { self.unexpected() }
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: char) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { self.unexpected() }
    }

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

    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let text = self.name()?;
        text.parse().map_err(|_| anyhow::anyhow!("'{text}' is not a number"))
    }

    /// A word or text, or a function call: `utf8('x')`, `timeuuid()`.
    fn written(&mut self) -> Result<Written> {
        let name = self.name()?;
        if !self.sign('(') {
            return Ok(Written::Plain(name));
        }
        let argument = if self.peek() == Some(&Token::Sign(')')) { None } else { Some(self.name()?) };
        self.expect_sign(')')?;
        Ok(Written::Call(name.to_ascii_lowercase(), argument))
    }

    fn statement(&mut self) -> Result<Statement> {
        let word = self.name()?.to_ascii_lowercase();
        match word.as_str() {
            "use" => {
                let keyspace = self.name()?;
                let login = match self.peek() {
                    Some(_) => Some((self.name()?, self.name()?)),
                    None => None,
                };
                Ok(Statement::Use(keyspace, login))
            }
            "create" | "update" => self.define(word == "create"),
            "drop" => self.drop(),
            "set" => self.set(),
            "get" => self.get(),
            "del" => Ok(Statement::Delete(self.path()?)),
            "count" => Ok(Statement::Count(self.path()?)),
            "incr" | "decr" => {
                let path = self.path()?;
                let by: i64 = if self.word("by") { self.number()? } else { 1 };
                Ok(Statement::Increment(path, if word == "decr" { -by } else { by }))
            }
            "list" => self.list(),
            "truncate" => Ok(Statement::Truncate(self.name()?)),
            "assume" => {
                let (family, part) = (self.name()?, self.name()?);
                self.expect("as")?;
                Ok(Statement::Assume(family, part.to_ascii_lowercase(), self.name()?))
            }
            "consistencylevel" => {
                self.expect("as")?;
                Ok(Statement::Consistency(self.name()?))
            }
            "show" => self.show(),
            "describe" => self.describe(),
            "connect" | "help" | "?" => {
                self.at = self.tokens.len();
                Ok(Statement::Nothing)
            }
            "quit" | "exit" => Ok(Statement::Quit),
            other => bail!("Syntax error: no statement begins with `{other}`"),
        }
    }

    fn define(&mut self, is_new: bool) -> Result<Statement> {
        if self.word("keyspace") {
            let name = self.name()?;
            return Ok(Statement::Keyspace(is_new, name, self.options()?));
        }
        self.expect("column")?;
        self.expect("family")?;
        let name = self.name()?;
        Ok(Statement::Family(is_new, name, self.options()?))
    }

    fn drop(&mut self) -> Result<Statement> {
        if self.word("keyspace") {
            return Ok(Statement::DropKeyspace(self.name()?));
        }
        if self.word("index") {
            self.expect("on")?;
            return Ok(Statement::DropIndex(self.name()?));
        }
        self.expect("column")?;
        self.expect("family")?;
        Ok(Statement::DropFamily(self.name()?))
    }

    fn options(&mut self) -> Result<Options> {
        let mut options = Options::new();
        if !self.word("with") {
            return Ok(options);
        }
        loop {
            let name = self.name()?.to_ascii_lowercase();
            self.expect_sign('=')?;
            options.push((name, self.value()?));
            if !self.word("and") {
                return Ok(options);
            }
        }
    }

    fn value(&mut self) -> Result<Value> {
        if self.sign('[') {
            let mut list = Vec::new();
            while !self.sign(']') {
                list.push(self.value()?);
                self.sign(',');
            }
            return Ok(Value::List(list));
        }
        if self.sign('{') {
            let mut map = Vec::new();
            while !self.sign('}') {
                let name = self.name()?;
                self.expect_sign(':')?;
                map.push((name, self.value()?));
                self.sign(',');
            }
            return Ok(Value::Map(map));
        }
        let mut text = self.name()?;
        // A class may have unquoted parameters: CompositeType(UTF8Type,LongType).
        let mut depth = 0;
        while depth > 0 || self.peek() == Some(&Token::Sign('(')) {
            match self.peek() {
                None => return self.unexpected(),
                Some(Token::Word(part) | Token::Text(part)) => text.push_str(part),
                Some(Token::Sign(sign)) => {
                    text.push(*sign);
                    depth += i32::from(*sign == '(') - i32::from(*sign == ')');
                }
            }
            self.at += 1;
        }
        Ok(Value::Text(text))
    }

    fn path(&mut self) -> Result<Path> {
        let family = self.name()?;
        let mut steps = Vec::new();
        while self.sign('[') {
            steps.push(self.written()?);
            self.expect_sign(']')?;
        }
        if steps.is_empty() || steps.len() > 3 {
            bail!("Invalid row, super column, or column specification.");
        }
        Ok(Path { family, steps })
    }

    fn set(&mut self) -> Result<Statement> {
        let path = self.path()?;
        self.expect_sign('=')?;
        let value = self.written()?;
        let mut ttl = None;
        if self.word("with") {
            self.expect("ttl")?;
            self.expect_sign('=')?;
            ttl = Some(self.number()?);
        }
        Ok(Statement::Set(path, value, ttl))
    }

    fn get(&mut self) -> Result<Statement> {
        let is_where = matches!(self.tokens.get(self.at + 1), Some(Token::Word(word)) if word.eq_ignore_ascii_case("where"));
        if is_where {
            let family = self.name()?;
            self.expect("where")?;
            let mut conditions = vec![self.condition()?];
            while self.word("and") {
                conditions.push(self.condition()?);
            }
            let limit = if self.word("limit") { Some(self.number()?) } else { None };
            return Ok(Statement::GetWhere(family, conditions, limit));
        }
        let path = self.path()?;
        let ty = if self.word("as") { Some(self.name()?) } else { None };
        let limit = if self.word("limit") { Some(self.number()?) } else { None };
        Ok(Statement::Get(path, ty, limit))
    }

    fn condition(&mut self) -> Result<Condition> {
        let column = self.written()?;
        let mut operator = String::new();
        while let Some(Token::Sign(sign @ ('=' | '<' | '>'))) = self.peek() {
            operator.push(*sign);
            self.at += 1;
        }
        if operator.is_empty() {
            return self.unexpected();
        }
        Ok(Condition { column, operator, value: self.written()? })
    }

    fn list(&mut self) -> Result<Statement> {
        let family = self.name()?;
        let (mut start, mut finish) = (None, None);
        if self.sign('[') {
            if self.peek() != Some(&Token::Sign(':')) {
                start = Some(self.written()?);
            }
            if self.sign(':') && self.peek() != Some(&Token::Sign(']')) {
                finish = Some(self.written()?);
            }
            self.expect_sign(']')?;
        }
        let (mut limit, mut columns, mut reversed) = (None, None, false);
        loop {
            if self.word("limit") {
                limit = Some(self.number()?);
            } else if self.word("columns") {
                if self.word("reversed") {
                    reversed = true;
                    continue;
                }
                columns = Some(self.number()?);
                reversed |= self.word("reversed");
            } else {
                return Ok(Statement::List { family, start, finish, limit, columns, reversed });
            }
        }
    }

    fn show(&mut self) -> Result<Statement> {
        if self.word("keyspaces") || self.word("schema") {
            self.at = self.tokens.len();
            return Ok(Statement::ShowKeyspaces);
        }
        if self.word("cluster") {
            self.expect("name")?;
            return Ok(Statement::ShowClusterName);
        }
        self.expect("api")?;
        self.expect("version")?;
        Ok(Statement::ShowVersion)
    }

    fn describe(&mut self) -> Result<Statement> {
        if self.word("cluster") {
            return Ok(Statement::DescribeCluster);
        }
        self.word("keyspace");
        Ok(Statement::Describe(if self.peek().is_some() { Some(self.name()?) } else { None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Statement {
        parse(lexer::statements(text).unwrap().remove(0)).unwrap()
    }

    #[test]
    fn the_definitions_of_the_old_texts_are_read() {
        let Statement::Keyspace(true, name, options) = parsed(
            "create keyspace reverse with strategy_options=[{replication_factor:1}] \
             and placement_strategy = 'org.apache.cassandra.locator.SimpleStrategy';",
        ) else {
            panic!("a keyspace")
        };
        let factor = Value::Map(vec![("replication_factor".into(), Value::Text("1".into()))]);
        assert_eq!((name.as_str(), &options[0].1), ("reverse", &Value::List(vec![factor])));
        let Statement::Family(true, _, options) =
            parsed("create column family F with comparator = 'AsciiType(reversed=true)' and keys_cached = 0")
        else {
            panic!("a family")
        };
        assert_eq!(options[0], ("comparator".into(), Value::Text("AsciiType(reversed=true)".into())));
        let Statement::Family(_, _, options) =
            parsed("create column family F with comparator = CompositeType(UTF8Type, LongType)")
        else {
            panic!("a family")
        };
        assert_eq!(options[0].1, Value::Text("CompositeType(UTF8Type,LongType)".into()));
    }

    #[test]
    fn rows_and_columns_are_found_by_their_paths() {
        let plain = |text: &str| Written::Plain(text.into());
        let path = |steps| Path { family: "Users".into(), steps };
        assert_eq!(
            parsed("set Users['k'][utf8('c')] = 'v' with ttl = 5"),
            Statement::Set(
                path(vec![plain("k"), Written::Call("utf8".into(), Some("c".into()))]),
                plain("v"),
                Some(5)
            )
        );
        assert_eq!(
            parsed("decr Users[k][c] by 3"),
            Statement::Increment(path(vec![plain("k"), plain("c")]), -3)
        );
        let Statement::GetWhere(_, conditions, Some(7)) =
            parsed("get Users where a = 1 and b >= 'x' limit 7")
        else {
            panic!("a search")
        };
        assert_eq!(conditions[1].operator, ">=");
        let Statement::List { start, limit, columns, reversed, .. } =
            parsed("list Users[a:] limit 3 columns 2 reversed")
        else {
            panic!("a list")
        };
        assert_eq!((start, limit, columns, reversed), (Some(plain("a")), Some(3), Some(2), true));
    }
}
