-- Sessions that an instance may still get; null: any number.
ALTER TABLE "environment_instances" ADD COLUMN "sessions_left" INTEGER;
