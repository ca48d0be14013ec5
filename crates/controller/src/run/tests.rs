//! What the loop shows and tells of what happens to it.

use std::collections::BTreeSet;

use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::engines::GRADUS;
use crate::watch::FailedCause;

/// A loop that leads.
fn looping(settings: Settings) -> Loop {
    let mut looping = standby(settings);
    looping.follow(true);
    looping
}

fn standby(settings: Settings) -> Loop {
    Loop::new(&GRADUS, settings, Clock::system(), Metrics::new(), Health::new().0)
}

fn rollout(name: &str) -> Frame {
    let meta = json!({ "name": name, "namespace": "shop", "uid": name, "resourceVersion": "5" });
    serde_json::from_value(json!({ "metadata": meta, "spec": {} })).unwrap()
}

/// Every selection that an engine always watches, once.
fn selections(looping: &Loop) -> BTreeSet<Selection> {
    looping.engines.iter().flat_map(|engine| engine.reconciler.selections()).collect()
}

/// One message of a watch, to every engine that wants it.
fn show(looping: &mut Loop, watch: &Selection, shown: Result<Seen, Failed>) {
    let engines = looping.engines.iter().enumerate();
    let wants = |engine: &Engaged| engine.reconciler.selections().contains(watch);
    let wanting: Vec<usize> = engines.filter(|(_, one)| wants(one)).map(|(at, _)| at).collect();
    let message = (Arc::new(watch.clone()), shown);
    looping.take_in(Happening::Watched(message), |_| wanting.clone());
}

/// Lists these Rollouts; nothing of any other kind is there, but for one that is not listed.
fn list(looping: &mut Loop, rollouts: &[Frame], except: Option<&Kind>) {
    for watch in selections(looping).iter().filter(|watch| Some(&watch.kind) != except) {
        let items = rollouts.iter().filter(|_| watch.kind == kinds::ROLLOUT).cloned();
        let seen = std::iter::once(Seen::Init).chain(items.map(Seen::InitApply));
        for seen in seen.chain([Seen::InitDone]) {
            show(looping, watch, Ok(seen));
        }
    }
}

fn of_kind(looping: &Loop, kind: &Kind) -> Selection {
    let all = selections(looping);
    all.into_iter().find(|watch| watch.kind == *kind).unwrap()
}

#[tokio::test]
async fn it_is_ready_also_where_the_last_kind_cannot_be_read() {
    for cause in [FailedCause::NoSuchKind, FailedCause::Forbidden] {
        let mut looping = looping(Settings::default());
        list(&mut looping, &[], Some(&kinds::ANALYSIS_TEMPLATE));
        assert!(!looping.health.is_ready(), "{cause:?}: it may come yet");
        let failed = Failed { cause, message: "no".into() };
        let watch = of_kind(&looping, &kinds::ANALYSIS_TEMPLATE);
        show(&mut looping, &watch, Err(failed));
        assert!(looping.health.is_ready(), "{cause:?}");
    }
}

#[tokio::test]
async fn it_is_ready_when_the_last_engine_is() {
    let mut looping = looping(Settings::default());
    list(&mut looping, &[], Some(&kinds::INGRESS));
    assert!(looping.engines[0].reconciler.is_synced(), "that of Rollouts needs no Ingress yet");
    assert!(!looping.health.is_ready(), "another one does");
    list(&mut looping, &[], None);
    assert!(looping.health.is_ready());
}

#[test]
fn engines_of_one_program_share_their_watches() {
    let looping = looping(Settings::default());
    let wanted = looping.engines.iter().flat_map(|engine| engine.reconciler.selections());
    let rollouts = wanted.filter(|watch| watch.kind == kinds::ROLLOUT).count();
    let others = [kinds::ANALYSIS_RUN, kinds::EXPERIMENT];
    let wanting = GRADUS.list.iter().filter(|entry| !others.contains(&entry.kind)).count();
    assert_eq!(rollouts, wanting, "every engine but those of runs and Experiments wants them");
    let watched = selections(&looping);
    let rollouts = watched.iter().filter(|watch| watch.kind == kinds::ROLLOUT).count();
    assert_eq!(rollouts, 1, "and all mean the same");
}

#[tokio::test]
async fn the_world_of_any_kind_can_be_asked_for() {
    let mut looping = looping(Settings::default());
    list(&mut looping, &[rollout("web")], None);
    let mut marked = rollout("front");
    marked.spec = Arc::new(json!({ "selector": { "rollouts-pod-template-hash": "h" } }));
    let services = of_kind(&looping, &kinds::SERVICE);
    show(&mut looping, &services, Ok(Seen::Apply(marked)));
    let cases = [
        ("rollout", "web", true),
        ("Rollouts", "web", true),
        ("rollout", "front", false),
        ("service", "front", true),
        ("pod", "web", false),
    ];
    for (kind, name, is_known) in cases {
        let (reply, mut answer) = oneshot::channel();
        let key = ("shop".to_owned(), name.to_owned());
        let request = WorldRequest { kind: kind.to_owned(), key, reply };
        looping.take_in(Happening::Asked(request), |_| Vec::new());
        let world = answer.try_recv().unwrap();
        assert_eq!(world.is_some(), is_known, "{kind} {name}");
    }
}

