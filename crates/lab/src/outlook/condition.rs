//! Does a condition on a measured value hold? Comparisons with numbers, joined by `&&` and `||`;
//! anything else is beyond a simulation.

use super::Reading;

/// What a condition says when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// `successCondition`.
    Good,
    /// `failureCondition`.
    Bad,
}

/// One of several lists of comparisons that all hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    any: Vec<Vec<Comparison>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Comparison {
    wants: Wants,
    /// Is equal enough?
    or_equal: bool,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    More,
    Less,
}

/// What may stand for the value.
const VALUES: [&str; 4] = ["result", "result[0]", "asFloat(result)", "asFloat(result[0])"];

impl Condition {
    /// The condition of a text; nothing if it is more than comparisons.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let all = |text: &str| text.split("&&").map(comparison).collect::<Option<Vec<_>>>();
        Some(Condition { any: text.split("||").map(all).collect::<Option<Vec<_>>>()? })
    }

    /// Does it hold for what was read?
    pub(super) fn holds(&self, reading: Reading, says: Says) -> bool {
        self.any.iter().any(|all| all.iter().all(|one| one.holds(reading, says)))
    }
}

impl Comparison {
    fn holds(self, reading: Reading, says: Says) -> bool {
        let value = match reading {
            Reading::Value(value) => value,
            Reading::Errors(share) => self.value_of(share, says),
        };
        match self.wants {
            _ if self.or_equal && (value - self.limit).abs() < 1e-9 => true,
            Wants::More => value > self.limit + 1e-9,
            Wants::Less => value < self.limit - 1e-9,
        }
    }

    /// Where more is good, successes are counted; where more is bad, errors. A limit above 1 is
    /// one of percents.
    fn value_of(self, errors: f64, says: Says) -> f64 {
        let counts_errors = (self.wants == Wants::Less) == (says == Says::Good);
        let share = if counts_errors { errors } else { 1.0 - errors };
        if self.limit.abs() > 1.0 { share * 100.0 } else { share }
    }
}

fn comparison(text: &str) -> Option<Comparison> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')').trim();
    let at = text.find(['<', '>'])?;
    let (value, rest) = text.split_at(at);
    // The parenthesis of a function may have been taken for one around all.
    let value = value.trim();
    let is_value = VALUES.contains(&value) || VALUES.contains(&format!("{value})").as_str());
    let wants = if rest.starts_with('>') { Wants::More } else { Wants::Less };
    let (or_equal, limit) = match rest[1..].strip_prefix('=') {
        Some(limit) => (true, limit),
        None => (false, &rest[1..]),
    };
    let limit = limit.trim().parse().ok()?;
    is_value.then_some(Comparison { wants, or_equal, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Condition; what it says when it holds; percent of errors; whether it holds, or `-` where it
    /// is beyond a simulation.
    const CASES: &str = "
result[0] <= 0.05                   ; good ; 4 ; yes
result[0] <= 0.05                   ; good ; 5 ; yes
result[0] < 0.05                    ; good ; 5 ; no
result[0] >= 0.95                   ; good ; 4 ; yes
result[0] >= 0.95                   ; good ; 6 ; no
asFloat(result) >= 95               ; good ; 6 ; no
(result < 5)                        ; good ; 4 ; yes
result > 0.05                       ; bad  ; 6 ; yes
result[0] < 0.95                    ; bad  ; 6 ; yes
result[0] < 0.95                    ; bad  ; 1 ; no
result >= 0.9 && result[0] >= 0.99  ; good ; 5 ; no
result >= 0.99 || result >= 0.9     ; good ; 5 ; yes
result.ok                           ; good ; 5 ; -
all(result, # < 3)                  ; good ; 5 ; -
len(result) < 3                     ; good ; 5 ; -
result == 0                         ; good ; 5 ; -
";

    #[test]
    fn a_share_of_errors_is_read_as_the_condition_means_it() {
        for row in CASES.trim().lines() {
            let cells: Vec<&str> = row.split(';').map(str::trim).collect();
            let [condition, says, percent, expected] = cells[..] else { panic!("four: {row}") };
            let says = if says == "bad" { Says::Bad } else { Says::Good };
            let errors = Reading::Errors(percent.parse::<f64>().unwrap() / 100.0);
            let found = match Condition::parse(condition) {
                None => "-",
                Some(found) if found.holds(errors, says) => "yes",
                Some(_) => "no",
            };
            assert_eq!(found, expected, "{row}");
        }
    }

    #[test]
    fn a_value_is_compared_as_it_is() {
        let condition = Condition::parse("result[0] < 500").unwrap();
        assert!(condition.holds(Reading::Value(480.0), Says::Good));
        assert!(!condition.holds(Reading::Value(520.0), Says::Good));
    }
}
