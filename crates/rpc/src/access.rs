//! Logins, and what each call needs: a permission on the column families that it names.
//!
//! Calls that change the schema, and CQL 3, run statements, which check their own needs. Source: `CassandraServer` and
//! `ThriftClientState` of Cassandra 3.11.

use crate::context::{CallContext, Rpc};
use crate::error::{Result, RpcError};
use crate::session::{Asks, Session};
use crate::storage::{LoggedIn, LoginTurnFuture};
use helenus_cql::CqlError;
use helenus_cql::backend::{Backend, LoginProof, LoginRefused};
use helenus_cql::syntax::ast::Permission;
use helenus_model::schema::Table;
use helenus_wire::thrift::{
    AuthenticationRequest, Exception, Field, Message, MessageHead, Method, Reader, args,
};
use std::net::IpAddr;

/// The refusal of a login that finds no room among those that wait.
const TOO_MANY_LOGINS: &str = "Too many logins wait; try again later";

/// What a call needs on the column families that it names. A statement of CQL 2 sets its own needs once it is parsed.
fn permissions(method: Method) -> &'static [Permission] {
    match method {
        Method::GetSlice
        | Method::Get
        | Method::MultigetSlice
        | Method::GetCount
        | Method::MultigetCount
        | Method::GetRangeSlices
        | Method::GetPagedSlice
        | Method::GetIndexedSlices
        | Method::GetMultiSlice
        | Method::DescribeSplits
        | Method::DescribeSplitsEx => &[Permission::Select],
        Method::BatchMutate
        | Method::Insert
        | Method::Add
        | Method::Remove
        | Method::RemoveCounter
        | Method::AtomicBatchMutate
        | Method::Truncate => &[Permission::Modify],
        // Its answer has the columns that did not fit.
        Method::Cas => &[Permission::Modify, Permission::Select],
        Method::Login
        | Method::SetKeyspace
        | Method::SetCqlVersion
        | Method::DescribeSchemaVersions
        | Method::DescribeClusterName
        | Method::DescribeVersion
        | Method::DescribeRing
        | Method::DescribeLocalRing
        | Method::DescribeTokenMap
        | Method::DescribePartitioner
        | Method::DescribeSnitch
        | Method::TraceNextQuery
        | Method::DescribeKeyspaces
        | Method::DescribeKeyspace
        | Method::SystemAddColumnFamily
        | Method::SystemDropColumnFamily
        | Method::SystemAddKeyspace
        | Method::SystemDropKeyspace
        | Method::SystemUpdateKeyspace
        | Method::SystemUpdateColumnFamily
        | Method::ExecuteCql3Query
        | Method::PrepareCql3Query
        | Method::ExecutePreparedCql3Query
        | Method::ExecuteCqlQuery
        | Method::PrepareCqlQuery
        | Method::ExecutePreparedCqlQuery => &[],
    }
}

/// Whether a call needs room on the disk. Statements see for themselves.
fn adds_data(method: Method) -> bool {
    permissions(method).contains(&Permission::Modify) && method != Method::Truncate
}

/// The role of a message that is a login, empty if it names none; `None` for other messages. Such a message is called where
/// logins are checked.
pub fn role_to_log_in(message: &Message<'_>) -> Option<String> {
    let mut reader = Reader::new(message.bytes);
    let head = MessageHead::read(&mut reader).ok()?;
    if Method::of_name(head.name) != Some(Method::Login) {
        return None;
    }
    let asked = args::Login::read(&mut reader).ok();
    let names = asked.map(|asked| asked.auth_request.credentials.0).unwrap_or_default();
    let role = names.iter().find(|(key, _)| **key == *"username").map(|(_, role)| role.to_string());
    Some(role.unwrap_or_default())
}

impl Rpc {
    /// Whether clients have to log in.
    pub fn has_logins(&self) -> bool {
        self.storage.has_logins()
    }

    /// Waits until a login as `role` may be checked, without a thread; its value goes into `CallOptions::login_turn`. `None`: it need not
    /// wait.
    pub fn login_turn(&self, role: &str, client: Option<IpAddr>) -> Option<LoginTurnFuture> {
        self.storage.login_turn(role, client)
    }

    /// Refuses every call but `login` before the login, and notes what the call needs.
    pub(crate) fn admit(&self, method: Method, work: &mut CallContext<'_>) -> Result<()> {
        let may_block = work.manner.may_block;
        work.session.asks = Asks::new(permissions(method), may_block);
        if method == Method::Login {
            return Ok(());
        }
        self.storage.check_permissions(&work.session.identity, &[], ("", ""), may_block)?;
        if adds_data(method) {
            self.check_disk()?;
        }
        Ok(())
    }

    /// Checks that the disk has room for a write, where it is this machine's.
    pub(crate) fn check_disk(&self) -> Result<()> {
        if let Some(local) = self.storage.local() {
            local.check_disk_state()?;
        }
        Ok(())
    }

    /// Checks that a session has what its call needs on a table.
    pub(crate) fn check_access(&self, session: &Session, table: &Table) -> Result<()> {
        let Asks { permissions, may_block } = session.asks;
        let named = (&*table.keyspace, &*table.name);
        Ok(self.storage.check_permissions(&session.identity, permissions, named, may_block)?)
    }

    /// Logs in.
    pub(crate) fn log_in(&self, asked: &AuthenticationRequest<'_>, work: &mut CallContext<'_>) -> Result<()> {
        if !self.has_logins() {
            // Every login is accepted, as by Cassandra's AllowAllAuthenticator.
            return Ok(());
        }
        if work.manner.refuses_login {
            return Err(RpcError::Thrown(Exception::Authentication(TOO_MANY_LOGINS.to_owned())));
        }
        if let Some(local) = self.storage.local().filter(|local| local.logs_in_by_certificate())
            && work.session.certificate.is_some()
        {
            if !work.manner.may_block {
                return Err(RpcError::WouldBlock);
            }
            let Session { client, certificate, .. } = &*work.session;
            let proof = LoginProof { token: &[], client: *client, certificate: certificate.as_ref() };
            work.session.identity = local.log_in(&proof).map_err(|refused| match refused.error {
                CqlError::BadCredentials(why) => RpcError::Thrown(Exception::Authentication(why)),
                error => error.into(),
            })?;
            return Ok(());
        }
        let refused = |why: String| Err(RpcError::Thrown(Exception::Authentication(why)));
        let given = |name: &str| {
            let found = asked.credentials.0.iter().find(|(key, _)| **key == *name);
            found.map(|(_, value)| value.to_string())
        };
        let Some(user) = given("username") else {
            return refused("Required key 'username' is missing".to_owned());
        };
        let Some(password) = given("password") else {
            return refused(format!("Required key 'password' is missing for provided username {user}"));
        };
        if !work.manner.may_block {
            return Err(RpcError::WouldBlock);
        }
        let client = work.session.client.map(|client| client.ip());
        match self.storage.log_in(&user, &password, (client, work.manner.login_turn)) {
            Ok(LoggedIn { identity, handle }) => {
                (work.session.identity, work.session.login) = (identity, handle);
            }
            Err(LoginRefused { error, wait }) => {
                work.session.login_delay = work.session.login_delay.saturating_add(wait);
                return match error {
                    CqlError::BadCredentials(why) | CqlError::Overloaded(why) => refused(why),
                    error => Err(error.into()),
                };
            }
        }
        Ok(())
    }
}
