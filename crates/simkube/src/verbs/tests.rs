//! Tables: what each verb does, and how it refuses.
