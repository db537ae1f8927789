//! `wf`: takes a planned workstream through micro-commits: implement, test, review, QA, docs, acceptance, merge, with
//! people at the gates.

mod disk;
mod exit;
mod rules;
