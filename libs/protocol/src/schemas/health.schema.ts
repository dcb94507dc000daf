import { z } from 'zod';

export const healthSchema = z.object({
  status: z.enum(['ready', 'draining', 'database_unavailable', 'storage_full']),
  database: z.object({
    reachable: z.boolean(),
    away_seconds: z.number().describe('Since PostgreSQL stopped answering; 0 while it answers'),
    disk_full: z.boolean(),
    migrated: z.boolean().describe('All migrations of this version are applied'),
    embedded: z
      .object({
        state: z.enum(['running', 'restarting', 'stopped']),
        restarts: z.int().describe('Since the service started'),
        detail: z.string().nullable().describe('The last line that PostgreSQL wrote before it ended, or why it did not start again'),
      })
      .nullable()
      .describe('The PostgreSQL that the service runs; null with DATABASE_URL'),
  }),
  worker: z
    .object({
      state: z.enum(['starting', 'running', 'stopped']),
      restarts: z.int().describe('Since the service started'),
      detail: z.string().nullable().describe('How the last one ended; null if none ended'),
    })
    .nullable()
    .describe('The child process that runs background jobs; null where PALESTRA_JOBS is off'),
  disk: z
    .object({ free_bytes: z.number(), total_bytes: z.number() })
    .nullable()
    .describe('The file system of the data directory, as far as the service may fill it; null if the system does not report it'),
  isolation: z
    .string()
    .nullable()
    .describe('The level at which coding_env runs programs, and what prevents a stronger one; null while it does not run'),
  queue: z
    .object({ jobs_due: z.int(), sessions_waiting: z.int() })
    .nullable()
    .describe('Background jobs that are due, and sessions that wait for a slot; null while the database does not respond'),
});
export type Health = z.infer<typeof healthSchema>;
