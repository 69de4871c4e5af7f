//! Whole-system tests with real third-party controllers.
