-- What the login of a worker may see and write: views of a schema of their own, under the names of the tables, so that the same
-- statements work there. On the tables themselves such a login has no rights. A view shows the rows of the login's own hosts;
-- the triggers refuse every write that a worker never makes. `bot-bottle fleet role` prints the grants.
-- What is left of one whose tables were dropped goes.
DROP SCHEMA IF EXISTS bot_bottle_worker CASCADE;
CREATE SCHEMA bot_bottle_worker;

CREATE VIEW bot_bottle_worker.host WITH (security_barrier) AS
    SELECT * FROM host WHERE login = session_user;

CREATE VIEW bot_bottle_worker.work WITH (security_barrier) AS
    SELECT * FROM work
    WHERE split_part(holder, '/', 1) IN (SELECT name FROM host WHERE login = session_user)
    OR lease_until <= clock_timestamp()
    OR (holder IS NULL AND state IN ('queued', 'waiting') AND NOT EXISTS (
        SELECT 1 FROM forge_state AS bottle WHERE bottle.owner = work.owner AND bottle.repo = work.repo
        AND bottle.issue_number = work.issue_number AND bottle.status <> 'destroyed'
        AND bottle.host NOT IN (SELECT name FROM host WHERE login = session_user)
        AND (bottle.saved IS NULL OR work.updated_at > clock_timestamp() - interval '10 seconds')))
    -- A host that has removed its bottle still says so.
    OR EXISTS (
        SELECT 1 FROM forge_state AS bottle WHERE bottle.owner = work.owner AND bottle.repo = work.repo
        AND bottle.issue_number = work.issue_number AND (bottle.status <> 'destroyed' OR work.holder IS NULL)
        AND bottle.host IN (SELECT name FROM host WHERE login = session_user));

-- True if the login's hosts hold an issue, or have its bottle.
CREATE FUNCTION bot_bottle_worker.is_own(issue_owner TEXT, issue_repo TEXT, number BIGINT) RETURNS BOOLEAN
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM work AS it WHERE it.owner = issue_owner AND it.repo = issue_repo
            AND it.issue_number = number
            AND split_part(it.holder, '/', 1) IN (SELECT name FROM host WHERE login = session_user))
        OR EXISTS (SELECT 1 FROM forge_state AS it WHERE it.owner = issue_owner AND it.repo = issue_repo
            AND it.issue_number = number AND it.host IN (SELECT name FROM host WHERE login = session_user)
            AND (it.status <> 'destroyed' OR NOT EXISTS (SELECT 1 FROM work AS held WHERE held.owner = issue_owner
                AND held.repo = issue_repo AND held.issue_number = number AND held.holder IS NOT NULL)));
END $$;

CREATE VIEW bot_bottle_worker.forge_state WITH (security_barrier) AS
    SELECT * FROM forge_state WHERE bot_bottle_worker.is_own(owner, repo, issue_number);
CREATE VIEW bot_bottle_worker.delivery WITH (security_barrier) AS
    SELECT * FROM delivery WHERE thread = 'issue' AND bot_bottle_worker.is_own(owner, repo, number);
CREATE VIEW bot_bottle_worker.user_action WITH (security_barrier) AS
    SELECT * FROM user_action WHERE bot_bottle_worker.is_own(owner, repo, issue_number);
CREATE VIEW bot_bottle_worker.work_event WITH (security_barrier) AS
    SELECT * FROM work_event WHERE bot_bottle_worker.is_own(owner, repo, issue_number);
CREATE VIEW bot_bottle_worker.past_fence WITH (security_barrier) AS
    SELECT * FROM past_fence WHERE bot_bottle_worker.is_own(owner, repo, issue_number);
CREATE VIEW bot_bottle_worker.spending WITH (security_barrier) AS
    SELECT * FROM spending WHERE host IN (SELECT name FROM host WHERE login = session_user)
    OR bot_bottle_worker.is_own(owner, repo, issue_number);
