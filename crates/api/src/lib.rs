//! What a user can write: the kinds of `argoproj.io/v1alpha1` as read-only views.
