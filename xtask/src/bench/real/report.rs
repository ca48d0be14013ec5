//! The figures as a table for docs/benchmarks.md, and which of them are not as they must be.

use std::{collections::BTreeSet, fmt::Write, time::Duration};

use super::{Course, IDLE, phase::Measured, reactions::percentile, side::Side};
use crate::summary::Summary;

const MEGABYTE: f64 = 1_048_576.0;
const KILOBYTE: f64 = 1024.0;

/// One line of the table.
struct Row {
    what: String,
    ours: Option<f64>,
    theirs: Option<f64>,
    /// What ours must be at most, as a part of theirs.
    of_theirs: Option<f64>,
    /// What ours must be at most.
    at_most: Option<f64>,
}

/// Prints everything; a figure that is not as it must be has failed.
pub(super) fn print(courses: &[Course]) -> Summary {
    let counts: BTreeSet<usize> = courses.iter().map(|course| course.count).collect();
    let of = |side: Side, count: usize| {
        courses.iter().find(|course| course.side == side && course.count == count)
    };
    let mut summary = Summary::default();
    for count in &counts {
        let Some(ours) = of(Side::Gradus, *count) else { continue };
        let (text, judged) = table(&rows(ours, of(Side::Argo, *count)));
        println!("\n{count} Rollouts\n\n{text}");
        summary += judged;
    }
    for course in courses {
        println!("{}", writes(course));
    }
    if let (Some(small), Some(large)) = (counts.first(), counts.last())
        && small < large
        && let (Some(small), Some(large)) = (of(Side::Gradus, *small), of(Side::Gradus, *large))
    {
        summary += growth(small, large);
    }
    summary
}

fn rows(ours: &Course, theirs: Option<&Course>) -> Vec<Row> {
    let row = |what: &str, value: &dyn Fn(&Course) -> f64| Row {
        what: what.to_owned(),
        ours: Some(value(ours)),
        theirs: theirs.map(value),
        of_theirs: None,
        at_most: None,
    };
    let each = |course: &Course, value: f64| value / course.count as f64;
    let cpu = |course: &Course, phase: &Measured| each(course, milliseconds(phase.cpu));
    let sum = |course: &Course, phase: &Measured| {
        each(course, phase.writes(course.side.user()).values().sum::<usize>() as f64)
    };
    let idle = format!("requests in {} s of silence, watches and the Lease apart", IDLE.as_secs());
    let mut rows = vec![
        row("memory before there is anything to do, MB", &|one| one.resident[0] as f64 / MEGABYTE),
        row("memory with all Rollouts, MB", &|one| one.resident[1] as f64 / MEGABYTE)
            .must_be_at_most_of_theirs(0.25),
        row("memory at most, MB", &|one| one.resident[2] as f64 / MEGABYTE),
        row("memory for each Rollout, KB", &|one| {
            each(one, one.resident[1].saturating_sub(one.resident[0]) as f64 / KILOBYTE)
        }),
        row("create all, s", &|one| one.create.took.as_secs_f64()),
        row("create: writes each", &|one| sum(one, &one.create)),
        row("create: CPU each, ms", &|one| cpu(one, &one.create)),
        row(&idle, &|one| one.idle.unrest(one.side.user()).values().sum::<usize>() as f64)
            .must_be_at_most(0.0),
        row("CPU in that silence, ms", &|one| milliseconds(one.idle.cpu)),
        row("reaction alone, median, ms", &|one| milliseconds(percentile(&one.alone, 50))),
        row("reaction alone, 99 %, ms", &|one| milliseconds(percentile(&one.alone, 99))),
        row("update all, s", &|one| one.update.took.as_secs_f64()),
        row("update: writes each", &|one| sum(one, &one.update)).must_be_at_most(9.0),
        row("update: CPU each, ms", &|one| cpu(one, &one.update)).must_be_at_most_of_theirs(0.2),
        row("update: Events delivered each", &|one| {
            each(one, one.update.events(one.side.user()) as f64)
        }),
        row("update: Events that were due and did not come", &|one| {
            let delivered = one.update.events(one.side.user());
            one.events_due.map_or(0, |due| due.saturating_sub(delivered)) as f64
        })
        .must_be_at_most(0.0),
        row("update: reaction, median, ms", &|one| milliseconds(percentile(&one.together, 50))),
        row("update: reaction, 99 %, ms", &|one| milliseconds(percentile(&one.together, 99))),
        row("update: cores used by etcd, API server and built-in controllers", &|one| {
            cores(one.update.servers, one.update.took)
        }),
        row("update: cores used by everything on this machine", &|one| {
            cores(one.update.machine, one.update.took)
        }),
        row("restart until all are reconciled, s", &|one| one.restart.took.as_secs_f64())
            .must_be_at_most_of_theirs(0.2),
        row("restart: writes", &|one| {
            one.restart.writes(one.side.user()).values().sum::<usize>() as f64
        })
        .must_be_at_most(0.0),
        row("restart: Events", &|one| one.restart.events(one.side.user()) as f64)
            .must_be_at_most(0.0),
        row("restart: CPU, ms", &|one| milliseconds(one.restart.cpu)),
    ];
    rows.extend(ours.quiet.as_ref().map(quiet_rows).into_iter().flatten());
    rows
}

