//! Estimates the number of distinct partition keys: HyperLogLog++, in the format of the library that Cassandra uses
//! (stream-lib's `HyperLogLogPlus`, read from its class file).
//!
//! Cassandra and Helenus write p = 13 and sp = 25. Other programs write other sizes, and all that the library supports
//! are read. Few keys are stored sparsely, as hash prefixes of sp bits; from three quarters of the registers on, there
//! are 2^p registers of five bits. Registers are evaluated with Ertl's improved estimator (arXiv 1702.01284), which
//! needs no bias tables.

use super::input::Input;
use crate::error::Result;

/// The sizes that are written.
const SIZES: Sizes = Sizes { p: 13, sp: 25 };
/// The sizes that are read. The library also supports a greater p, with which registers would take more than 10 MiB in
/// each file.
const P_MIN: u32 = 4;
const P_MAX: u32 = 24;
const SP_MAX: u32 = 32;
const REGISTERS_A_WORD: usize = 6;
const REGISTER_BITS: usize = 5;
/// The greatest value of a register of five bits.
const RUN_MAX: u32 = 31;
const FORMAT_VERSION: i32 = -2;

/// The number of hash bits that select the register (p), and that a sparse entry contains (sp).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    p: u32,
    sp: u32,
}

impl Sizes {
    fn registers(self) -> usize {
        1 << self.p
    }

    /// The most sparse entries. With more, registers are used.
    fn sparse_max(self) -> usize {
        self.registers() / 4 * 3
    }

    /// The most new entries that are collected before they are sorted in.
    fn unsorted_max(self) -> usize {
        self.sparse_max() / 4
    }

    fn words(self) -> usize {
        self.registers() / REGISTERS_A_WORD + 1
    }
}

/// The estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Cardinality {
    sizes: Sizes,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Sparse { sorted: Vec<u32>, unsorted: Vec<u32> },
    Registers(Vec<u8>),
}

impl Default for Cardinality {
    fn default() -> Cardinality {
        Cardinality { sizes: SIZES, form: Form::Sparse { sorted: Vec::new(), unsorted: Vec::new() } }
    }
}

impl Cardinality {
    /// Counts a serialised partition key.
    pub fn add(&mut self, key: &[u8]) {
        self.add_hash(murmur2_64(key));
    }

    /// Counts the keys of another estimator. If the sizes differ, the smaller p is used, because registers can be
    /// folded but not split.
    pub fn merge(&mut self, other: &Cardinality) {
        if self.sizes != other.sizes {
            let p = self.sizes.p.min(other.sizes.p);
            self.fold_to(p);
            if other.sizes.p != p {
                let mut folded = other.clone();
                folded.fold_to(p);
                return self.merge(&folded);
            }
        }
        match &other.form {
            Form::Sparse { sorted, unsorted } => {
                for entry in sorted.iter().chain(unsorted) {
                    match self.sizes == other.sizes {
                        true => self.add_entry(*entry),
                        false => self.raise(other.sizes.place_of(*entry)),
                    }
                }
            }
            Form::Registers(theirs) => {
                self.use_registers();
                if let Form::Registers(ours) = &mut self.form {
                    ours.iter_mut().zip(theirs).for_each(|(our, their)| *our = (*our).max(*their));
                }
            }
        }
    }

