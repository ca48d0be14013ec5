//! Known values, and how often the tests are wrong: false alarms and missed regressions over
//! simulated series. docs/analysis.md shows these figures.

use super::*;

/// Series for rates of false alarms, and for how often a regression is found.
const SERIES: u32 = 10_000;
const SOME: u32 = 1_000;

/// Numbers that look random; the same for the same seed. (xorshift64*)
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// How many of so many requests fail.
    fn errors(&mut self, requests: u64, rate: f64) -> u64 {
        // By the distances between errors: few draws where errors are rare.
        let (mut errors, mut at) = (0, 0.0);
        loop {
            at += ((1.0 - self.next()).ln() / (1.0 - rate).ln()).floor() + 1.0;
            if at > requests as f64 {
                return errors;
            }
            errors += 1;
        }
    }

    /// A latency: most are near 100 ms, some are much longer.
    fn latency(&mut self, factor: f64) -> f64 {
        let normal = (-2.0 * (1.0 - self.next()).ln()).sqrt()
            * (2.0 * std::f64::consts::PI * self.next()).cos();
        factor * 100.0 * (0.5 * normal).exp()
    }
}

/// In how many of the series, in per cent, the p-value is at most 0.01, and at most 0.05.
fn alarms(series: u32, mut of: impl FnMut(&mut Chance) -> f64) -> [f64; 2] {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut found = [0_u32; 2];
    for _ in 0..series {
        let p_value = of(&mut chance);
        found[0] += u32::from(p_value <= 0.01);
        found[1] += u32::from(p_value <= 0.05);
    }
    found.map(|count| f64::from(count) * 100.0 / f64::from(series))
}

fn is_within_alpha(found: [f64; 2]) -> bool {
    found[0] <= 1.0 && found[1] <= 5.0
}

