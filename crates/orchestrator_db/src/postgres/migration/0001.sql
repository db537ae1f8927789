-- Every time is the database's, except those that say when something is due. Deliveries and events are numbered by the number of
-- their transaction times 1024 above a base, and their place in it: whoever reads up to the oldest open transaction misses none.
-- The base is raised after a restore into another server, whose transactions begin with lower numbers.
CREATE TABLE place_base (
    id BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (id),
    base BIGINT NOT NULL
);
INSERT INTO place_base (base) VALUES (0);
CREATE TABLE forge_state (
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    slug TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    bottle_names TEXT NOT NULL,
    backend_name TEXT NOT NULL,
    agent_git_user TEXT NOT NULL,
    pr_number BIGINT,
    status TEXT NOT NULL CHECK (status IN ('running', 'frozen', 'destroyed')),
    last_checkin_at TIMESTAMPTZ NOT NULL,
    host TEXT,
    PRIMARY KEY (owner, repo, issue_number)
);
CREATE TABLE delivery (
    seq BIGINT PRIMARY KEY,
    source TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    event TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    thread TEXT NOT NULL CHECK (thread IN ('issue', 'pull')),
    number BIGINT NOT NULL,
    body BYTEA NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    handled_at TIMESTAMPTZ,
    UNIQUE (source, delivery_id)
);
CREATE INDEX delivery_unhandled ON delivery (seq) WHERE handled_at IS NULL;
CREATE INDEX delivery_of ON delivery (owner, repo, number);
CREATE TABLE work (
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'queued', 'claimed', 'running', 'frozen', 'waiting', 'needs-attention', 'destroyed')),
    request TEXT NOT NULL,
    trigger TEXT,
    title TEXT NOT NULL,
    slug TEXT,
    fence BIGINT NOT NULL,
    claim_id BIGINT NOT NULL,
    claims BIGINT NOT NULL,
    holder TEXT,
    lease_until TIMESTAMPTZ,
    not_before TIMESTAMPTZ,
    destroy_at TIMESTAMPTZ,
    attempts BIGINT NOT NULL,
    reason TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    queued_at TIMESTAMPTZ NOT NULL,
    priority_mins BIGINT NOT NULL DEFAULT 0,
    waits_for TEXT CHECK (waits_for IN ('budget', 'issues')),
    after TEXT NOT NULL DEFAULT '[]',
    CHECK ((holder IS NOT NULL) = (state IN ('claimed', 'running'))),
    PRIMARY KEY (owner, repo, issue_number)
);
CREATE INDEX work_open ON work (queued_at, owner, repo, issue_number) WHERE state IN ('queued', 'waiting');
CREATE INDEX work_held ON work (lease_until) WHERE holder IS NOT NULL;
CREATE INDEX work_of_holder ON work (holder) WHERE holder IS NOT NULL;
CREATE TABLE past_fence (
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    claim_id BIGINT NOT NULL,
    PRIMARY KEY (owner, repo, issue_number)
);
CREATE TABLE work_event (
    seq BIGINT PRIMARY KEY,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE INDEX work_event_of ON work_event (owner, repo, issue_number);
CREATE TABLE status_comment (
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    comment_id BIGINT,
    digest TEXT NOT NULL,
    PRIMARY KEY (owner, repo, issue_number)
);
CREATE TABLE spending (
    seq BIGSERIAL PRIMARY KEY,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    agent TEXT NOT NULL,
    run TEXT UNIQUE,
    day DATE NOT NULL,
    reserved_at TIMESTAMPTZ NOT NULL,
    reserved_tokens BIGINT,
    reserved_micro_usd BIGINT,
    settled_at TIMESTAMPTZ,
    tokens BIGINT,
    micro_usd BIGINT,
    host TEXT,
    CHECK (run IS NOT NULL OR settled_at IS NULL)
);
CREATE INDEX spending_of ON spending (owner, repo, issue_number);
CREATE INDEX spending_on ON spending (day);
CREATE UNIQUE INDEX spending_unstarted ON spending (owner, repo, issue_number) WHERE run IS NULL;
CREATE TABLE dispatch (
    id TEXT PRIMARY KEY,
    origin TEXT NOT NULL,
    schedule TEXT,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    agent TEXT NOT NULL,
    bottles TEXT NOT NULL,
    assignee TEXT,
    title TEXT NOT NULL,
    prompt TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'opening', 'opened', 'failed')),
    issue_number BIGINT,
    attempts BIGINT NOT NULL,
    not_before TIMESTAMPTZ,
    problem TEXT NOT NULL
);
CREATE INDEX dispatch_open ON dispatch (created_at) WHERE state IN ('pending', 'opening');
CREATE INDEX dispatch_of ON dispatch (owner, repo, issue_number);
CREATE TABLE schedule (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    last_due TIMESTAMPTZ NOT NULL
);
CREATE TABLE found_repository (
    source TEXT NOT NULL,
    full_name TEXT NOT NULL,
    PRIMARY KEY (source, full_name)
);
CREATE TABLE notice (
    seq BIGSERIAL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE TABLE notice_delivery (
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'failed')),
    attempts BIGINT NOT NULL,
    not_before TIMESTAMPTZ,
    problem TEXT NOT NULL,
    PRIMARY KEY (notice_id, channel)
);
CREATE INDEX notice_open ON notice_delivery (notice_id) WHERE state IN ('pending', 'sending');
CREATE TABLE user_action (
    delivery_id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue_number BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL
);
CREATE TABLE cursor (
    name TEXT PRIMARY KEY,
    seq BIGINT NOT NULL
);
CREATE TABLE chore (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL
);
