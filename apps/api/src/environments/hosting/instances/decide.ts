/** What the reconciler knows of a version that has instances or needs some. Times are milliseconds. */
export interface VersionDemand {
  id: string;
  orgId: string;
  /** Instances that also run without sessions. */
  minWarm: number;
  /** Most instances that take sessions. */
  max: number;
  /** Sessions of one instance. */
  concurrency: number;
  idleMs: number;
  drainMs: number;
  startTimeoutMs: number;
  /** Sessions that wait for an instance, or for a slot of the environment. */
  waiting: number;
  /** A deploy tests it: one instance stays although it has no sessions. */
  keep: boolean;
  /** Unused instances that its engine should keep started, for sessions that each get one; null: sessions share instances. */
  pool: number | null;
  crashes: Crashes;
}

/** Ends of instances within the last ten minutes that were not our decision. */
export interface Crashes {
  /** Ends within the same moment count once, because an engine that dies takes all its instances with it. */
  moments: number;
  /** Instances that ended before they answered, since one last did. */
  unready: number;
  /** null: there were none. */
  lastAt: number | null;
}

export interface InstanceFacts {
  id: string;
  /** Its version; the version may be deleted. */
  versionId: string;
  orgId: string;
  state: 'starting' | 'ready' | 'draining';
  sessions: number;
  createdAt: number;
  /** Since when its engine runs it; null: not yet, or unknown. */
  startedAt: number | null;
  drainingAt: number | null;
  /** Sessions that it may still get; null: any number. */
  sessionsLeft: number | null;
  /** Since when it has no sessions; null while it has some. */
  idleSince: number | null;
  /** How often it was started again instead of an earlier one. */
  restarts: number;
  /** How the engine shows it; `unknown` while the engine does not answer. */
  engine: 'unknown' | 'absent' | 'running' | 'exited';
  /** How it ended, for people; null while it runs. */
  exit: string | null;
  /** Why it does not run yet, for people; null when nothing is unusual. */
  waiting: string | null;
  /** It has not answered for so long that it counts as dead. */
  silent: boolean;
  /** When its engine began to answer without a break; 0: it does not answer, or is not asked. */
  answersSince: number;
}

export interface Decision {
  start: { versionId: string; restarts: number }[];
  /** Starting instances that the engine does not have. */
  ensure: string[];
  /** They get no new sessions. */
  drain: { id: string; reason: string }[];
  /** They are gone, or must go. `failed`: not by our decision. `reason`: null keeps the one for which it drained. */
  remove: { id: string; state: 'stopped' | 'failed'; reason: string | null }[];
}

/** So many ends without an answer within ten minutes stop the restarts. */
export const MOST_UNREADY = 5;
export const CRASH_WINDOW_MS = 600_000;
/** How long an instance may wait until its engine has it: many start one after the other. */
export const TURN_MS = 300_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;
/** Instances of a deleted version. */
const DELETED_DRAIN_MS = 120_000;

/**
 * Decides which instances start, drain and end. Linear in the number of instances. Deciding again before the actions took effect gives the
 * same actions, so the caller leaves out those that still run. `ceiling`: most instances of one organisation.
 */
export function decide(versions: readonly VersionDemand[], instances: readonly InstanceFacts[], ceiling: number, now: number): Decision {
  const decision: Decision = { start: [], ensure: [], drain: [], remove: [] };
  const known = new Map(versions.map((version) => [version.id, version]));
  const serving = new Map<string, InstanceFacts[]>();
  const used = new Map<string, number>();
  const lost = new Map<string, Lost>();
  for (const instance of instances) {
    const version = known.get(instance.versionId) ?? null;
    const end = endOf(instance, version, now);
    if (end !== null) {
      decision.remove.push({ id: instance.id, ...end });
      if (end.state === 'failed') lost.set(instance.versionId, withLost(lost.get(instance.versionId), instance));
      continue;
    }
    used.set(instance.orgId, (used.get(instance.orgId) ?? 0) + 1);
    // What a deploy tests takes no sessions.
    if (instance.state === 'draining' || isSpent(instance)) continue;
    const reason = reasonToDrain(instance, version);
    if (reason !== null) decision.drain.push({ id: instance.id, reason });
    else {
      if (instance.state === 'starting' && instance.engine === 'absent') decision.ensure.push(instance.id);
      const others = serving.get(instance.versionId);
      if (others === undefined) serving.set(instance.versionId, [instance]);
      else others.push(instance);
    }
  }
  const missing: Missing[] = [];
  for (const version of versions) {
    const own = serving.get(version.id) ?? [];
    const wanted = wantedInstances(version, own);
    decision.drain.push(...surplus(version, own, wanted, now));
    const count = Math.min(wanted - own.length, startsNow(withCrash(version.crashes, lost.get(version.id), now), own, now));
    if (count > 0) missing.push({ version, count, has: own.length, restarts: lost.get(version.id)?.restarts ?? 0 });
  }
  decision.start.push(...withinCeiling(missing, used, ceiling));
  return decision;
}

/** `ceil((active + waiting) / concurrency)`, within the settings. */
export function wantedInstances(version: VersionDemand, serving: readonly Pick<InstanceFacts, 'sessions'>[]): number {
  const active = serving.reduce((sum, { sessions }) => sum + sessions, 0);
  return Math.min(version.max, Math.max(version.minWarm, Math.ceil((active + version.waiting) / version.concurrency)));
}