/// What it is about, two samples, what is looked for, and the p-value.
type RankCase = (&'static str, Vec<f64>, Vec<f64>, Alternative, f64);

#[test]
fn ranks_give_the_known_probabilities() {
    // Few numbers: one of 20 ways to choose 3 of 6. Many: by the normal distribution, with correction
    // for ties and for whole numbers, and 3 standard errors of 10,000 series on top.
    let long = |offset: f64| (0..30).map(|at| f64::from(at * 7 % 31) + offset).collect::<Vec<_>>();
    let cases: Vec<RankCase> = vec![
        ("all greater", vec![4., 5., 6.], vec![1., 2., 3.], Alternative::Greater, 0.05),
        ("all less", vec![1., 2., 3.], vec![4., 5., 6.], Alternative::Less, 0.05),
        ("either", vec![4., 5., 6.], vec![1., 2., 3.], Alternative::Differs, 0.1),
        ("the wrong side", vec![1., 2., 3.], vec![4., 5., 6.], Alternative::Greater, 1.0),
        ("equal numbers", vec![1., 1., 1.], vec![1., 1.], Alternative::Greater, 1.0),
        ("one of each", vec![2.], vec![1.], Alternative::Greater, 0.5),
        ("nothing to compare with", vec![2.], vec![], Alternative::Greater, 1.0),
        ("many, the same", long(0.0), long(0.0), Alternative::Greater, 0.5179),
        ("many, greater", long(8.0), long(0.0), Alternative::Greater, 0.0025),
    ];
    for (what, first, second, alternative, expected) in cases {
        let found = mann_whitney(&first, &second, alternative);
        assert!((found - expected).abs() < 5e-4, "{what}: {found}, expected {expected}");
    }
}

#[test]
fn a_sequential_p_value_falls_with_evidence_and_never_rises() {
    let at = |errors, others| Counts { first: (errors, 1000), second: (others, 1000) };
    let cases = [
        ("nothing measured", vec![], 1.0..=1.0),
        ("no errors", vec![at(0, 0); 20], 1.0..=1.0),
        ("no requests of one", vec![Counts { first: (0, 0), second: (5, 10) }], 1.0..=1.0),
        ("all fail", vec![Counts { first: (9, 9), second: (9, 9) }], 1.0..=1.0),
        ("more errors than requests", vec![Counts { first: (10, 9), second: (0, 9) }], 1.0..=1.0),
        ("the same", vec![at(10, 10); 20], 0.5..=1.0),
        ("better", vec![at(5, 20); 20], 0.9..=1.0),
        ("a little worse", vec![at(14, 10); 20], 0.0..=0.05),
        ("twice as many", vec![at(20, 10); 10], 0.0..=1e-6),
        ("a disaster", vec![at(900, 10)], 0.0..=1e-100),
        (
            "millions",
            vec![Counts { first: (60_000, 3_000_000), second: (50_000, 3_000_000) }],
            0.0..=1e-100,
        ),
    ];
    for (what, intervals, expected) in cases {
        let found = proportions(intervals.clone());
        assert!(expected.contains(&found), "{what}: {found}");
        let mut before = 1.0;
        for seen in 0..=intervals.len() {
            let so_far = proportions(intervals[..seen].iter().copied());
            assert!(so_far <= before, "{what}: {so_far} after {before}");
            before = so_far;
        }
    }
    assert_eq!(paired([(1.0, 1.0); 50]), 1.0, "equal numbers say nothing");
    assert!(paired([(2.0, 1.0); 12]) < 0.01, "always greater");
    assert!(paired([(1.0, 2.0); 12]) > 0.9, "always less");
}

#[test]
fn the_mean_over_all_outcomes_is_what_is_summed() {
    // Every small table: the likelihood ratio has a mean of 1 where both share a rate.
    for (requests, others) in [(1_u64, 1), (3, 5), (7, 2), (10, 10)] {
        for all in 1..requests + others {
            for odds in ODDS_TRIED {
                let (least, most) = (all.saturating_sub(others), all.min(requests));
                let ways = |some: u64| choose(requests, some) * choose(others, all - some);
                let total: f64 = (least..=most).map(ways).sum();
                let mean: f64 = (least..=most)
                    .map(|errors| {
                        let counts =
                            Counts { first: (errors, requests), second: (all - errors, others) };
                        ways(errors) / total * ratio(counts, odds)
                    })
                    .sum();
                assert!((mean - 1.0).abs() < 1e-9, "{requests}, {others}, {all}, {odds}: {mean}");
            }
        }
    }
}

const ODDS_TRIED: [f64; 3] = [1.1, 2.0, 30.0];

fn ratio(counts: Counts, odds: f64) -> f64 {
    super::sequential::conditional(counts, odds).exp()
}

fn choose(many: u64, some: u64) -> f64 {
    (0..some).map(|at| (many - at) as f64 / (at + 1) as f64).product()
}

/// 20 looks, one after each interval of 500 requests to either revision.
fn errors_of(chance: &mut Chance, rate: impl Fn(u32) -> f64, more: f64) -> f64 {
    let interval = |at: u32| Counts {
        first: (chance.errors(500, rate(at) + more), 500),
        second: (chance.errors(500, rate(at)), 500),
    };
    proportions((0..20).map(interval))
}

#[test]
fn errors_looked_at_20_times_raise_no_more_false_alarms_than_alpha() {
    // As over a day: the rate of both goes up and down by half.
    let wave = |at: u32| 0.01 * (1.0 + 0.5 * (f64::from(at) / 5.0).sin());
    let (steady, waving) = (
        alarms(SERIES, |chance| errors_of(chance, |_| 0.005, 0.0)),
        alarms(SERIES, |chance| errors_of(chance, wave, 0.0)),
    );
    println!("sequentialTest, errors: false alarms in % {steady:?}, in waves {waving:?}");
    assert!(is_within_alpha(steady) && is_within_alpha(waving), "{steady:?} {waving:?}");
}

#[test]
fn errors_that_a_canary_adds_are_found() {
    let power = |more: f64| alarms(SOME, |chance| errors_of(chance, |_| 0.005, more))[0];
    let found = [power(0.005), power(0.01), power(0.02), power(0.05)];
    println!("sequentialTest, errors: found in % {found:?}");
    assert!(found[1] > 95.0 && found[2] > 99.9 && found[3] == 100.0, "{found:?}");
}

fn pairs_of(chance: &mut Chance, factor: f64) -> f64 {
    // A trend that both share.
    let trend = |at: u32| 1.0 + f64::from(at) / 50.0;
    paired((0..60).map(|at| (chance.latency(factor * trend(at)), chance.latency(trend(at)))))
}

#[test]
fn pairs_looked_at_60_times_raise_no_more_false_alarms_than_alpha() {
    let found = alarms(SERIES, |chance| pairs_of(chance, 1.0));
    println!("sequentialTest, pairs: false alarms in % {found:?}");
    assert!(is_within_alpha(found), "{found:?}");
    let found = [1.25, 1.5, 2.0].map(|factor| alarms(SOME, |chance| pairs_of(chance, factor))[0]);
    println!("sequentialTest, pairs: found in % {found:?}");
    assert!(found[1] > 50.0 && found[2] > 95.0, "{found:?}");
}

fn samples_of(chance: &mut Chance, count: usize, factor: f64) -> f64 {
    let first: Vec<f64> = (0..count).map(|_| chance.latency(factor)).collect();
    let second: Vec<f64> = (0..count).map(|_| chance.latency(1.0)).collect();
    mann_whitney(&first, &second, Alternative::Greater)
}

#[test]
fn one_look_at_ranks_raises_no_more_false_alarms_than_alpha() {
    let found = [6, 20, 60].map(|count| alarms(SERIES, |chance| samples_of(chance, count, 1.0)));
    println!("mannWhitney, 6, 20, 60 samples: false alarms in % {found:?}");
    assert!(found.into_iter().all(is_within_alpha), "{found:?}");
    let power = |count: usize| {
        [1.25, 1.5, 2.0].map(|factor| alarms(SOME, |chance| samples_of(chance, count, factor))[0])
    };
    let (few, many) = (power(20), power(60));
    println!("mannWhitney: found in % with 20 samples {few:?}, with 60 {many:?}");
    assert!(few[2] > 90.0 && many[1] > 90.0, "{few:?} {many:?}");
}

#[test]
fn ranks_looked_at_again_and_again_raise_too_many_false_alarms() {
    // What nobody should do, and what the sequential test is for.
    let [_, often] = alarms(SERIES, |chance| {
        let first: Vec<f64> = (0..60).map(|_| chance.latency(1.0)).collect();
        let second: Vec<f64> = (0..60).map(|_| chance.latency(1.0)).collect();
        let looks = [15, 20, 25, 30, 35, 40, 45, 50, 55, 60];
        let p_value =
            |seen: usize| mann_whitney(&first[..seen], &second[..seen], Alternative::Greater);
        looks.into_iter().map(p_value).fold(1.0, f64::min)
    });
    println!("mannWhitney looked at 10 times: false alarms in % {often}");
    assert!(often > 10.0, "{often}");
}
