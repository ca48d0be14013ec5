//! Tables: what the server adds to an object and what it refuses.
