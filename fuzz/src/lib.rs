//! One target a decoder: whatever the bytes, it returns, without a panic and within bounded memory.
//!
//! A target is a plain function of bytes with a corpus of sound ones (`targets`); `mutate` makes unsound ones of them, the
//! same for the same seed. Two drivers: `tests/decoders.rs` feeds every target a fixed number of inputs in each run of the
//! tests, so that no target rots, and what was found once (`tests/found/TARGET.N.hex`); `cargo run --release -p fuzz -- TARGET --seconds N` goes on for as long as it is told. A
//! coverage-guided fuzzer needs nothing but a `fuzz_target!` around [`Target::run`].

mod mutate;
mod targets;

pub use mutate::Mutator;
pub use targets::TARGETS;

/// A decoder under test.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it decodes.
    pub about: &'static str,
    /// Sound inputs.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Decodes one input, sound or not.
    pub run: fn(&[u8]),
}

/// Bounds the address space of this process: an input that asks for more memory ends it. `bytes` come on top of what is
/// mapped now, by threads and the allocator.
pub fn bound_memory(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(1 << 20);
    let limit = Some(pages * rustix::param::page_size() as u64 + bytes);
    let maximum = getrlimit(Resource::As).maximum;
    // Where the system does not let us, the bound is not checked; the targets still run.
    let _unbounded = setrlimit(Resource::As, Rlimit { current: limit, maximum });
}

/// Bytes written as hexadecimal digits, as a finding is printed; anything else between them is passed over.
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}
