//! One connection to a plugin: its streams, its dispenser, and the calls of its interface.

use serde_json::Value as Json;

use crate::gob::{Argument, EncodeError, GobError, Value};
use crate::rpc::{Answered, RpcClient};
use crate::yamux::{Incoming, Yamux};

/// The three interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginKind {
    /// Canary steps.
    Step,
    /// Metric providers.
    Metric,
    /// Traffic routers.
    Router,
}

impl PluginKind {
    /// What a plugin of this kind must find in its environment.
    pub fn cookie(self) -> (&'static str, &'static str) {
        let value = match self {
            PluginKind::Step => "step",
            PluginKind::Metric => "metricprovider",
            PluginKind::Router => "trafficrouter",
        };
        ("ARGO_ROLLOUTS_RPC_PLUGIN", value)
    }

    fn dispensed(self) -> &'static str {
        match self {
            PluginKind::Step => "RpcStepPlugin",
            PluginKind::Metric => "RpcMetricProviderPlugin",
            PluginKind::Router => "RpcTrafficRouterPlugin",
        }
    }

    /// The type of the argument of a method, and the name that plugins know it by.
    fn argument(self, method: &str) -> Option<(&'static str, &'static str)> {
        Some(match (self, method) {
            (PluginKind::Step, "Run") => ("step.RunArgs", "StepRunArgs"),
            (PluginKind::Step, "Terminate") => ("step.TerminateArgs", "StepTerminateArgs"),
            (PluginKind::Step, "Abort") => ("step.AbortArgs", "StepAbortArgs"),
            (PluginKind::Metric, "Run") => same("RunArgs"),
            (PluginKind::Metric, "Resume" | "Terminate") => same("TerminateAndResumeArgs"),
            (PluginKind::Metric, "GarbageCollect") => same("GarbageCollectArgs"),
            (PluginKind::Metric, "GetMetadata") => same("GetMetadataArgs"),
            (PluginKind::Router, "UpdateHash") => same("UpdateHashArgs"),
            (PluginKind::Router, "SetWeight" | "VerifyWeight") => {
                same("SetWeightAndVerifyWeightArgs")
            }
            (PluginKind::Router, "SetHeaderRoute") => same("SetHeaderArgs"),
            (PluginKind::Router, "SetMirrorRoute") => same("SetMirrorArgs"),
            (PluginKind::Router, "RemoveManagedRoutes") => same("RemoveManagedRoutesArgs"),
            _ => return None,
        })
    }
}

fn same(name: &'static str) -> (&'static str, &'static str) {
    (name, name)
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Calls are heard from now on.
    Ready,
    /// A call has come to its end.
    Answered {
        /// The call, as [`Session::call`] named it.
        call: u64,
        /// What came of it.
        outcome: Result<Value, CallError>,
    },
    /// The plugin has printed something.
    Printed(Printed, Vec<u8>),
    /// A ping was answered.
    Pong(u32),
    /// The plugin has ended the connection, or its interface.
    Closed,
}

/// Where something was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// Why a call has no reply. The texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The plugin's side of net/rpc refused it.
    #[error("{0}")]
    Refused(String),
    /// The plugin went away while it was called.
    #[error("unexpected EOF")]
    Gone,
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It is no yamux.
    #[error("the plugin sends frames that are none of yamux")]
    Frame,
    /// It sends more than it may.
    #[error("the plugin sends more than the window of its stream allows")]
    Window,
    /// It does nothing but ask.
    #[error("the plugin floods the connection with pings")]
    Flood,
    /// It is no gob.
    #[error(transparent)]
    Gob(#[from] GobError),
    /// It has no interface of this kind.
    #[error("{0}")]
    Dispense(String),
}

/// One connection to a plugin.
#[derive(Debug)]
pub struct Session {
    kind: PluginKind,
    link: Yamux,
    control: (u32, RpcClient),
    out: u32,
    err: u32,
    interface: Interface,
    events: Vec<Event>,
    calls: u64,
}

/// The way to the interface.
#[derive(Debug)]
enum Interface {
    /// The dispenser was asked, by this call.
    Asked(u64),
    /// The number it gave was sent; so many bytes of it came back.
    Dialled { stream: u32, id: [u8; 4], echoed: usize },
    /// It can be called.
    Open { stream: u32, rpc: RpcClient },
    /// It has ended.
    Over,
}

impl Session {
    /// Begins a connection, and asks for the interface of this kind.
    pub fn new(kind: PluginKind) -> Self {
        let mut link = Yamux::default();
        let (control, out, err) = (link.open(), link.open(), link.open());
        let mut session = Session {
            kind,
            link,
            control: (control, RpcClient::new()),
            out,
            err,
            interface: Interface::Over,
            events: Vec::new(),
            calls: 0,
        };
        let name = Argument::Text(kind.dispensed());
        session.interface = Interface::Asked(session.control("Dispenser.Dispense", name));
        session
    }

