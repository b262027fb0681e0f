//! `cargo xtask release`: everything that is published for a version, in `target/packages`, or an error that says what is
//! missing for it.
//!
//! It refuses a tree with changes and a version without its section in CHANGELOG.md, runs cargo-deny, writes the SBOM and the licences of
//! all crates, and makes the packages with both in them and the images. `--twice` builds all of it again from a clone in another folder and
//! compares the digests. `--snapshot` refuses neither, and leaves out cargo-deny and the SBOM unless their tools are there from a release:
//! building these tools takes longer than everything else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::image::{self, git, shown};
use crate::package::{Also, make, try_all};
use crate::run::step;
use crate::static_binary::FEATURES;
use crate::{root, target};

/// The tools, with the versions that made the last release.
const TOOLS: [(&str, &str); 2] = [("cargo-cyclonedx", "0.5.9"), ("cargo-deny", "0.20.2")];
/// Their folder in the target directory.
const CHECKERS: &str = "release-tools";
/// The target whose crates the SBOM and the licences list. The other processor's are the same.
const TRIPLE: &str = "x86_64-unknown-linux-musl";
const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";
/// What the binary is built from.
const SBOM: &str = "helenus.cdx.json";

/// Only makes the files, and neither checks nor tries them: what the second build of `--twice` is called with.
const UNTRIED: &str = "--untried";

/// Makes a release.
pub fn run(args: &[&str]) -> Result<(), String> {
    let known = ["--snapshot", "--arm64", "--twice", UNTRIED];
    if let Some(unknown) = args.iter().find(|arg| !known.contains(arg)) {
        return Err(format!("release: {unknown} is no option; it takes {}", known[..3].join(", ")));
    }
    let has = |flag: &str| args.contains(&flag);
    if !has("--snapshot") {
        refuse_changes("or give --snapshot")?;
        refuse_undescribed()?;
    } else if has("--twice") {
        refuse_changes("the second build is made from the commit")?;
    }
    let tools = if has("--snapshot") { tools_there() } else { Some(tools()?) };
    match &tools {
        Some(tools) if !has(UNTRIED) => deny(tools)?,
        Some(_) => {}
        None => println!("cargo-deny and the SBOM are left out: a release, without --snapshot, has them"),
    }
    let about = target().join("release");
    fs::create_dir_all(&about).map_err(|error| format!("{}: {error}", about.display()))?;
    let licences = about.join(LICENCES);
    let mut list = Command::new("python3");
    list.arg(root().join("packaging/licences.py")).args(["--target", TRIPLE, "--out"]).arg(&licences);
    step("licences", &mut list)?;
    let mut all = vec![licences];
    if let Some(tools) = &tools {
        let sbom = about.join(SBOM);
        write_sbom(tools, &sbom)?;
        all.push(sbom);
    }
    let out = target().join("packages");
    let image = image::make(has("--arm64"))?;
    let images = image::FILES.map(|file| image.join(file)).to_vec();
    make(&out, has("--arm64"), &Also { all, images })?;
    if has(UNTRIED) {
        return Ok(());
    }
    try_all(&out)?;
    if has("--twice") {
        compare_with_second(&out, has("--arm64"))?;
    }
    let version = env!("CARGO_PKG_VERSION");
    println!("\nrelease {version} of {} is in {}", git(&["rev-parse", "--short", "HEAD"])?, out.display());
    println!("publish: git tag v{version}, push it, and give the files of that folder to the registries");
    Ok(())
}

/// Refuses a tree that is not the commit; `why` ends the message.
fn refuse_changes(why: &str) -> Result<(), String> {
    let changed = git(&["status", "--porcelain"])?;
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!("release: the tree has changes; commit them, {why}:\n{changed}"))
}

/// Refuses a changelog that does not describe the version.
fn refuse_undescribed() -> Result<(), String> {
    let text =
        fs::read_to_string(root().join("CHANGELOG.md")).map_err(|error| format!("CHANGELOG.md: {error}"))?;
    check_changelog(&text, env!("CARGO_PKG_VERSION"))
}

