-- A login for a worker. Run this in the database of the fleet, as its owner with the right to create roles.
CREATE ROLE WORKER LOGIN;
DO $$ BEGIN
    EXECUTE format('ALTER ROLE WORKER IN DATABASE %I SET search_path = bot_bottle_worker', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO WORKER', current_database());
END $$;
GRANT USAGE ON SCHEMA bot_bottle_worker TO WORKER;
GRANT SELECT ON ALL TABLES IN SCHEMA bot_bottle_worker TO WORKER;
GRANT UPDATE ON bot_bottle_worker.work TO WORKER;
GRANT INSERT, UPDATE ON bot_bottle_worker.host TO WORKER;
GRANT INSERT, UPDATE, DELETE ON bot_bottle_worker.forge_state, bot_bottle_worker.spending TO WORKER;
GRANT INSERT ON bot_bottle_worker.work_event TO WORKER;
GRANT UPDATE (handled_at) ON bot_bottle_worker.delivery TO WORKER;
