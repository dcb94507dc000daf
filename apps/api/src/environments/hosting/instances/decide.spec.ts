import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide, type Decision, type InstanceFacts, MOST_UNREADY, type VersionDemand, wantedInstances } from './decide.ts';

const NOW = 1_000_000_000;
const version = (facts: Partial<VersionDemand> = {}): VersionDemand => ({
  id: 'v1',
  orgId: 'o',
  minWarm: 0,
  max: 4,
  concurrency: 10,
  idleMs: 60_000,
  drainMs: 600_000,
  startTimeoutMs: 30_000,
  waiting: 0,
  keep: false,
  pool: null,
  crashes: { moments: 0, unready: 0, lastAt: null },
  ...facts,
});
const instance = (id: string, facts: Partial<InstanceFacts> = {}): InstanceFacts => ({
  id,
  versionId: 'v1',
  orgId: 'o',
  state: 'ready',
  sessions: 0,
  createdAt: NOW - 600_000,
  startedAt: null,
  drainingAt: null,
  sessionsLeft: null,
  idleSince: (facts.sessions ?? 0) > 0 ? null : NOW,
  restarts: 0,
  engine: 'running',
  exit: null,
  waiting: null,
  silent: false,
  answersSince: 0,
  ...facts,
});
const nothing: Decision = { start: [], ensure: [], drain: [], remove: [] };
const starts = (versions: VersionDemand[], instances: InstanceFacts[] = [], ceiling = 100) =>
  decide(versions, instances, ceiling, NOW).start.map(({ versionId }) => versionId);

describe('scaling', () => {
  test('starts as many as active and waiting sessions need, at least those that stay warm', () => {
    expect(starts([version()])).toEqual([]);
    expect(starts([version({ waiting: 1 })])).toEqual(['v1']);
    expect(starts([version({ waiting: 11 })], [instance('a', { sessions: 10 })])).toEqual(['v1', 'v1']);
    expect(starts([version({ waiting: 1_000 })])).toHaveLength(4);
    expect(starts([version({ minWarm: 2 })], [instance('a', { state: 'starting', createdAt: NOW })])).toEqual(['v1']);
  });

  test('does not count the sessions and instances that leave', () => {
    const leaving = instance('a', { state: 'draining', sessions: 10, drainingAt: NOW });
    expect(starts([version({ waiting: 1 })], [leaving])).toEqual(['v1']);
  });

  test('drains the newest idle instance, and removes it when it has no sessions', () => {
    const idle = { idleSince: NOW - 60_000 };
    const all = [
      instance('old', { ...idle, createdAt: 1 }),
      instance('new', { ...idle, createdAt: 2 }),
      instance('busy', { sessions: 1, createdAt: 3 }),
    ];
    expect(decide([version({ minWarm: 1 })], all, 100, NOW).drain.map(({ id }) => id)).toEqual(['new', 'old']);
    expect(decide([version({ minWarm: 2 })], all, 100, NOW).drain.map(({ id }) => id)).toEqual(['new']);
    expect(decide([version({ idleMs: 60_001 })], all, 100, NOW).drain).toEqual([]);
    const gone = instance('new', { state: 'draining', drainingAt: NOW });
    expect(decide([version()], [gone], 100, NOW)).toMatchObject({ ...nothing, remove: [{ id: 'new', state: 'stopped', reason: null }] });
  });

  test('keeps one instance of a version that a deploy tests', () => {
    const idle = instance('a', { idleSince: 0 });
    expect(decide([version({ keep: true })], [idle], 100, NOW)).toEqual(nothing);
    expect(decide([version()], [idle], 100, NOW).drain).toHaveLength(1);
  });

  test('drains what is above a lowered maximum, the instances with the fewest sessions first', () => {
    const all = [instance('a', { sessions: 5 }), instance('b', { sessions: 1 }), instance('c', { sessions: 9 })];
    expect(decide([version({ max: 2 })], all, 100, NOW).drain.map(({ id }) => id)).toEqual(['b']);
  });

  test('shares what an organisation may have among its versions', () => {
    const many = [version({ id: 'x', waiting: 40 }), version({ id: 'y', waiting: 40 }), version({ id: 'z', waiting: 40, orgId: 'p' })];
    expect(starts(many, [], 3).toSorted()).toEqual(['x', 'x', 'y', 'z', 'z', 'z']);
    expect(starts(many, [instance('a', { versionId: 'x' })], 2).toSorted()).toEqual(['y', 'z', 'z']);
  });
});