/** How and why an instance ends now; null when it goes on. */
function endOf(instance: InstanceFacts, version: VersionDemand | null, now: number): Omit<Decision['remove'][number], 'id'> | null {
  const { state, engine, exit, waiting, sessions } = instance;
  const isOver = engine === 'exited' || (engine === 'absent' && state !== 'starting');
  if (state === 'draining') {
    const drainMs = version?.drainMs ?? DELETED_DRAIN_MS;
    if (sessions === 0) return { state: 'stopped', reason: null };
    if (isOver) return { state: 'failed', reason: exit ?? 'It disappeared from its engine.' };
    return now - (instance.drainingAt ?? now) < drainMs
      ? null
      : { state: 'stopped', reason: `Its sessions did not end within ${drainMs / 1_000} s.` };
  }
  if (isOver) return { state: 'failed', reason: exit ?? 'It disappeared from its engine.' };
  if (isSpent(instance) && version?.keep !== true) return { state: 'stopped', reason: 'Its session ended.' };
  if (state !== 'starting') return null;
  if (version === null) return { state: 'stopped', reason: 'Its version was deleted.' };
  // It has not failed because its engine is away. Its time begins when the engine answers again.
  if (engine === 'unknown') return null;
  const since = Math.max(instance.createdAt, instance.answersSince);
  if (engine === 'absent')
    return now - since <= TURN_MS ? null : { state: 'failed', reason: `Its engine did not start it within ${TURN_MS / 1_000} s.` };
  const { startTimeoutMs: startMs } = version;
  return now - (instance.startedAt ?? since) <= startMs
    ? null
    : { state: 'failed', reason: `It did not answer within ${startMs / 1_000} s.${waiting === null ? '' : ` ${waiting}`}` };
}

/** It has had its session. */
const isSpent = ({ state, sessions, sessionsLeft }: InstanceFacts): boolean => state === 'ready' && sessions === 0 && sessionsLeft === 0;

function reasonToDrain({ silent, state, sessionsLeft }: InstanceFacts, version: VersionDemand | null): string | null {
  if (version === null) return 'Its version was deleted.';
  if (state === 'ready' && sessionsLeft === null && version.pool !== null) return 'Each session now gets its own instance.';
  return silent ? 'It stopped answering.' : null;
}

/** Instances above `max`, and idle ones that are not needed. */
function surplus(version: VersionDemand, own: readonly InstanceFacts[], wanted: number, now: number): Decision['drain'] {
  const excess = own.length - version.max;
  const spare = own.length - Math.max(wanted, version.keep ? 1 : 0);
  if (spare <= 0) return [];
  // New sessions go to the oldest instances, so the newest ones become idle first.
  const newestFirst = own.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  const above = excess <= 0 ? [] : newestFirst.toSorted((a, b) => a.sessions - b.sessions).slice(0, excess);
  const leaving = new Set(above);
  const idle = newestFirst
    .filter((instance) => !leaving.has(instance) && instance.idleSince !== null && now - instance.idleSince >= version.idleMs)
    .filter(({ state }) => state === 'ready')
    .slice(0, spare - above.length);
  return [
    ...above.map(({ id }) => ({ id, reason: `There are more than ${version.max}, the maximum of the environment.` })),
    ...idle.map(({ id }) => ({ id, reason: 'It had no sessions.' })),
  ];
}

/** What this decision removes of a version because it failed. */
interface Lost {
  restarts: number;
  unready: number;
}

const withLost = (before: Lost | undefined, { restarts, state }: InstanceFacts): Lost => ({
  restarts: Math.max(before?.restarts ?? 0, restarts + 1),
  unready: (before?.unready ?? 0) + (state === 'starting' ? 1 : 0),
});

const withCrash = (crashes: Crashes, lost: Lost | undefined, now: number): Crashes =>
  lost === undefined ? crashes : { moments: crashes.moments + 1, unready: crashes.unready + lost.unready, lastAt: now };

/** How many instances may start now: all that are missing, one after a crash, none during the delay after it. */
function startsNow({ moments, unready, lastAt }: Crashes, own: readonly InstanceFacts[], now: number): number {
  if (unready >= MOST_UNREADY) return 0;
  // The first crash of an instance that served is no reason to wait.
  const delayMs = Math.max(delayAfter(unready), delayAfter(moments - 1));
  if (lastAt !== null && now - lastAt < delayMs) return 0;
  if (unready === 0) return Infinity;
  return own.some(({ state }) => state === 'starting') ? 0 : 1;
}

const delayAfter = (crashes: number): number => (crashes <= 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (crashes - 1), LONGEST_DELAY_MS));

interface Missing {
  version: VersionDemand;
  count: number;
  has: number;
  restarts: number;
}

/** One instance of each version in turn, those with the fewest first, until the organisation has its most. */
function withinCeiling(missing: readonly Missing[], used: ReadonlyMap<string, number>, ceiling: number): Decision['start'] {
  const byOrg = new Map<string, Missing[]>();
  for (const one of missing) {
    const others = byOrg.get(one.version.orgId);
    if (others === undefined) byOrg.set(one.version.orgId, [one]);
    else others.push(one);
  }
  const starts: Decision['start'] = [];
  for (const [orgId, own] of byOrg) {
    let free = ceiling - (used.get(orgId) ?? 0);
    let turn = own.toSorted((a, b) => a.has - b.has);
    while (free > 0 && turn.length > 0) {
      for (const one of turn.slice(0, free)) starts.push({ versionId: one.version.id, restarts: one.restarts });
      free -= turn.length;
      turn = turn.map((one) => ({ ...one, count: one.count - 1 })).filter(({ count }) => count > 0);
    }
  }
  return starts;
}
