//! Runs statements on a database in this process.

use super::access::{Access, Sight, role_limits_table};
use super::consistency::check_read;
use super::engine_error::truncate_error;
use super::live_options::LiveOptions;
use super::options::LocalOptions;
use super::prepared_table;
use super::statement_id::statement_id;
use super::statements::{Statements, TEXT_BYTES_MAX};
use super::trace::trace_mutation;
use crate::analysis::{Bindings, BoundValues, Memo, Scope};
use crate::audit::Subject;
use crate::backend::{
    ANALYSED_AT_ONCE_BYTES, Answer, Backend, Batch, BatchEntry, Identity, LoginProof, LoginRefused,
    LoginRoom, Outcome, Prepared, Request, RowsOut, SchemaStep, StatementId, Trace, Values,
};
use crate::budget::{Late, RequestBudget};
use crate::error::{CqlError, Result};
use crate::guardrails::Feature;
use crate::plan::access::{Need, needs};
use crate::plan::batch::check_kinds;
use crate::plan::conditional::check_together;
use crate::plan::ddl::{DdlPlan, DdlSettings, SchemaEdit};
use crate::plan::modify::{Moment, Statement};
use crate::plan::timeout::{Timeout, refuse_inside_batch};
use crate::plan::{Analysed, Execution, Plan, analyse, check_paging_state, subject};
use crate::request::{STATEMENTS_AT_ONCE, VALUES_AT_ONCE_BYTES};
use crate::scope::CallContext;
use crate::syntax::ast::{InsertData, StatementKind};
use crate::syntax::parse_within;
use crate::time_uuid::{WallUuids, random_node, time_uuid};
use crate::virtual_table::{NodeInfo, VirtualTables};
use helenus_engine::account::{self, Charge, Share};
use helenus_engine::{Database, Listeners, Listening, SchemaChange, ServerTime, Ticket, is_system_keyspace};
use helenus_model::schema::Schema;
use helenus_model::types::CqlType;
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

/// A database in this process, as the `Backend` of the event loops.
pub struct LocalBackend {
    database: Arc<Database>,
    statements: Arc<Statements>,
    ddl: DdlSettings,
    virtuals: VirtualTables,
    pub(super) tuning: LiveOptions,
    access: Access,
    pub(super) answer_bytes_max: usize,
    listeners: Listeners<dyn Fn(&SchemaChange) + Send + Sync>,
    /// Clock sequence and node of the time UUIDs that define an order.
    node: u64,
    /// Makes the time UUIDs of `now()`.
    uuids: WallUuids,
}

impl LocalBackend {
    /// Makes a backend for an open database.
    pub fn new(database: Arc<Database>, options: LocalOptions) -> Arc<LocalBackend> {
        let node = draw_node(&database);
        let uuids = WallUuids::new(draw_node(&database));
        let ids = database.clone();
        let node_info = NodeInfo { datacenter: options.datacenter.to_string(), ..NodeInfo::default() };
        let tuning = LiveOptions::new(&options);
        database.clock().set_ahead_max(options.guardrails.maximum_timestamp_us.fail);
        let new_id = Box::new(move || Uuid::from_bytes(time_uuid(ids.next_timestamp_unrefused(), node)));
        let virtuals = VirtualTables::new(&database, node_info);
        let statements = Arc::new(Statements::new(options.prepared_bytes_max, options.statements_bytes_max));
        prepared_table::table(&database, statements.clone())
            .into_iter()
            .for_each(|table| virtuals.register(table));
        let access = Access::new(options.access);
        if access.has_logins() {
            virtuals.register(role_limits_table(access.uses()));
        }
        Arc::new(LocalBackend {
            virtuals,
            database,
            statements,
            ddl: DdlSettings {
                datacenter: options.datacenter,
                table_options: options.table_options,
                new_id,
                masks_columns: options.masks_columns,
                drops_compact_storage: options.drops_compact_storage,
                guarded: tuning.guarded.clone(),
            },
            tuning,
            access,
            answer_bytes_max: options.answer_bytes_max,
            listeners: Listeners::default(),
            node,
            uuids,
        })
    }

