-- Whether the organisation got its alert on crash loops. A member may have deleted the alert since.
ALTER TABLE "organisations" ADD COLUMN "has_crash_alert" BOOLEAN NOT NULL DEFAULT false;
