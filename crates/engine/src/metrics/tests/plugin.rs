//! What a metric plugin is told, and what its answers measure.

use gradus_api::values::Time;

use super::*;
use crate::ask::MetricReply;
use crate::ask::secret::SecretError;

/// What a plugin is told next after these answers, or what it has measured.
fn next_of(call: Call<'_>, number: i32, said: &[MetricReply]) -> String {
    let metric = metric(json!({ "plugin": { "a/b": { "query": "{}" } } }));
    let (provider, run) = (super::super::provider(&metric).unwrap(), run());
    let (now, jobs, replies) = (now(), BTreeMap::new(), &[]);
    let seen =
        Observed { now, run: &run, number, replies, said, jobs: &jobs, refused: None, pods: None };
    let found = next(&*provider, call, &seen);
    let metadata: String = match &found {
        Next::Done(_) => {
            let all = provider.metadata(&seen);
            all.iter().map(|(key, text)| format!(" {key}={text}")).collect()
        }
        _ => String::new(),
    };
    match found {
        Next::Call(call, effect) => format!("{} {effect:?}", call.operation.method()),
        Next::Done(Reading::Measured(m)) => {
            let until = m.resume_at.map(|at| format!(" until {at}")).unwrap_or_default();
            let text = format!("{} {}{}{until}{metadata}", m.phase, m.value, m.message);
            text.trim_end().to_owned()
        }
        Next::Done(Reading::Error(fault)) if fault.ends_run => format!("ends: {}", fault.message),
        Next::Done(Reading::Error(fault)) => format!("! {}", fault.message),
        other => format!("{other:?}"),
    }
}

fn measured(phase: &str, text: &str, resume: Option<i64>) -> MetricReply {
    let is_bad = phase == "Error";
    MetricReply::Measured(Box::new(Measurement {
        phase: phase.to_owned(),
        value: if is_bad { String::new() } else { text.to_owned() },
        message: if is_bad { text.to_owned() } else { String::new() },
        resume_at: resume.map(|second| Time::new(Timestamp::from_second(second).unwrap())),
        ..Measurement::default()
    }))
}

#[test]
fn a_plugin_measures_and_judges_by_itself() {
    let last = Measurement { phase: "Running".to_owned(), ..Measurement::default() };
    let (run, resume, end) = (Call::Run, Call::Resume(&last), Call::Terminate(&last));
    let good = || measured("Successful", "1", None);
    let metadata = |key: &str| MetricReply::Metadata([(key.to_owned(), "x".to_owned())].into());
    let broken = || MetricReply::Broken("Run rpc call error: unexpected EOF".to_owned());
    let absent = || MetricReply::Unusable("not configured".to_owned());
    let running = |second| vec![measured("Running", "", second)];
    let error = || vec![measured("Error", "no data", None)];
    let no_secret = MetricReply::NoSecret(SecretError::NoSecret("keys".to_owned()));
    let cases: Vec<(&str, Call<'_>, i32, Vec<MetricReply>, &str)> = vec![
        ("it is told to measure", run, 1, vec![], "Run Acts"),
        ("then asked about the metric, once", run, 1, vec![good()], "GetMetadata Reads"),
        ("", run, 1, vec![good(), metadata("query")], "Successful 1 query=x"),
        (
            "what goes wrong there stands there",
            run,
            1,
            vec![good(), metadata("error")],
            "Successful 1 error=failed to get metadata via plugin: x",
        ),
        ("later measurements are not", run, 2, vec![measured("Failed", "0", None)], "Failed 0"),
        ("it goes on", resume, 1, vec![], "Resume Acts"),
        ("longer", resume, 1, running(Some(1_704_067_261)), "Running  until 2024-01-01T00:01:01Z"),
        ("who knows how long", resume, 1, running(None), "Running  until 2024-01-01T00:00:11Z"),
        ("it is told to end", end, 1, vec![], "Terminate Acts"),
        (
            "and must",
            end,
            1,
            running(None),
            "Error failed to terminate via plugin: the measurement goes on",
        ),
        ("its own error", run, 2, error(), "Error failed to run via plugin: no data"),
        ("and of a resume", resume, 2, error(), "Error failed to resume via plugin: no data"),
        (
            "a phase that is none",
            run,
            2,
            vec![measured("Perhaps", "", None)],
            "Error failed to run via plugin: phase 'Perhaps' is not valid: expected Running, \
             Successful, Failed, Inconclusive or Error",
        ),
        ("the call failed", run, 2, vec![broken()], "Error Run rpc call error: unexpected EOF"),
        ("there is no such plugin", run, 1, vec![absent()], "! not configured"),
        ("a Secret is missing", run, 1, vec![no_secret], "ends: secrets \"keys\" not found"),
    ];
    for (what, call, number, said, expected) in cases {
        assert_eq!(next_of(call, number, &said), expected, "{what}");
    }
}
