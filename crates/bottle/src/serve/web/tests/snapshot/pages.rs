//! Pages as people read them.

use super::read;
use crate::serve::web::tests::stage::Stage;

#[tokio::test]
async fn the_page_of_a_bottle_that_needs_a_person() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/stuck").await), @"
    status: 200
    Login fails when the password holds a colon · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / stuck
    Login fails when the password holds a colon
    needs you
    the agent asks which of the two auth flows is meant
    acme/widget#1
    PR #101
    worker
    N min ago
    $1.27
    Runs
    1
    the work holds
    N min ago
    took N min
    2 commits
    $1.27
    Events
    needs-attention
    N min ago
    the agent asks which of the two auth flows is meant
    running
    N min ago
    its bottle is there
    claimed
    N min ago
    a slot is free
    queued
    N min ago
    assigned to bot1
    Details
    branch
    bot-bottle/stuck
    for
    main
    sandbox
    bwrap
    began
    N min ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_bottle_that_waits() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/waiting").await), @"
    status: 200
    Export the report as CSV · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / waiting
    Export the report as CSV
    waiting
    the model's quota is used up
    acme/widget#2
    PR #102
    worker
    N min ago
    continues
    in N min
    $1.27
    Runs
    1
    the work holds
    N min ago
    took N min
    2 commits
    $1.27
    Events
    waiting
    N min ago
    the model's quota is used up
    running
    N min ago
    its bottle is there
    claimed
    N min ago
    a slot is free
    queued
    N min ago
    assigned to bot1
    Details
    branch
    bot-bottle/waiting
    for
    main
    sandbox
    bwrap
    began
    N min ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_bottle_under_review() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/reviewed").await), @"
    status: 200
    Dark mode for the settings page · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / reviewed
    Dark mode for the settings page
    frozen
    its pull request waits for review
    acme/widget#4
    PR #104
    worker
    N min ago
    $1.27
    Runs
    1
    the work holds
    N min ago
    took N min
    2 commits
    $1.27
    Events
    frozen
    N min ago
    its pull request waits for review
    running
    N min ago
    its bottle is there
    claimed
    N min ago
    a slot is free
    queued
    N min ago
    assigned to bot1
    Details
    branch
    bot-bottle/reviewed
    for
    main
    sandbox
    bwrap
    began
    N min ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_bottle_that_runs() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/busy").await), @"
    status: 200
    Speed up the search on large repositories · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / busy
    Speed up the search on large repositories
    running
    its bottle is there
    forged
    N min
    so far
    the agent is running
    4 tokens
    $0.42 so far
    acme/widget#3
    worker
    N min ago
    $0.42
    watch
    Runs
    1
    the agent is running
    N min ago
    $0.42
    Events
    running
    N min ago
    its bottle is there
    claimed
    N min ago
    a slot is free
    queued
    N min ago
    assigned to bot1
    Details
    branch
    bot-bottle/busy
    for
    main
    sandbox
    bwrap
    began
    N min ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_bottle_that_is_destroyed() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/gone").await), @"
    status: 200
    Fix a typo in the footer · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / gone
    Fix a typo in the footer
    destroyed
    its pull request was merged
    acme/widget#5
    PR #105
    worker
    N min ago
    $1.27
    Runs
    1
    the work holds
    N min ago
    took N min
    2 commits
    $1.27
    Events
    destroyed
    N min ago
    its pull request was merged
    frozen
    N min ago
    its pull request waits for review
    running
    N min ago
    its bottle is there
    claimed
    N min ago
    a slot is free
    queued
    N min ago
    assigned to bot1
    Details
    branch
    bot-bottle/gone
    for
    main
    sandbox
    bwrap
    began
    N min ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_bottle_that_was_started_by_hand() {
    insta::assert_snapshot!(read(&Stage::open().furnished().get("/bottles/by-hand").await), @"
    status: 200
    by-hand · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    / by-hand
    by-hand
    frozen
    the work holds
    worker
    N min ago
    $1.27
    Runs
    1
    the work holds
    N min ago
    took N min
    2 commits
    $1.27
    Details
    branch
    bot-bottle/by-hand
    for
    main
    sandbox
    bwrap
    began
    5 h ago
    as JSON
    bottle
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_without_bottles() {
    insta::assert_snapshot!(read(&Stage::open().get("/").await), @"
    status: 200
    Bottles · bot-bottle
    Skip to content
    bot-bottle
    read only
    No bottles yet
    this page is read-only; set admin_token_file or user_header in the configuration of bot-bottle serve.
    Assign an issue to a member of the bots' organisation and label it
    bot-bottle:&lt;agent&gt;
    .
    Notify me when a bottle needs me
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_login_page() {
    insta::assert_snapshot!(read(&Stage::guarded().get("/login").await), @"
    status: 200
    Log in · bot-bottle
    Skip to content
    bot-bottle
    Log in
    Admin token
    Log in
    It is in the file named by
    admin_token_file
    .
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn a_login_with_a_wrong_token() {
    insta::assert_snapshot!(read(&Stage::guarded().post("/login", "", "admin_token=wrong").await), @"
    status: 401
    Log in · bot-bottle
    Skip to content
    bot-bottle
    Log in
    That is not the token.
    Admin token
    Log in
    It is in the file named by
    admin_token_file
    .
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn a_page_that_is_not_there() {
    insta::assert_snapshot!(read(&Stage::open().get("/nowhere").await), @"
    status: 404
    Not Found · bot-bottle
    Skip to content
    bot-bottle
    404
    Not Found
    there is nothing at this address
    All bottles
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn a_bottle_that_is_not_there() {
    insta::assert_snapshot!(read(&Stage::open().get("/bottles/ghost").await), @"
    status: 404
    Not Found · bot-bottle
    Skip to content
    bot-bottle
    404
    Not Found
    there is no bottle 'ghost'; see: bot-bottle list
    All bottles
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}

#[tokio::test]
async fn the_page_of_a_run_that_is_not_over() {
    let stage = Stage::open().furnished();
    let page = stage.get(&format!("/runs/busy/{}", stage.run_of("busy"))).await;
    insta::assert_snapshot!(read(&page), @"
    status: 200
    widget_[STAMP] · bot-bottle
    Skip to content
    bot-bottle
    read only
    Bottles
    /
    busy
    / widget_[STAMP]
    the agent is running
    running
    agent
    worker · claude
    model
    anthropic/claude-sonnet
    sandbox
    bwrap
    began
    N min ago
    elapsed
    N min
    cost
    $0.42
    tokens
    4 so far
    pull request
    #101
    secrets, built-in
    none found
    as JSON
    provenance
    ,
    run
    Log
    live
    Search in the log
    Search
    Steps
    Text
    Raw events
    Download
    At work on:
    Standard error
    warning: slow disk
    Operations
    3
    intended
    branch.push
    bot-bottle/work
    done
    branch.push
    bot-bottle/work
    refused
    comment.create
    As JSON
    Events
    run started
    N min ago
    from aaaaaaaaaaaa
    bot-bottle 0.1.0 ·
    history
    ·
    service
    ·
    spending
    ·
    API
    ·
    metrics
    ");
}
