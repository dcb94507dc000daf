-- Organisations and users share one namespace, which is the first segment of `owner/name`. Names that differ only in case, in Unicode form, in
-- characters that show nothing, or in letters of other scripts that look alike have the same key.
DO $$
DECLARE
  -- Without a collation, lower() of a database with locale C changes ASCII only.
  folded TEXT := CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN ' COLLATE "und-x-icu"' ELSE '' END;
BEGIN
  EXECUTE format($create$
    CREATE FUNCTION "namespace_key"("name" TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE AS $body$
      SELECT btrim(regexp_replace(translate(
        normalize(lower(regexp_replace(normalize("name", NFKC),
          '[\u0001-\u0008\u000E-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u202A-\u202E\u2060-\u206F\u2800\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\U000E0000-\U000E0FFF]',
          '', 'g') %s), NFKC),
        -- Cyrillic, Greek and dotless letters, and the Latin ones that they look like.
        E'\u0430\u0441\u0501\u0435\u04BB\u0456\u0458\u04CF\u043E\u0440\u051B\u0455\u051D\u0445\u0443\u0475\u043A\u043C\u0442\u03B1\u03B9\u03BA\u03BF\u03C1\u03C5\u03C7\u03BD\u0131\u0237',
        'acdehijlopqswxyvkmtaikopuxvij'), '\s+', ' ', 'g'))
    $body$
  $create$, folded);
END $$;

CREATE TABLE "namespaces" (
  "key" TEXT NOT NULL,
  "org_id" UUID,
  "user_id" UUID,
  CONSTRAINT "namespaces_pkey" PRIMARY KEY ("key"),
  CONSTRAINT "namespaces_one_holder" CHECK (num_nonnulls("org_id", "user_id") <= 1),
  CONSTRAINT "namespaces_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organisations"("id") ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT "namespaces_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE UNIQUE INDEX "namespaces_org_id_key" ON "namespaces"("org_id");
CREATE UNIQUE INDEX "namespaces_user_id_key" ON "namespaces"("user_id");

-- Names that collide already are not ours to change: the upgrade stops and says which they are.
DO $$
DECLARE
  report TEXT;
BEGIN
  WITH held AS (
    SELECT namespace_key("name") AS "key", format('organisation "%s" (%s)', "name", "id") AS "holder" FROM "organisations"
    UNION ALL SELECT namespace_key("name"), format('user "%s" (%s)', "name", "id") FROM "users"
    UNION ALL SELECT 'palestra', 'the bundled environments ("palestra")'
  ), collisions AS (
    SELECT string_agg("holder", ' and ' ORDER BY "holder") || ' have the same name' AS "line" FROM held WHERE "key" <> '' GROUP BY "key" HAVING count(*) > 1
    UNION ALL
    SELECT format('environment "%s/%s" (%s) of organisation %s is in the namespace of organisation "%s"', e."owner", e."name", e."id", e."org_id", o."name")
      FROM "environments" e JOIN "organisations" o ON namespace_key(o."name") = namespace_key(e."owner") WHERE e."org_id" <> o."id"
    UNION ALL
    SELECT format('environment "%s/%s" (%s) of organisation %s is in the namespace of the bundled environments', "owner", "name", "id", "org_id")
      FROM "environments" WHERE namespace_key("owner") = 'palestra' AND "org_id" IS NOT NULL
  )
  SELECT string_agg("line", '; ' ORDER BY "line") INTO report FROM collisions;
  IF report IS NOT NULL THEN
    RAISE EXCEPTION 'names collide, nothing was changed: %. Rename one of each (UPDATE users, organisations SET name, UPDATE environments SET owner) and start again; docs/operations.md, "Names that collide", says how', report;
  END IF;
END $$;

INSERT INTO "namespaces" ("key", "org_id") SELECT COALESCE(NULLIF(namespace_key("name"), ''), "id"::text), "id" FROM "organisations";
INSERT INTO "namespaces" ("key", "user_id") SELECT COALESCE(NULLIF(namespace_key("name"), ''), "id"::text), "id" FROM "users";
-- Reserved: held by the service itself. Whoever has such a name already keeps it.
INSERT INTO "namespaces" ("key") SELECT unnest(ARRAY[
  'palestra', 'openreward', 'admin', 'administrator', 'root', 'system', 'api', 'www', 'public', 'static', 'assets', 'internal', 'support',
  'login', 'logout', 'signup', 'settings', 'keys', 'check', 'compare', 'environments', 'exports', 'rollout', 'rollouts', 'runs', 'sessions',
  'v1', 'openenv', 'mcp', 'ors', 'k', 'health', 'metrics', 'version', 'openapi.json', 'favicon.svg'
]) ON CONFLICT DO NOTHING;

CREATE FUNCTION "hold_namespace"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  held TEXT := COALESCE(NULLIF(namespace_key(NEW."name"), ''), NEW."id"::text);
BEGIN
  IF TG_OP = 'UPDATE' THEN
    UPDATE "namespaces" SET "key" = held WHERE "org_id" = NEW."id" OR "user_id" = NEW."id";
  ELSIF TG_TABLE_NAME = 'organisations' THEN
    INSERT INTO "namespaces" ("key", "org_id") VALUES (held, NEW."id");
  ELSE
    INSERT INTO "namespaces" ("key", "user_id") VALUES (held, NEW."id");
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "organisations_hold_namespace" AFTER INSERT OR UPDATE OF "name" ON "organisations" FOR EACH ROW EXECUTE FUNCTION hold_namespace();
CREATE TRIGGER "users_hold_namespace" AFTER INSERT OR UPDATE OF "name" ON "users" FOR EACH ROW EXECUTE FUNCTION hold_namespace();
