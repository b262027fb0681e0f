//! The decimal digits of floats and doubles as Java prints them in `Float.toString` and `Double.toString` before JDK
//! 19.
//!
//! Cassandra 5.0 runs on JDK 11 and 17. Their conversion is Steele and White's: digits are generated one by one until
//! the remainder is smaller than half the distance to the next number. The result is not always the shortest (2.0E-3,
//! but 2.2250738585072014E-308 and 4.9E-324): the first digit's position is an estimate, distances follow from the
//! significant bits, and long whole numbers drop the digits that their bits do not determine. JDK 19 prints the
//! shortest digits. `tests/tests/java_texts.rs` compares the output with a real JDK.

use num_bigint::BigUint;

/// Bits of a double's fraction.
const FRACTION_BITS: i32 = 52;
/// Maximum digits of a number: a 64-bit whole number has 19, others have 17 or 18.
const DIGITS_MAX: usize = 24;

/// A decoded binary number: `fraction / 2^52 * 2^exponent`, where bit 52 is the highest bit of `fraction`.
pub(super) struct Binary {
    fraction: u64,
    exponent: i32,
    /// Number of significant bits in the number's own format: 53, 24, or fewer close to zero.
    significant: i32,
}

/// Digits without sign: `0.d1d2d3..` times ten to `exponent`.
pub(super) struct JavaDigits {
    digits: [u8; DIGITS_MAX],
    length: usize,
    pub(super) exponent: i32,
}

impl Binary {
    /// `None` for zero, infinities and NaN.
    pub(super) fn of_double(value: f64) -> Option<Binary> {
        let bits = value.to_bits();
        Binary::new(bits & ((1 << 52) - 1), (bits >> 52 & 0x7FF) as i32, (52, 0x7FF))
    }

    /// `None` for zero, infinities and NaN.
    pub(super) fn of_float(value: f32) -> Option<Binary> {
        let bits = value.to_bits();
        Binary::new(u64::from(bits & ((1 << 23) - 1)), (bits >> 23 & 0xFF) as i32, (23, 0xFF))
    }

    /// From the two fields of a format with `width` bits of fraction; `last` is the largest exponent field.
    fn new(fraction: u64, exponent: i32, (width, last): (i32, i32)) -> Option<Binary> {
        if exponent == last || (fraction == 0 && exponent == 0) {
            return None;
        }
        let bias = last / 2;
        if exponent > 0 {
            let fraction = (fraction | 1 << width) << (FRACTION_BITS - width);
            return Some(Binary { fraction, exponent: exponent - bias, significant: width + 1 });
        }
        let significant = 64 - fraction.leading_zeros() as i32;
        let missing = width + 1 - significant;
        let fraction = fraction << (FRACTION_BITS + 1 - significant);
        Some(Binary { fraction, exponent: 1 - missing - bias, significant })
    }

    /// The digits that Java prints.
    pub(super) fn digits(&self) -> JavaDigits {
        let zeros = self.fraction.trailing_zeros() as i32;
        let bits = FRACTION_BITS + 1 - zeros;
        // Bits after the binary point.
        let behind = (bits - self.exponent - 1).max(0);
        if behind == 0 && self.exponent <= 62 { self.whole() } else { self.steps(bits, behind) }
    }

    /// Digits of whole numbers below 2^63, without the last ones that the significant bits do not determine.
    fn whole(&self) -> JavaDigits {
        let shift = self.exponent - FRACTION_BITS;
        let mut value = if shift >= 0 { self.fraction << shift } else { self.fraction >> -shift };
        let open_bits = (self.exponent - self.significant - 1).max(0);
        // The number of digits of 2^open_bits, minus one: log10(2) is 0.30103.
        let open_digits =
            if self.exponent > self.significant { (open_bits * 30_103 / 100_000) as u32 } else { 0 };
        if open_digits > 0 {
            let unit = 10_u64.pow(open_digits);
            let round_up = value % unit >= unit / 2;
            value = value / unit + u64::from(round_up);
        }
        let mut digits = JavaDigits { digits: [0; DIGITS_MAX], length: 0, exponent: open_digits as i32 };
        let mut place = 1_u64;
        while value / place >= 10 {
            place *= 10;
        }
        while place > 0 {
            digits.push((value / place % 10) as u8);
            place /= 10;
        }
        digits.exponent += digits.length as i32;
        while digits.length > 1 && digits.digits.get(digits.length - 1) == Some(&0) {
            digits.length -= 1;
        }
        digits
    }