describe('instances that fail', () => {
  test('a crashed one is replaced at once, and again after growing delays', () => {
    const dead = instance('a', { sessions: 3, engine: 'exited', exit: 'exited with code 137', restarts: 2 });
    const demand = { minWarm: 1 };
    expect(decide([version(demand)], [dead], 100, NOW)).toEqual({
      ...nothing,
      start: [{ versionId: 'v1', restarts: 3 }],
      remove: [{ id: 'a', state: 'failed', reason: 'exited with code 137' }],
    });
    const after = (ms: number, moments: number) => starts([version({ ...demand, crashes: { moments, unready: 0, lastAt: NOW - ms } })]);
    expect(after(999, 2)).toEqual([]);
    expect(after(1_000, 2)).toEqual(['v1']);
    expect(after(3_999, 4)).toEqual([]);
    expect(after(59_999, 40)).toEqual([]);
    expect(after(60_000, 40)).toEqual(['v1']);
  });

  test('instances that never answer are started one at a time, and no more after five', () => {
    const crashes = (unready: number) => ({ moments: 1, unready, lastAt: NOW - 60_000 });
    expect(starts([version({ waiting: 40, crashes: crashes(1) })])).toEqual(['v1']);
    expect(starts([version({ waiting: 40, crashes: crashes(1) })], [instance('a', { state: 'starting' })])).toEqual([]);
    expect(starts([version({ waiting: 40, crashes: crashes(MOST_UNREADY) })])).toEqual([]);
    const late = instance('a', { state: 'starting', createdAt: NOW - 30_001 });
    // The time begins when its engine runs it. Until then it waits for its turn, not forever.
    const started = (startedAt: number) => decide([version({ minWarm: 1 })], [{ ...late, startedAt }], 100, NOW).remove;
    expect([started(NOW - 30_000), started(NOW - 30_001).map(({ state }) => state)]).toEqual([[], ['failed']]);
    const queued = (createdAt: number) => decide([version({ minWarm: 1 })], [{ ...late, engine: 'absent', createdAt }], 100, NOW);
    expect(queued(NOW - 300_000)).toMatchObject({ ensure: ['a'], remove: [] });
    expect(queued(NOW - 300_001).remove).toMatchObject([{ state: 'failed', reason: 'Its engine did not start it within 300 s.' }]);
    expect(decide([version({ waiting: 1, crashes: crashes(MOST_UNREADY - 1) })], [late], 100, NOW)).toEqual({
      ...nothing,
      remove: [{ id: 'a', state: 'failed', reason: 'It did not answer within 30 s.' }],
    });
  });

  test('nothing is concluded from an engine that does not answer', () => {
    const all = [
      instance('a', { engine: 'unknown', sessions: 1 }),
      instance('b', { engine: 'unknown', state: 'starting', createdAt: NOW }),
    ];
    expect(decide([version({ waiting: 1 })], all, 100, NOW)).toEqual(nothing);
    // Else each wait for an engine would count as an instance that ended before it answered.
    const later = NOW + 3_600_000;
    expect(decide([version({ waiting: 1 })], all, 100, later)).toEqual(nothing);
    const back = instance('b', { engine: 'absent', state: 'starting', createdAt: NOW, answersSince: later });
    expect(decide([version({ waiting: 1 })], [back], 100, later)).toEqual({ ...nothing, ensure: ['b'] });
  });

  test('the engine gets a starting instance that it does not have, and one that disappeared has failed', () => {
    const all = [instance('a', { engine: 'absent', state: 'starting', createdAt: NOW }), instance('b', { engine: 'absent' })];
    expect(decide([version({ max: 2 })], all, 100, NOW)).toMatchObject({ ensure: ['a'], remove: [{ id: 'b', state: 'failed' }] });
  });

  test('one that stopped answering is replaced and keeps its sessions', () => {
    const silent = instance('a', { sessions: 3, silent: true });
    expect(decide([version({ minWarm: 1 })], [silent], 100, NOW)).toEqual({
      ...nothing,
      start: [{ versionId: 'v1', restarts: 0 }],
      drain: [{ id: 'a', reason: 'It stopped answering.' }],
    });
  });

  test('those of a deleted version end with their sessions', () => {
    const all = [instance('a', { sessions: 1 }), instance('b', { state: 'starting' })];
    expect(decide([], all, 100, NOW)).toMatchObject({ drain: [{ id: 'a' }], remove: [{ id: 'b', state: 'stopped' }] });
  });
});