    /// Merges several estimators; `None` if there are none, or if one is `None`.
    pub fn of_all<'a>(counted: impl IntoIterator<Item = Option<&'a Cardinality>>) -> Option<Cardinality> {
        let mut counted = counted.into_iter();
        let mut all = counted.next()??.clone();
        for other in counted {
            all.merge(other?);
        }
        Some(all)
    }

    /// About the number of distinct keys that were counted.
    pub fn estimate(&self) -> u64 {
        match &self.form {
            Form::Sparse { .. } => {
                let cells = 2_f64.powi(self.sizes.sp as i32);
                let free = (cells - self.sparse_entries().len() as f64).max(1.0);
                (cells * (cells / free).ln()).round() as u64
            }
            Form::Registers(registers) => estimate_registers(registers).round() as u64,
        }
    }

    /// Converts to registers of this p, which must not be greater. A run now includes the bits that no longer select
    /// the register.
    fn fold_to(&mut self, p: u32) {
        self.use_registers();
        let Form::Registers(registers) = &self.form else { return };
        let mut folded = vec![0; 1 << p];
        let bits = self.sizes.p - p;
        for (index, run) in registers.iter().enumerate().filter(|(_, run)| **run > 0) {
            let chosen_no_more = (index & ((1 << bits) - 1)) as u32;
            let run = match chosen_no_more {
                0 => bits + u32::from(*run),
                some => bits - (32 - some.leading_zeros()) + 1,
            };
            raise(&mut folded, index >> bits, run);
        }
        self.sizes.p = p;
        self.form = Form::Registers(folded);
    }

    fn add_hash(&mut self, hash: u64) {
        match &mut self.form {
            Form::Registers(registers) => {
                let p = self.sizes.p;
                raise(registers, (hash >> (64 - p)) as usize, run_length(hash, p));
            }
            Form::Sparse { .. } => self.add_entry(self.sizes.sparse_entry(hash)),
        }
    }

    fn add_entry(&mut self, entry: u32) {
        match &mut self.form {
            Form::Registers(_) => self.raise(self.sizes.place_of(entry)),
            Form::Sparse { sorted, unsorted } => {
                unsorted.push(entry);
                if unsorted.len() > self.sizes.unsorted_max() {
                    sorted.append(unsorted);
                    sort_entries(sorted);
                    if sorted.len() > self.sizes.sparse_max() {
                        self.use_registers();
                    }
                }
            }
        }
    }

    fn raise(&mut self, (index, run): (usize, u32)) {
        self.use_registers();
        if let Form::Registers(registers) = &mut self.form {
            raise(registers, index, run);
        }
    }

    fn use_registers(&mut self) {
        if let Form::Sparse { sorted, unsorted } = &self.form {
            let mut registers = vec![0; self.sizes.registers()];
            for entry in sorted.iter().chain(unsorted) {
                let (index, run) = self.sizes.place_of(*entry);
                raise(&mut registers, index, run);
            }
            self.form = Form::Registers(registers);
        }
    }

    fn sparse_entries(&self) -> Vec<u32> {
        let Form::Sparse { sorted, unsorted } = &self.form else { return Vec::new() };
        let mut all: Vec<u32> = sorted.iter().chain(unsorted).copied().collect();
        sort_entries(&mut all);
        all
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = FORMAT_VERSION.to_be_bytes().to_vec();
        write_varint(self.sizes.p, &mut bytes);
        write_varint(self.sizes.sp, &mut bytes);
        match &self.form {
            Form::Registers(registers) => {
                write_varint(0, &mut bytes);
                write_varint(self.sizes.words() as u32 * 4, &mut bytes);
                // The last word may contain no register.
                let mut rest = registers.chunks(REGISTERS_A_WORD);
                for _ in 0..self.sizes.words() {
                    let word = rest.next().unwrap_or_default().iter().enumerate();
                    let packed =
                        word.fold(0, |word, (at, run)| word | u32::from(*run) << (at * REGISTER_BITS));
                    bytes.extend_from_slice(&packed.to_be_bytes());
                }
            }
            Form::Sparse { .. } => {
                let entries = self.sparse_entries();
                write_varint(1, &mut bytes);
                write_varint(entries.len() as u32, &mut bytes);
                let mut last: u32 = 0;
                for entry in entries {
                    write_varint(entry.wrapping_sub(last), &mut bytes);
                    last = entry;
                }
            }
        }
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads the formats of `HyperLogLogPlus.Builder.build`: the one that begins with a version, which is negative, and
    /// the older one, in which numbers have four bytes.
    pub(super) fn read(input: &mut Input<'_>) -> Result<Cardinality> {
        input.u32()?;
        let first = input.i32()?;
        let number = |input: &mut Input<'_>| if first < 0 { read_varint(input) } else { input.u32() };
        let p = if first < 0 { read_varint(input)? } else { first as u32 };
        let (sp, form) = (number(input)?, number(input)?);
        // sp is 0 if there is no sparse form.
        if !(P_MIN..=P_MAX).contains(&p) || sp > SP_MAX || (p > sp && (sp != 0 || form != 0)) {
            return Err(input.corrupt(format!("no HyperLogLog++ has p {p} and sp {sp}")));
        }
        let sizes = Sizes { p, sp };
        let form = match (form, first < 0) {
            (0, _) => {
                let bytes = number(input)? as usize;
                Form::Registers(read_registers(input, sizes, bytes)?)
            }
            (_, true) => {
                let count = u64::from(read_varint(input)?);
                let count = input.count(count, 1)?;
                sparse((0..count).map(|_| read_varint(input)))?
            }
            (_, false) => sparse(std::iter::from_fn(|| legacy_entry(input).transpose()))?,
        };
        Ok(Cardinality { sizes, form })
    }
}

