//! What tests share: object builders, and a real API server started on demand.