CREATE VIEW bot_bottle_worker.found_repository AS SELECT * FROM found_repository;
CREATE VIEW bot_bottle_worker.place_base AS SELECT * FROM place_base;
CREATE VIEW bot_bottle_worker.bot_bottle_schema AS SELECT * FROM bot_bottle_schema;

-- Amounts alone, for the sums that budgets are compared with.
CREATE VIEW spending_amount AS
    SELECT owner, repo, issue_number, day, settled_at, reserved_tokens, reserved_micro_usd, tokens, micro_usd
    FROM spending;
CREATE VIEW bot_bottle_worker.spending_amount AS SELECT * FROM spending_amount;

CREATE FUNCTION bot_bottle_worker.next_spending() RETURNS BIGINT
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN nextval(pg_get_serial_sequence('spending', 'seq'));
END $$;
ALTER VIEW bot_bottle_worker.spending ALTER COLUMN seq SET DEFAULT bot_bottle_worker.next_spending();

-- True for the owner of the tables and its members, for whom the program alone decides.
CREATE FUNCTION bot_bottle_worker.is_owner(tables OID) RETURNS BOOLEAN LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class WHERE oid = tables
$$;

CREATE FUNCTION bot_bottle_worker.guard_host() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF bot_bottle_worker.is_owner(TG_RELID) THEN RETURN NEW; END IF;
    IF NEW.login <> session_user THEN RAISE insufficient_privilege USING MESSAGE = 'a host of another login'; END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.login <> session_user OR NEW.name <> OLD.name THEN
            RAISE insufficient_privilege USING MESSAGE = 'a host of another login';
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION bot_bottle_worker.guard_work() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    own TEXT[] := ARRAY(SELECT name FROM host WHERE login = session_user);
    place TEXT;
    is_saved BOOLEAN;
BEGIN
    IF bot_bottle_worker.is_owner(TG_RELID) THEN RETURN NEW; END IF;
    IF (NEW.owner, NEW.repo, NEW.issue_number, NEW.created_at)
        IS DISTINCT FROM (OLD.owner, OLD.repo, OLD.issue_number, OLD.created_at) OR NEW.fence < OLD.fence
        OR (NEW.holder IS NOT NULL AND NOT split_part(NEW.holder, '/', 1) = ANY (own)) THEN
        RAISE insufficient_privilege USING MESSAGE = 'no step of a worker';
    END IF;
    -- A claim of its own may be lost or given back.
    IF split_part(OLD.holder, '/', 1) = ANY (own) THEN RETURN NEW; END IF;
    IF OLD.holder IS NOT NULL AND OLD.lease_until > clock_timestamp() THEN
        RAISE insufficient_privilege USING MESSAGE = 'the claim of another host';
    END IF;
    SELECT host, saved IS NOT NULL INTO place, is_saved FROM forge_state WHERE owner = OLD.owner AND repo = OLD.repo
        AND issue_number = OLD.issue_number AND status <> 'destroyed';
    -- Nobody has claimed it, and its bottle is on a host of its own, or was until it was removed.
    IF OLD.holder IS NULL AND place = ANY (own) THEN RETURN NEW; END IF;
    IF OLD.holder IS NULL AND (NEW.state = 'destroyed' OR OLD.state NOT IN ('queued', 'waiting')) AND EXISTS (
        SELECT 1 FROM forge_state WHERE owner = OLD.owner AND repo = OLD.repo
        AND issue_number = OLD.issue_number AND host = ANY (own)) THEN
        RETURN NEW;
    END IF;
    -- A claim, or a takeover: what is to be done stays as it is.
    IF NEW.holder IS NOT NULL AND NEW.fence > OLD.fence AND (OLD.holder IS NOT NULL OR place IS NULL OR is_saved)
        AND (OLD.holder IS NOT NULL OR OLD.state IN ('queued', 'waiting'))
        AND (NEW.request, NEW.title, NEW.slug, NEW.trigger, NEW.queued_at, NEW.priority_mins, NEW.after,
            NEW.destroy_at, NEW.attempts, NEW.reason) IS NOT DISTINCT FROM (OLD.request, OLD.title, OLD.slug,
            OLD.trigger, OLD.queued_at, OLD.priority_mins, OLD.after, OLD.destroy_at, OLD.attempts, OLD.reason) THEN
        RETURN NEW;
    END IF;
    RAISE insufficient_privilege USING MESSAGE = 'no step of a worker';
