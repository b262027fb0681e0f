//! The names and versions of SSTables that the tools write.

use helenus_host::Host;
use helenus_sstable::names::{Descriptor, SsTableId, SsTableIds};
use helenus_sstable::version::Version;
use std::path::Path;

/// Approximate number of files of an SSTable, for the transaction log.
pub(super) const FILES: usize = 9;

/// The version that takes the place of one: the same if it can be written, otherwise the next one that can, otherwise
/// the last of its format.
pub(super) fn version_for(old: Version) -> Version {
    let is_next = |version: &Version| *version >= old && version.is_written();
    let last_of_format =
        || Version::all().filter(|version| version.is_written() && version.format() == old.format()).last();
    Version::all().find(is_next).or_else(last_of_format).unwrap_or(Version::CURRENT)
}

/// An unused id in a folder, of the same kind as the old one. Ids that are numbers are readable by every version of
/// Cassandra.
pub(super) fn next_id(
    host: &Host,
    (old, folder): (SsTableId, &Path),
    ids: &mut SsTableIds,
) -> std::io::Result<SsTableId> {
    let SsTableId::Sequence(_) = old else { return Ok(ids.next(host.clock.wall_us())) };
    let files = host.disk.list(folder)?;
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let numbers = names.filter_map(|name| match Descriptor::parse(name)?.0.id {
        SsTableId::Sequence(number) => Some(number),
        SsTableId::Time { .. } => None,
    });
    Ok(SsTableId::Sequence(numbers.max().unwrap_or_default() + 1))
}
