import { z } from 'zod';
import { subdirectory } from './hosting.schema.ts';

/** Bodies of `/v1/github/*`, in the casing of the `orwd` CLI (docs/reference/ors.md#rest-endpoints). Any git remote takes the place of GitHub. */

const settings = z.object({
  cpuMemory: z
    .string()
    .regex(/^\d{1,3}(?:\.\d{1,3})?-\d{1,4}(?:\.\d{1,3})?$/, { error: 'cpuMemory must be processors-gigabytes, as in 1-4' }),
  minScale: z.int().min(0).max(100),
  maxScale: z.int().min(0).max(1_000),
  concurrency: z.int().min(1).max(10_000),
});
export type GithubSettings = z.output<typeof settings>;

const folder = subdirectory.or(z.literal('')).nullish().describe('Null: the root of the repository.');

export const connectGithubSchema = z.object({
  githubRepoId: z.string().or(z.number()).transform(String).describe('`id` of one of the repositories.'),
  githubInstallationId: z.string().or(z.number()).nullish(),
  settings: settings.partial().optional(),
  subdirectory: folder,
});
export type ConnectGithub = z.output<typeof connectGithubSchema>;
export const updateGithubSchema = z.object({ settings: settings.partial().optional(), subdirectory: folder });
export type UpdateGithub = z.output<typeof updateGithubSchema>;

export const githubAuthSchema = z.object({ status: z.literal('success') });
export const githubReposSchema = z.object({
  status: z.literal('success'),
  repos: z.array(z.object({ id: z.string(), installationId: z.string(), fullName: z.string(), url: z.string() })),
});
export const githubConnectedSchema = z.object({
  environmentId: z.string(),
  deploymentId: z.string().nullable(),
  webhookUrl: z.string(),
  webhookSecret: z.string().nullable().describe('Only when it is new.'),
});
export const githubDeploymentsSchema = z.array(
  z.object({
    id: z.string(),
    status: z.string(),
    gitBranch: z.string().nullable(),
    commitSha: z.string().nullable(),
    created_at: z.string(),
  }),
);
export const githubLogsSchema = z.object({ status: z.string(), logs: z.string() });
export const githubRuntimeQuerySchema = z.object({ limit: z.coerce.number().int().min(1).max(10_000).default(50) });
export const githubRuntimeLogsSchema = z.object({
  status: z.string(),
  entries: z.array(z.object({ timestamp: z.string(), severity: z.string(), message: z.string() })),
});
export const githubTaskBuildsSchema = z.object({ taskBuilds: z.array(z.never()) });
export const githubUnlinkedSchema = z.object({ environmentId: z.string() });
