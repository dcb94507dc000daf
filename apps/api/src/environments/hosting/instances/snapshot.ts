import type { Capabilities, RunningInstance } from '@palestra/hosting';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import { sessionsOf } from '../hosting-settings.ts';
import type { Crashes, InstanceFacts, VersionDemand } from './decide.ts';
import type { Crash, StoredDemand, StoredInstance } from './instance.sql.ts';

const DEFAULTS = hostingSettingsSchema.parse({});
/** Ends within this time count as one, because an engine that dies takes all its instances with it. */
const MOMENT_MS = 5_000;
/** An instance that was started for a request without a session stays this long. */
const LEAST_IDLE_MS = 5_000;
const NO_CRASHES: Crashes = { moments: 0, unready: 0, lastAt: null };

/** The instances of one engine by id; null while it does not answer. */
export type EngineView = ReadonlyMap<string, RunningInstance> | null;

/** `view`: of its engine. `seen`: by this process. */
export function factsOf(
  row: StoredInstance,
  view: EngineView,
  seen: Pick<InstanceFacts, 'idleSince' | 'silent' | 'answersSince'>,
): InstanceFacts {
  const running = view?.get(row.id) ?? null;
  const engine = view === null ? 'unknown' : running === null ? 'absent' : running.state === 'exited' ? 'exited' : 'running';
  return {
    id: row.id,
    versionId: row.version_id,
    orgId: row.org_id,
    state: row.state as InstanceFacts['state'],
    sessions: row.sessions,
    createdAt: row.created_at,
    // Not before its row, also if the clock of the engine is wrong.
    startedAt: running?.state === 'running' && running.startedAt !== null ? Math.max(row.created_at, running.startedAt.getTime()) : null,
    drainingAt: row.draining_at,
    sessionsLeft: row.sessions_left,
    restarts: row.restarts,
    engine,
    exit: exitText(running),
    waiting: running?.waiting ?? null,
    ...seen,
  };
}

function exitText(running: RunningInstance | null): string | null {
  if (running?.exit == null) return null;
  const { code, reason } = running.exit;
  // 137 = 128 + SIGKILL, which we did not send: most often the kernel, when memory is short.
  const guess = code === 137 && !reason.includes('memory') ? ' It was killed, probably because it needed more memory than it has.' : '';
  return `It ended: ${reason.replace(/\.$/, '')}.${guess}`;
}

/** Whether each session gets an instance that serves no other. `kind`: of the artifact. */
export const isPerSession = (capabilities: Capabilities | null, concurrency: number, kind: string | null): boolean =>
  capabilities?.perSession === true && concurrency === 1 && kind === 'image';

/** `capabilities`: of its engine, if they are known. */
export function demandOf(row: StoredDemand, crashes: Crashes | undefined, capabilities: Capabilities | null): VersionDemand {
  const settings = row.settings ?? DEFAULTS;
  const perSession = isPerSession(capabilities, settings.concurrency, row.kind);
  // Servers at URLs run anyway: each has an instance while the version is in use.
  const warm = row.urls === null ? settings.min_warm : row.urls;
  const isUsed = row.served || (row.urls !== null && (row.waiting > 0 || row.tested));
  return {
    id: row.id,
    orgId: row.org_id,
    minWarm: isUsed && !perSession ? warm : 0,
    max: row.urls ?? Math.max(settings.max, isUsed ? settings.min_warm : 0),
    concurrency: sessionsOf(settings.concurrency, row.kind),
    idleMs: Math.max(settings.idle_s * 1_000, LEAST_IDLE_MS),
    drainMs: settings.drain_s * 1_000,
    startTimeoutMs: settings.start_timeout_s * 1_000,
    waiting: row.waiting,
    keep: row.tested,
    pool: perSession ? (isUsed ? warm : 0) : null,
    crashes: crashes ?? NO_CRASHES,
  };
}

/** By version. An answer of any instance ends a series of those that never answered. */
export function crashesByVersion(crashes: readonly Crash[], living: readonly StoredInstance[]): Map<string, Crashes> {
  const answeredAt = new Map<string, number>();
  for (const { version_id: versionId, ready_at: readyAt } of [...crashes, ...living]) {
    if (readyAt !== null) answeredAt.set(versionId, Math.max(answeredAt.get(versionId) ?? 0, readyAt));
  }
  const found = new Map<string, Crashes>();
  for (const crash of crashes.toSorted((a, b) => a.ended_at - b.ended_at)) {
    const before = found.get(crash.version_id) ?? NO_CRASHES;
    const isSeries = crash.ready_at === null && crash.created_at > (answeredAt.get(crash.version_id) ?? 0);
    found.set(crash.version_id, {
      moments: before.moments + (before.lastAt !== null && crash.ended_at - before.lastAt < MOMENT_MS ? 0 : 1),
      unready: before.unready + (isSeries ? 1 : 0),
      lastAt: crash.ended_at,
    });
  }
  return found;
}