END $$;

-- Rows of bottles and of spending are written by the holder of the issue and by the host that has the bottle.
CREATE FUNCTION bot_bottle_worker.guard_own() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    own TEXT[] := ARRAY(SELECT name FROM host WHERE login = session_user);
BEGIN
    IF bot_bottle_worker.is_owner(TG_RELID) THEN RETURN coalesce(NEW, OLD); END IF;
    IF TG_OP <> 'INSERT' THEN
        IF NOT (coalesce(OLD.host = ANY (own), FALSE)
            OR bot_bottle_worker.is_own(OLD.owner, OLD.repo, OLD.issue_number)) THEN
            RAISE insufficient_privilege USING MESSAGE = 'a row of another host';
        END IF;
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        IF (NEW.owner, NEW.repo, NEW.issue_number) <> (OLD.owner, OLD.repo, OLD.issue_number) THEN
            RAISE insufficient_privilege USING MESSAGE = 'a row of another issue';
        END IF;
    END IF;
    -- A claim reserves before it is written, so its spending is checked by the host alone.
    IF NOT coalesce(NEW.host = ANY (own), FALSE) OR (TG_TABLE_NAME = 'forge_state'
        AND NOT bot_bottle_worker.is_own(NEW.owner, NEW.repo, NEW.issue_number)) THEN
        RAISE insufficient_privilege USING MESSAGE = 'a row of another host';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION bot_bottle_worker.guard_delivery() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT bot_bottle_worker.is_owner(TG_RELID) AND OLD.source NOT IN ('page', 'comment') THEN
        RAISE insufficient_privilege USING MESSAGE = 'a webhook is handled by the server that has the turn';
    END IF;
    RETURN NEW;
END $$;

-- An event says what happened to the work in the same transaction. It is checked after the statement, which may do both.
CREATE FUNCTION bot_bottle_worker.guard_event() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT bot_bottle_worker.is_owner(TG_RELID) AND NOT EXISTS (
        SELECT 1 FROM work WHERE owner = NEW.owner AND repo = NEW.repo AND issue_number = NEW.issue_number
        AND state = NEW.state
        AND work.xmin::text::bigint = pg_current_xact_id()::text::bigint % 4294967296) THEN
        RAISE insufficient_privilege USING MESSAGE = 'an event of nothing that happened';
    END IF;
    RETURN NULL;
END $$;

-- The condition spares the owner the call.
DO $$
DECLARE
    one RECORD;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        ('host', 'BEFORE INSERT OR UPDATE', 'guard_host'),
        ('work', 'BEFORE UPDATE', 'guard_work'),
        ('forge_state', 'BEFORE INSERT OR UPDATE OR DELETE', 'guard_own'),
        ('spending', 'BEFORE INSERT OR UPDATE OR DELETE', 'guard_own'),
        ('delivery', 'BEFORE UPDATE', 'guard_delivery'),
        ('work_event', 'AFTER INSERT', 'guard_event')) AS it (tables, moment, guard)
    LOOP
        EXECUTE format('CREATE TRIGGER %I %s ON %I FOR EACH ROW WHEN (session_user <> %L) '
            'EXECUTE FUNCTION bot_bottle_worker.%I()', one.guard, one.moment, one.tables, session_user, one.guard);
    END LOOP;
END $$;
