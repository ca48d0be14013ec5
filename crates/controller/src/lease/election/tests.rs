//! The election protocol: its rows, and a model of several candidates with bad clocks and networks.

use super::*;

fn at(seconds: u64) -> Moment {
    moment(Duration::from_secs(seconds), 0)
}

fn moment(elapsed: Duration, skew: i64) -> Moment {
    let wall = Timestamp::from_second(1_000_000 + skew).unwrap();
    Moment { elapsed, wall: wall + SignedDuration::try_from(elapsed).unwrap() }
}

fn candidate(name: &str) -> Candidate {
    Candidate::new(name.to_owned(), LeaseDurations::default())
}

/// A record of somebody, renewed at that time.
fn held_by(name: &str, renewed: u64) -> LeaseRecord {
    LeaseRecord {
        holder: name.to_owned(),
        duration: Duration::from_secs(15),
        acquired: Some(at(0).wall),
        renewed: Some(at(renewed).wall),
        transitions: 3,
    }
}

#[test]
fn durations_that_let_two_write_at_once_are_refused() {
    let limit = Duration::from_secs(4);
    let of = |lease, renew_deadline, retry_period| {
        let [lease, renew_deadline, retry_period] =
            [lease, renew_deadline, retry_period].map(Duration::from_secs);
        LeaseDurations { lease, renew_deadline, retry_period }.check(limit).is_ok()
    };
    let rows = [
        ("Argo's defaults", (15, 10, 2), true),
        ("as long as the deadline", (10, 10, 2), false),
        ("a write may outlive the lease", (13, 10, 2), false),
        ("just enough", (14, 10, 2), true),
        ("no second try before the deadline", (60, 2, 2), false),
        ("no pause between tries", (15, 10, 0), false),
        ("no lease at all", (0, 0, 0), false),
    ];
    for (what, (lease, renew, retry), expected) in rows {
        assert_eq!(of(lease, renew, retry), expected, "{what}");
    }
}

#[test]
fn a_lease_that_is_not_there_is_created_and_renewed() {
    let mut one = candidate("one");
    assert_eq!(one.next(at(0)), NextTry::Read);
    one.read(None, at(0));
    let NextTry::Create(record) = one.next(at(0)) else { panic!("{:?}", one.next(at(0))) };
    assert_eq!((record.holder.as_str(), record.transitions), ("one", 0));
    one.written(record.clone(), 7, at(0), at(1));
    assert!(one.leads_until().unwrap().holds_at(at(9)));
    assert!(!one.leads_until().unwrap().holds_at(at(10)), "counted from when it was sent");
    assert_eq!(one.next(at(1)), NextTry::Wait(Duration::from_secs(2)));
    let NextTry::Update(renewed, 7) = one.next(at(2)) else { panic!("no renewal") };
    assert_eq!((renewed.acquired, renewed.transitions), (record.acquired, 0));
    assert_eq!(renewed.renewed, Some(at(2).wall));
}

#[test]
fn a_held_lease_is_taken_only_when_it_was_not_seen_to_change_for_its_duration() {
    let mut two = candidate("two");
    two.read(Some((held_by("one", 0), 7)), at(100));
    assert_eq!(two.next(at(100)), NextTry::Wait(Duration::from_secs(101)), "half a period");
    two.read(Some((held_by("one", 5), 8)), at(110));
    two.read(Some((held_by("one", 5), 9)), at(124));
    assert_eq!(two.next(at(124)), NextTry::Wait(Duration::from_secs(125)), "1 s too early");
    two.read(Some((held_by("one", 5), 9)), at(125));
    let NextTry::Update(record, 9) = two.next(at(125)) else { panic!("{:?}", two.next(at(125))) };
    assert_eq!((record.holder.as_str(), record.transitions), ("two", 4));
    assert_eq!(two.leads_until(), None, "not before it is written");
}