    /// Generates the digits of `value / unit` one by one, until the remainder is below `margin` or within it of the
    /// next digit.
    ///
    /// All three numbers are stored as a power of two and a power of five, without their common factors of two.
    fn steps(&self, bits: i32, behind: i32) -> JavaDigits {
        let estimate = self.estimate();
        let fives_value = (-estimate).max(0);
        let fives_unit = estimate.max(0);
        let mut twos_value = fives_value + behind + self.exponent;
        let mut twos_unit = fives_unit + behind;
        let mut twos_margin = twos_value - self.significant;
        twos_value -= bits - 1;
        let shared = twos_value.min(twos_unit);
        twos_value -= shared;
        twos_unit -= shared;
        twos_margin -= shared;
        // Below a power of two the next number is half as far.
        twos_margin -= i32::from(bits == 1);
        if twos_margin < 0 {
            twos_value -= twos_margin;
            twos_unit -= twos_margin;
            twos_margin = 0;
        }
        let fraction = self.fraction >> (FRACTION_BITS + 1 - bits);
        let powers = Powers {
            value: (fraction, fives_value, twos_value),
            margin: (1, fives_value, twos_margin),
            unit: (1, fives_unit, twos_unit),
        };
        let value_bits = bits + twos_value + five_bits(fives_value);
        let unit_bits = twos_unit + 1 + five_bits(fives_unit + 1);
        match value_bits.max(unit_bits) {
            ..32 => powers.machine_words(estimate, true),
            32..64 => powers.machine_words(estimate, false),
            // One more bit for the sum with the margin, four for a factor of ten.
            64..120 => powers.double_words(estimate),
            _ => powers.any_length(estimate),
        }
    }

    /// The position of the first digit, or one more: a linear estimate of log10.
    #[expect(
        clippy::approx_constant,
        reason = "Java's constant, which is not the double nearest to log10(2)"
    )]
    fn estimate(&self) -> i32 {
        let mantissa = f64::from_bits(1023 << 52 | (self.fraction & ((1 << 52) - 1)));
        let log = (mantissa - 1.5) * 0.289_529_654
            + 0.176_091_259
            + f64::from(self.exponent) * 0.301_029_995_663_981;
        log.floor() as i32
    }
}

/// Three numbers, each a factor, a power of five and a power of two.
struct Powers {
    value: (u64, i32, i32),
    margin: (u64, i32, i32),
    unit: (u64, i32, i32),
}

impl Powers {
    /// Computes in words of 32 or 64 bits that wrap around, as Java's do.
    fn machine_words(&self, estimate: i32, narrow: bool) -> JavaDigits {
        let fit = |number: i64| if narrow { i64::from(number as i32) } else { number };
        let make = |(factor, fives, twos): (u64, i32, i32)| {
            let product = (factor as i64).wrapping_mul(5_i64.wrapping_pow(fives as u32));
            fit(product.wrapping_shl(twos as u32))
        };
        let (mut value, mut margin, unit) = (make(self.value), make(self.margin), make(self.unit));
        let ten_units = fit(unit.wrapping_mul(10));
        let mut steps = Steps::new(estimate);
        loop {
            let digit = value.checked_div(unit).unwrap_or(0);
            value = fit(value.wrapping_rem(unit.max(1)).wrapping_mul(10));
            margin = fit(margin.wrapping_mul(10));
            // A margin that wrapped around was larger than any remainder.
            let wrapped = margin <= 0;
            let low = wrapped || value < margin;
            let high = wrapped || fit(value.wrapping_add(margin)) > ten_units;
            if steps.take(digit as u8, low, high) {
                let difference = fit(fit(value.wrapping_shl(1)).wrapping_sub(ten_units));
                return steps.end(difference.cmp(&0));
            }
        }
    }

