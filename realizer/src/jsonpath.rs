//! (module jsonpath)
