//! Documents of bottles in every status.

use super::document;
use crate::serve::web::tests::stage::Stage;

#[tokio::test]
async fn the_document_of_a_bottle_that_needs_a_person() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/stuck", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/stuck",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 1,
        "owner": "acme",
        "repo": "widget",
        "title": "Login fails when the password holds a colon",
        "url": "https://git.example/acme/widget/issues/1"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": null,
      "published": null,
      "pull": {
        "number": 101,
        "url": "https://git.example/acme/widget/pulls/101"
      },
      "question": null,
      "reason": "the agent asks which of the two auth flows is meant",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "stuck",
      "status": "needs-attention",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        },
        {
          "at": "[TIME]",
          "more": "the agent asks which of the two auth flows is meant",
          "status": "needs-attention",
          "what": "needs-attention"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_bottle_that_waits() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/waiting", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/waiting",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 2,
        "owner": "acme",
        "repo": "widget",
        "title": "Export the report as CSV",
        "url": "https://git.example/acme/widget/issues/2"
      },
      "not_before": "[TIME]",
      "orchestrated": true,
      "progress": null,
      "published": null,
      "pull": {
        "number": 102,
        "url": "https://git.example/acme/widget/pulls/102"
      },
      "question": null,
      "reason": "the model's quota is used up",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "waiting",
      "status": "waiting",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        },
        {
          "at": "[TIME]",
          "more": "the model's quota is used up",
          "status": "waiting",
          "what": "waiting"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_bottle_under_review() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/reviewed", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/reviewed",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 4,
        "owner": "acme",
        "repo": "widget",
        "title": "Dark mode for the settings page",
        "url": "https://git.example/acme/widget/issues/4"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": null,
      "published": null,
      "pull": {
        "number": 104,
        "url": "https://git.example/acme/widget/pulls/104"
      },
      "question": null,
      "reason": "its pull request waits for review",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "reviewed",
      "status": "frozen",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        },
        {
          "at": "[TIME]",
          "more": "its pull request waits for review",
          "status": "frozen",
          "what": "frozen"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_bottle_that_runs() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/busy", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/busy",
      "cost_usd": 0.42,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 3,
        "owner": "acme",
        "repo": "widget",
        "title": "Speed up the search on large repositories",
        "url": "https://git.example/acme/widget/issues/3"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": {
        "cost_usd": 0.42,
        "doing": "the agent is running",
        "run": "widget_[STAMP]",
        "started_at": "[TIME]",
        "step": "forged",
        "tokens": 4
      },
      "published": null,
      "pull": null,
      "question": null,
      "reason": "its bottle is there",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "busy",
      "status": "running",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": null
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_bottle_that_is_destroyed() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/gone", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/gone",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 5,
        "owner": "acme",
        "repo": "widget",
        "title": "Fix a typo in the footer",
        "url": "https://git.example/acme/widget/issues/5"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": null,
      "published": null,
      "pull": {
        "number": 105,
        "url": "https://git.example/acme/widget/pulls/105"
      },
      "question": null,
      "reason": "its pull request was merged",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "gone",
      "status": "destroyed",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        },
        {
          "at": "[TIME]",
          "more": "its pull request waits for review",
          "status": "frozen",
          "what": "frozen"
        },
        {
          "at": "[TIME]",
          "more": "its pull request was merged",
          "status": "destroyed",
          "what": "destroyed"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_bottle_that_was_started_by_hand() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/by-hand", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "base_branch": "main",
      "branch": "bot-bottle/by-hand",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": null,
      "not_before": null,
      "orchestrated": false,
      "progress": null,
      "published": null,
      "pull": null,
      "question": null,
      "reason": "the work holds",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "by-hand",
      "status": "frozen",
      "timeline": [],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}