    /// Computes in 128 bits. Digits are found by subtraction, which is faster than division here.
    fn double_words(&self, estimate: i32) -> JavaDigits {
        let make =
            |(factor, fives, twos): (u64, i32, i32)| (u128::from(factor) * 5_u128.pow(fives as u32)) << twos;
        let (mut value, mut margin, unit) = (make(self.value), make(self.margin), make(self.unit));
        let ten_units = unit * 10;
        let mut steps = Steps::new(estimate);
        loop {
            let mut digit = 0;
            for power in [8, 4, 2, 1] {
                let part = unit * power;
                if value >= part {
                    value -= part;
                    digit += power as u8;
                }
            }
            value *= 10;
            margin *= 10;
            if steps.take(digit, value < margin, value + margin >= ten_units) {
                return steps.end((value * 2).cmp(&ten_units));
            }
        }
    }

    /// Computes with big integers, for the largest and smallest doubles.
    fn any_length(&self, estimate: i32) -> JavaDigits {
        let make = |(factor, fives, twos): (u64, i32, i32)| {
            (BigUint::from(factor) * BigUint::from(5_u32).pow(fives as u32)) << twos
        };
        let (mut value, mut margin, unit) = (make(self.value), make(self.margin), make(self.unit));
        let ten_units = &unit * 10_u32;
        let mut steps = Steps::new(estimate);
        loop {
            let digit = &value / &unit;
            value = (value - &digit * &unit) * 10_u32;
            margin *= 10_u32;
            let digit = digit.iter_u32_digits().next().unwrap_or(0) as u8;
            if steps.take(digit, value < margin, &value + &margin >= ten_units) {
                return steps.end((value * 2_u32).cmp(&ten_units));
            }
        }
    }
}

/// The digits so far, and whether they are enough.
struct Steps {
    found: JavaDigits,
    is_first: bool,
    low: bool,
    high: bool,
}

impl Steps {
    fn new(estimate: i32) -> Steps {
        let found = JavaDigits { digits: [0; DIGITS_MAX], length: 0, exponent: estimate + 1 };
        Steps { found, is_first: true, low: false, high: false }
    }

    /// Adds a digit; returns true if it is the last. `low` means that the digits so far denote the number, `high` that
    /// they do with the last digit increased by one.
    fn take(&mut self, digit: u8, low: bool, high: bool) -> bool {
        (self.low, self.high) = (low, high);
        if std::mem::take(&mut self.is_first) {
            if digit == 0 && !high {
                self.found.exponent -= 1; // the estimate was one too high
            } else {
                self.found.push(digit);
            }
            // A number that is printed with an exponent has at least two digits.
            if !(-2..9).contains(&self.found.exponent) {
                (self.low, self.high) = (false, false);
            }
        } else {
            self.found.push(digit);
        }
        self.low || self.high || self.found.length == DIGITS_MAX
    }

    /// Returns the rounded digits. `rest` compares twice the remainder with one unit of the last digit.
    fn end(mut self, rest: std::cmp::Ordering) -> JavaDigits {
        let is_odd = self.found.as_slice().last().is_some_and(|digit| digit % 2 == 1);
        let up = match (self.high, self.low) {
            (true, true) => rest.is_gt() || rest.is_eq() && is_odd,
            (high, _) => high,
        };
        if up {
            self.found.round_up();
        }
        self.found
    }
}

impl JavaDigits {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.digits.get(..self.length).unwrap_or_default()
    }

    fn push(&mut self, digit: u8) {
        if let Some(place) = self.digits.get_mut(self.length) {
            *place = digit;
            self.length += 1;
        }
    }

    /// Adds one to the last digit. Trailing nines become zeros, which are kept.
    fn round_up(&mut self) {
        for place in self.digits.iter_mut().take(self.length).rev() {
            if *place < 9 {
                *place += 1;
                return;
            }
            *place = 0;
        }
        self.exponent += 1;
        if let Some(first) = self.digits.first_mut() {
            *first = 1;
        }
    }
}

/// Number of bits of a power of five as Java estimates it: three for each factor beyond its table.
fn five_bits(power: i32) -> i32 {
    match power {
        0 => 0,
        // log2(5) is 2.321928.
        1..27 => (i64::from(power) * 2_321_928 / 1_000_000) as i32 + 1,
        _ => power * 3,
    }
}
