//! What the loop shows and tells of what happens to it.

use gradus_engine::rollout::Rollouts;
use serde_json::json;

use super::*;
use crate::watch::Cause;

fn looping(settings: Settings) -> Loop<Rollouts> {
    Loop::new(settings, Clock::system(), Metrics::new(), Health::new().0)
}

fn rollout(name: &str) -> Frame {
    let meta = json!({ "name": name, "namespace": "shop", "uid": name, "resourceVersion": "5" });
    serde_json::from_value(json!({ "metadata": meta, "spec": {} })).unwrap()
}

/// Lists these Rollouts; nothing of any other kind is there, but for one that is not listed.
fn list(looping: &mut Loop<Rollouts>, rollouts: &[Frame], except: Option<&Kind>) {
    let kinds = Rollouts::watches("").into_iter().map(|watch| watch.kind);
    for kind in kinds.filter(|kind| Some(kind) != except) {
        let items = rollouts.iter().filter(|_| kind == kinds::ROLLOUT).cloned();
        let seen = std::iter::once(Seen::Init).chain(items.map(Seen::InitApply));
        for seen in seen.chain([Seen::InitDone]) {
            looping.take_in(Happening::Watched(kind.clone(), Ok(seen)));
        }
    }
}

#[tokio::test]
async fn it_is_ready_also_where_the_last_kind_cannot_be_read() {
    for cause in [Cause::NoSuchKind, Cause::Forbidden] {
        let mut looping = looping(Settings::default());
        list(&mut looping, &[], Some(&kinds::SERVICE));
        assert!(!looping.health.is_ready(), "{cause:?}: it may come yet");
        let failed = Failed { cause, message: "no".into() };
        looping.take_in(Happening::Watched(kinds::SERVICE, Err(failed)));
        assert!(looping.health.is_ready(), "{cause:?}");
    }
}

#[tokio::test]
async fn a_rollout_that_a_list_does_not_show_any_more_is_gone_from_the_metrics_and_told() {
    let mut looping = looping(Settings::default());
    list(&mut looping, &[rollout("web"), rollout("api")], None);
    let shown = |looping: &Loop<Rollouts>, name: &str| {
        let text = looping.metrics.text(looping.clock.now());
        text.contains(&format!(r#"rollout_info_replicas_desired{{name="{name}""#))
    };
    assert!(shown(&looping, "web") && shown(&looping, "api"));
    list(&mut looping, &[rollout("api")], None);
    assert!(!shown(&looping, "web") && shown(&looping, "api"));
    let told: Vec<_> = looping.shell.take_events();
    let told: Vec<_> =
        told.iter().map(|one| (&*one.event.reason, &*one.event.about.name)).collect();
    assert_eq!(told, [("RolloutDeleted", "web")]);
}

#[tokio::test]
async fn who_may_not_write_posts_no_event() {
    for (dry_run, posted) in [(true, 0), (false, 1)] {
        let mut looping = looping(Settings { dry_run, ..Settings::default() });
        list(&mut looping, &[rollout("web")], None);
        let end = Happening::Watched(kinds::ROLLOUT, Ok(Seen::Delete(rollout("web"))));
        looping.take_in(end);
        let (events, mut inbox) = mpsc::unbounded_channel();
        let voice = Voice { events, metrics: Metrics::new(), dry_run };
        looping.shell.take_events().into_iter().for_each(|outgoing| voice.tell(outgoing));
        drop(voice);
        assert_eq!(std::iter::from_fn(|| inbox.try_recv().ok()).count(), posted, "{dry_run}");
    }
}

#[tokio::test]
async fn a_rollout_that_is_free_is_no_longer_shown_as_held() {
    let mut looping = looping(Settings::default());
    let key = Key { namespace: "shop".into(), name: "web".into() };
    looping.metrics.held(&key.namespace, &key.name, Some(("PauseStep", 300.0)));
    looping.shown_held.insert(key);
    let now = looping.clock.now();
    assert!(looping.metrics.text(now).contains("gradus_held_seconds{"));
    looping.look_at_held(now);
    assert!(!looping.metrics.text(now).contains("gradus_held_seconds{"));
}