#[test]
fn a_standby_looks_at_the_moment_at_which_the_lease_runs_out() {
    let mut two = candidate("two");
    two.read(Some((held_by("one", 5), 8)), at(110));
    let late = Moment { elapsed: Duration::from_millis(124_600), ..at(124) };
    two.read(Some((held_by("one", 5), 8)), late);
    assert_eq!(two.next(late), NextTry::Wait(Duration::from_secs(125)), "not a period later");
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut one = candidate("one");
    one.read(Some((held_by("", 0), 7)), at(1));
    assert!(matches!(one.next(at(1)), NextTry::Update(_, 7)));
    let NextTry::Update(record, _) = one.next(at(1)) else { return };
    one.written(record, 8, at(1), at(1));
    let (released, version) = one.release(at(3)).unwrap();
    assert_eq!((released.holder.as_str(), released.duration, version), ("", SECOND, 8));
    let mut standby = candidate("two");
    standby.read(Some((held_by("one", 0), 7)), at(1));
    assert_eq!(standby.release(at(1)), None, "what is not ours stays");
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn who_is_overtaken_reads_first_and_stops_leading_when_another_holds_it() {
    let mut one = candidate("one");
    one.read(None, at(0));
    one.written(held_by("one", 0), 7, at(0), at(0));
    one.failed(TryFailed::Overtaken, at(2));
    assert_eq!(one.next(at(2)), NextTry::Read);
    assert!(one.leads_until().is_some(), "somebody may have set a label");
    one.read(Some((held_by("thief", 2), 8)), at(2));
    assert_eq!(one.leads_until(), None);
    assert_eq!(one.next(at(2)), NextTry::Wait(Duration::from_secs(3)));
}

#[test]
fn a_lead_ends_when_the_server_is_away_and_when_the_machine_was_suspended() {
    let mut one = candidate("one");
    one.written(held_by("one", 0), 7, at(0), at(0));
    one.failed(TryFailed::NoAnswer, at(6));
    assert!(!one.expire(at(9)));
    assert!(one.expire(at(10)));
    assert_eq!(one.leads_until(), None);
    let mut two = candidate("two");
    two.written(held_by("two", 0), 7, at(0), at(0));
    assert!(two.expire(moment(SECOND, 30)), "one second of ours, thirty of the world's");
}

#[test]
fn a_deleted_lease_ends_the_lead_until_it_is_written_again() {
    let mut one = candidate("one");
    one.written(held_by("one", 0), 7, at(0), at(0));
    one.failed(TryFailed::Overtaken, at(2));
    one.read(None, at(2));
    assert_eq!(one.leads_until(), None);
    assert!(matches!(one.next(at(2)), NextTry::Create(_)));
}

/// How long a write that began in time may take, in milliseconds.
const REQUEST_LIMIT: u64 = 4_000;

/// One process of the model: its clocks, and the request it waits for.
struct Process {
    candidate: Candidate,
    name: String,
    /// Milliseconds that its monotonic clock is behind the true time.
    behind: u64,
    /// Seconds that its wall clock is off.
    skew: i64,
    asleep_until: u64,
    under_way: Option<(NextTry, Moment, u64, bool)>,
}

impl Process {
    fn moment(&self, now: u64) -> Moment {
        let elapsed = Duration::from_millis(now - self.behind);
        let wall = Timestamp::from_millisecond(1_000_000_000 + now as i64).unwrap();
        Moment { elapsed, wall: wall + SignedDuration::from_secs(self.skew) }
    }

    fn leads(&self, now: u64) -> bool {
        let until = self.candidate.leads_until();
        now >= self.asleep_until && until.is_some_and(|until| until.holds_at(self.moment(now)))
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }
}

/// The Lease on the server.
type Stored = Option<(LeaseRecord, u64)>;

/// The server takes a request in; `None` where it is refused.
fn serve(stored: &mut Stored, request: &NextTry) -> Option<u64> {
    let version = stored.as_ref().map_or(0, |(_, version)| *version) + 1;
    match (request, &stored) {
        (NextTry::Create(record), None) => *stored = Some((record.clone(), version)),
        (NextTry::Update(record, seen), Some((_, now))) if seen == now => {
            *stored = Some((record.clone(), version));
        }
        _ => return None,
    }
    Some(version)
}

/// One process takes one step at the true time `now`.
fn step(process: &mut Process, stored: &mut Stored, dice: &mut Dice, now: u64) {
    let moment = process.moment(now);
    process.candidate.expire(moment);
    match process.under_way.take() {
        Some(waiting) if now < waiting.2 => process.under_way = Some(waiting),
        Some((_, _, _, true)) => process.candidate.failed(TryFailed::NoAnswer, moment),
        Some((NextTry::Read, ..)) => process.candidate.read(stored.clone(), moment),
        Some((request, sent, ..)) => match (serve(stored, &request), request) {
            (Some(version), NextTry::Create(record) | NextTry::Update(record, _)) => {
                process.candidate.written(record, version, sent, moment);
            }
            _ => process.candidate.failed(TryFailed::Overtaken, moment),
        },
        None => {
            let next = process.candidate.next(moment);
            if matches!(next, NextTry::Wait(_)) {
                return;
            }
            // Some answers never come although the write was done.
            let is_lost = dice.below(10) == 0;
            if is_lost && dice.below(2) == 0 {
                serve(stored, &next);
            }
            let takes = if is_lost { REQUEST_LIMIT } else { dice.below(REQUEST_LIMIT / 4) };
            process.under_way = Some((next, moment, now + takes, is_lost));
        }
    }
}

/// Some process is suspended, or dies and comes back under another name.
fn disturb(process: &mut Process, dice: &mut Dice, now: u64) {
    match dice.below(4) {
        0 => {
            // Nothing runs meanwhile, the monotonic clock included.
            let long = dice.below(40_000);
            process.asleep_until = now + long;
            process.behind += long;
        }
        1 => {
            process.name.push('+');
            process.candidate = candidate(&process.name);
            process.under_way = None;
        }
        _ => {}
    }
}

#[test]
fn no_two_lead_at_once_whatever_clocks_and_networks_do() {
    let mut led = 0;
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let mut stored: Stored = None;
        let mut processes: Vec<Process> = (0..3)
            .map(|number| Process {
                candidate: candidate(&format!("p{number}")),
                name: format!("p{number}"),
                behind: 0,
                skew: dice.below(121) as i64 - 60,
                asleep_until: 0,
                under_way: None,
            })
            .collect();
        // Until when each process, having led, may still have a write under way.
        let mut busy_until = [0; 3];
        for now in (0..180_000).step_by(50) {
            for number in 0..3 {
                if now < processes[number].asleep_until {
                    continue;
                }
                if dice.below(600) == 0 {
                    disturb(&mut processes[number], &mut dice, now);
                    continue;
                }
                step(&mut processes[number], &mut stored, &mut dice, now);
                if !processes[number].leads(now) {
                    continue;
                }
                led += 1;
                busy_until[number] = now + REQUEST_LIMIT;
                for other in (0..3).filter(|other| *other != number) {
                    assert!(busy_until[other] <= now, "seed {seed} at {now} ms: two can write");
                }
            }
        }
    }
    assert!(led > 100_000, "somebody leads most of the time: {led} of 3,240,000 looks");
}
