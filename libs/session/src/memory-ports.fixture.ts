import { newTaskId } from '@palestra/kit';
import type { AdmissionSnapshot, AdmissionStore, AdmittedSession } from './ports/admission-store.port.ts';
import type { SecretMap } from './ports/backend.port.ts';
import type { CallIntent, CallLedger, CallRecord, CallResult, DeferredCall, BeginAnswer, ReplicaLeases } from './ports/call-ledger.port.ts';
import type { SecretBox } from './ports/secret-box.port.ts';
import type { SessionActivity, SessionRecord, SessionStore } from './ports/session-store.port.ts';

/** The ports in memory, shared by several engines to play several API processes. */
export class MemorySessionStore implements SessionStore {
  readonly records = new Map<string, SessionRecord>();
  readonly dead: ReadonlySet<string>;
  readonly #undeliveredCreates = new Set<string>();

  constructor(dead: ReadonlySet<string> = new Set()) {
    this.dead = dead;
  }

  async find(sid: string): Promise<SessionRecord | null> {
    return this.records.get(sid) ?? null;
  }
  async insert(record: SessionRecord): Promise<boolean> {
    if (this.records.has(record.sid)) return false;
    this.records.set(record.sid, record);
    return true;
  }
  async update(record: SessionRecord): Promise<boolean> {
    if (this.records.get(record.sid)?.version !== record.version - 1) return false;
    this.records.set(record.sid, record);
    return true;
  }
  async touch(seen: SessionActivity[]): Promise<{ sid: string; version: number }[]> {
    return seen.flatMap(({ sid, seenAt, requestAt }) => {
      const record = this.records.get(sid);
      if (record === undefined) return [];
      this.records.set(sid, { ...record, lastSeenAt: seenAt, lastRequestAt: requestAt });
      return [{ sid, version: record.version }];
    });
  }
  async findIdle(now: number): Promise<SessionRecord[]> {
    return this.#countOpen().filter(
      (record) => record.lastSeenAt + record.heartbeatTimeoutMs < now || record.lastRequestAt + record.idleTimeoutMs < now,
    );
  }
  async findOrphans(): Promise<SessionRecord[]> {
    return this.#countOpen().filter(({ ownerReplicaId }) => ownerReplicaId !== null && this.dead.has(ownerReplicaId));
  }
  async findOwned(replicaId: string): Promise<SessionRecord[]> {
    return this.#countOpen().filter(({ ownerReplicaId }) => ownerReplicaId === replicaId);
  }
  async markCreateUndelivered(sid: string): Promise<void> {
    this.#undeliveredCreates.add(sid);
  }
  async clearCreateUndelivered(sid: string): Promise<boolean> {
    return this.#undeliveredCreates.delete(sid);
  }
  async purge(before: number): Promise<void> {
    for (const [sid, record] of this.records) {
      if (record.ref === null && record.endedAt !== null && record.endedAt < before) this.records.delete(sid);
    }
  }
  #countOpen(): SessionRecord[] {
    return [...this.records.values()].filter(({ endedAt }) => endedAt === null);
  }
}

export class MemoryCallLedger implements CallLedger {
  readonly records = new Map<string, CallRecord>();
  readonly #undelivered = new Set<string>();

  constructor(readonly store: MemorySessionStore) {}

