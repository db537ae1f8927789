//! Tests that need the machine: the abuse kit against boxes and against no box at all.

mod abuse;
