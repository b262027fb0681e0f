//! Makes and parses the names of SSTable files and of their folders, and the identifiers in them.
//!
//! For example `da-<id>-bti-Data.db` in `<table>-<table id in hex>`. Sources: `Descriptor`, `UUIDBasedSSTableId`,
//! `SequenceBasedSSTableId`, `Directories`.

use crate::component::Component;
use crate::error::Error;
use crate::version::{Format, Version};
use helenus_model::schema::TableId;
use std::fmt;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Number of 100 ns intervals from 1582-10-15, when time UUIDs begin, to 1970.
const UUID_EPOCH_TICKS: i64 = 0x01B2_1DD2_1381_4000;
const TICKS_A_SECOND: u64 = 10_000_000;
const SECONDS_A_DAY: u64 = 86_400;

/// Suffix of a file that is written to replace another.
const TEMPORARY: &str = ".tmp";

/// The identifier of an SSTable within its table. It is ordered as in Cassandra: by number, then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SsTableId {
    /// A number counted up in the table's folder.
    Sequence(u32),
    /// A time UUID: unique without looking at the folder.
    Time {
        /// 100 ns intervals since 1582-10-15, 60 bits.
        ticks: u64,
        /// Clock sequence and node.
        node: u64,
    },
}

impl SsTableId {
    /// The identifier for a version 1 UUID; `None` for another version.
    pub fn from_uuid(uuid: Uuid) -> Option<SsTableId> {
        let (high, node) = uuid.as_u64_pair();
        if high >> 12 & 0xF != 1 {
            return None;
        }
        let ticks = (high & 0xFFF) << 48 | (high & 0xFFFF_0000) << 16 | high >> 32;
        Some(SsTableId::Time { ticks, node })
    }

    /// The version 1 UUID of the identifier; `None` for a number.
    pub fn to_uuid(self) -> Option<Uuid> {
        let SsTableId::Time { ticks, node } = self else { return None };
        let high = ticks << 32 | (ticks >> 32 & 0xFFFF) << 16 | 1 << 12 | ticks >> 48 & 0xFFF;
        Some(Uuid::from_u64_pair(high, node))
    }

    /// Parses an identifier: up to ten digits, or 4_4_5 and 13 digits of base 36 for days, seconds, ticks and node.
    pub fn parse(text: &str) -> Option<SsTableId> {
        let all = |text: &str, valid: fn(&u8) -> bool| text.as_bytes().iter().all(valid);
        if (1..=10).contains(&text.len()) && all(text, u8::is_ascii_digit) {
            // In Cassandra it is an int.
            return text.parse().ok().filter(|number| *number <= i32::MAX as u32).map(SsTableId::Sequence);
        }
        let (days, rest) = text.split_at_checked(4)?;
        let (seconds, rest) = rest.strip_prefix('_')?.split_at_checked(4)?;
        let (ticks, node) = rest.strip_prefix('_')?.split_at_checked(5)?;
        if node.len() != 13 || ![days, seconds, ticks, node].iter().all(|t| all(t, u8::is_ascii_alphanumeric))
        {
            return None;
        }
        let number = |text| u64::from_str_radix(text, 36).ok();
        let seconds = number(days)?.checked_mul(SECONDS_A_DAY)?.checked_add(number(seconds)?)?;
        let ticks = seconds.checked_mul(TICKS_A_SECOND)?.checked_add(number(ticks)?)?;
        Some(SsTableId::Time { ticks, node: number(node)? }).filter(|_| ticks < 1 << 60)
    }
}

impl fmt::Display for SsTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SsTableId::Sequence(number) => write!(f, "{number}"),
            SsTableId::Time { ticks, node } => {
                let (seconds, ticks) = (ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND);
                write_base_36(f, seconds / SECONDS_A_DAY, 4)?;
                f.write_str("_")?;
                write_base_36(f, seconds % SECONDS_A_DAY, 4)?;
                f.write_str("_")?;
                write_base_36(f, ticks, 5)?;
                write_base_36(f, node, 13)
            }
        }
    }
}

fn write_base_36(f: &mut fmt::Formatter<'_>, mut value: u64, width: usize) -> fmt::Result {
    let mut digits = [b'0'; 13];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz".get((value % 36) as usize).copied().unwrap_or(b'0');
        value /= 36;
    }
    let digits = digits.get(13 - width..).unwrap_or(&digits);
    f.write_str(std::str::from_utf8(digits).unwrap_or_default())
}

/// Makes time UUIDs that never repeat, for SSTables and transaction logs. A process has one.
#[derive(Debug)]
pub struct SsTableIds {
    node: u64,
    last: u64,
}

