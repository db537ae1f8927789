//! Which status may follow which. Pure.

pub(crate) mod holder;
pub(crate) mod lifecycle;
pub(crate) mod status;
