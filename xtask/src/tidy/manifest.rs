//! Every dependency stands once, in the workspace's table, with one line that says why it is there.

use std::fs;
use std::path::Path;

pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let mut breaches = Vec::new();
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            section = line.trim();
        } else if section == "[workspace.dependencies]" && line.contains(" = ") {
            let own = line.contains("path = ");
            if !line.starts_with('#') && !own && !line.contains("# ") {
                breaches
                    .push(format!("Cargo.toml:{}: a dependency without its reason; add `# why`", index + 1));
            }
        }
    }
    for folder in ["crates", "xtask", "tests"] {
        breaches.extend(members(&root.join(folder))?);
    }
    Ok(breaches)
}

/// The manifests of a folder and of the folders right under it.
fn members(folder: &Path) -> Result<Vec<String>, String> {
    let mut breaches = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let below = entries.filter_map(Result::ok).map(|entry| entry.path().join("Cargo.toml"));
    for path in below.chain([folder.join("Cargo.toml")]).filter(|path| path.exists()) {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut depends = false;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('[') {
                depends = line.contains("dependencies");
            } else if depends
                && line.contains('=')
                && !line.contains("workspace = true")
                && !line.starts_with('#')
            {
                let path = path.display();
                breaches
                    .push(format!("{path}:{}: take the dependency from the workspace's table", index + 1));
            }
        }
    }
    Ok(breaches)
}
