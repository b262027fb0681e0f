//! Opens a damaged table as far as possible, for `crate::scrub`.
//!
//! Statistics.db must be sound, because it describes the rows. Everything else but Data.db may be missing or damaged.

use super::Index;
use super::index_positions::IndexPositions;
use super::user_types::{stated_user_types, user_types_of_rows};
use crate::block::ReadContext;
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::compression::DataBlocks;
use crate::data::{RowLayout, Rows};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::header_schema::table_of_header;
use crate::names::Descriptor;
use crate::partitioner::Partitioner;
use crate::statistics::Statistics;
use crate::table::opener::Opener;
use helenus_host::Disk;
use helenus_model::schema::Table;
use std::path::Path;
use std::sync::Arc;

/// The parts that could be opened.
pub(crate) struct Parts {
    pub(crate) schema: Arc<Table>,
    pub(crate) statistics: Statistics,
    pub(crate) layout: RowLayout,
    pub(crate) data: DataBlocks,
    /// Whether blocks of the data that can be read are as they were written, by their checksums.
    pub(crate) is_checksummed: bool,
    /// `None` if the index cannot be opened.
    pub(crate) index: Option<Index>,
    /// `None` if the filter cannot be read, or knows nothing.
    pub(crate) filter: Option<Filter>,
    /// Problems of the components other than Data.db.
    pub(crate) notes: Vec<String>,
}

impl Parts {
    /// Opens a table with the schema of its own header, as far as possible. `known` is the table's own schema, if there
    /// is one: see `SsTable::open_by_header`. It waits for the disk.
    ///
    /// # Errors
    /// Data.db or Statistics.db missing or damaged.
    pub(crate) fn open(
        disk: &dyn Disk,
        (folder, descriptor): (&Path, Descriptor),
        (names, known): ((&str, &str), Option<&Table>),
    ) -> Result<Parts> {
        let buffers = BufferPool::offline();
        let version = descriptor.version;
        let mut notes = Vec::new();
        let mut unchecked = Opener::unchecked(disk, folder, descriptor, &buffers);
        let mut opener = Opener::new(disk, folder, descriptor, &buffers).or_else(|error| {
            notes.push(error.to_string());
            Ok::<_, Error>(Opener::unchecked(disk, folder, descriptor, &buffers))
        })?;
        // Our page checksums may be damaged themselves.
        let (path, bytes) = opener.whole(Component::Statistics).or_else(|error| {
            notes.push(error.to_string());
            unchecked.whole(Component::Statistics)
        })?;
        let statistics = Statistics::read(&bytes, version, &path)?;
        let (data, is_checksummed) = unchecked.damaged_data(&mut notes)?;
        let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
        let partitioner = Partitioner::of(&statistics.validation.partitioner);
        let opened = Index::open(&mut opener, (version, &statistics.stats, partitioner), &mut cx);
        let index = opened.map_err(|error| notes.push(error.to_string())).ok();
        let filter =
            opener.whole(Component::Filter).and_then(|(path, bytes)| Filter::read(&bytes, version, &path));
        let filter = filter.ok().filter(Filter::is_informative);
        let user_types = match stated_user_types(&statistics.header, version, known) {
            Some(stated) => stated,
            None => user_types_of_rows((&statistics.header, version, &path), (&data, index.as_ref()))?,
        };
        let schema = Arc::new(table_of_header(&statistics.header, user_types, names, &path)?);
        let layout = RowLayout::of_header(&statistics.header, &schema, (version, &path))?;
        Ok(Parts { schema, statistics, layout, data, is_checksummed, index, filter, notes })
    }

    /// The data and its layout, for reading rows and markers.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows { data: &self.data, layout: &self.layout }
    }

    /// The positions of partitions in the index.
    pub(crate) fn positions(&self, cx: &mut ReadContext) -> IndexPositions<'_> {
        IndexPositions::new(self.index.as_ref(), cx)
    }
}
