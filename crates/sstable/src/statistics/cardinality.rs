//! An estimate of the number of distinct partition keys: HyperLogLog++ with p = 13 and sp = 25, in the bytes of the
//! library that Cassandra uses (stream-lib's `HyperLogLogPlus`, read from its class file).
//!
//! Few keys are kept sparse, as 25-bit hash prefixes; from some 6144 on there are 8192 registers of five bits. Our
//! estimate of the registers is Ertl's improved estimator (arXiv 1702.01284), which needs no bias tables.

use super::input::Input;
use crate::error::Result;

const P: u32 = 13;
const SP: u32 = 25;
const REGISTERS: usize = 1 << P;
/// Sparse entries at which the registers take over, and new ones gathered before they are sorted in.
const SPARSE_MAX: usize = REGISTERS / 4 * 3;
const UNSORTED_MAX: usize = SPARSE_MAX / 4;
const REGISTERS_A_WORD: usize = 6;
const REGISTER_BITS: usize = 5;
const WORDS: usize = REGISTERS / REGISTERS_A_WORD + 1;
/// What a register of five bits can hold.
const RUN_MAX: u32 = 31;
const FORMAT_VERSION: i32 = -2;

/// The estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Cardinality {
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Sparse { sorted: Vec<u32>, unsorted: Vec<u32> },
    Registers(Vec<u8>),
}

impl Default for Cardinality {
    fn default() -> Cardinality {
        Cardinality { form: Form::Sparse { sorted: Vec::new(), unsorted: Vec::new() } }
    }
}

impl Cardinality {
    /// Counts a partition key, as serialised.
    pub fn add(&mut self, key: &[u8]) {
        self.add_hash(murmur2_64(key));
    }