    /// Maximum bytes of an answer without pages.
    pub fn answer_bytes_max(&self) -> usize {
        self.answer_bytes_max
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The state of access control.
    #[inline]
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The settings for schema changes.
    pub(crate) fn ddl_settings(&self) -> &DdlSettings {
        &self.ddl
    }

    /// Notifies the listeners of schema changes.
    pub(super) fn announce(&self, changes: &[SchemaChange]) {
        for change in changes {
            self.listeners.each(|listener| listener(change));
        }
    }

    /// The virtual tables. The server registers its own, and sets the addresses of its listeners.
    pub fn virtual_tables(&self) -> &VirtualTables {
        &self.virtuals
    }

    /// Parses and analyses a statement's text under the current schema. One that is not `kept` after the request has no copy of
    /// the text, and its memory is the request's.
    fn analysed(
        &self,
        query: &str,
        keyspace: Option<&str>,
        (work, kept): (&RequestBudget<'_>, bool),
    ) -> Result<Prepared> {
        let held_before = account::held();
        let statement = parse_within(query, work).map_err(|error| work.parse_error(error))?;
        self.guard_statement(&statement.kind)?;
        let schema = self.virtuals.shown_in(&self.database.schema());
        let memo = Memo::default();
        let scope = Scope { schema: &schema, keyspace, memo: &memo, work };
        let analysed = analyse(&statement, &scope)?;
        let needs = match self.access.has_logins() {
            true => needs(&statement.kind, &scope)?.into(),
            false => Box::default(),
        };
        let subject = Some(Arc::new(subject(query, &statement.kind, &scope)));
        let Analysed { plan, markers, partition_key_markers, columns, is_qualified } = analysed;
        let is_long = |ty: &CqlType| ty.has_parts() || matches!(ty, CqlType::Varint | CqlType::Decimal);
        let works_on_values = memo.has_calls()
            || matches!(&statement.kind, StatementKind::Insert(insert) if matches!(insert.data, InsertData::Json { .. }))
            || markers.iter().any(|marker| is_long(&marker.ty));
        let prepared = Prepared {
            id: StatementId::default(),
            query: if kept { query.into() } else { Arc::from("") },
            keyspace: keyspace.map(Arc::from),
            markers,
            partition_key_markers,
            columns,
            is_qualified,
            subject,
            works_on_values,
            plan,
            needs,
            permitted: crate::request::Permitted::default(),
            epoch: schema.epoch,
            memory: None,
        };
        if !kept {
            return Ok(prepared);
        }
        // The syntax tree is not counted, because it is about to be freed.
        drop(memo);
        drop(statement);
        let bytes = u64::try_from(account::held() - held_before).unwrap_or(0);
        Ok(Prepared { memory: Some(Charge::force(Share::Statements, bytes)), ..prepared })
    }

    /// The cached or new analysis of a text.
    fn statement(
        &self,
        query: &str,
        request: &Request<'_>,
        work: &RequestBudget<'_>,
    ) -> Result<Arc<Prepared>> {
        let (epoch, keyspace) = (self.database.schema().epoch, request.keyspace);
        if let Some(found) = self.statements.by_text(query, keyspace, epoch) {
            return Ok(found);
        }
        if query.len() > ANALYSED_AT_ONCE_BYTES {
            may_block(request)?;
        }
        let kept = query.len() <= TEXT_BYTES_MAX;
        let statement = Arc::new(self.analysed(query, keyspace, (work, kept))?);
        // The others are rare, and the text of one about roles may have a password.
        if kept && !matches!(statement.plan, Plan::Ddl(_) | Plan::Access(_)) {
            self.statements.keep_text(statement.clone());
        }
        Ok(statement)
    }

    fn run(
        &self,
        (statement, values): (&Prepared, BoundValues<'_>),
        request: &Request<'_>,
        work: &RequestBudget<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        if statement.works_on_values && !request.may_block && request.values.bytes() > VALUES_AT_ONCE_BYTES {
            return Err(CqlError::WouldBlock);
        }
        let sight = self.authorize_statement(request.identity, statement, request.may_block)?;
        check_paging_state(request.paging_state)?;
        // Only writes take a timestamp, because all threads share one counter for them.
        let now = (!matches!(statement.plan, Plan::Select(_))).then(|| self.database.next_time());
        let now_us = match &now {
            Some(Ok(now)) => now.wall_us,
            _ => self.database.wall_us(),
        };
        let unique_us = || self.database.next_timestamp_unrefused();
        let now_uuid = || self.now_uuid();
        let random = |bytes: &mut [u8]| self.database.host().random.fill(bytes);
        let calls = CallContext {
            now_us,
            unique_us: &unique_us,
            now_uuid: &now_uuid,
            random: &random,
            node: self.node,
            work,
        };
        let bindings = Bindings { values, calls: &calls };
        let timed = match statement.plan.timeout() {
            Some(timeout) => Some(self.timed(timeout, &bindings, request)?),
            None => None,
        };
        let request = timed.as_ref().unwrap_or(request);
        if let Some(deadline_ns) = timed.as_ref().and_then(|request| request.deadline_ns) {
            let late = match statement.plan {
                Plan::Modify(_) | Plan::Batch(_) => Late::Write(request.consistency),
                _ => Late::Read(request.consistency),
            };
            work.end_at(deadline_ns, late);
        }
        match &statement.plan {
            Plan::Select(plan) => {
                let plan = match sight {
                    Sight::Plain => plan,
                    Sight::Masked => plan.masked(),
                };
                check_read(request.consistency)?;
                self.guard_read(plan.table(), request, || {
                    self.read(request, bindings, |execution| plan.execute(execution, out))
                })
            }
            Plan::Describe(plan) => {
                // Its time depends on the size of the schema, which is not limited.
                may_block(request)?;
                self.read(request, bindings, |execution| plan.execute(execution, out).map(Answer::from))
            }
            Plan::Modify(plan) => {
                let statement = Statement { plan, bindings };
                self.run_statement(statement, self.moment(request, now)?, request, out)
            }
            Plan::Batch(plan) => {
                let moment = plan.moment(self.moment(request, now)?, &bindings)?;
                let statements = plan.bound(&bindings)?;
                match plan.is_conditional {
                    true => self.run_conditional(&statements, Some(plan.kind), request, out),
                    false => self.run_batch(&statements, Some(plan.kind), moment, request),
                }
            }
            Plan::Explain(plan) => {
                may_block(request)?;
                self.explain(plan, (request, bindings), self.moment(request, now), out)
            }
            Plan::Ddl(plan) => self.change_schema(&[(plan, &*statement.needs)], (request, work), None),
            Plan::Access(access) => self.run_access((access, &*statement.needs), request, out),
            Plan::Use(keyspace) => {
                let known = self.database.schema().keyspaces.contains_key(keyspace);
                if !known && !is_system_keyspace(keyspace) {
                    return Err(CqlError::Invalid(format!("Keyspace '{keyspace}' does not exist")));
                }
                Ok(Outcome::UsedKeyspace(keyspace.clone()).into())
            }
            Plan::Truncate(table) => {
                may_block(request)?;
                self.database.truncate(table).map_err(truncate_error)?;
                Ok(Outcome::Done(Ticket::ready()).into())
            }
            Plan::Elsewhere => Err(CqlError::Unprepared(statement.id)),
        }
    }

    /// A request with the deadline of its statement.
    fn timed<'r>(
        &self,
        timeout: &Timeout,
        bindings: &Bindings<'_>,
        request: &Request<'r>,
    ) -> Result<Request<'r>> {
        let now_ns = self.database.host().clock.monotonic_ns();
        let own = timeout.deadline_ns(bindings, now_ns)?;
        let of_role = request.identity.statement_timeout().and(request.deadline_ns);
        // A statement may take less time than its role allows, and not more.
        let deadline_ns = match (own, of_role) {
            (Some(own), Some(of_role)) => Some(own.min(of_role)),
            (own, _) => own.or(request.deadline_ns),
        };
        Ok(Request { deadline_ns, ..request.clone() })
    }

    /// Runs a request within the time that its role has for a statement, if that is limited.
    #[inline]
    fn within_time(
        &self,
        request: &Request<'_>,
        run: impl FnOnce(&Request<'_>) -> Result<Answer>,
    ) -> Result<Answer> {
        let Some(time) = request.identity.statement_timeout() else { return run(request) };
        let clock = &self.database.host().clock;
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let of_role = clock.monotonic_ns().saturating_add(time_ns);
        let deadline_ns = Some(request.deadline_ns.map_or(of_role, |own| own.min(of_role)));
        let ran = run(&Request { deadline_ns, ..request.clone() });
        match ran {
            // Nothing of the write has been done then (`check_deadline`).
            Err(CqlError::ReadTimeout { .. } | CqlError::WriteTimeout { .. } | CqlError::Overloaded(_))
                if clock.monotonic_ns() >= of_role =>
            {
                Err(request.identity.timed_out(time))
            }
            other => other,
        }
    }

    fn read(
        &self,
        request: &Request<'_>,
        bindings: Bindings<'_>,
        run: impl FnOnce(&Execution<'_>) -> Result<Answer>,
    ) -> Result<Answer> {
        let guardrails = self.tuning.guarded.get();
        run(&Execution {
            database: &self.database,
            virtuals: &self.virtuals,
            request,
            guardrails: guardrails.as_deref(),
            tombstones_warn: self.tuning.tombstones_warn(),
            tombstones_fail: self.tuning.tombstones_fail(),
            answer_bytes_max: self.answer_bytes_max,
            bindings,
        })
    }

    /// Runs several schema statements as one change, each with further edits of the schema. Thrift keyspaces and column
    /// families are made this way, with the options and checks of CQL tables.
    ///
    /// # Errors
    /// As `query`, and those of `beyond`. Nothing has changed then.
    pub fn change_schema_in_steps(&self, steps: &[SchemaStep<'_>], request: &Request<'_>) -> Result<Answer> {
        let mut statements = Vec::with_capacity(steps.len());
        may_block(request)?;
        let work = RequestBudget::of(request, &self.database);
        for step in steps {
            let statement = self.analysed(&step.query, request.keyspace, (&work, true))?;
            self.authorize(request.identity, &statement.needs, request.may_block)?;
            statements.push((statement, step));
        }
        let mut plans = Vec::with_capacity(steps.len());
        for (statement, step) in &statements {
            match &statement.plan {
                Plan::Ddl(plan) => plans.push((plan, *step)),
                _ => return Err(CqlError::Invalid("this statement does not change the schema".to_owned())),
            }
        }
        let Some(((_, step), rest)) = plans.split_first() else {
            return Err(no_change());
        };
        let beyond = |schema: &mut Schema, made_us: i64| {
            (step.beyond)(schema, made_us)?;
            for (plan, step) in rest {
                plan.apply_after(schema, &self.ddl, made_us)?;
                (step.beyond)(schema, made_us)?;
            }
            Ok(())
        };
        let steps: Vec<(&DdlPlan, &[Need])> = plans
            .iter()
            .zip(&statements)
            .map(|((plan, _), (statement, _))| (*plan, &*statement.needs))
            .collect();
        self.change_schema(&steps, (request, &work), Some(&beyond))
    }

    /// Runs a schema statement; `beyond` runs those behind the first in the same step. What each needs is checked once more when no
    /// other statement changes roles or the schema. The role may have been dropped while this one waited, and would get what it
    /// creates; the next role of its name would have it.
    pub(super) fn change_schema(
        &self,
        steps: &[(&DdlPlan, &[Need])],
        (request, work): (&Request<'_>, &RequestBudget<'_>),
        beyond: Option<&SchemaEdit<'_>>,
    ) -> Result<Answer> {
        let Some((plan, _)) = steps.first() else { return Err(no_change()) };
        // A drop waits for the disk, and schema changes are rare.
        may_block(request)?;
        let created: Vec<&SchemaChange> = steps.iter().filter_map(|(plan, _)| plan.creates()).collect();
        let (done, followed) = {
            let changing = self.access.changing();
            for (_, needs) in steps {
                self.authorize(request.identity, needs, true)?;
            }
            self.forget_grants_on(&created)?;
            let done = plan.execute(&self.database, &self.ddl, work, beyond)?;
            let followed = self.follow_schema(&done.changes, request.identity);
            drop(changing);
            (done, followed)
        };
        self.announce(&done.changes);
        followed?;
        let mut warnings = done.warnings;
        if plan.has_zero_ttl_on_twcs
            && self.tuning.warns_of_zero_ttl()
            && self.is_ordinary(request.identity)?
        {
            warnings.splice(0..0, Feature::ZeroTtlOnTwcs.warning());
        }
        Ok(Answer { outcome: Outcome::SchemaChanged(done.event, done.ticket), warnings })
    }

    /// Timestamp and time of a write. `now` is the time taken for the request; a write fails without a timestamp.
    fn moment(
        &self,
        request: &Request<'_>,
        now: Option<helenus_engine::Result<ServerTime>>,
    ) -> Result<Moment> {
        let now = now.unwrap_or_else(|| self.database.next_time());
        let (timestamp_us, now_s) = match (request.timestamp_us, now) {
            (Some(timestamp_us), Ok(now)) => (timestamp_us, now.now_s),
            (Some(timestamp_us), Err(_)) => (timestamp_us, self.database.now_s()),
            (None, now) => now.map(|now| (now.timestamp_us, now.now_s))?,
        };
        let is_clients = request.timestamp_us.is_some();
        let now_s = request.now_s.unwrap_or(now_s);
        Ok(Moment { timestamp_us, now_s, is_conditional: false, is_clients })
    }

    fn now_uuid(&self) -> [u8; 16] {
        self.uuids.next(self.database.wall_us(), &|| draw_node(&self.database))
    }

    /// Runs a protocol batch.
    fn run_entries(&self, batch: &Batch<'_>, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        if batch.entries.len() > STATEMENTS_AT_ONCE {
            may_block(request)?;
        }
        let work = &RequestBudget::of(request, &self.database);
        // The statements that came as text. The caller keeps the prepared ones alive.
        let (mut of_text, mut bytes) = (Vec::new(), 0);
        for entry in &batch.entries {
            if let BatchEntry::Query(query, _) = entry {
                bytes += query.len();
                if bytes > ANALYSED_AT_ONCE_BYTES {
                    may_block(request)?;
                }
                of_text.push(self.statement(query, request, work)?);
            }
        }
        let mut of_text = of_text.iter();
        let mut statements: Vec<(&Prepared, &Values<'_>)> = Vec::with_capacity(batch.entries.len());
        for entry in &batch.entries {
            match entry {
                BatchEntry::Query(_, values) => {
                    statements.extend(of_text.next().map(|statement| (&**statement, values)));
                }
                BatchEntry::Prepared(statement, values) => statements.push((*statement, values)),
            }
        }
        let mut ordered = Vec::with_capacity(statements.len());
        let mut bytes = 0;
        for (statement, values) in &statements {
            if statement.works_on_values && !request.may_block {
                bytes += values.bytes();
                if bytes > VALUES_AT_ONCE_BYTES {
                    return Err(CqlError::WouldBlock);
                }
            }
            ordered.push(BoundValues::ordered(values, &statement.markers).map_err(|found| {
                CqlError::Invalid(format!(
                    "There were {} markers(?) in CQL but {found} bound variables",
                    statement.markers.len()
                ))
            })?);
        }
        let now = self.database.next_time();
        let now_us = now.as_ref().map_or_else(|_| self.database.wall_us(), |now| now.wall_us);
        let unique_us = || self.database.next_timestamp_unrefused();
        let now_uuid = || self.now_uuid();
        let random = |bytes: &mut [u8]| self.database.host().random.fill(bytes);
        let calls = CallContext {
            now_us,
            unique_us: &unique_us,
            now_uuid: &now_uuid,
            random: &random,
            node: self.node,
            work,
        };
        let mut plans = Vec::with_capacity(statements.len());
        for (statement, _) in &statements {
            let Plan::Modify(plan) = &statement.plan else {
                return Err(CqlError::Invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
                        .into(),
                ));
            };
            self.authorize_statement(request.identity, statement, request.may_block)?;
            refuse_inside_batch(plan)?;
            plans.push(plan);
        }
        check_kinds(batch.kind, plans.iter().copied())?;
        let is_conditional = check_together(plans.iter().copied())?;
        let moment = self.moment(request, Some(now))?;
        let bound = plans.into_iter().zip(ordered);
        let bound =
            bound.map(|(plan, values)| Statement { plan, bindings: Bindings { values, calls: &calls } });
        let bound: Vec<Statement<'_>> = bound.collect();
        match is_conditional {
            true => self.run_conditional(&bound, Some(batch.kind), request, out),
            false => {
                // Limits of batches are for clients.
                let kind = Some(batch.kind).filter(|_| !request.identity.is_server());
                self.run_batch(&bound, kind, moment, request)
            }
        }
    }
}

impl Backend for LocalBackend {
    fn schema(&self) -> Arc<Schema> {
        self.database.schema()
    }

    fn schema_epoch(&self) -> u64 {
        self.database.schema_epoch()
    }

    fn prepare(&self, query: &str, keyspace: Option<&str>, identity: &Identity) -> Result<Arc<Prepared>> {
        // Preparing needs a login and no permission.
        self.check_logged_in(identity)?;
        let epoch = self.database.schema().epoch;
        for id in [statement_id(query, None), statement_id(query, keyspace)] {
            let known = self.statements.prepared(&id);
            if let Some(found) =
                known.filter(|found| found.epoch == epoch && found.keyspace.as_deref() == keyspace)
            {
                return Ok(found);
            }
        }
        let work = RequestBudget::timed(&self.database);
        let mut prepared = self.analysed(query, keyspace, (&work, true))?;
        prepared.id = statement_id(query, keyspace.filter(|_| !prepared.is_qualified));
        let prepared = Arc::new(prepared);
        self.statements.check_size(&prepared)?;
        self.statements.keep_prepared(prepared.clone());
        Ok(prepared)
    }

    fn prepared(&self, id: &StatementId) -> Result<Option<Arc<Prepared>>> {
        let Some(found) = self.statements.prepared(id) else { return Ok(None) };
        if found.epoch == self.database.schema_epoch() {
            return Ok(Some(found));
        }
        let schema = self.database.schema();
        let again = if found.plan.is_valid_in(&self.virtuals.shown_in(&schema)) {
            let work = RequestBudget::timed(&self.database);
            self.analysed(&found.query, found.keyspace.as_deref(), (&work, true)).ok()
        } else {
            None
        };
        let Some(again) = again else {
            // The client prepares the statement again and then gets the error.
            self.statements.forget(id);
            return Ok(None);
        };
        let again = Arc::new(Prepared { id: *id, ..again });
        self.statements.keep_prepared(again.clone());
        Ok(Some(again))
    }

    fn has_analysed(&self, id: &StatementId) -> bool {
        let found = self.statements.prepared(id);
        found.is_none_or(|found| {
            found.epoch == self.database.schema_epoch() || found.query.len() <= ANALYSED_AT_ONCE_BYTES
        })
    }

    fn subject(&self, query: &str, keyspace: Option<&str>) -> Option<Arc<Subject>> {
        let schema = self.database.schema();
        if let Some(found) = self.statements.by_text(query, keyspace, schema.epoch) {
            return found.subject.clone();
        }
        let work = RequestBudget::timed(&self.database);
        let statement = parse_within(query, &work).ok()?;
        let memo = Memo::default();
        let scope = Scope { schema: &schema, keyspace, memo: &memo, work: &work };
        Some(Arc::new(subject(query, &statement.kind, &scope)))
    }

    fn query(&self, query: &str, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        self.within_time(request, |request| {
            let work = RequestBudget::of(request, &self.database);
            let statement = self.statement(query, request, &work)?;
            let values = BoundValues::new(&request.values, &statement.markers)?;
            self.run((&statement, values), request, &work, out)
        })
    }

    fn execute(&self, statement: &Prepared, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        let values = BoundValues::ordered(&request.values, &statement.markers).map_err(|found| {
            CqlError::Invalid(format!(
                "there were {} markers(?) in CQL but {found} bound variables",
                statement.markers.len()
            ))
        })?;
        self.within_time(request, |request| {
            let work = RequestBudget::of(request, &self.database);
            self.run((statement, values), request, &work, out)
        })
    }

    fn batch(&self, batch: &Batch<'_>, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        self.within_time(request, |request| self.run_entries(batch, request, out))
    }

    fn on_schema_change(&self, listener: Box<dyn Fn(&SchemaChange) + Send + Sync>) -> Listening {
        self.listeners.add(listener)
    }

    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.database.on_written(listener)
    }

    fn record_trace(&self, trace: &Trace<'_>) -> Result<()> {
        let coordinator = self.virtuals.node().native_address;
        match trace_mutation(&self.database, trace, coordinator) {
            // A trace need not be durable: readers find it in the memtable.
            Some(mutation) => Ok(self.database.write(&mutation).map(drop)?),
            None => Ok(()),
        }
    }

    fn check_session(&self, identity: &Identity, may_block: bool) -> Result<()> {
        self.authorize(identity, &[], may_block).map(drop)
    }

    fn authenticator(&self) -> Option<&'static str> {
        self.access.authenticator()
    }

    fn log_in(&self, proof: &LoginProof<'_>) -> std::result::Result<Identity, LoginRefused> {
        match self.access.has_logins() {
            true => self.log_in_as_server(proof.token).map_or_else(|| self.log_in_with(proof), Ok),
            false => Ok(Identity::default()),
        }
    }

    fn login_room(&self, client: IpAddr, role: &str) -> LoginRoom {
        match self.access.takes_passwords() {
            true => self.room_of_login(client, role),
            false => LoginRoom::ANY,
        }
    }

    fn write_out(&self) -> Result<()> {
        Ok(self.database.write_out()?)
    }
}

fn no_change() -> CqlError {
    CqlError::Invalid("a change of the schema without a statement".to_owned())
}

pub(crate) fn may_block(request: &Request<'_>) -> Result<()> {
    if request.may_block { Ok(()) } else { Err(CqlError::WouldBlock) }
}

fn draw_node(database: &Database) -> u64 {
    let mut random = [0; 8];
    database.host().random.fill(&mut random);
    random_node(random)
}
