-- The organisation whose owner created this one: what a tenant creates is counted together, however deep. Null: nobody's, as all of before.
ALTER TABLE "organisations" ADD COLUMN "parent_id" UUID;
ALTER TABLE "organisations" ADD CONSTRAINT "organisations_parent_id_fkey" FOREIGN KEY ("parent_id") REFERENCES "organisations"("id") ON DELETE SET NULL ON UPDATE CASCADE;
CREATE INDEX "organisations_parent_id_idx" ON "organisations"("parent_id");
