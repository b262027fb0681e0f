//! The server's identity: `DIR/host-id`, created at the first start. Clients see it as `host_id` in `system.local`.
//!
//! The file is a line of text: the id, a space, the CRC32 of the id's digits. Without the checksum, a flipped bit
//! would give the server another valid identity. `open` calls this before it reads anything else.

use crate::error::{Error, Result};
use helenus_host::{Disk, Host};
use helenus_sstable::checksum::crc32;
use std::path::Path;
use uuid::Uuid;

/// Bytes of an id's digits. Older files hold nothing else.
const DIGITS: usize = 36;
/// Bytes of the line: digits, space, checksum, end of line.
const LINE: usize = DIGITS + 1 + 8 + 1;

/// Reads the id of a directory; creates one if there is none.
///
/// # Errors
/// Failures of the disk, and a file that holds something else.
pub(super) fn host_id(host: &Host, dir: &Path) -> Result<Uuid> {
    let path = dir.join("host-id");
    let disk = &*host.disk;
    if !disk.exists(&path) {
        let mut random = [0; 16];
        host.random.fill(&mut random);
        let id = uuid::Builder::from_random_bytes(random).into_uuid();
        write(disk, dir, id)?;
        return Ok(id);
    }
    let file = disk.open_own(&path).map_err(Error::io("open", &path))?;
    let size = file.size().map_err(Error::io("read", &path))?;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(LINE)];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &path))?;
    let digits = bytes.get(..DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
    let id = digits.and_then(|digits| Uuid::try_parse(digits).ok());
    match id {
        Some(id) if size == LINE as u64 && bytes == line(id).as_bytes() => Ok(id),
        Some(id) if size == DIGITS as u64 => {
            write(disk, dir, id)?;
            Ok(id)
        }
        _ => {
            let problem =
                "it is not the id that was written; put a copy of it back, or remove it to get a new id";
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, problem);
            Err(Error::Io { action: "read", path, source })
        }
    }
}

fn line(id: Uuid) -> String {
    let digits = id.to_string();
    format!("{digits} {:08x}\n", crc32(digits.as_bytes()))
}

/// Writes the file under another name and renames it when it is complete.
fn write(disk: &dyn Disk, dir: &Path, id: Uuid) -> Result<()> {
    let (path, new) = (dir.join("host-id"), dir.join("host-id.new"));
    if disk.exists(&new) {
        disk.remove(&new).map_err(Error::io("remove", &new))?;
    }
    let file = disk.create(&new).map_err(Error::io("create", &new))?;
    file.write_all_at(line(id).as_bytes(), 0).map_err(Error::io("write", &new))?;
    file.sync().map_err(Error::io("sync", &new))?;
    disk.rename(&new, &path).map_err(Error::io("rename", &new))?;
    disk.sync_dir(dir).map_err(Error::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::sim::Machine;

    fn machine() -> Machine {
        let machine = Machine::new(1);
        let disk = machine.host().disk;
        disk.create_dir_all(Path::new("/db")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        machine
    }

    fn of(machine: &Machine) -> Result<Uuid> {
        host_id(&machine.host(), Path::new("/db"))
    }

    #[test]
    fn it_stays_the_same_over_a_cut_and_no_flipped_bit_makes_it_another() {
        let machine = machine();
        let id = of(&machine).unwrap();
        let machine = machine.crash();
        assert_eq!(of(&machine).unwrap(), id);
        for bit in 0..8 * LINE {
            let path = Path::new("/db/host-id");
            let (byte, bit) = ((bit / 8) as u64, (bit % 8) as u8);
            machine.flip_bit(path, byte, bit).unwrap();
            let told = of(&machine).unwrap_err().to_string();
            assert!(told.contains("/db/host-id") && told.contains("remove it"), "{byte}, {bit}: {told}");
            machine.flip_bit(path, byte, bit).unwrap();
        }
        assert_eq!(of(&machine).unwrap(), id);
    }

    #[test]
    fn one_without_a_checksum_is_kept_and_gets_one() {
        let machine = machine();
        let id = Uuid::from_u128(7);
        let disk = machine.host().disk;
        let file = disk.create(Path::new("/db/host-id")).unwrap();
        file.write_all_at(id.to_string().as_bytes(), 0).unwrap();
        assert_eq!(of(&machine).unwrap(), id);
        let file = disk.open(Path::new("/db/host-id")).unwrap();
        assert_eq!(file.size().unwrap(), LINE as u64);
        assert_eq!(of(&machine).unwrap(), id);
    }
}