/** An engine and a placement that do what was decided, with everything that can happen meanwhile. */
type Event =
  | { kind: 'arrive' | 'leave' | 'crash' | 'answer' | 'pass'; at: number }
  | { kind: 'settings'; at: number; max: number; minWarm: number };

class World {
  now = NOW;
  instances: InstanceFacts[] = [];
  lost = 0;
  readonly #version: VersionDemand;
  #count = 0;

  constructor(settings: Partial<VersionDemand>) {
    this.#version = version(settings);
  }

  get demand(): VersionDemand {
    return this.#version;
  }

  get serving(): InstanceFacts[] {
    return this.instances.filter(({ state }) => state !== 'draining');
  }

  happen(event: Event): void {
    const one = this.instances[event.at % Math.max(1, this.instances.length)];
    if (event.kind === 'arrive') this.#version.waiting += 1 + (event.at % 15);
    else if (event.kind === 'pass') this.now += 1_000 * event.at;
    else if (event.kind === 'settings') Object.assign(this.#version, { max: event.max, minWarm: Math.min(event.minWarm, event.max) });
    else if (one === undefined) return;
    else if (event.kind === 'leave') one.sessions = Math.max(0, one.sessions - 1 - (event.at % 9));
    else if (event.kind === 'crash') one.engine = 'exited';
    else if (one.state === 'starting' && one.engine === 'running') one.state = 'ready';
    this.#place();
  }

  /** Carries a decision out, and checks that no session is lost without a reason. */
  step(): Decision {
    this.now += 1_000;
    for (const one of this.instances) one.idleSince = one.sessions > 0 ? null : (one.idleSince ?? this.now);
    const decision = decide([this.#version], this.instances, 1_000, this.now);
    for (const { id } of decision.remove) {
      const one = this.instances.find((instance) => instance.id === id)!;
      const drained = one.drainingAt !== null && this.now - one.drainingAt >= this.#version.drainMs;
      if (one.sessions > 0 && one.engine !== 'exited' && !drained) throw new Error(`${id} ends with ${one.sessions} sessions`);
      if (one.engine === 'exited') {
        const { crashes } = this.#version;
        this.#version.crashes = {
          moments: crashes.moments + 1,
          unready: crashes.unready + (one.state === 'starting' ? 1 : 0),
          lastAt: this.now,
        };
      }
      this.instances.splice(this.instances.indexOf(one), 1);
    }
    for (const one of this.instances) {
      if (decision.drain.some(({ id }) => id === one.id)) Object.assign(one, { state: 'draining', drainingAt: this.now });
      if (decision.ensure.includes(one.id)) one.engine = 'running';
    }
    for (const { restarts } of decision.start) {
      const facts = { state: 'starting', engine: 'absent', createdAt: this.now, restarts } as const;
      this.instances.push(instance(`i${(this.#count += 1)}`, facts));
    }
    this.#place();
    return decision;
  }

  /** All starting instances answer, time passes, until nothing happens any more. */
  settle(): void {
    for (let step = 0; step < 200; step += 1) {
      // The window of crashes ends, and a draining instance loses its sessions.
      if (step % 20 === 19) this.#version.crashes = { moments: 0, unready: 0, lastAt: null };
      for (const one of this.instances) {
        if (one.state === 'starting' && one.engine === 'running') Object.assign(one, { state: 'ready' });
        if (one.state === 'draining') one.sessions = 0;
      }
      const isQuiet = Object.values(this.step()).every((actions: unknown[]) => actions.length === 0);
      if (isQuiet && step > 80) return;
    }
    throw new Error('it does not converge');
  }

  #place(): void {
    for (const one of this.instances.filter(({ state }) => state === 'ready')) {
      const free = Math.min(this.#version.waiting, this.#version.concurrency - one.sessions);
      if (free <= 0) continue;
      one.sessions += free;
      one.idleSince = null;
      this.#version.waiting -= free;
    }
  }
}

const at = fc.nat(20);
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constantFrom('arrive', 'leave', 'crash', 'answer', 'pass') as fc.Arbitrary<'arrive'>, at }),
  fc.record({ kind: fc.constant('settings' as const), at, max: fc.integer({ min: 1, max: 6 }), minWarm: fc.nat(3) }),
);