/// The newest section must be the version's, and must say something.
fn check_changelog(text: &str, version: &str) -> Result<(), String> {
    let mut sections = text.split("\n## ").skip(1);
    let first = sections.next().unwrap_or_default();
    let (title, body) = first.split_once('\n').unwrap_or((first, ""));
    let title = title.split(' ').next().unwrap_or_default();
    if title != version {
        return Err(format!(
            "release: CHANGELOG.md begins with the section {title:?}, and the version in Cargo.toml is {version}: call the section \
             {version} (and the date), or give --snapshot"
        ));
    }
    if body.trim().is_empty() {
        return Err(format!("release: the section {version} of CHANGELOG.md is empty"));
    }
    Ok(())
}

/// Installs the tools from crates.io, once. Returns their folder.
fn tools() -> Result<PathBuf, String> {
    let folder = target().join(CHECKERS);
    for (tool, version) in TOOLS {
        if folder.join("bin").join(tool).exists() {
            continue;
        }
        let mut install = Command::new("cargo");
        // Without optimisation: they run once, and are built in a third of the time.
        install
            .args(["install", "--debug", "--locked", "--version", version, "--root"])
            .arg(&folder)
            .arg(tool);
        step(tool, &mut install)?;
    }
    Ok(folder.join("bin"))
}

/// The folder of the tools, if they are installed.
fn tools_there() -> Option<PathBuf> {
    let folder = target().join(CHECKERS).join("bin");
    TOOLS.iter().all(|(tool, _)| folder.join(tool).exists()).then_some(folder)
}