fn read_registers(input: &mut Input<'_>, sizes: Sizes, bytes: usize) -> Result<Vec<u8>> {
    if bytes != sizes.words() * 4 {
        return Err(input.corrupt(format!("{bytes} bytes of registers instead of {}", sizes.words() * 4)));
    }
    let mut registers = Vec::new();
    for word in input.bytes(bytes)?.as_chunks::<4>().0 {
        let word = u32::from_be_bytes(*word);
        registers.extend((0..REGISTERS_A_WORD).map(|at| (word >> (at * REGISTER_BITS) & RUN_MAX) as u8));
    }
    registers.resize(sizes.registers(), 0);
    Ok(registers)
}

/// The sparse form from entries that are stored as differences.
fn sparse(differences: impl Iterator<Item = Result<u32>>) -> Result<Form> {
    let mut sorted = Vec::new();
    let mut last: u32 = 0;
    for difference in differences {
        last = last.wrapping_add(difference?);
        sorted.push(last);
    }
    sort_entries(&mut sorted);
    Ok(Form::Sparse { sorted, unsorted: Vec::new() })
}

/// Reads a difference in the older format: its length in bytes, then the difference. A length of 0 or less ends the
/// list.
fn legacy_entry(input: &mut Input<'_>) -> Result<Option<u32>> {
    if input.is_empty() {
        return Ok(None);
    }
    let length = input.i32()?;
    if length <= 0 {
        return Ok(None);
    }
    let bytes = input.bytes(length as usize)?;
    let value = bytes.iter().take(5).enumerate();
    Ok(Some(value.fold(0, |value, (at, byte)| value | u32::from(byte & 0x7F) << (7 * at))))
}

impl Sizes {
    /// The sparse entry of a hash: its first `sp` bits, shifted by one; or, if all bits between `p` and `sp` are zero,
    /// these bits with the run length and a set last bit.
    fn sparse_entry(self, hash: u64) -> u32 {
        let Sizes { p, sp } = self;
        let index = (hash >> (64 - sp)) as u32;
        let is_run = u64::from(index) & ((1 << (sp - p)) - 1) == 0;
        if is_run { (index << 6 | (run_length(hash, p) ^ 63)) << 1 | 1 } else { index << 1 }
    }

    /// The register of a sparse entry, and its run.
    fn place_of(self, entry: u32) -> (usize, u32) {
        let Sizes { p, sp } = self;
        let run = match entry & 1 {
            1 => (entry >> 1 & 63) ^ 63,
            _ => (entry << (p + 31 - sp)).leading_zeros() + 1,
        };
        ((sparse_index(entry) >> (sp - p)) as usize, run)
    }
}

/// The run of a hash: one more than the number of zeros after the first `p` bits.
fn run_length(hash: u64, p: u32) -> u32 {
    (hash << p | 1 << (p - 1)).leading_zeros() + 1
}

fn sparse_index(entry: u32) -> u32 {
    if entry & 1 == 1 { entry >> 7 } else { entry >> 1 }
}

/// Sorts by index, and keeps for each index the entry with the longest run, which is the smallest.
fn sort_entries(entries: &mut Vec<u32>) {
    entries.sort_unstable_by_key(|entry| (sparse_index(*entry), *entry));
    entries.dedup_by_key(|entry| sparse_index(*entry));
}

fn raise(registers: &mut [u8], index: usize, run: u32) {
    if let Some(register) = registers.get_mut(index) {
        *register = (*register).max(run.min(RUN_MAX) as u8);
    }
}

fn estimate_registers(registers: &[u8]) -> f64 {
    let m = registers.len() as f64;
    let mut counts = [0_u32; RUN_MAX as usize + 1];
    for run in registers {
        if let Some(count) = counts.get_mut(usize::from(*run)) {
            *count += 1;
        }
    }
    let [zeros, runs @ .., full] = counts;
    let mut z = m * ertl_tau(1.0 - f64::from(full) / m);
    for count in runs.iter().rev() {
        z = (z + f64::from(*count)) * 0.5;
    }
    z += m * ertl_sigma(f64::from(zeros) / m);
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

fn ertl_sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn ertl_tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// Appends seven bits in each byte, the lowest first.
fn write_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(input: &mut Input<'_>) -> Result<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = input.u8()?;
        value |= u32::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(input.corrupt("a variable-length integer of more than five bytes"))
}

/// Murmur2 with 64 bits and seed 0; the bytes of the tail are sign-extended (Cassandra's `MurmurHash.hash2_64`).
fn murmur2_64(key: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = M.wrapping_mul(key.len() as u64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (at, byte) in tail.iter().enumerate() {
            hash ^= (i64::from(*byte as i8) as u64) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests;
