//! Handles local deletion times that a version cannot store: before `oa` they end on 2038-01-19T03:14:06Z.

use crate::deletion_time::{DeletionTimeForm, SIGNED_LOCAL_S_MAX};
use crate::error::Error;
use crate::version::Version;
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use std::path::PathBuf;

/// How to treat a time after 2038-01-19T03:14:06Z in a version that cannot store it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond2038 {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Replace the time by the latest possible one, and count it. Data expires early, and tombstones may be dropped
    /// early (policy CAP of `ExpirationDateOverflowHandling`).
    Cap,
}

/// Adapts times for the version. It does nothing for `oa` and later versions.
pub(super) struct Times {
    is_bounded: bool,
    policy: Beyond2038,
    /// Number of times that were capped.
    pub(super) capped: u64,
    row: RowBuf,
    marker: MarkerBuf,
}

/// A time that is refused, in seconds since 1970.
pub(super) struct TooLate(pub(super) i64);

impl TooLate {
    /// The error for a table whose Data.db is `file`.
    pub(super) fn error(&self, file: PathBuf, version: Version) -> Error {
        let what = format!(
            "version {version} has no times after 2038-01-19T03:14:06Z, and something here expires or was deleted at second \
             {}: write version oa or da, or have such times capped",
            self.0
        );
        Error::Unsupported { file, what }
    }
}

impl Times {
    pub(super) fn new(version: Version, policy: Beyond2038) -> Times {
        Times {
            is_bounded: DeletionTimeForm::of(version) == DeletionTimeForm::Signed,
            policy,
            capped: 0,
            row: RowBuf::default(),
            marker: MarkerBuf::default(),
        }
    }

    /// The row with times that the version can store.
    pub(super) fn row<'a>(&'a mut self, row: RowView<'a>) -> Result<RowView<'a>, TooLate> {
        let Some(late) = self.is_bounded.then(|| latest_of(&row)).flatten() else { return Ok(row) };
        if self.policy == Beyond2038::Refuse {
            return Err(TooLate(late));
        }
        self.row.copy_from(row);
        let capped = &mut self.capped;
        cap(&mut self.row.liveness.expires_s, capped);
        cap_deletion(&mut self.row.deletion, capped);
        for (_, deletion) in &mut self.row.complex_deletions {
            cap_deletion(deletion, capped);
        }
        for cell in &mut self.row.cells {
            cap(&mut cell.local_deletion_s, capped);
        }
        Ok(self.row.view())
    }

    /// The marker with times that the version can store.
    pub(super) fn marker<'a>(&'a mut self, marker: MarkerView<'a>) -> Result<MarkerView<'a>, TooLate> {
        let ends = [marker.marker.close, marker.marker.open];
        let late = ends.into_iter().filter(|end| !end.is_live()).find(|end| is_late(end.local_s));
        let Some(late) = late.filter(|_| self.is_bounded) else { return Ok(marker) };
        if self.policy == Beyond2038::Refuse {
            return Err(TooLate(late.local_s));
        }
        self.marker.copy_from(marker);
        cap_deletion(&mut self.marker.close, &mut self.capped);
        cap_deletion(&mut self.marker.open, &mut self.capped);
        Ok(self.marker.view())
    }

    /// The deletion with a time that the version can store.
    pub(super) fn deletion(&mut self, mut deletion: DeletionTime) -> Result<DeletionTime, TooLate> {
        if !self.is_bounded || deletion.is_live() || !is_late(deletion.local_s) {
            return Ok(deletion);
        }
        if self.policy == Beyond2038::Refuse {
            return Err(TooLate(deletion.local_s));
        }
        cap_deletion(&mut deletion, &mut self.capped);
        Ok(deletion)
    }
}

fn latest_of(row: &RowView<'_>) -> Option<i64> {
    let Liveness { expires_s, .. } = row.row.liveness;
    let deletions = row.row.complex_deletions.iter().map(|(_, deletion)| deletion).chain([&row.row.deletion]);
    let deletions = deletions.filter(|deletion| !deletion.is_live()).map(|deletion| deletion.local_s);
    let cells = row.row.cells.iter().map(|cell| cell.local_deletion_s);
    cells.chain(deletions).chain([expires_s]).find(|time| is_late(*time))
}

fn is_late(local_s: i64) -> bool {
    local_s != NO_EXPIRY && local_s > SIGNED_LOCAL_S_MAX
}

fn cap(local_s: &mut i64, capped: &mut u64) {
    if is_late(*local_s) {
        *local_s = SIGNED_LOCAL_S_MAX;
        *capped += 1;
    }
}

fn cap_deletion(deletion: &mut DeletionTime, capped: &mut u64) {
    if !deletion.is_live() {
        cap(&mut deletion.local_s, capped);
    }
}
