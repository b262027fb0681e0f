//! Converts days to year, month and day in the proleptic Gregorian calendar, and back.
//!
//! Years are counted from 1 March, so that the leap day is their last; 146,097 days are exactly 400 such years.

use super::digits::write_padded;

const DAYS_OF_400_YEARS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_EPOCH: i64 = 719_468;

/// A date; year 0 is 1 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CivilDate {
    pub(super) year: i64,
    pub(super) month: u8,
    pub(super) day: u8,
}

impl CivilDate {
    pub(super) fn from_epoch_day(epoch_day: i64) -> CivilDate {
        let days = epoch_day + DAYS_BEFORE_EPOCH;
        let cycle = days.div_euclid(DAYS_OF_400_YEARS);
        let day_of_cycle = days.rem_euclid(DAYS_OF_400_YEARS);
        // Removes the leap days: one each 1,460 days, but not after 36,524; and the cycle's last day does not begin
        // another year.
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        // From March on, the lengths of months repeat: 31, 30, 31, 30, 31 days, or 153 days in five months.
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
        CivilDate { year, month: month as u8, day: day as u8 }
    }

    /// Days since 1970-01-01; `None` if the year is out of range.
    pub(super) fn to_epoch_day(self) -> Option<i64> {
        let month = i64::from(self.month);
        let year = self.year.checked_sub(i64::from(month <= 2))?;
        let cycle = year.div_euclid(400);
        let year_of_cycle = year.rem_euclid(400);
        let shifted_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
        cycle.checked_mul(DAYS_OF_400_YEARS)?.checked_add(day_of_cycle - DAYS_BEFORE_EPOCH)
    }

    /// Number of days in this date's month.
    pub(super) fn month_length(self) -> u8 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Appends `-MM-dd`.
    pub(super) fn write_month_and_day(self, out: &mut String) {
        for part in [self.month, self.day] {
            out.push('-');
            write_padded(part.into(), 2, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let mut previous = CivilDate { year: 1599, month: 12, day: 31 };
        let first = previous.to_epoch_day().unwrap();
        for epoch_day in first + 1..first + 2 * DAYS_OF_400_YEARS {
            let date = CivilDate::from_epoch_day(epoch_day);
            let expected = if previous.day < previous.month_length() {
                CivilDate { day: previous.day + 1, ..previous }
            } else if previous.month < 12 {
                CivilDate { month: previous.month + 1, day: 1, ..previous }
            } else {
                CivilDate { year: previous.year + 1, month: 1, day: 1 }
            };
            assert_eq!(date, expected);
            assert_eq!(date.to_epoch_day(), Some(epoch_day));
            previous = date;
        }
        assert_eq!(CivilDate::from_epoch_day(0), CivilDate { year: 1970, month: 1, day: 1 });
        assert_eq!(CivilDate { year: i64::MAX, month: 1, day: 1 }.to_epoch_day(), None);
    }
}