test('never more than the maximum, never a session lost, always the warm ones, and it comes to rest (property)', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (events, concurrency) => {
      const world = new World({ concurrency, idleMs: 20_000 });
      for (const one of events) {
        world.happen(one);
        const before = world.serving.length;
        const { start, drain } = world.step();
        if (start.length > 0) expect(world.serving.length).toBeLessThanOrEqual(world.demand.max);
        if (drain.length > 0 && before <= world.demand.max) expect(world.serving.length).toBeGreaterThanOrEqual(world.demand.minWarm);
      }
      world.settle();
      const spare = world.serving.length - wantedInstances(world.demand, world.serving);
      expect(spare).toBeGreaterThanOrEqual(0);
      // Sessions do not move, so those of one instance may be spread over two; an instance without any ends.
      if (spare > 0) expect(world.serving.filter(({ sessions }) => sessions === 0)).toEqual([]);
      expect(world.serving.length).toBeLessThanOrEqual(world.demand.max);
    }),
    { numRuns: 300 },
  );
});

test('decides on 10 000 instances of 2 000 versions in linear time', () => {
  const versions = Array.from({ length: 2_000 }, (_, index) => version({ id: `v${index}`, orgId: `o${index % 50}`, waiting: index % 3 }));
  const instances = Array.from({ length: 10_000 }, (_, index) =>
    instance(`i${index}`, { versionId: `v${index % 2_000}`, orgId: `o${index % 50}`, sessions: index % 7, createdAt: index }),
  );
  let visits = 0;
  const counted = instances.map((one) => new Proxy(one, { get: (target, key) => ((visits += 1), Reflect.get(target, key)) }));
  const { start } = decide(versions, counted, 1_000, NOW);
  expect(start).toEqual([]);
  expect(visits).toBeLessThan(50 * instances.length);
});

describe('one session per instance', () => {
  const single = version({ concurrency: 1, pool: 2 });

  test('an instance ends with its session, unless a deploy tests it', () => {
    const spent = instance('a', { sessionsLeft: 0 });
    const busy = instance('b', { sessionsLeft: 0, sessions: 1 });
    const fresh = instance('c', { sessionsLeft: 1 });
    expect(decide([single], [spent, busy, fresh], 100, NOW)).toEqual({
      ...nothing,
      remove: [{ id: 'a', state: 'stopped', reason: 'Its session ended.' }],
    });
    expect(decide([{ ...single, keep: true }], [spent], 100, NOW)).toEqual(nothing);
    // It takes no other session meanwhile.
    expect(starts([{ ...single, keep: true, waiting: 1 }], [spent])).toEqual(['v1']);
  });

  test('instances that sessions shared until now drain', () => {
    const shared = instance('a', { sessions: 3 });
    expect(decide([single], [shared], 100, NOW).drain).toEqual([{ id: 'a', reason: 'Each session now gets its own instance.' }]);
    expect(decide([single], [{ ...shared, state: 'starting' }], 100, NOW).drain).toEqual([]);
  });
});