impl SsTableIds {
    /// Uses `random` for clock sequence and node, with the mark of RFC 9562 for a node that is not a network address.
    pub fn new(random: u64) -> SsTableIds {
        const VARIANT: u64 = 0b10 << 62;
        const NODE_IS_RANDOM: u64 = 1 << 40;
        SsTableIds { node: random >> 2 | VARIANT | NODE_IS_RANDOM, last: 0 }
    }

    /// The next identifier for this wall time in microseconds since 1970, or for just after the last one if that is
    /// later.
    pub fn next(&mut self, wall_us: i64) -> SsTableId {
        let now = wall_us.saturating_mul(10).saturating_add(UUID_EPOCH_TICKS).max(0) as u64;
        self.last = now.max(self.last + 1);
        SsTableId::Time { ticks: self.last, node: self.node }
    }
}

/// The common part of the names of one SSTable's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// Version of the files, which implies the format.
    pub version: Version,
    /// The SSTable within its table.
    pub id: SsTableId,
}

impl Descriptor {
    /// The descriptor of a new SSTable of the current version.
    pub fn new(id: SsTableId) -> Descriptor {
        Descriptor { version: Version::CURRENT, id }
    }

    /// The prefix of its file names: `da-<id>-bti-`.
    pub fn prefix(&self) -> String {
        format!("{self}-")
    }

    /// Name of a component's file.
    pub fn file_name(&self, component: Component) -> String {
        format!("{self}-{component}")
    }

    /// A component's file in the table's folder.
    pub fn path(&self, folder: &Path, component: Component) -> PathBuf {
        folder.join(self.file_name(component))
    }

    /// The temporary file that will replace a component's file.
    pub fn temporary_path(&self, folder: &Path, component: Component) -> PathBuf {
        folder.join(format!("{self}-{component}{TEMPORARY}"))
    }

    /// Parses a file name into descriptor and component name. `None` if it is not the name of an SSTable's file of a
    /// known version, or if it is a temporary file.
    pub fn parse(file_name: &str) -> Option<(Descriptor, &str)> {
        let mut parts = file_name.splitn(4, '-');
        let version = Version::parse(parts.next()?)?;
        let id = SsTableId::parse(parts.next()?)?;
        let format = parts.next()?;
        let component = parts.next()?;
        if format != version.format().name() || component.is_empty() || component.ends_with(TEMPORARY) {
            return None;
        }
        Some((Descriptor { version, id }, component))
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.version, self.id, self.version.format().name())
    }
}

/// The reason why the SSTable of this file cannot be read; `None` if it can, or if the name is not that of an SSTable's
/// Data.db.
///
/// A name that `Descriptor::parse` refuses may still be that of an SSTable, of an unknown version. A caller that looks
/// for SSTables in a folder must call this function, because otherwise rows would be missing silently. A name without a
/// version is not an SSTable's: an editor, an operating system or a copying program made it (`._nb-1-big-Data.db`,
/// `Copy of nb-1-big-Data.db`).
pub fn refusal(file: &Path) -> Option<Error> {
    let name = file.file_name()?.to_str()?;
    let stem = name.strip_suffix("-Data.db")?;
    if Descriptor::parse(name).is_some() {
        return None;
    }
    // From 2.2 on names are version-id-format; before they were keyspace-table-version-id.
    let parts: Vec<&str> = stem.split('-').collect();
    let is_version = |text: &&&str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let letters = match parts.as_slice() {
        [version, _, "big" | "bti"] => Some(version),
        [_, _, .., version, _] => Some(version),
        _ => None,
    };
    let letters = letters.filter(is_version)?;
    let what = match letters {
        letters if *letters < "ma" && parts.last() != Some(&"bti") => format!(
            "SSTable version {letters} is of Cassandra 2.2 or before, whose files hold cells instead of rows: run \
             sstableupgrade of Cassandra 3.0 or 3.11 on the table first, then take the files that it writes"
        ),
        letters => {
            let known = Version::all().map(Version::letters).collect::<Vec<_>>().join(", ");
            format!(
                "version {letters} is no SSTable version that is known here ({known}): use a later Helenus, or have the table \
                     written anew in one of these"
            )
        }
    };
    Some(Error::Unsupported { file: file.to_owned(), what })
}

/// Whether a file is a temporary file of an SSTable, which a crash left behind and which is removed on start. Temporary
/// files of other programs do not count.
pub fn is_temporary(file_name: &str) -> bool {
    file_name.strip_suffix(TEMPORARY).is_some_and(|name| Descriptor::parse(name).is_some())
}

/// Name of a table's folder: `<table>-<id in hex without dashes>`.
pub fn table_folder(table: &str, id: TableId) -> String {
    format!("{table}-{}", id.0.simple())
}

