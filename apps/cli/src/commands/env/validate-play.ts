import { PalestraClient } from '@palestra/client';
import { type ValidateOptions, validateSubject } from '@palestra/environment-kit';
import { detectServer, type ServerKind } from '@palestra/hosting';
import { OpenEnvBackend } from '@palestra/openenv/client';
import { OrsBackend } from '@palestra/ors/client';
import type { Backend } from '@palestra/session';
import { backendSubject, registeredSubject, seededSubject } from '../../kit/subjects.ts';
import type { NamedReport } from '../../kit/validate-kit.ts';
import { readSettings, UsageError } from '../../server-settings.ts';
import type { Report } from './criteria.ts';
import { baseUrl } from './validate-url.ts';

/** How an environment is played. */
export interface PlayOptions extends ValidateOptions {
  rewardRange: readonly [number, number] | null;
  python: string | undefined;
  signal: AbortSignal;
}

export type Level = 'static' | 'semantic' | undefined;

export interface Validation {
  /** Static checks; null without any. */
  report: Report | null;
  environments: NamedReport[];
  /** Why an environment was not played, or null. */
  note: string | null;
  /** Number of the version that was played, for a registered environment. */
  version?: number | null;
}

/** Plays an environment that is registered with the service. */
export async function playRegistered(environment: string, play: PlayOptions): Promise<Validation> {
  const client = new PalestraClient({ ...readSettings(process.env), signal: play.signal });
  try {
    const { version } = await client.environments.get(environment);
    const report = await validateSubject(registeredSubject(client, environment, play), play);
    return { report: null, environments: [{ name: environment, report }], note: null, version };
  } finally {
    await client.close();
  }
}

/** A running server: an ORS server is played, an OpenEnv server is checked by OpenEnv's criteria and played for level `semantic`. */
export async function playServer(url: string, level: Level, play: PlayOptions, check: () => Promise<Report>): Promise<Validation> {
  const base = baseUrl(url);
  const kind = await detectServer(base, play.signal).catch(() => null);
  if (kind === 'remote') {
    if (level === 'static') return { report: null, environments: [], note: 'An ORS server has no static checks.' };
    return { report: null, environments: await playBackend(base, kind, play), note: null };
  }
  if (kind === 'mcp')
    throw new UsageError(`${base} is an MCP server. Register it with "palestra env push --url", then pass --environment.`);
  const report = await check();
  if (kind !== 'openenv' || level !== 'semantic' || !report.passed) return { report, environments: [], note: null };
  return { report, environments: await playBackend(base, kind, play), note: null };
}

export type PlayedKind = Exclude<ServerKind, 'mcp'>;

const backendOf = (url: string, kind: PlayedKind): Backend => (kind === 'openenv' ? new OpenEnvBackend({ url }) : new OrsBackend({ url }));

/** Names of the environments of an ORS or OpenEnv server; empty for every other server. */
export async function environmentsAt(url: string, signal: AbortSignal): Promise<string[]> {
  const kind = await detectServer(url, signal);
  if (kind !== 'remote' && kind !== 'openenv') return [];
  const backend = backendOf(url, kind);
  try {
    return await backend.environments(signal);
  } finally {
    await backend.close();
  }
}

/** Plays every environment of the server. */
export async function playBackend(url: string, kind: PlayedKind, play: PlayOptions): Promise<NamedReport[]> {
  const backend = backendOf(url, kind);
  try {
    const reports: NamedReport[] = [];
    for (const name of await backend.environments(play.signal)) {
      const subject = backendSubject(backend, name, play);
      reports.push({ name, report: await validateSubject(kind === 'openenv' ? seededSubject(subject) : subject, play) });
    }
    return reports;
  } finally {
    await backend.close();
  }
}
