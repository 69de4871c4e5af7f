//! (module go_format)