#[tokio::test]
async fn a_rollout_that_a_list_does_not_show_any_more_is_gone_from_the_metrics_and_told() {
    let mut looping = looping(Settings::default());
    list(&mut looping, &[rollout("web"), rollout("api")], None);
    let shown = |looping: &Loop, name: &str| {
        let text = looping.metrics.text(looping.clock.now());
        text.contains(&format!(r#"rollout_info_replicas_desired{{name="{name}""#))
    };
    assert!(shown(&looping, "web") && shown(&looping, "api"));
    list(&mut looping, &[rollout("api")], None);
    assert!(!shown(&looping, "web") && shown(&looping, "api"));
    let told: Vec<_> = looping.engines[0].reconciler.take_events();
    let words = told.iter().map(|(one, standing)| {
        (&*one.event.reason, &*one.event.about.name, standing.rollout.as_deref())
    });
    let expected = [("RolloutDeleted", "web", Some("web"))];
    assert_eq!(words.collect::<Vec<_>>(), expected, "log lines name the Rollout");
}

#[tokio::test]
async fn who_may_not_write_posts_no_event() {
    for (dry_run, posted) in [(true, 0), (false, 1)] {
        let mut looping = looping(Settings { dry_run, ..Settings::default() });
        looping.follow(true);
        list(&mut looping, &[rollout("web")], None);
        let watch = of_kind(&looping, &kinds::ROLLOUT);
        show(&mut looping, &watch, Ok(Seen::Delete(rollout("web"))));
        let (events, mut inbox) = mpsc::unbounded_channel();
        let voice = Voice { events, metrics: Metrics::new(), dry_run };
        looping.post_events(&voice);
        drop(voice);
        assert_eq!(std::iter::from_fn(|| inbox.try_recv().ok()).count(), posted, "{dry_run}");
    }
}

#[tokio::test]
async fn a_rollout_that_is_free_is_no_longer_shown_as_held() {
    let mut looping = looping(Settings::default());
    let key = Key { namespace: "shop".into(), name: "web".into() };
    looping.metrics.held(&key.namespace, &key.name, Some(("PauseStep", 300.0)));
    looping.engines[0].shown_held.insert(key);
    let now = looping.clock.now();
    assert!(looping.metrics.text(now).contains("gradus_held_seconds{"));
    looping.look_at_held(now);
    assert!(!looping.metrics.text(now).contains("gradus_held_seconds{"));
}

#[tokio::test]
async fn of_each_object_the_leader_alone_tells() {
    let mut looping = standby(Settings::default());
    list(&mut looping, &[rollout("web")], None);
    assert!(looping.health.is_ready(), "its caches are synced");
    let is_told = |looping: &Loop| {
        let text = looping.metrics.text(looping.clock.now());
        text.contains("rollout_info{name=\"web\"")
    };
    assert!(!is_told(&looping), "a standby");
    looping.follow(true);
    assert!(is_told(&looping), "who begins to lead");
    looping.follow(false);
    assert!(!is_told(&looping), "who no longer leads");
    looping.follow(true);
    assert!(is_told(&looping), "who leads again");
}

#[tokio::test(start_paused = true)]
async fn the_series_of_a_deleted_rollout_go_although_nobody_scrapes() {
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let clock = Clock::starting_at(start);
    let mut looping =
        Loop::new(&GRADUS, Settings::default(), clock, Metrics::new(), Health::new().0);
    looping.follow(true);
    list(&mut looping, &[rollout("web")], None);
    looping.metrics.reconcile_failed("shop", "web");
    let watch = of_kind(&looping, &kinds::ROLLOUT);
    show(&mut looping, &watch, Ok(Seen::Delete(rollout("web"))));
    // Asked for the time of the deletion, the text itself removes nothing.
    let has_series = |looping: &Loop| looping.metrics.text(start).contains(r#"name="web""#);
    for (seconds, is_there) in [(0, true), (60, true), (10, false)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        looping.take_in(Happening::LookAtHeld, |_| Vec::new());
        assert_eq!(has_series(&looping), is_there, "{seconds}");
    }
}

#[tokio::test]
async fn who_may_not_write_asks_nothing_that_acts() {
    use gradus_engine::ask::Question;
    let never = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<axum::body::Body>, _>(std::io::Error::other("nobody is asked"))
    });
    let client = Client::new(never, "default");
    let cluster = crate::kube_cluster::KubeCluster::new(client, Metrics::new(), GRADUS.reporter);
    let executor = Executor::new(cluster, None, None);
    let cases = [
        (true, Effect::Acts, 0),
        (true, Effect::Reads, 1),
        (false, Effect::Acts, 1),
        (false, Effect::Reads, 1),
    ];
    for (dry_run, effect, asked) in cases {
        let mut looping = looping(Settings { dry_run, ..Settings::default() });
        let (events, _inbox) = mpsc::unbounded_channel();
        let voice = Voice { events, metrics: Metrics::new(), dry_run };
        let inquiry = Inquiry::of(Question::Random(4), effect);
        let (mut under_way, now) = (UnderWay::default(), looping.clock.now());
        looping.start(0, Work::Ask(Box::new(inquiry)), (&executor, &voice), &mut under_way, now);
        assert_eq!(under_way.asking.len(), asked, "{dry_run} {effect:?}");
    }
}