/// Parses the name of a table's folder.
pub fn parse_table_folder(name: &str) -> Option<(&str, TableId)> {
    let (table, id) = name.rsplit_once('-')?;
    let id = Uuid::try_parse(id).ok().filter(|_| id.len() == 32)?;
    (!table.is_empty()).then_some((table, TableId(id)))
}

/// Folders within a table's folder whose SSTables do not belong to the live table.
pub const FOLDERS_ASIDE: [&str; 2] = ["snapshots", "backups"];

/// Whether a folder belongs to the operating system or a file server; such folders are often not readable.
pub fn is_of_the_system(folder: &str) -> bool {
    const FOLDERS: [&str; 6] =
        ["lost+found", "$RECYCLE.BIN", "System Volume Information", "@eaDir", "#recycle", "__MACOSX"];
    const HIDDEN: [&str; 5] = [".Trash", ".Spotlight-V100", ".fseventsd", ".snapshot", ".zfs"];
    FOLDERS.contains(&folder) || HIDDEN.iter().any(|name| folder.starts_with(name))
}

/// The table whose SSTables a folder contains, derived from its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Keyspace; empty if the path is too short.
    pub keyspace: String,
    /// Table; empty if the path is too short.
    pub table: String,
    /// The table's id, if the folder's name contains it.
    pub id: Option<TableId>,
    /// The name of the secondary index, if the SSTables are those of an index.
    pub index: Option<String>,
}

/// Parses `KEYSPACE/TABLE[-ID][/snapshots/NAME | /backups][/.INDEX]` at the end of a path.
pub fn owner_of_folder(folder: &Path) -> Owner {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let mut folders = folder.ancestors().map(name);
    let mut next = || folders.next().unwrap_or_default();
    let mut table = next();
    let index = table.strip_prefix('.').map(str::to_owned);
    if index.is_some() {
        table = next();
    }
    let mut keyspace = next();
    if table == "backups" {
        (table, keyspace) = (keyspace, next());
    } else if keyspace == "snapshots" {
        (table, keyspace) = (next(), next());
    }
    let (table, id) = match parse_table_folder(&table) {
        Some((table, id)) => (table.to_owned(), Some(id)),
        None => (table, None),
    };
    Owner { keyspace, table, id, index }
}

/// Name of a transaction log: `<format>-<version>_txn_<operation>_<id>.log`, without the format for `big`
/// (`LogFile.getFileName`).
pub(crate) fn transaction_log(version: Version, operation: &str, id: Uuid) -> String {
    match version.format() {
        Format::Big => format!("{version}_txn_{operation}_{id}.log"),
        format => format!("{}-{version}_txn_{operation}_{id}.log", format.name()),
    }
}

