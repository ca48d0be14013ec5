//! Metrics in Prometheus' text format, a piece at a time: a thousand objects have some ten thousand series,
//! and what a scrape needs of memory at once would stay with the process.

use prometheus::TextEncoder;
use prometheus::proto::{Metric, MetricFamily, MetricType};

/// Series that are made, and become text, at a time.
const AT_A_TIME: usize = 250;

/// The text so far.
#[derive(Default)]
pub(super) struct Pieces(Vec<String>);

impl Pieces {
    /// Adds a family of metrics: its head, and its series as they are made.
    pub(super) fn put(
        &mut self,
        (name, help): (&str, &str),
        kind: MetricType,
        metrics: impl Iterator<Item = Metric>,
    ) {
        let mut metrics = metrics.peekable();
        let mut is_first = true;
        while metrics.peek().is_some() {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            family.set_metric(metrics.by_ref().take(AT_A_TIME).collect());
            match TextEncoder::new().encode_to_string(&[family]) {
                Ok(text) if is_first => self.0.push(text),
                Ok(text) => self.0.push(without_head(&text).to_owned()),
                Err(error) => tracing::error!("cannot print the metric {name}: {error}"),
            }
            is_first = false;
        }
    }

    /// All of it, in order.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }
}

/// The series alone.
fn without_head(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('\n').filter(|_| rest.starts_with('#')) {
        rest = after;
    }
    rest
}

#[test]
fn many_series_have_one_head_and_are_whole() {
    let series = |number: usize| {
        let mut label = prometheus::proto::LabelPair::default();
        label.set_name("name".to_owned());
        label.set_value(format!("web-{number:04}"));
        let mut metric = Metric::from_label(vec![label]);
        let mut gauge = prometheus::proto::Gauge::default();
        gauge.set_value(1.0);
        metric.set_gauge(gauge);
        metric
    };
    let count = 2 * AT_A_TIME + 1;
    let mut pieces = Pieces::default();
    pieces.put(("pods", "Pods."), MetricType::GAUGE, (0..count).map(series));
    pieces.put(("nothing", "None."), MetricType::GAUGE, std::iter::empty());
    let texts = pieces.into_texts();
    assert_eq!(texts.len(), 3);
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(
        lines[..3],
        ["# HELP pods Pods.", "# TYPE pods gauge", r#"pods{name="web-0000"} 1"#]
    );
    assert_eq!(lines.len(), 2 + count);
}
