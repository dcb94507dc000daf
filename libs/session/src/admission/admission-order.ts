import type { AdmissionSnapshot, AdmittedSession, WaitingSession } from '../ports/admission-store.port.ts';

class Counts {
  readonly #counts = new Map<string, number>();
  of(...key: (string | null)[]): number {
    return this.#counts.get(JSON.stringify(key)) ?? 0;
  }
  add(count: number, ...key: (string | null)[]): void {
    const name = JSON.stringify(key);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }
}

/**
 * The order in which waiting sessions get slots: the holder with the fewest slots of an environment comes first, and among equals the
 * session that has waited longest. A second waiting session of a holder counts as if the first one already had a slot.
 */
export function fairOrder({ waiting, held }: Pick<AdmissionSnapshot, 'waiting' | 'held'>): WaitingSession[] {
  const holds = new Counts();
  for (const { versionId, holder, count } of held) holds.add(count, versionId, holder);
  const ranked = waiting
    .toSorted((a, b) => a.queuedAt - b.queuedAt)
    .map((session) => {
      const rank = holds.of(session.versionId, session.holder);
      holds.add(1, session.versionId, session.holder);
      return { session, rank };
    });
  return ranked.toSorted((a, b) => a.rank - b.rank || a.session.queuedAt - b.session.queuedAt).map(({ session }) => session);
}

/** The waiting sessions that get a slot now. Only a session's own limits hold it back, never those of sessions before it. */
export function chooseAdmitted(snapshot: AdmissionSnapshot): AdmittedSession[] {
  const [pool, byKey, byOrg] = [new Counts(), new Counts(), new Counts()];
  const add = (versionId: string, owner: string | null, holder: string, orgId: string, count: number) => {
    pool.add(count, versionId, owner);
    pool.add(count, versionId);
    byKey.add(count, holder);
    byOrg.add(count, orgId);
  };
  for (const { versionId, ownerReplicaId, holder, orgId, count } of snapshot.held) add(versionId, ownerReplicaId, holder, orgId, count);
  const admitted: AdmittedSession[] = [];
  for (const { sid, versionId, holder, orgId, limits, waitingOn } of fairOrder(snapshot)) {
    if (limits.key !== null && byKey.of(holder) >= limits.key) continue;
    if (limits.org !== null && byOrg.of(orgId) >= limits.org) continue;
    const isShared = !limits.owned || limits.shared === true;
    const owner = limits.owned
      ? freeReplica(snapshot.replicas, waitingOn, isShared ? null : limits.capacity, (replica) => pool.of(versionId, replica))
      : null;
    if (owner === undefined) continue;
    if (isShared && limits.capacity !== null && pool.of(versionId) >= limits.capacity) continue;
    add(versionId, owner, holder, orgId, 1);
    admitted.push({ sid, ownerReplicaId: owner });
  }
  return admitted;
}

/** The process that the client is connected to if it has a free slot, else the process with the fewest sessions; undefined when all are full. */
function freeReplica(replicas: string[], near: string, capacity: number | null, used: (replica: string) => number): string | undefined {
  const free = replicas.filter((replica) => capacity === null || used(replica) < capacity);
  return free.includes(near) ? near : free.toSorted((a, b) => used(a) - used(b))[0];
}
