import type { CallIntent, CallLedger, CallRecord, CallResult } from './call-ledger.port.ts';
import type { SessionRecord, SessionStore } from './session-store.port.ts';

/** The ports in memory, shared by several engines to play several API processes. */
export class MemorySessionStore implements SessionStore {
  readonly records = new Map<string, SessionRecord>();

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
  async touch(seen: { sid: string; at: number }[]): Promise<{ sid: string; version: number }[]> {
    return seen.flatMap(({ sid, at }) => {
      const record = this.records.get(sid);
      if (record === undefined) return [];
      this.records.set(sid, { ...record, lastSeenAt: at });
      return [{ sid, version: record.version }];
    });
  }
  async findIdle(now: number): Promise<SessionRecord[]> {
    return [...this.records.values()].filter((record) => record.endedAt === null && record.lastSeenAt + record.idleTimeoutMs < now);
  }
  async purge(before: number): Promise<void> {
    for (const [sid, record] of this.records) {
      if (record.ref === null && record.endedAt !== null && record.endedAt < before) this.records.delete(sid);
    }
  }
}

export class MemoryCallLedger implements CallLedger {
  readonly records = new Map<string, CallRecord>();

  async intent(call: CallIntent): Promise<void> {
    const seq = this.records.size + 1;
    this.records.set(call.taskId, { ...call, seq, upstreamTaskId: null, outcome: null, failureClass: null, endedAt: null });
  }
  async upstream(taskId: string, upstreamTaskId: string): Promise<void> {
    Object.assign(this.records.get(taskId)!, { upstreamTaskId });
  }
  async result({ taskId, ...result }: CallResult): Promise<void> {
    const record = this.records.get(taskId)!;
    if (record.outcome === null) Object.assign(record, result);
  }
  async find(taskId: string): Promise<CallRecord | null> {
    const record = this.records.get(taskId);
    return record === undefined ? null : { ...record };
  }
  async takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean> {
    const record = this.records.get(taskId);
    if (record?.replicaId !== fromReplicaId || record.outcome !== null) return false;
    record.replicaId = toReplicaId;
    return true;
  }
  async drain(): Promise<void> {}
}
