//! Calls about the server and the session: login, set_keyspace, the describing calls without schema, trace_next_query.
//!
//! The only server owns the whole ring: a single range from the least token around to itself.

use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::validate::session_keyspace;
use helenus_cql::backend::tracing_id;
use helenus_model::token::Token;
use helenus_wire::thrift::{CfSplit, EndpointDetails, Field, Map, Method, Reader, Text, TokenRange, args};
use std::borrow::Cow;

/// The version of the RPC interface.
const VERSION: &str = "20.1.0";
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const SNITCH: &str = "org.apache.cassandra.locator.SimpleSnitch";

impl Rpc {
    pub(crate) fn enter(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        match method {
            Method::Login => {
                self.log_in(&args::Login::read(reader)?.auth_request, work)?;
            }
            Method::SetKeyspace => {
                let asked = args::OfKeyspace::read(reader)?;
                if !self.storage.schema().keyspaces.contains_key(asked.keyspace) {
                    return invalid(format!("Keyspace '{}' does not exist", asked.keyspace));
                }
                work.session.use_keyspace(asked.keyspace);
            }
            // Each version of CQL has calls of its own, so the choice has no effect.
            _ => {
                let _either = args::SetCqlVersion::read(reader)?;
            }
        }
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn describe_server(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let text = |text: &'static str| Text::from(text);
        let address: Text<'_> = self.node.address.to_string().into();
        match method {
            Method::DescribeClusterName => {
                work.reply.success(&Text::from(self.node.cluster_name.as_str()), work.out);
            }
            Method::DescribeVersion => work.reply.success(&text(VERSION), work.out),
            Method::DescribePartitioner => work.reply.success(&text(PARTITIONER), work.out),
            Method::DescribeSnitch => work.reply.success(&text(SNITCH), work.out),
            Method::DescribeSchemaVersions => {
                let version: Text<'_> = self.storage.schema().version.to_string().into();
                work.reply.success(&Map(vec![(version, vec![address])]), work.out);
            }
            Method::DescribeTokenMap => {
                work.reply.success(&Map(vec![(Text::from(Token::MIN.0.to_string()), address)]), work.out);
            }
            Method::TraceNextQuery => {
                let host = self.local("trace_next_query")?.database().host();
                let mut noise = [0; 8];
                host.random.fill(&mut noise);
                let session = tracing_id(host.clock.wall_us(), noise);
                work.session.traced_next = Some(session);
                work.reply.success(&&session.as_bytes()[..], work.out);
            }
            Method::DescribeRing | Method::DescribeLocalRing => {
                let asked = args::OfKeyspace::read(reader)?;
                if !self.storage.schema().keyspaces.contains_key(asked.keyspace) {
                    return invalid(format!("No such keyspace: {}", asked.keyspace));
                }
                work.reply.success(&vec![self.ring(address)], work.out);
            }
            _ => self.describe_splits(method, reader, work)?,
        }
        Ok(ReplyState::Result)
    }

    fn ring<'a>(&'a self, address: Text<'a>) -> TokenRange<'a> {
        let token: Text<'_> = Token::MIN.0.to_string().into();
        TokenRange {
            start_token: token.clone(),
            end_token: token,
            endpoints: vec![address.clone()],
            rpc_endpoints: Some(vec![address.clone()]),
            endpoint_details: Some(vec![EndpointDetails {
                host: address,
                datacenter: Cow::from(self.node.datacenter.as_str()),
                rack: Some(Cow::from(self.node.rack.as_str())),
            }]),
        }
    }

    /// Splits a range of tokens into parts of equal length, by the estimated number of rows.
    fn describe_splits(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<()> {
        let asked = args::DescribeSplits::read(reader)?;
        let _keyspace = session_keyspace(work.session)?;
        let family = self.family(work.session, asked.column_family)?;
        if asked.keys_per_split <= 0 {
            return invalid("keys_per_split must be positive");
        }
        let number = |text: &str| match text.parse::<i64>() {
            Ok(number) => Ok(i128::from(number)),
            Err(_) => invalid(format!("For input string: \"{text}\"")),
        };
        let (start, end) = (number(asked.start_token)?, number(asked.end_token)?);
        const RING: i128 = 1 << 64;
        let width = if end > start { end - start } else { end - start + RING };
        let rows = i128::from(self.storage.rows_known(&family.table, work.manner)?);
        let in_range = (rows * (width >> 16) / (RING >> 16)).max(1);
        let count = (in_range / i128::from(asked.keys_per_split)).clamp(1, 4096);
        let token = |index: i128| {
            let at = start + width * index / count;
            let at = if at > i128::from(i64::MAX) { at - RING } else { at };
            Text::from(at.to_string())
        };
        let end_of = |index: i128| if index == count { Text::from(asked.end_token) } else { token(index) };
        if method == Method::DescribeSplits {
            let mut tokens = vec![Text::from(asked.start_token)];
            tokens.extend((1..=count).map(end_of));
            work.reply.success(&tokens, work.out);
            return Ok(());
        }
        let least = i64::from(family.table.options.min_index_interval);
        let each = i64::try_from(in_range / count).unwrap_or(i64::MAX).max(least);
        let splits: Vec<CfSplit<'_>> = (0..count)
            .map(|index| CfSplit {
                start_token: if index == 0 { Text::from(asked.start_token) } else { token(index) },
                end_token: end_of(index + 1),
                row_count: each,
            })
            .collect();
        work.reply.success(&splits, work.out);
        Ok(())
    }
}
