//! Imports that tools have ordered: one at a time, on a thread of its own.

use std::sync::Arc;

use helenus_cql::{ImportReport, ImportRequest, LocalBackend};
use helenus_engine::import::{FindOptions, ImportOptions, ImportProgress, SourceDisk};
use helenus_host::{Next, Worker};
use parking_lot::Mutex;

use super::protocol::{Import, ImportOrder};

/// The imports of this server.
#[derive(Default)]
pub(super) struct OrderedImports {
    /// The last one.
    last: Mutex<Option<Arc<Ordered>>>,
}

struct Ordered {
    number: u64,
    progress: ImportProgress,
    /// What it came to, or why it failed.
    ended: Mutex<Option<Result<ImportReport, String>>>,
}

/// What an order asks for; its schema file is read from the disk.
///
/// # Errors
/// A schema file that cannot be read.
pub fn request_of(order: &ImportOrder, disk: &SourceDisk) -> Result<ImportRequest, String> {
    let schema = match &order.schema {
        None => None,
        Some(path) => {
            let read = || {
                let file = disk.open(path)?;
                let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or_default()];
                file.read_exact_at(&mut bytes, 0)?;
                Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
            };
            Some(read().map_err(|error| format!("cannot read {}: {error}", path.display()))?)
        }
    };
    let find = FindOptions {
        snapshot: order.snapshot.clone(),
        keyspace: order.keyspace.clone(),
        table: order.table.clone(),
    };
    let options = ImportOptions { link: !order.copy, verify: !order.no_verify, keep_level: order.keep_level };
    Ok(ImportRequest { directory: order.directory.clone(), find, schema, options, dry_run: order.dry_run })
}

impl OrderedImports {
    /// Begins an import; its number. `from` is the disk that its paths are on.
    pub(super) fn order(
        &self,
        backend: &Arc<LocalBackend>,
        from: &SourceDisk,
        order: &ImportOrder,
    ) -> Result<u64, String> {
        let request = request_of(order, from)?;
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|last| last.ended.lock().is_none()) {
            return Err("another import is under way; try again when it is over".to_owned());
        }
        let number = last.as_ref().map_or(1, |last| last.number + 1);
        let ordered =
            Arc::new(Ordered { number, progress: ImportProgress::default(), ended: Mutex::default() });
        let worker = Importer {
            backend: Arc::clone(backend),
            from: Arc::clone(from),
            request,
            ordered: ordered.clone(),
        };
        // Nobody waits for its end but who asks how far it is; a server that stops meanwhile has nothing half imported.
        drop(backend.database().host().tasks.start("import", Box::new(worker)));
        *last = Some(ordered);
        Ok(number)
    }

    /// How far an import is; the text of its failure if it failed.
    pub(super) fn look(&self, number: u64) -> Result<Import, String> {
        let last = self.last.lock().clone().filter(|last| last.number == number);
        let Some(ordered) = last else { return Err(format!("there is no import with the number {number}")) };
        let (doing, bytes_done, bytes_total) = ordered.progress.look();
        let ended = ordered.ended.lock().clone();
        let is_over = ended.is_some();
        let report = match ended {
            Some(Err(problem)) => return Err(problem),
            Some(Ok(report)) => report,
            None => ImportReport::default(),
        };
        let ImportReport { tables, made, notes, .. } = report;
        Ok(Import { number, is_over, doing, bytes_done, bytes_total, tables, made, notes })
    }
}

struct Importer {
    backend: Arc<LocalBackend>,
    from: SourceDisk,
    request: ImportRequest,
    ordered: Arc<Ordered>,
}

impl Worker for Importer {
    fn step(&mut self) -> Next {
        let done = self.backend.import(&self.from, &self.request, &self.ordered.progress);
        *self.ordered.ended.lock() = Some(done.map_err(|error| error.to_string()));
        Next::Done
    }
}
