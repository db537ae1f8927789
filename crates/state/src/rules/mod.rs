//! Which status may follow which. Pure.

pub(crate) mod status;