/// Whether a file name is that of a transaction log of any version: `((<format>-)?xx_)?txn_<operation>_<id>.log`.
pub fn is_transaction_log(file_name: &str) -> bool {
    let Some(stem) = file_name.strip_suffix(".log") else { return false };
    let Some((before, after)) = stem.split_once("txn_") else { return false };
    let version = before.strip_suffix('_').map(|v| v.rsplit_once('-').unwrap_or(("", v)).1);
    (before.is_empty() || version.is_some_and(|version| version.chars().count() == 2)) && after.contains('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_printed_and_read_as_cassandra_does() {
        // Printed by Cassandra 5.0.6: new UUIDBasedSSTableId(TimeUUID.fromString(..)).
        let uuid = Uuid::parse_str("9ae60cb0-e59d-11f1-bc2e-bf5f9ceed007").unwrap();
        let id = SsTableId::from_uuid(uuid).unwrap();
        assert_eq!(id.to_string(), "3h5p_0vip_3x8vk2v0t1uhvdwlxj");
        assert_eq!(SsTableId::parse(&id.to_string()), Some(id));
        assert_eq!(id.to_uuid(), Some(uuid));
        assert_eq!(SsTableId::parse("42"), Some(SsTableId::Sequence(42)));
        for wrong in
            ["", "2147483648", "12345678901", "3gwl_0000_00000", "-1", "+1", "3g+l_0000_00000zzzzzzzzzzzzz"]
        {
            assert_eq!(SsTableId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn identifiers_never_repeat_even_when_the_clock_stands_or_goes_back() {
        let mut ids = SsTableIds::new(u64::MAX);
        let made: Vec<SsTableId> =
            [5, 5, 5, 4, 1_700_000_000_000_000, 3].map(|wall_us| ids.next(wall_us)).to_vec();
        assert!(made.is_sorted_by(|a, b| a < b));
        let uuid = made[4].to_uuid().unwrap();
        assert_eq!(uuid.get_version_num(), 1);
        assert_eq!(uuid.get_timestamp().unwrap().to_unix(), (1_700_000_000, 0));
    }

    #[test]
    fn a_file_name_is_taken_apart_into_what_made_it() {
        let descriptor = Descriptor::new(SsTableIds::new(7).next(1_700_000_000_000_000));
        for component in Component::ALL {
            let name = descriptor.file_name(component);
            assert_eq!(Descriptor::parse(&name), Some((descriptor, component.name())));
        }
        assert_eq!(Descriptor::parse("da-1-bti-Data.db").unwrap().0.to_string(), "da-1-bti");
        assert_eq!(Descriptor::parse("nb-1-big-SAI+aa+x-y.db").unwrap().1, "SAI+aa+x-y.db");
        for other in
            ["da-1-big-Data.db", "da-1-bti-", "da-1-bti", "da-1-bti-Statistics.db.tmp", "zz-1-big-Data.db"]
        {
            assert_eq!(Descriptor::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_version_that_cannot_be_read_is_refused_by_name() {
        let refused = |name: &str| refusal(&Path::new("/d").join(name)).map(|error| error.to_string());
        for junk in
            ["._nb-1-big-Data.db", "Copy of nb-1-big-Data.db", ".nb-1-big-Data.db.Xa81-Data.db", "-Data.db"]
        {
            assert_eq!(refused(junk), None, "{junk}");
        }
        for readable in
            ["ma-1-big-Data.db", "da-3h5p_0vip_3x8vk2v0t1uhvdwlxj-bti-Data.db", "la-1-big-Index.db", "x.txt"]
        {
            assert_eq!(refused(readable), None, "{readable}");
        }
        for (old, letters) in
            [("la-12-big-Data.db", "la"), ("ks-t-ka-3-Data.db", "ka"), ("ks-t-jb-3-Data.db", "jb")]
        {
            let text = refused(old).unwrap();
            assert!(text.contains(&format!("version {letters} is of Cassandra 2.2")), "{text}");
            assert!(text.contains("sstableupgrade"), "{text}");
        }
        for new in ["qa-1-big-Data.db", "fa-1-bti-Data.db", "ca-1-bti-Data.db"] {
            assert!(refused(new).unwrap().contains("no SSTable version that is known here"), "{new}");
        }
    }

    #[test]
    fn a_table_folder_holds_name_and_id() {
        let id = TableId(Uuid::from_u128(0x9ae60cb0_e59d_11f1_bc2e_bf5f9ceed007));
        assert_eq!(table_folder("t", id), "t-9ae60cb0e59d11f1bc2ebf5f9ceed007");
        assert_eq!(parse_table_folder("t-9ae60cb0e59d11f1bc2ebf5f9ceed007"), Some(("t", id)));
        assert_eq!(parse_table_folder("snapshots"), None);
    }

    #[test]
    fn folders_tell_whose_files_they_hold() {
        let id = TableId(Uuid::from_u128(0x9ae60cb0_e59d_11f1_bc2e_bf5f9ceed007));
        let folder = table_folder("t", id);
        let owner = |path: String| owner_of_folder(Path::new(&path));
        let plain = Owner { keyspace: "ks".into(), table: "t".into(), id: Some(id), index: None };
        for path in [
            format!("/d/ks/{folder}"),
            format!("/d/ks/{folder}/snapshots/now"),
            format!("ks/{folder}/backups"),
        ] {
            assert_eq!(owner(path.clone()), plain, "{path}");
        }
        assert_eq!(owner("/x/ks/t".into()), Owner { id: None, ..plain.clone() });
        let index = Owner { index: Some("t_v_idx".into()), ..plain };
        assert_eq!(owner(format!("/d/ks/{folder}/.t_v_idx")), index);
        assert_eq!(owner(format!("/d/ks/{folder}/snapshots/now/.t_v_idx")), index);
        assert_eq!(owner("/".into()), Owner::default());
    }

    #[test]
    fn transaction_logs_of_all_versions_are_known_by_name() {
        let name = transaction_log(Version::Da, "flush", Uuid::nil());
        assert_eq!(name, "bti-da_txn_flush_00000000-0000-0000-0000-000000000000.log");
        for log in [name.as_str(), "nb_txn_compaction_x.log", "txn_flush_x.log"] {
            assert!(is_transaction_log(log));
        }
        for other in ["da-1-bti-Data.db", "abc_txn_flush_x.log", "xtxn_flush_x.log", "nb_txn_flush.log"] {
            assert!(!is_transaction_log(other), "{other}");
        }
    }
}
