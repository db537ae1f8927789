//! Promises of every engine: functions over an [`Engine`], which `conformance!` makes the tests of one.

use std::sync::Arc;

use orchestrator_db::{IssueKey, Store};

pub(crate) mod budget;
pub(crate) mod fence;
pub(crate) mod issue;
pub(crate) mod outbox;
pub(crate) mod process;
pub(crate) mod saved;
pub(crate) mod work;

/// An engine with a database of its own.
pub(crate) trait Engine: Sync {
    /// Connects to the same database, again and again.
    fn open(&self) -> Arc<dyn Store>;

    /// Executes a statement behind the store's back.
    fn execute(&self, sql: &str);

    /// Ends all leases, of issues and of chores.
    fn expire_leases(&self);
}

/// Hands the list of all promises to another macro: `as_tests` makes the tests of one engine, `$new` with an empty database.
macro_rules! with_promises {
    ($then:ident!($($first:tt)*)) => {
        $crate::conformance::$then! { $($first)*
            issue { a_bottle_is_read_back_as_it_was_stored
                an_issue_without_a_bottle_has_none
                an_issue_gets_a_second_bottle_only_after_the_first_is_destroyed
                a_bottle_that_was_never_made_is_deleted_once
                all_bottles_are_listed_in_order
                what_one_connection_stores_another_one_reads
                a_step_is_taken_if_the_status_allows_it
                a_sign_of_life_changes_no_state_and_keeps_the_pull_request
                of_many_who_rehydrate_a_bottle_at_once_one_does
                of_many_who_make_a_bottle_for_an_issue_at_once_one_does
                a_bottle_is_written_by_its_host_alone
                a_bottle_of_an_unnamed_host_becomes_that_of_its_first_writer
                an_issue_is_claimed_by_the_host_that_has_its_bottle
                a_summary_is_written_by_the_host_of_its_bottle_and_goes_with_it }
            saved { a_saved_state_is_read_back_and_goes_with_its_bottle
                a_bottle_that_is_saved_moves_to_the_host_that_claims_it
                an_older_owner_saves_and_moves_nothing
                what_a_holder_waits_for_is_told_and_changes_no_state }
            work { a_delivery_that_comes_twice_counts_once
                deliveries_wait_in_their_order_until_they_are_handled_and_outlive_the_store
                only_what_was_handled_is_forgotten
                work_is_claimed_in_the_order_in_which_it_was_queued
                an_issue_has_one_piece_of_work_at_a_time
                an_issue_whose_bottle_is_gone_can_be_queued_again
                who_lost_its_claim_is_fenced_off
                work_that_waits_is_claimed_when_it_is_due_and_not_before
                leases_are_renewed_by_their_holder_alone
                every_step_is_an_event_with_its_reason
                what_came_in_is_read_in_order_and_counted
                the_last_event_is_known_by_its_number
                a_priority_moves_an_item_by_minutes_and_overtakes_nobody_for_ever
                what_waits_for_a_condition_keeps_its_place
                what_changed_since_it_was_read_is_not_claimed
                an_issue_that_comes_after_another_waits_from_the_start
                a_page_of_the_queue_is_its_front_and_all_that_wait_for_a_budget
                what_is_to_be_maintained_is_found_without_the_queue
                actions_of_users_are_read_beside_webhooks }
            fence { an_older_owner_takes_no_step
                an_older_owner_sets_no_order
                an_older_owner_schedules_no_destruction
                an_older_owner_forgets_no_work
                an_older_owner_saves_no_status_comment
                an_older_owner_adds_no_bottle
                an_older_owner_writes_no_bottle
                an_older_owner_reserves_no_run
                an_older_owner_renews_and_reclaims_nothing
                a_lease_that_has_expired_is_not_renewed_but_claimed_once_more
                a_lease_that_runs_is_taken_from_no_other_host
                a_lease_ends_by_itself
                a_claim_is_raised_above_what_a_forge_has_seen_and_an_older_one_is_not
                a_fence_is_never_given_out_twice
                of_two_claims_with_one_number_the_other_one_is_refused
                of_many_who_claim_an_issue_at_once_one_gets_it
                of_many_who_take_over_an_issue_at_once_one_gets_it
                a_write_that_races_a_takeover_comes_first_or_is_refused
                two_owners_share_out_a_queue_without_loss_and_nothing_twice
                an_event_that_is_read_later_has_a_greater_number }
            budget { two_claims_at_once_do_not_pass_a_budget_together
                a_reservation_is_bound_to_its_run_and_counts_once
                a_claim_that_starts_no_run_releases_its_reservation_with_its_end
                what_nobody_counted_counts_as_its_reservation_and_without_one_as_the_most_of_a_run
                each_scope_counts_its_own_runs_and_each_run_in_one_day
                a_run_that_crosses_midnight_spends_no_second_budget
                money_and_tokens_are_limited_each_by_itself }
            outbox { a_dispatch_is_stored_once_and_read_as_it_was
                a_schedule_moves_with_what_it_asks_for
                a_subject_is_told_once_through_every_channel
                what_was_found_in_an_organisation_is_replaced_as_a_whole }
            process { a_chore_has_one_holder_at_a_time
                a_chore_goes_to_another_one_when_its_lease_ends_or_it_is_given_up
                the_chores_of_a_host_are_given_up_by_its_next_process
                of_many_who_want_a_chore_at_once_one_gets_it
                a_text_with_any_character_is_stored }
        }
    };
}
pub(crate) use with_promises;

macro_rules! conformance {
    ($new:expr) => {
        $crate::conformance::with_promises! { as_tests!(@ $new;) }
    };
}
pub(crate) use conformance;

macro_rules! as_tests {
    (@ $new:expr; $($group:ident { $($promise:ident)* })*) => {
        $(
            mod $group {
                use super::*;
                $(
                    #[test]
                    fn $promise() {
                        $crate::conformance::$group::$promise(&$new);
                    }
                )*
            }
        )*
    };
}
pub(crate) use as_tests;

/// All promises with their names.
#[cfg(feature = "postgres")]
macro_rules! as_list {
    ($($group:ident { $($promise:ident)* })*) => {
        [$($((
            stringify!($promise),
            $crate::conformance::$group::$promise as fn(&dyn $crate::conformance::Engine),
        ),)*)*]
    };
}
#[cfg(feature = "postgres")]
pub(crate) use as_list;

pub(crate) fn key(owner: &str, repo: &str, issue_number: u64) -> IssueKey {
    IssueKey { owner: owner.to_owned(), repo: repo.to_owned(), issue_number }
}