/// Beside a busy namespace compared with alone: the second column is not Argo's.
fn quiet_rows([alone, beside]: &[Vec<Duration>; 2]) -> [Row; 3] {
    let value = |what: &str, value: f64| Row {
        what: what.to_owned(),
        ours: Some(value),
        theirs: None,
        of_theirs: None,
        at_most: None,
    };
    let [alone, beside] = [alone, beside].map(|values| milliseconds(percentile(values, 99)));
    [
        value("quiet namespace: reaction alone, 99 %, ms", alone),
        value("quiet namespace: reaction beside 500 updates, 99 %, ms", beside),
        value("quiet namespace: beside to alone", beside / alone).must_be_at_most(2.0),
    ]
}

impl Row {
    fn must_be_at_most(self, most: f64) -> Self {
        Self { at_most: Some(most), ..self }
    }

    fn must_be_at_most_of_theirs(self, part: f64) -> Self {
        Self { of_theirs: Some(part), ..self }
    }

    fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (self.ours?, self.theirs?);
        (theirs > 0.0).then(|| ours / theirs)
    }

    /// What was promised, and whether it holds; nothing where nothing was or nobody can say.
    fn verdict(&self) -> Option<(String, bool)> {
        let of_theirs = self.of_theirs.zip(self.ratio());
        let of_theirs =
            of_theirs.map(|(most, ratio)| (format!("ratio at most {most}"), ratio <= most));
        let alone = self.at_most.zip(self.ours);
        of_theirs.or(alone.map(|(most, ours)| (format!("at most {most}"), ours <= most)))
    }
}

fn table(rows: &[Row]) -> (String, Summary) {
    let mut text =
        String::from("| | Gradus | Argo Rollouts | ratio | promised |\n|---|---|---|---|---|\n");
    let mut summary = Summary::default();
    let number =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    for row in rows {
        let verdict = row.verdict();
        summary += verdict.iter().map(|(_, is_kept)| Summary::of(*is_kept)).sum();
        let promised = verdict.map_or_else(String::new, |(promise, is_kept)| match is_kept {
            true => promise,
            false => format!("{promise}: **missed**"),
        });
        let (ours, theirs, ratio) = (number(row.ours), number(row.theirs), number(row.ratio()));
        let line = format!("| {} | {ours} | {theirs} | {ratio} | {promised} |\n", row.what);
        text.push_str(&line);
    }
    (text, summary)
}

/// Writes of the mass update, by verb and resource.
fn writes(course: &Course) -> String {
    let mut text = format!("{}, {} updates:", course.side.name(), course.count);
    for (what, count) in course.update.writes(course.side.user()) {
        // A String takes everything.
        write!(text, " {what} {:.2},", count as f64 / course.count as f64).expect("memory");
    }
    text.trim_end_matches(',').to_owned()
}

/// What an update costs must not grow with how many Rollouts there are.
fn growth(small: &Course, large: &Course) -> Summary {
    let cpu = |one: &Course| milliseconds(one.update.cpu) / one.count as f64;
    let ratio = cpu(large) / cpu(small);
    let is_kept = ratio <= 1.15;
    let verdict = if is_kept { "" } else { ": **missed**" };
    println!(
        "CPU per update at {} Rollouts to that at {}: {ratio:.2}, promised at most 1.15{verdict}",
        large.count, small.count
    );
    Summary::of(is_kept)
}

fn cores(cpu: Duration, took: Duration) -> f64 {
    cpu.as_secs_f64() / took.as_secs_f64()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[test]
fn a_promise_is_judged_by_its_ratio_or_its_figure() {
    let row = |ours: f64, theirs: Option<f64>| Row {
        what: "x".to_owned(),
        ours: Some(ours),
        theirs,
        of_theirs: None,
        at_most: None,
    };
    let cases = [
        ("nothing is promised", row(5.0, Some(1.0)), None),
        ("a ratio that is kept", row(1.0, Some(4.0)).must_be_at_most_of_theirs(0.25), Some(true)),
        ("one that is not", row(2.0, Some(4.0)).must_be_at_most_of_theirs(0.25), Some(false)),
        ("nobody beside us", row(2.0, None).must_be_at_most_of_theirs(0.25), None),
        ("a figure", row(9.0, None).must_be_at_most(9.0), Some(true)),
        ("too much", row(9.1, Some(12.0)).must_be_at_most(9.0), Some(false)),
    ];
    for (what, row, expected) in cases {
        assert_eq!(row.verdict().map(|(_, is_kept)| is_kept), expected, "{what}");
    }
}