  async begin(call: CallIntent, isNew: boolean): Promise<BeginAnswer> {
    const session = this.store.records.get(call.sid);
    const ours = session?.ownerReplicaId === null || session?.ownerReplicaId === call.replicaId;
    if (session === undefined || session.endedAt !== null || !ours) return { verdict: 'moved' };
    const isEqual = (other: CallRecord) => other.kind === call.kind && other.tool === call.tool && other.input === call.input;
    if (call.hasClientKey && this.records.has(call.taskId)) return { verdict: 'repeated' };
    const calls = [...this.records.values()].filter(({ sid }) => !call.hasClientKey && sid === call.sid);
    const undelivered = calls.find((other) => this.#undelivered.has(other.taskId) && isEqual(other));
    if (undelivered !== undefined) {
      this.#undelivered.delete(undelivered.taskId);
      return { verdict: 'join', taskId: undelivered.taskId };
    }
    const last = calls.at(-1);
    if (!isNew && last !== undefined && last.replicaId !== call.replicaId && isEqual(last)) {
      return { verdict: 'uncertain', taskId: last.taskId, replicaId: last.replicaId };
    }
    this.#add(call);
    return { verdict: 'started' };
  }
  defer(call: CallIntent): DeferredCall | null {
    this.#add(call);
    return { end: (end) => void this.result({ taskId: call.taskId, ...end }) };
  }
  async upstream(taskId: string, upstreamTaskId: string): Promise<void> {
    Object.assign(this.records.get(taskId)!, { upstreamTaskId });
  }
  async result({ taskId, ...result }: CallResult): Promise<void> {
    const record = this.records.get(taskId)!;
    if (record.outcome === null) Object.assign(record, result);
  }
  async markUndelivered(taskId: string): Promise<void> {
    this.#undelivered.add(taskId);
  }

  async clearUndelivered(taskId: string): Promise<void> {
    this.#undelivered.delete(taskId);
  }
  async find(taskId: string): Promise<CallRecord | null> {
    const record = this.records.get(taskId);
    return record === undefined ? null : { ...record };
  }
  async journal(sid: string, limit?: number): Promise<CallRecord[]> {
    const ended = [...this.records.values()].filter(
      (call) => call.sid === sid && call.kind === 'call' && (call.outcome?.type === 'result' || call.outcome?.type === 'tool_failed'),
    );
    return ended.slice(0, limit).map((call) => ({ ...call }));
  }
  async copy(calls: CallRecord[], sid: string): Promise<void> {
    for (const call of calls) {
      const taskId = newTaskId();
      this.#add({ ...call, sid, taskId });
      Object.assign(this.records.get(taskId)!, { outcome: call.outcome, failureClass: call.failureClass, endedAt: call.endedAt });
    }
  }
  async takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean> {
    const record = this.records.get(taskId);
    if (record?.replicaId !== fromReplicaId) return false;
    record.replicaId = toReplicaId;
    return true;
  }
  async drain(): Promise<void> {}

  #add(call: CallIntent): void {
    const seq = this.records.size + 1;
    const { taskId, sid, kind, tool, input, replicaId, startedAt } = call;
    const unknown = { upstreamTaskId: null, outcome: null, failureClass: null, endedAt: null };
    this.records.set(taskId, { taskId, sid, kind, tool, input, replicaId, startedAt, seq, ...unknown });
  }
}

/** Processes are alive until they are added to `dead`. */
export class MemoryLeases implements ReplicaLeases {
  readonly lastSeenAt = new Map<string, number>();
  isAlone = false;

  constructor(readonly dead: Set<string>) {}

  kill(replicaId: string, at = Date.now()): void {
    this.dead.add(replicaId);
    this.lastSeenAt.set(replicaId, at);
  }
  async isAlive(replicaId: string): Promise<boolean> {
    return !this.dead.has(replicaId);
  }
  alone(): boolean {
    return this.isAlone;
  }
  async locate(replicaId: string): Promise<string | null> {
    return this.dead.has(replicaId) ? null : `http://${replicaId}`;
  }
  async confirm(replicaId: string): Promise<{ alive: true } | { alive: false; lastSeenAt: number | null }> {
    if (!this.dead.has(replicaId)) return { alive: true };
    return { alive: false, lastSeenAt: this.lastSeenAt.get(replicaId) ?? null };
  }
}

export class MemoryAdmissionStore implements AdmissionStore {
  constructor(
    readonly store: MemorySessionStore,
    readonly replicas: string[] = ['first'],
  ) {}

  async round(decide: (snapshot: AdmissionSnapshot) => AdmittedSession[]): Promise<void> {
    const living = [...this.store.records.values()].filter(({ endedAt }) => endedAt === null);
    const holderOf = ({ keyId, userId }: SessionRecord) => keyId ?? userId;
    const waiting = living
      .filter(({ waitingOn }) => waitingOn !== null)
      .map((record) => ({
        sid: record.sid,
        versionId: record.versionId!,
        holder: holderOf(record),
        orgId: record.orgId,
        limits: record.slotLimits!,
        waitingOn: record.waitingOn!,
        queuedAt: record.queuedAt!,
      }));
    const held = living
      .filter(({ admittedAt }) => admittedAt !== null)
      .map((record) => ({
        versionId: record.versionId!,
        ownerReplicaId: record.ownerReplicaId,
        holder: holderOf(record),
        orgId: record.orgId,
        count: 1,
      }));
    for (const { sid, ownerReplicaId } of decide({ waiting, held, replicas: this.replicas })) {
      const record = this.store.records.get(sid)!;
      this.store.records.set(sid, { ...record, version: record.version + 1, waitingOn: null, ownerReplicaId, admittedAt: Date.now() });
    }
  }

  async countOpen() {
    const living = [...this.store.records.values()].filter(({ endedAt }) => endedAt === null);
    return living.map(({ keyId, userId, orgId }) => ({ holder: keyId ?? userId, orgId, count: 1 }));
  }

  async findAdmittedOrEnded(sids: string[]): Promise<string[]> {
    return sids.filter((sid) => this.store.records.get(sid)?.waitingOn === null);
  }
}

/** Not secret at all; tests only look at where it is kept. */
export const openBox: SecretBox = {
  seal: (secrets) => new TextEncoder().encode(JSON.stringify(secrets)),
  open: (sealed) => JSON.parse(new TextDecoder().decode(sealed)) as SecretMap,
};
