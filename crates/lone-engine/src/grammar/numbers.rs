//! Numbers in schemas, where llguidance's arithmetic would not hold them: it has doubles, and integers of 64 bits.

use serde_json::Number;

/// Integers beyond are not told apart by doubles.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The largest double that fits integers of 64 bits whichever its sign.
const MOST: f64 = 9_223_372_036_854_774_784.0;

/// Which side of a number is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

/// The number that allows the same integers as bound `number` as far as they fit, and no other.
///
/// # Errors
/// If none fits.
pub(super) fn bound(number: &Number, side: Side, is_exclusive: bool) -> Result<Number, String> {
    let value = as_double(number);
    // What is below is what is above of the negative.
    let (sign, value) = if side == Side::Above { (1.0, value) } else { (-1.0, -value) };
    if value > MOST {
        return Err(format!("{number}, and no number beyond {MOST} is supported"));
    }
    let is_rounded_outwards = number.as_i128().is_some_and(|exact| (value as i128) < exact * sign as i128);
    // llguidance adds one to what is exclusive, which far from zero leaves a double as it is.
    let inwards = if is_rounded_outwards || is_exclusive && value.abs() >= EXACT {
        value.next_up()
    } else if is_exclusive && value >= 0.0 && value.fract() == 0.0 {
        beyond(value)
    } else {
        value
    };
    match inwards == as_double(number) * sign && inwards >= -MOST {
        true => Ok(number.clone()),
        false => Ok(Number::from_f64(sign * inwards.clamp(-MOST, MOST)).expect("it is finite")),
    }
}

/// A number above `whole` by next to nothing. An exclusive bound that is whole llguidance lets through if the other bound
/// is less than one away: of 0 to 0.5 it takes `0(\.…)?`.
fn beyond(whole: f64) -> f64 {
    const NEXT_TO_NOTHING: f64 = 1e-15;
    if whole < 1e12 { whole + NEXT_TO_NOTHING * whole.max(1.0) } else { whole }
}

/// Refuses a number that is to be said as it is, and would be said otherwise.
pub(super) fn check_constant(number: &Number) -> Result<(), String> {
    let value = as_double(number);
    let is_exact = match number.as_i128() {
        Some(exact) => value.abs() <= MOST && value as i128 == exact,
        // What is not whole is its double, as whoever reads the answer has it too. A whole one that is a double may have
        // lost digits where it was read.
        None => value.fract() != 0.0 || significand(value) < 1e15,
    };
    if is_exact { Ok(()) } else { Err(format!("{number}, which has more digits than are supported")) }
}

/// All digits that tell `value` from other doubles, without a point.
fn significand(value: f64) -> f64 {
    let scientific = format!("{value:e}");
    let digits = scientific.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit);
    digits.fold(0.0, |whole, digit| whole * 10.0 + f64::from(digit - b'0'))
}

/// The multiples in one schema, which llguidance brings together in 32 bits if two concern the same number.
#[derive(Debug, Default)]
pub(super) struct Multiples {
    distinct: Vec<Decimal>,
}

/// `digits` / 10^`places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    places: u32,
}

impl Multiples {
    /// Takes note of one.
    ///
    /// # Errors
    /// If it is not positive, or of too many digits.
    pub(super) fn add(&mut self, number: &Number) -> Result<(), String> {
        let multiple = Decimal::of(as_double(number))
            .ok_or_else(|| format!("{number}, and must be above 0 and of at most 9 digits"))?;
        if !self.distinct.contains(&multiple) {
            self.distinct.push(multiple);
        }
        Ok(())
    }

    /// Whether whichever two concern the same number there is room for what they come to.
    pub(super) fn go_together(&self) -> bool {
        let places = self.distinct.iter().map(|multiple| multiple.places).max().unwrap_or_default();
        let scaled: Option<Vec<u64>> = self
            .distinct
            .iter()
            .map(|multiple| multiple.digits.checked_mul(10_u64.checked_pow(places - multiple.places)?))
            .collect();
        let Some(scaled) = scaled else { return false };
        let most = scaled.iter().copied().max().unwrap_or(1);
        let common = scaled.iter().try_fold(1_u64, |common, &next| {
            (common / greatest_common_divisor(common, next)).checked_mul(next)
        });
        let product = common.and_then(|common| common.checked_mul(most));
        product.is_some_and(|product| product <= u32::MAX.into())
    }
}

