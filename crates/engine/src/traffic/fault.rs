//! What keeps a router from its work, as data: the field at fault, the cause, and the message.

use crate::decision::{Kind, ObjectRef};
use crate::kinds;

/// Why a router cannot do what is wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct RouteFault {
    /// The field of the Rollout that leads to it.
    pub path: String,
    /// What somebody must do about it.
    pub cause: FaultCause,
    /// What is wrong, without the field.
    pub message: String,
    /// The reason of a further Event with this message, where the contract has one of its own.
    pub reason: Option<&'static str>,
}

/// What somebody must do about a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// Change the Rollout: its configuration cannot be carried out.
    Configuration,
    /// Create this object: the router needs it.
    Missing(Box<ObjectRef>),
    /// Change this object: it is there and cannot be used.
    Unfit(Box<ObjectRef>),
}

/// An object that a router reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The object.
    pub object: ObjectRef,
    /// The field of the Rollout that names it, or from which its name is made.
    pub field: String,
    /// Must it be there before the router can work? Objects that the router makes need not.
    pub is_required: bool,
}

impl Need {
    /// An object that must be there.
    pub fn required(object: ObjectRef, field: impl Into<String>) -> Self {
        Need { object, field: field.into(), is_required: true }
    }

    /// An object that may be there.
    pub fn optional(object: ObjectRef, field: impl Into<String>) -> Self {
        Need { object, field: field.into(), is_required: false }
    }
}

impl RouteFault {
    /// The configuration cannot be carried out.
    pub fn configuration(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        RouteFault { path, cause: FaultCause::Configuration, message, reason: None }
    }

    /// An object is needed and not there.
    pub fn missing(need: &Need) -> Self {
        let (path, object) = (need.field.clone(), need.object.clone());
        let name = &object.name;
        let message = format!("Invalid value: {name:?}: {}", not_found(&object));
        RouteFault { path, cause: FaultCause::Missing(Box::new(object)), message, reason: None }
    }

    /// An object is there and cannot be used.
    pub fn unfit(need: &Need, message: impl Into<String>) -> Self {
        let (path, cause) = (need.field.clone(), FaultCause::Unfit(Box::new(need.object.clone())));
        RouteFault { path, cause, message: message.into(), reason: None }
    }

    /// The same, in the contract's words for it, with an Event of its own.
    pub fn told(self, reason: &'static str, message: String) -> Self {
        RouteFault { message, reason: Some(reason), ..self }
    }
}

/// What a server says of an object that is not there.
pub(super) fn not_found(object: &ObjectRef) -> String {
    let Kind { group, plural, .. } = &object.kind;
    // The contract names an Ingress in the singular.
    let resource = if object.kind == kinds::INGRESS { "ingress" } else { plural };
    format!("{resource}.{group} {:?} not found", &*object.name)
}
