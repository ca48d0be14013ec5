//! Which lines are logged, and in which form?

use std::io::IsTerminal;
use std::str::FromStr;

use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The flag names no level.
    #[error("unknown log level {0:?}: expected error, warn, info, debug or trace")]
    Level(String),
    /// The flag names no format.
    #[error("unknown log format {0:?}: expected text or json")]
    Format(String),
    /// Something else logs already.
    #[error("logging was started twice")]
    Twice(#[source] TryInitError),
}

impl FromStr for LogFormat {
    type Err = LoggingError;

    fn from_str(text: &str) -> Result<Self, LoggingError> {
        match text {
            "" | "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            other => Err(LoggingError::Format(other.to_owned())),
        }
    }
}

/// Starts logging to standard error. `libraries` is how much those below us log.
pub fn start_logging(level: &str, format: LogFormat, libraries: i32) -> Result<(), LoggingError> {
    use tracing_subscriber::util::SubscriberInitExt;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(parse(level)?, libraries))
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.finish().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init(),
    }
    .map_err(LoggingError::Twice)
}

/// One line at info, for programs that have nothing else to log.
pub fn inform(line: &str) {
    tracing::info!("{line}");
}

/// The level, also under the names that Argo's flag takes.
fn parse(text: &str) -> Result<Level, LoggingError> {
    match text.to_ascii_lowercase().as_str() {
        "panic" | "fatal" | "error" => Ok(Level::ERROR),
        "warn" | "warning" => Ok(Level::WARN),
        "info" => Ok(Level::INFO),
        "debug" => Ok(Level::DEBUG),
        "trace" => Ok(Level::TRACE),
        _ => Err(LoggingError::Level(text.to_owned())),
    }
}

/// The libraries below us log every failed request at every try. We log a failure once, in our own
/// words, so theirs are only of use to whoever debugs them: `--kloglevel`, or trace. The one that
/// connects is never heard below info: it names every host, and the host of a metric may be a secret.
fn filter(level: Level, libraries: i32) -> EnvFilter {
    const CONNECTIONS: &str = "hyper_util=info";
    if level == Level::TRACE {
        return EnvFilter::new(format!("{level},{CONNECTIONS}"));
    }
    let libraries = match libraries {
        ..=0 => "off",
        1..4 => "info",
        4.. => return EnvFilter::new(format!("debug,{CONNECTIONS},gradus={level}")),
    };
    EnvFilter::new(format!("{libraries},gradus={level}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_known_by_all_their_names() {
        let cases = [
            ("info", Some(Level::INFO)),
            ("WARNING", Some(Level::WARN)),
            ("panic", Some(Level::ERROR)),
            ("trace", Some(Level::TRACE)),
            ("loud", None),
            ("", None),
        ];
        for (text, level) in cases {
            assert_eq!(parse(text).ok(), level, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_choices() {
        let error = "xml".parse::<LogFormat>().unwrap_err();
        assert_eq!(error.to_string(), r#"unknown log format "xml": expected text or json"#);
    }

    #[test]
    fn libraries_are_silent_unless_debugged() {
        assert_eq!(filter(Level::INFO, 0).to_string(), "gradus=info,off");
        assert_eq!(filter(Level::INFO, -1).to_string(), "gradus=info,off");
        assert_eq!(filter(Level::WARN, 1).to_string(), "gradus=warn,info");
        assert_eq!(filter(Level::INFO, 6).to_string(), "hyper_util=info,gradus=info,debug");
        assert_eq!(filter(Level::DEBUG, 0).to_string(), "gradus=debug,off", "our decisions alone");
        assert_eq!(filter(Level::TRACE, 0).to_string(), "hyper_util=info,trace");
    }
}
