//! TOC.txt: the sorted names of an SSTable's components, one on each line (Cassandra's `TOCComponent`).

use crate::component::Component;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// The listed components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toc {
    /// Their names, including those that are not known here.
    pub names: BTreeSet<String>,
}

impl Toc {
    /// A list of these components and TOC.txt itself.
    pub fn of(components: &[Component]) -> Toc {
        let all = components.iter().chain([&Component::Toc]);
        Toc { names: all.map(|component| component.name().to_owned()).collect() }
    }

    /// Whether a component is listed.
    pub fn has(&self, component: Component) -> bool {
        self.names.contains(component.name())
    }

    /// The component's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.names.iter().flat_map(|name| [name.as_bytes(), b"\n"]).flatten().copied().collect()
    }

    /// Parses the component; empty lines are ignored. Errors: `Corrupt`, which names `file`.
    pub fn parse(bytes: &[u8], file: &Path) -> Result<Toc> {
        let text = std::str::from_utf8(bytes).map_err(|error| Error::Corrupt {
            file: file.to_owned(),
            offset: error.valid_up_to() as u64,
            problem: "text is not UTF-8".into(),
        })?;
        let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
        Ok(Toc { names: names.map(str::to_owned).collect() })
    }
}
