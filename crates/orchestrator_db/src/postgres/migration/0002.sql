-- The newest state of each bottle in the store of bottles, which every host can fetch.
ALTER TABLE forge_state ADD COLUMN saved TEXT;
ALTER TABLE forge_state ADD COLUMN saved_at TIMESTAMPTZ;