    /// Calls a method of the interface; its argument is built from JSON. Before [`Event::Ready`] and
    /// after [`Event::Closed`] nobody is there to hear it.
    pub fn call(&mut self, method: &str, argument: &Json) -> Result<u64, EncodeError> {
        self.calls += 1;
        let call = self.calls;
        let Interface::Open { stream, rpc } = &mut self.interface else {
            self.events.push(Event::Answered { call, outcome: Err(CallError::Gone) });
            return Ok(call);
        };
        let argument = match self.kind.argument(method) {
            Some((registered, name)) => Argument::Struct { registered, name, value: argument },
            None if ["InitPlugin", "Type"].contains(&method) => Argument::Nil,
            // What Go does not know it skips, but of nothing it would skip the request behind it.
            None => Argument::True,
        };
        let bytes = rpc.call(call, &format!("Plugin.{method}"), argument)?;
        self.link.send(*stream, &bytes);
        Ok(call)
    }

    /// Asks the plugin whether it is there.
    pub fn ping(&mut self) -> u64 {
        self.control("Control.Ping", Argument::True)
    }

    /// Asks the plugin to end.
    pub fn quit(&mut self) -> u64 {
        self.control("Control.Quit", Argument::True)
    }

    /// Asks whether the connection is there.
    pub fn keep_alive(&mut self) -> u32 {
        self.link.ping()
    }

    /// Takes in what the plugin sent. After an error the connection must be ended.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        for incoming in self.link.feed(bytes)? {
            match incoming {
                Incoming::Data(stream, data) => self.heard(stream, &data)?,
                Incoming::Closed(stream) => self.closed(stream),
                Incoming::Pong(number) => self.events.push(Event::Pong(number)),
                Incoming::Leaving => self.end(),
            }
        }
        Ok(())
    }

    /// Bytes that are kept: of what the plugin sent no more than a window and two messages.
    pub fn held(&self) -> usize {
        let interface = match &self.interface {
            Interface::Open { rpc, .. } => rpc.held(),
            Interface::Asked(_) | Interface::Dialled { .. } | Interface::Over => 0,
        };
        self.link.held() + self.control.1.held() + interface
    }

    /// What must be sent to the plugin.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.link.take_output()
    }

    /// What happened since it was last asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The connection is gone: nobody answers any more.
    pub fn end(&mut self) {
        let mut lost = self.control.1.end();
        if let Interface::Open { rpc, .. } = &mut self.interface {
            lost.extend(rpc.end());
        }
        self.interface = Interface::Over;
        self.answered(lost);
        self.events.push(Event::Closed);
    }

    fn control(&mut self, method: &str, argument: Argument<'_>) -> u64 {
        self.calls += 1;
        let (stream, rpc) = &mut self.control;
        let bytes = rpc.call(self.calls, method, argument);
        let bytes = bytes.expect("arguments of go-plugin itself can be encoded");
        self.link.send(*stream, &bytes);
        self.calls
    }

    fn heard(&mut self, stream: u32, data: &[u8]) -> Result<(), ProtocolError> {
        if stream == self.control.0 {
            let answered = self.control.1.feed(data)?;
            return self.control_answered(answered);
        }
        if stream == self.out || stream == self.err {
            let place = if stream == self.out { Printed::Out } else { Printed::Err };
            self.events.push(Event::Printed(place, data.to_vec()));
            return Ok(());
        }
        let mut data = data;
        if let Interface::Dialled { stream: ours, id, echoed } = &mut self.interface
            && *ours == stream
        {
            let taken = data.len().min(id.len() - *echoed);
            if data[..taken] != id[*echoed..*echoed + taken] {
                let text = "the plugin opens another stream than the one asked for".to_owned();
                return Err(ProtocolError::Dispense(text));
            }
            *echoed += taken;
            data = &data[taken..];
            if *echoed == id.len() {
                self.interface = Interface::Open { stream, rpc: RpcClient::new() };
                self.events.push(Event::Ready);
            }
        }
        if let Interface::Open { stream: ours, rpc } = &mut self.interface
            && *ours == stream
            && !data.is_empty()
        {
            let answered = rpc.feed(data)?;
            self.answered(answered);
        }
        Ok(())
    }

    /// Answers of go-plugin itself: the first is that of the dispenser.
    fn control_answered(&mut self, answered: Vec<Answered>) -> Result<(), ProtocolError> {
        for (call, outcome) in answered {
            match (&self.interface, outcome) {
                (Interface::Asked(asked), outcome) if *asked == call => {
                    let id = match outcome {
                        Ok(Value::Uint(id)) => u32::try_from(id).ok(),
                        Ok(_) => None,
                        Err(error) => return Err(ProtocolError::Dispense(error.to_string())),
                    };
                    let odd = || "the dispenser's answer is no number".to_owned();
                    let id = id.ok_or_else(|| ProtocolError::Dispense(odd()))?.to_le_bytes();
                    let stream = self.link.open();
                    self.link.send(stream, &id);
                    self.interface = Interface::Dialled { stream, id, echoed: 0 };
                }
                (_, outcome) => self.answered(vec![(call, outcome)]),
            }
        }
        Ok(())
    }

    fn closed(&mut self, stream: u32) {
        let is_needed = match &self.interface {
            _ if stream == self.control.0 => true,
            Interface::Dialled { stream: ours, .. } | Interface::Open { stream: ours, .. } => {
                *ours == stream
            }
            Interface::Asked(_) | Interface::Over => false,
        };
        if is_needed {
            self.end();
        }
    }

    fn answered(&mut self, answered: Vec<Answered>) {
        let events = answered.into_iter().map(|(call, outcome)| Event::Answered { call, outcome });
        self.events.extend(events);
    }
}
