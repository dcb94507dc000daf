-- Environments may be OpenEnv servers (by URL) and MCP servers (by URL, or a command that this service runs).
ALTER TABLE "environment_versions" ADD COLUMN "source_command" TEXT[] NOT NULL DEFAULT '{}';
