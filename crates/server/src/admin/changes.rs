//! The feed of changes on the admin socket.

use helenus_cql::changes::{Cursor, PageLimits, Start, acknowledge, read_page, resume, start};
use helenus_engine::Database;
use helenus_host::account::{Scope, Share, Waits};

use super::answer::{AdminAnswer, ChangeConsumerLine, ChangesLines};
use super::request::{AdminRequest, ChangesOrder};

/// The most events of an answer.
const EVENTS_MAX: usize = 10_000;

/// Answers a request about changes; the same for a database that a tool has opened itself.
///
/// # Errors
/// The reason, for a person.
pub fn answer_changes(database: &Database, request: &AdminRequest) -> Result<AdminAnswer, String> {
    let text = |error: helenus_engine::Error| error.to_string();
    match request {
        AdminRequest::Changes(order) => read(database, order).map(AdminAnswer::Changes).map_err(text),
        AdminRequest::AcknowledgeChanges { keyspace, table, consumer, position } => {
            let table = (keyspace.as_str(), table.as_str());
            let acknowledged = Cursor::parse(position, database.host_id())
                .map_err(helenus_engine::Error::from)
                .and_then(|cursor| resume(database, table, consumer, None).map(|_| cursor))
                .and_then(|cursor| acknowledge(database, table, consumer, &cursor));
            acknowledged.map(|()| AdminAnswer::Done).map_err(text)
        }
        AdminRequest::ChangeConsumers => {
            let begin = database.changes().begin().map_err(text)?;
            let line = |consumer: helenus_engine::changes::Consumer| ChangeConsumerLine {
                is_kept: consumer.position >= begin,
                position: consumer.cursor,
                name: consumer.name,
                keyspace: consumer.keyspace,
                table: consumer.table,
                acknowledged_s: consumer.acknowledged_s,
            };
            Ok(AdminAnswer::ChangeConsumers(database.changes().consumers().into_iter().map(line).collect()))
        }
        AdminRequest::DropChangeConsumer { keyspace, table, consumer } => {
            let dropped = database.changes().drop_consumer((keyspace, table), consumer);
            dropped.map(|()| AdminAnswer::Done).map_err(text)
        }
        _ => Err("not a request about changes".to_owned()),
    }
}

fn read(database: &Database, order: &ChangesOrder) -> helenus_engine::Result<ChangesLines> {
    let table = (order.keyspace.as_str(), order.table.as_str());
    let from = order.from.as_deref().map(|text| Start::parse(text, database.host_id())).transpose()?;
    let cursor = match &order.consumer {
        Some(consumer) => resume(database, table, consumer, from)?,
        None => start(database, table, from.unwrap_or(Start::Now))?,
    };
    let limits = PageLimits { events: order.events.clamp(1, EVENTS_MAX), ..PageLimits::default() };
    let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
    let page = loop {
        let page = read_page(database, table, cursor.clone(), limits);
        if !scope.should_retry() {
            break page?;
        }
    };
    Ok(ChangesLines {
        events: page.events.into_iter().map(|event| event.json).collect(),
        next: page.next.text(database.host_id()),
        is_end: page.is_end,
    })
}
