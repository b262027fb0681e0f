//! Opens a damaged table as far as possible, for `crate::scrub`.
//!
//! Statistics.db must be sound, because it describes the rows, and so must the start of CompressionInfo.db. Everything
//! else may be missing or damaged.

use super::Index;
use crate::block::ReadContext;
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::compression::DataBlocks;
use crate::data::{RowLayout, Rows};
use crate::error::{Error, Result};
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
        let buffers = BufferPool::offline();
        let mut notes = Vec::new();
        let mut opener = Opener::new(disk, folder, descriptor, &buffers).or_else(|error| {
            notes.push(error.to_string());
            Ok::<_, Error>(Opener::unchecked(disk, folder, descriptor, &buffers))
        })?;
        let (path, bytes) = opener.whole(Component::Statistics)?;
        let statistics = Statistics::read(&bytes, descriptor.version, &path)?;
        let schema = Arc::new(table_of_header(&statistics.header, descriptor.version, names, &path)?);
        let layout = RowLayout::of_header(&statistics.header, &schema, (descriptor.version, &path))?;
        let data = match opener.data() {
            Ok(data) => data,
            Err(error) => {
                notes.push(error.to_string());
                Opener::unchecked(disk, folder, descriptor, &buffers).data_as_it_is()?
            }
        };
        let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
        let partitioner = Partitioner::of(&statistics.validation.partitioner);
        let opened = Index::open(&mut opener, (descriptor.version, &statistics.stats, partitioner), &mut cx);
        let index = opened.map_err(|error| notes.push(error.to_string())).ok();
        Ok(Parts { schema, statistics, layout, data, index, notes })
    }

    /// The data and its layout, for reading rows and markers.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows { data: &self.data, layout: &self.layout }
    }
}