    /// Counts what the other has counted.
    pub fn merge(&mut self, other: &Cardinality) {
        match &other.form {
            Form::Sparse { sorted, unsorted } => {
                for entry in sorted.iter().chain(unsorted) {
                    self.add_entry(*entry);
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

    /// About how many distinct keys were counted.
    pub fn estimate(&self) -> u64 {
        match &self.form {
            Form::Sparse { .. } => {
                let cells = f64::from(1_u32 << SP);
                let free = cells - self.sparse_entries().len() as f64;
                (cells * (cells / free).ln()).round() as u64
            }
            Form::Registers(registers) => estimate_registers(registers).round() as u64,
        }
    }

    fn add_hash(&mut self, hash: u64) {
        match &mut self.form {
            Form::Registers(registers) => raise(registers, (hash >> (64 - P)) as usize, run_length(hash)),
            Form::Sparse { .. } => self.add_entry(sparse_entry(hash)),
        }
    }

    fn add_entry(&mut self, entry: u32) {
        match &mut self.form {
            Form::Registers(registers) => {
                raise(registers, (sparse_index(entry) >> (SP - P)) as usize, entry_run_length(entry));
            }
            Form::Sparse { sorted, unsorted } => {
                unsorted.push(entry);
                if unsorted.len() > UNSORTED_MAX {
                    sorted.append(unsorted);
                    sort_entries(sorted);
                    if sorted.len() > SPARSE_MAX {
                        self.use_registers();
                    }
                }
            }
        }
    }

    fn use_registers(&mut self) {
        if let Form::Sparse { sorted, unsorted } = &self.form {
            let mut registers = vec![0; REGISTERS];
            for entry in sorted.iter().chain(unsorted) {
                raise(&mut registers, (sparse_index(*entry) >> (SP - P)) as usize, entry_run_length(*entry));
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
        write_varint(P, &mut bytes);
        write_varint(SP, &mut bytes);
        match &self.form {
            Form::Registers(registers) => {
                write_varint(0, &mut bytes);
                write_varint(WORDS as u32 * 4, &mut bytes);
                for word in registers.chunks(REGISTERS_A_WORD) {
                    let packed = word
                        .iter()
                        .enumerate()
                        .fold(0, |word, (at, run)| word | u32::from(*run) << (at * REGISTER_BITS));
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

    pub(super) fn read(input: &mut Input<'_>) -> Result<Cardinality> {
        input.u32()?;
        if (input.i32()?, read_varint(input)?, read_varint(input)?) != (FORMAT_VERSION, P, SP) {
            return Err(input.corrupt("the cardinality estimator is not a HyperLogLog++ of p 13 and sp 25"));
        }
        let form = read_varint(input)?;
        let size = read_varint(input)?;
        if form == 0 {
            let mut registers = Vec::with_capacity(REGISTERS + REGISTERS_A_WORD);
            if size as usize != WORDS * 4 {
                return Err(input.corrupt(format!("{size} bytes of registers instead of {}", WORDS * 4)));
            }
            for _ in 0..WORDS {
                let word = input.u32()?;
                registers
                    .extend((0..REGISTERS_A_WORD).map(|at| (word >> (at * REGISTER_BITS) & RUN_MAX) as u8));
            }
            registers.truncate(REGISTERS);
            return Ok(Cardinality { form: Form::Registers(registers) });
        }
        let size = input.count(u64::from(size), 1)?;
        let mut sorted = Vec::with_capacity(size);
        let mut last: u32 = 0;
        for _ in 0..size {
            last = last.wrapping_add(read_varint(input)?);
            sorted.push(last);
        }
        sort_entries(&mut sorted);
        Ok(Cardinality { form: Form::Sparse { sorted, unsorted: Vec::new() } })
    }
}

/// One more than the zeros behind the first `P` bits.
fn run_length(hash: u64) -> u32 {
    (hash << P | 1 << (P - 1)).leading_zeros() + 1
}

/// The first `SP` bits twice, or, if all bits between `P` and `SP` are zero, with the run length and a set last bit.
fn sparse_entry(hash: u64) -> u32 {
    let index = (hash >> (64 - SP)) as u32;
    if index << (32 - SP + P) == 0 { (index << 6 | (run_length(hash) ^ 63)) << 1 | 1 } else { index << 1 }
}

fn sparse_index(entry: u32) -> u32 {
    if entry & 1 == 1 { entry >> 7 } else { entry >> 1 }
}

fn entry_run_length(entry: u32) -> u32 {
    if entry & 1 == 1 { (entry >> 1 & 63) ^ 63 } else { (entry << (P + 31 - SP)).leading_zeros() + 1 }
}

/// Sorts by index and keeps one entry for each, the one with the longest run, which is the smallest.
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

/// Seven bits a byte, the lowest first.
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

/// Murmur2, 64 bits, seed 0, the tail's bytes widened with their sign (Cassandra's `MurmurHash.hash2_64`).
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
mod tests {
    use super::*;
    use std::path::Path;

    fn of(range: std::ops::Range<u64>) -> Cardinality {
        let mut counted = Cardinality::default();
        range.for_each(|key| counted.add(&key.to_be_bytes()));
        counted
    }

    #[test]
    fn the_estimate_is_near_at_every_size() {
        for n in [0_u64, 1, 10, 1000, 6000, 7000, 20_000, 40_000, 100_000, 1_000_000] {
            let estimate = of(0..n).estimate() as f64;
            assert!((estimate - n as f64).abs() <= n as f64 * 0.04, "{n}: {estimate}");
        }
    }

    #[test]
    fn both_forms_come_back_from_their_bytes() {
        for n in [0, 5, 3000, 50_000] {
            let counted = of(0..n);
            let mut out = Vec::new();
            counted.write(&mut out);
            let read = Cardinality::read(&mut Input::new(&out, 0, Path::new("t"))).unwrap();
            assert_eq!(read.estimate(), counted.estimate());
            let mut again = Vec::new();
            read.write(&mut again);
            assert_eq!(again, out);
        }
    }

    #[test]
    fn merged_estimators_count_common_keys_once() {
        for (a, b) in
            [(of(0..2000), of(1000..3000)), (of(0..50_000), of(0..100)), (of(0..100), of(50..30_000))]
        {
            let mut merged = a.clone();
            merged.merge(&b);
            let mut other = b.clone();
            other.merge(&a);
            assert_eq!(merged.estimate(), other.estimate());
            assert!(merged.estimate() >= a.estimate().max(b.estimate()) * 99 / 100);
            assert!(merged.estimate() <= a.estimate() + b.estimate());
        }
    }
}