impl Decimal {
    fn of(value: f64) -> Option<Self> {
        const MOST_DIGITS: f64 = 1e9;
        (value > 0.0).then_some(())?;
        let (mut digits, mut places) = (value, 0);
        while digits.fract() != 0.0 && digits < MOST_DIGITS {
            (digits, places) = (digits * 10.0, places + 1);
        }
        (digits < MOST_DIGITS && places < 10).then_some(Decimal { digits: digits as u64, places })
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn as_double(number: &Number) -> f64 {
    number.as_f64().expect("numbers are doubles or integers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn bounds_that_doubles_hold_stay_as_they_are() {
        for text in ["0", "-3.5", "1e9", "9007199254740992", "-9007199254740991"] {
            for side in [Side::Above, Side::Below] {
                assert_eq!(bound(&number(text), side, false), Ok(number(text)));
            }
        }
    }

    #[test]
    fn bounds_between_doubles_move_inwards() {
        let table = [
            ("9007199254740993", Side::Above, false, 9_007_199_254_740_994.0),
            ("9007199254740993", Side::Below, false, 9_007_199_254_740_992.0),
            ("-9007199254740993", Side::Above, false, -9_007_199_254_740_992.0),
            ("9223372036854775807", Side::Below, false, MOST),
            ("18446744073709551615", Side::Below, false, MOST),
            ("-9223372036854775808", Side::Above, false, -MOST),
            ("-1e300", Side::Above, false, -MOST),
            ("1152921504606846976", Side::Below, true, 1_152_921_504_606_846_848.0),
            ("0", Side::Above, true, 1e-15),
            ("0", Side::Below, true, -1e-15),
            ("5", Side::Below, true, 5.0),
            ("0.5", Side::Above, true, 0.5),
        ];
        for (text, side, is_exclusive, inside) in table {
            let moved = bound(&number(text), side, is_exclusive).unwrap();
            assert_eq!(moved.as_f64(), Some(inside), "{text}");
        }
    }

    #[test]
    fn bounds_that_leave_nothing_are_refused() {
        assert!(bound(&number("1e30"), Side::Above, false).is_err());
        assert!(bound(&number("-1e30"), Side::Below, false).is_err());
        assert!(bound(&number("18446744073709551615"), Side::Above, true).is_err());
    }

    #[test]
    fn constants_are_held_to_the_last_digit_or_refused() {
        for text in ["1", "-1.5", "1e300", "9007199254740992", "1152921504606846976"] {
            assert_eq!(check_constant(&number(text)), Ok(()), "{text}");
        }
        for text in ["0.1", "-0.12345678901234568", "3.141592653589793", "5e-324", "6.02214076e23"] {
            assert_eq!(check_constant(&number(text)), Ok(()), "{text}");
            let said: f64 = number(text).to_string().parse().unwrap();
            assert_eq!(Ok(said), text.parse(), "{text}");
        }
        let refused =
            ["9007199254740993", "18446744073709551615", "9223372036854775807", "36893488147419103233"];
        for text in refused {
            assert!(check_constant(&number(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn multiples_go_together_while_there_is_room() {
        let go_together = |list: &[&str]| {
            let mut multiples = Multiples::default();
            list.iter().try_for_each(|text| multiples.add(&number(text))).map(|()| multiples.go_together())
        };
        assert_eq!(go_together(&["2", "3", "0.5", "0.01"]), Ok(true));
        assert_eq!(go_together(&["65537", "65539"]), Ok(false));
        for wrong in ["0", "-1", "1e-300", "1e12"] {
            assert!(go_together(&[wrong]).is_err(), "{wrong}");
        }
    }
}
