//! Opens a damaged table as far as possible, for `crate::scrub`.
//!
//! Statistics.db must be sound, because it describes the rows, and so must the start of CompressionInfo.db. Everything
//! else may be missing or damaged.

use super::Index;
use crate::block::{BlockCache, ReadContext};
use crate::component::Component;
use crate::compression::DataBlocks;
use crate::data::RowLayout;
use crate::error::{Error, Result};
use crate::header_schema::table_of_header;
use crate::names::Descriptor;
use crate::partitioner::Partitioner;
use crate::recent_blocks::RecentBlocks;
use crate::statistics::Statistics;
use crate::table::opener::Opener;
use helenus_host::Disk;
use helenus_model::schema::Table;
use std::path::Path;
use std::sync::Arc;

/// File numbers for a cache that is not shared.
const FILE_NUMBERS: [u64; 3] = [1, 2, 3];

/// The parts that could be opened.
pub(crate) struct Parts {
    pub(crate) schema: Arc<Table>,
    pub(crate) statistics: Statistics,
    pub(crate) layout: RowLayout,
    pub(crate) data: DataBlocks,
    /// `None` if the index cannot be opened.
    pub(crate) index: Option<Index>,
    /// Problems of the components other than Data.db.
    pub(crate) notes: Vec<String>,
}

impl Parts {
    /// Opens a table with the schema of its own header, as far as possible. It waits for the disk.
    ///
    /// # Errors
    /// Data.db, Statistics.db or CompressionInfo.db missing or damaged.
    pub(crate) fn open(
        disk: &dyn Disk,
        (folder, descriptor): (&Path, Descriptor),
        names: (&str, &str),
    ) -> Result<Parts> {
        let cache: Arc<dyn BlockCache> = Arc::new(RecentBlocks::default());
        let mut notes = Vec::new();
        let mut opener = Opener::new(disk, folder, descriptor, &cache).or_else(|error| {
            notes.push(error.to_string());
            Ok::<_, Error>(Opener::unchecked(disk, folder, descriptor, &cache))
        })?;
        let (path, bytes) = opener.whole(Component::Statistics)?;
        let statistics = Statistics::read(&bytes, descriptor.version, &path)?;
        let schema = Arc::new(table_of_header(&statistics.header, descriptor.version, names, &path)?);
        let layout = RowLayout::of_header(&statistics.header, &schema, (descriptor.version, &path))?;
        let [data_number, first, second] = FILE_NUMBERS;
        let data = match opener.data(data_number) {
            Ok(data) => data,
            Err(error) => {
                notes.push(error.to_string());
                Opener::unchecked(disk, folder, descriptor, &cache).data_as_it_is(data_number)?
            }
        };
        let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
        let partitioner = Partitioner::of(&statistics.validation.partitioner);
        let opened = Index::open(
            &mut opener,
            (descriptor.version, &statistics.stats, partitioner),
            [first, second],
            &mut cx,
        );
        let index = opened.map_err(|error| notes.push(error.to_string())).ok();
        Ok(Parts { schema, statistics, layout, data, index, notes })
    }

    /// The data and its layout, for reading rows and markers.
    pub(crate) fn rows(&self) -> (&DataBlocks, &RowLayout) {
        (&self.data, &self.layout)
    }
}
