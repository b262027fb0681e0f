//! Finds the memory limit that control groups set for this process: the least limit of its own group and of its
//! ancestors, in version 1 and 2, wherever they are mounted.
//!
//! `/proc/self/cgroup` names the process's groups (`0::/path` in version 2, `N:memory:/path` in version 1).
//! `/proc/self/mountinfo` tells where their file systems are mounted, and with which root folder (cgroups(7),
//! proc(5)).

use std::fs::read_to_string;
use std::path::{Component, Path, PathBuf};

/// The least limit, bytes; `None` if there is none.
pub(super) fn memory_limit() -> Option<u64> {
    let read = |path| read_to_string(path).unwrap_or_default();
    least(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// The same from the texts of the two files.
fn least(groups: &str, mounts: &str) -> Option<u64> {
    let mounts = mounts.lines().filter_map(Mount::parse);
    mounts.filter_map(|mount| mount.least(mount.group(groups)?)).min()
}

/// A mounted hierarchy that may limit memory.
struct Mount {
    is_v2: bool,
    /// The folder of the hierarchy that is mounted.
    root: PathBuf,
    /// The folder on which it is mounted.
    point: PathBuf,
}

impl Mount {
    /// Parses a line `36 35 98:0 /root /point options [more] - type source options`.
    fn parse(line: &str) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (unescape(place.next()?), unescape(place.next()?));
        let mut kind = kind.split(' ');
        let is_v2 = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        Some(Mount { is_v2, root, point })
    }

    /// The process's group in this hierarchy.
    fn group<'a>(&self, groups: &'a str) -> Option<&'a Path> {
        let mut groups = groups.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        let is_own = |controllers: &str| match self.is_v2 {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|name| name == "memory"),
        };
        groups.find_map(|(controllers, path)| is_own(controllers).then_some(Path::new(path)))
    }

    /// The least limit of a group and of those of its ancestors that are visible here.
    fn least(&self, group: &Path) -> Option<u64> {
        // If the group is outside the mounted part, the limit of the mounted part is all that is known.
        let below = group.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_inside = below.components().all(|part| matches!(part, Component::Normal(_)));
        let own = if is_inside { self.point.join(below) } else { self.point.clone() };
        let groups = own.ancestors().take_while(|folder| folder.starts_with(&self.point));
        groups.filter_map(|folder| self.limit(folder)).min()
    }

    /// The limit of one group.
    fn limit(&self, folder: &Path) -> Option<u64> {
        let number = |name: &str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        if self.is_v2 {
            // Beyond `high` a process is not killed, but throttled until it has freed memory.
            return [number("memory.max"), number("memory.high")].into_iter().flatten().min();
        }
        // The kernel also reports the least limit of all ancestors, including those that are not mounted here.
        let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let of_all =
            stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit ")?.parse().ok());
        [number("memory.limit_in_bytes"), of_all].into_iter().flatten().min()
    }
}

/// A path from mountinfo, where blanks and some other characters are written like `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            digits.iter().try_fold(0_u32, |code, digit| Some(code * 8 + char::from(*digit).to_digit(8)?))
        });
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A random number below `n`.
    fn draw(state: &mut u64, n: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % n
    }

    fn put(folder: &Path, name: &str, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn the_least_limit_of_a_nested_group_is_found_wherever_it_stands_and_is_mounted() {
        let seed = 33;
        println!("seed {seed}");
        let mut state = seed;
        for round in 0..200 {
            let folder = TempDir::with_prefix("helenus cgroup-").unwrap();
            let is_v2 = draw(&mut state, 2) == 0;
            let point = folder.path().join(["sys/fs/cgroup", "deep/er", "m"][draw(&mut state, 3) as usize]);
            // The mounted part may be a folder of the hierarchy.
            let root = ["/", "/box/7"][draw(&mut state, 2) as usize];
            let depth = draw(&mut state, 5);
            let limited = draw(&mut state, depth + 1);
            let limit = (draw(&mut state, 1 << 20) + 1) << 12;
            let (mut at, mut group) = (point.clone(), root.trim_end_matches('/').to_owned());
            for level in 0..=depth {
                if level > 0 {
                    at.push(format!("g{level}"));
                    group += &format!("/g{level}");
                }
                let own = if level == limited { limit } else { limit + (draw(&mut state, 9) << 20) };
                match (is_v2, draw(&mut state, 3)) {
                    (true, 0) => put(&at, "memory.high", &format!("{own}\n")),
                    (true, _) => put(&at, "memory.max", &format!("{own}\n")),
                    (false, 0) => {
                        put(&at, "memory.stat", &format!("cache 1\nhierarchical_memory_limit {own}\n"))
                    }
                    (false, _) => put(&at, "memory.limit_in_bytes", &format!("{own}\n")),
                }
                if is_v2 && draw(&mut state, 2) == 0 && !at.join("memory.max").exists() {
                    put(&at, "memory.max", "max\n");
                }
            }
            let group = if group.is_empty() { "/".to_owned() } else { group };
            let shown = point.display().to_string().replace(' ', "\\040");
            let (groups, mounts) = if is_v2 {
                (
                    format!("1:name=systemd:/x\n0::{group}\n"),
                    format!(
                        "31 23 0:28 / /proc rw - proc proc rw\n41 31 0:38 {root} {shown} rw shared:9 - cgroup2 cgroup2 rw\n"
                    ),
                )
            } else {
                (
                    format!("5:cpu,cpuacct:/other\n4:memory:{group}\n0::/\n"),
                    format!(
                        "32 31 0:29 / /nowhere rw - cgroup cgroup rw,cpu\n35 31 0:32 {root} {shown} rw - cgroup cgroup rw,memory\n"
                    ),
                )
            };
            assert_eq!(least(&groups, &mounts), Some(limit), "round {round}: {groups}{mounts}");
        }
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_has_the_limit_of_that() {
        let folder = TempDir::new().unwrap();
        put(folder.path(), "memory.max", "4096\n");
        let mounts = format!("41 31 0:38 /box/7 {} rw - cgroup2 cgroup2 rw\n", folder.path().display());
        assert_eq!(least("0::/\n", &mounts), Some(4096));
        assert_eq!(least("0::/box/7/../../etc\n", &mounts), Some(4096));
        assert_eq!(least("0::/\n", "nothing that is a mount\n"), None);
        assert_eq!(least("", &mounts), None);
    }
}
