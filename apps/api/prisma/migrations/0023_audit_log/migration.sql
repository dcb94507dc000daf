-- Who did what, when, from where. Rows are written once: the database refuses changes, except by the function that ends their retention.
CREATE TABLE "audit_log" (
  "id" BIGSERIAL NOT NULL,
  "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "org_id" UUID,
  "action" TEXT NOT NULL,
  "refused" BOOLEAN NOT NULL DEFAULT false,
  "actor_id" UUID,
  "actor" TEXT,
  "key_id" UUID,
  "key_name" TEXT,
  "target_id" TEXT,
  "target" TEXT,
  "details" JSONB NOT NULL DEFAULT '{}',
  "address" TEXT NOT NULL,
  "user_agent" TEXT NOT NULL,
  CONSTRAINT "audit_log_pkey" PRIMARY KEY ("id")
);
COMMENT ON TABLE "audit_log" IS 'append-only: the role of the running service gets no right to change or delete rows';
CREATE INDEX "audit_log_org_id_id_idx" ON "audit_log"("org_id", "id");
CREATE INDEX "audit_log_org_id_action_id_idx" ON "audit_log"("org_id", "action", "id");
CREATE INDEX "audit_log_org_id_actor_id_id_idx" ON "audit_log"("org_id", "actor_id", "id");
CREATE INDEX "audit_log_at_idx" ON "audit_log"("at");

CREATE FUNCTION "audit_log_refuse"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('palestra.audit_log_expire', true) = 'on' AND OLD."at" < now() - interval '23 hours' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'the audit log is append-only: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE ON "audit_log" FOR EACH ROW EXECUTE FUNCTION audit_log_refuse();
CREATE TRIGGER "audit_log_no_truncate" BEFORE TRUNCATE ON "audit_log" FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse();
ALTER TABLE "audit_log" ENABLE ALWAYS TRIGGER "audit_log_append_only";
ALTER TABLE "audit_log" ENABLE ALWAYS TRIGGER "audit_log_no_truncate";

-- Deletes up to `most` rows that are older than `days` (at least one day), oldest first, records that, and returns how many. SECURITY DEFINER, so that the role
-- of the running service needs no right to delete rows.
CREATE FUNCTION "audit_log_expire"("days" INTEGER, "most" INTEGER) RETURNS INTEGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  gone INTEGER;
BEGIN
  PERFORM set_config('palestra.audit_log_expire', 'on', true);
  DELETE FROM "audit_log" WHERE "id" IN (
    SELECT "id" FROM "audit_log" WHERE "at" < now() - GREATEST("days", 1) * interval '1 day' ORDER BY "at" LIMIT "most");
  GET DIAGNOSTICS gone = ROW_COUNT;
  PERFORM set_config('palestra.audit_log_expire', 'off', true);
  IF gone > 0 THEN
    INSERT INTO "audit_log" ("action", "details", "address", "user_agent")
      VALUES ('audit.expire', jsonb_build_object('events', gone, 'older_than_days', GREATEST("days", 1)), '', '');
  END IF;
  RETURN gone;
END $$;