/// Checks licences, bans and sources; and advisories if there is a database of them on this machine.
fn deny(tools: &Path) -> Result<(), String> {
    let call = |checks: &[&str]| {
        let mut command = Command::new(tools.join("cargo-deny"));
        command.args(["--locked", "--offline", "check"]).args(checks);
        command
    };
    // It reads the crates of all platforms, of which the builds here fetch only their own.
    step("all crates", Command::new("cargo").args(["fetch", "--locked"]))?;
    step("cargo deny: licences, bans, sources", &mut call(&["licenses", "bans", "sources"]))?;
    let home = std::env::var("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|_| std::env::var("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let databases = home.map(|home| home.join("advisory-dbs")).map_err(|_| "HOME is not set".to_owned())?;
    let is_database = |entry: fs::DirEntry| entry.path().join(".git").exists();
    if fs::read_dir(&databases).is_ok_and(|entries| entries.flatten().any(is_database)) {
        return step("cargo deny: advisories", &mut call(&["advisories"])).map(drop);
    }
    println!(
        "cargo deny: advisories are not checked: there is no database in {} (cargo deny fetch)",
        databases.display()
    );
    Ok(())
}

/// Writes the SBOM: what the binary is built from, in CycloneDX, with the commit's time in place of a clock's.
fn write_sbom(tools: &Path, to: &Path) -> Result<(), String> {
    let name = "helenus-sbom";
    let mut command = Command::new(tools.join("cargo-cyclonedx"));
    command.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--no-build-deps", "--quiet"]);
    command.args([
        "--target",
        TRIPLE,
        "--features",
        FEATURES,
        "--override-filename",
        name,
        "--manifest-path",
    ]);
    command.arg(root().join("crates/helenus-cli/Cargo.toml"));
    command.env("SOURCE_DATE_EPOCH", git(&["show", "--no-patch", "--format=%ct", "HEAD"])?);
    let done = step("SBOM", &mut command);
    // It writes a file beside the manifest of every crate of the workspace.
    let file = format!("{name}.json");
    let written = root().join("crates/helenus-cli").join(&file);
    let text = fs::read_to_string(&written).map_err(|error| format!("{}: {error}", written.display()));
    remove_below(&root(), &file);
    done?;
    // Paths of this machine would differ on another.
    let text = text?.replace(&root().display().to_string(), "/helenus");
    fs::write(to, text).map_err(|error| format!("{}: {error}", to.display()))
}

/// Removes the files of a name in the folders of crates.
fn remove_below(folder: &Path, name: &str) {
    // What cannot be removed shows in `git status`.
    _ = fs::remove_file(folder.join(name));
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in below.filter(|path| path.is_dir() && !path.is_symlink()) {
        let is_crate = path.join("Cargo.toml").exists() || path.ends_with("crates");
        if is_crate {
            remove_below(&path, name);
        }
    }
}

/// Builds the release again from a clone in another folder, and compares the digests. The clone has a compiler of C, caches
/// and downloads of its own, and shares only the tools that build nothing. It stays if something differs.
fn compare_with_second(first: &Path, arm64: bool) -> Result<(), String> {
    let clone = target().join("release-second");
    _ = fs::remove_dir_all(&clone);
    let mut copy = Command::new("git");
    copy.args(["clone", "--quiet", "--no-hardlinks"]).arg(root()).arg(&clone);
    step("a clone", &mut copy)?;
    step(
        "its commit",
        Command::new("git").arg("-C").arg(&clone).args([
            "checkout",
            "--quiet",
            &git(&["rev-parse", "HEAD"])?,
        ]),
    )?;
    let theirs = clone.join("target");
    fs::create_dir_all(&theirs)
        .and_then(|()| symlink(target().join(CHECKERS), theirs.join(CHECKERS)))
        .map_err(|error| format!("{}: {error}", theirs.display()))?;
    let mut again = Command::new("cargo");
    again.args(["run", "--quiet", "--manifest-path"]).arg(clone.join("xtask/Cargo.toml"));
    again.args(["--", "release", "--snapshot", UNTRIED]).args(arm64.then_some("--arm64"));
    again.env("CARGO_TARGET_DIR", &theirs);
    shown("the second build", &mut again)?;
    let sums = |folder: &Path| {
        fs::read_to_string(folder.join("SHA256SUMS"))
            .map_err(|error| format!("{}: {error}", folder.display()))
    };
    let (ours, theirs) = (sums(first)?, sums(&theirs.join("packages"))?);
    let differing = differing(&ours, &theirs);
    if !differing.is_empty() {
        return Err(format!("release: these differ between two builds:\n{}", differing.join("\n")));
    }
    println!("both builds have the same {} digests", ours.lines().count());
    fs::remove_dir_all(&clone).map_err(|error| format!("{}: {error}", clone.display()))
}

/// The lines that one of two lists of digests has alone.
fn differing<'a>(ours: &'a str, theirs: &'a str) -> Vec<&'a str> {
    let without =
        |one: &'a str, other: &'a str| one.lines().filter(move |line| !other.lines().any(|l| l == *line));
    without(ours, theirs).chain(without(theirs, ours)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_needs_the_first_section_of_the_changelog() {
        let text = "# Changelog\n\nWords.\n\n## 0.2.0 (27 Nov 2026)\n\n- A thing.\n\n## 0.1.0\n\n- Others.\n";
        assert_eq!(check_changelog(text, "0.2.0"), Ok(()));
        assert!(check_changelog(text, "0.1.0").is_err_and(|error| error.contains("\"0.2.0\"")));
        assert!(check_changelog("# Changelog\n\n## 0.2.0\n\n## 0.1.0\n\n- A.\n", "0.2.0").is_err());
    }

    #[test]
    fn a_file_that_one_build_has_alone_differs_too() {
        let (one, more) = ("aa  a.deb\nbb  b.whl\n", "aa  a.deb\nbc  b.whl\ncc  c.tgz\n");
        assert_eq!(differing(one, one), Vec::<&str>::new());
        assert_eq!(differing(one, more), ["bb  b.whl", "bc  b.whl", "cc  c.tgz"]);
        assert_eq!(differing("", one).len(), 2);
    }
}
