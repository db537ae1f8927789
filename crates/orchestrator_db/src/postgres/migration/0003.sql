-- What other hosts need to know of a bottle; the hosts; and indexes for what is due, so that no look reads the whole queue.
ALTER TABLE forge_state ADD COLUMN summary TEXT;
CREATE TABLE host (
    name TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    place TEXT NOT NULL,
    version TEXT NOT NULL,
    role TEXT NOT NULL,
    slots BIGINT NOT NULL,
    busy BIGINT NOT NULL,
    disk_free_bytes BIGINT,
    seen_at TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    -- The role of the database that reports it: no other one may.
    login TEXT NOT NULL DEFAULT session_user
);
CREATE INDEX work_rank ON work (((queued_at AT TIME ZONE 'UTC') - priority_mins * interval '1 minute'))
    WHERE state IN ('queued', 'waiting') AND waits_for IS NULL;
CREATE INDEX work_for_budget ON work (owner, repo, issue_number) WHERE state = 'waiting' AND waits_for = 'budget';
CREATE INDEX work_to_destroy ON work (destroy_at) WHERE destroy_at IS NOT NULL;
CREATE INDEX forge_state_of_host ON forge_state (host) WHERE status <> 'destroyed';
