//! The shell shared by all controllers: watches, writes, tokens, status, events, leases, telemetry.
