//! The role that the statements are run as, where both servers have logins.

use anyhow::{Context, Result, bail};
use helenus_wire::native::Version;

use crate::Connection;

/// The password of the roles that are made.
const PASSWORD: &str = "conformance";
/// The role that a new server has, and its password.
const SUPERUSER: (&str, &str) = ("cassandra", "cassandra");

/// Who runs the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nobody logs in.
    Anonymous,
    /// A role that may use its keyspace, and make others.
    Ordinary,
    /// A role without any right. A superuser runs each statement after it, so that what it names exists.
    Powerless,
}

impl Role {
    /// The role of a word of the command line.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn of_name(word: &str) -> Result<Role> {
        match word {
            "ordinary" => Ok(Role::Ordinary),
            "none" => Ok(Role::Powerless),
            _ => bail!("--as takes ordinary or none, not {word}"),
        }
    }

    /// Whether the servers have logins.
    pub fn logs_in(self) -> bool {
        self != Role::Anonymous
    }

    fn name(self) -> &'static str {
        match self {
            Role::Anonymous => "",
            Role::Ordinary => "cf_ordinary",
            Role::Powerless => "cf_none",
        }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The server does not answer, or refuses the login.
    pub fn connect(self, address: &str, version: Version) -> Result<Connection> {
        Connection::open_as(address, version, self.logs_in().then(|| (self.name(), PASSWORD)))
    }

    /// Opens a connection of the superuser; `None` if nobody logs in.
    ///
    /// # Errors
    /// The server does not answer, or refuses the login.
    pub fn superuser(self, address: &str, version: Version) -> Result<Option<Connection>> {
        if !self.logs_in() {
            return Ok(None);
        }
        let hint =
            "it needs PasswordAuthenticator, CassandraAuthorizer and the default password of cassandra";
        let superuser = Connection::open_as(address, version, Some(SUPERUSER));
        superuser.map(Some).with_context(|| format!("{address}: {hint}"))
    }

    /// Makes the role anew.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn make(self, superuser: &mut Connection) -> Result<()> {
        let name = self.name();
        let mut statements = vec![
            // A role that the scripts make, left by an earlier run of a node that goes on.
            "DROP ROLE IF EXISTS r".to_owned(),
            format!("DROP ROLE IF EXISTS {name}"),
            format!("CREATE ROLE {name} WITH PASSWORD = '{PASSWORD}' AND LOGIN = true"),
        ];
        if self == Role::Ordinary {
            statements.push(format!("GRANT CREATE ON ALL KEYSPACES TO {name}"));
        }
        for statement in statements {
            superuser.must(&statement)?;
        }
        Ok(())
    }

    /// What the superuser does for a keyspace that it has made.
    pub fn grants(self, keyspace: &str) -> Vec<String> {
        match self {
            Role::Anonymous | Role::Powerless => Vec::new(),
            Role::Ordinary => ["CREATE", "ALTER", "DROP", "SELECT", "MODIFY"]
                .map(|right| format!("GRANT {right} ON KEYSPACE {keyspace} TO {}", self.name()))
                .to_vec(),
        }
    }
}
