import { PalestraError } from '@palestra/protocol';
import type { ReplicaLeases } from '../ports/call-ledger.port.ts';
import type { Caller } from '../ports/directory.port.ts';
import type { SessionRecord } from '../ports/session-store.port.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isDead } from '../state.ts';
import type { SessionReaper } from './reaper.ts';

/** Where a session's request is to be served. */
export type Place = { here: true } | { here: false; replicaId: string; address: string };

export interface PlacementOptions {
  leases: ReplicaLeases;
  replicaId: string;
}

const HERE: Place = { here: true };

/**
 * Which API process serves a session. Most can be served by any; one whose environment runs in a process beside its API process
 * belongs to that one, and the others pass its requests on. A dead owner's session is settled by whoever notices first.
 */
export class Placement {
  #refusesNew = false;

  constructor(
    readonly registry: SessionRegistry,
    readonly reaper: SessionReaper,
    readonly options: PlacementOptions,
  ) {}

  async of(caller: Caller, sid: string): Promise<Place> {
    const live = await this.registry.find(sid, caller);
    if (live === null) return HERE;
    // It may have been opened elsewhere since.
    if (live.record.state === 'reserved' && !this.options.leases.alone()) await this.registry.refresh(live);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { state, ownerReplicaId } = live.record;
      if (isDead(state) || ownerReplicaId === this.options.replicaId) return HERE;
      if (ownerReplicaId === null) {
        if (state !== 'restoring') return HERE;
        if (this.#refusesNew) throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
        // Handed over by a process that ended, or left by one that died: it is ours now, and replayed by its next request.
        if (await this.registry.advance(live, 'restoring', { ownerReplicaId: this.options.replicaId }, 'restoring')) return HERE;
        continue;
      }
      const address = await this.options.leases.locate(ownerReplicaId);
      if (address !== null) return { here: false, replicaId: ownerReplicaId, address };
      await this.registry.refresh(live);
      await this.reaper.settleOrphan(live, ownerReplicaId);
    }
    return HERE;
  }

  /** This process is about to end: it takes no session over. */
  refuseNew(): void {
    this.#refusesNew = true;
  }

  /** The session is not where we thought: looks again. */
  async refresh(caller: Caller, sid: string): Promise<void> {
    const live = await this.registry.find(sid, caller);
    if (live !== null) await this.registry.refresh(live);
  }

  /** Sessions of this process that nobody else could go on with. */
  bound(): number {
    return this.#owned().filter((live) => live.hosted?.policy.deterministic !== true).length;
  }

  /** Lets go of the sessions that another process can restore. */
  async handOver(): Promise<void> {
    const restorable = this.#owned().filter((live) => live.hosted?.policy.deterministic === true);
    // Nothing ran yet, and its client will ask again: whoever is asked opens it.
    const isUnopened = ({ state, ref }: SessionRecord) => state === 'starting' && ref === null;
    await Promise.all(
      restorable.map(async (live) => {
        if (await this.registry.advance(live, 'reserved', { ownerReplicaId: null }, isUnopened)) return;
        await this.registry.advance(live, 'restoring', { ownerReplicaId: null });
      }),
    );
  }

  #owned() {
    return [...this.registry.all()].filter(({ record }) => record.ownerReplicaId === this.options.replicaId && !isDead(record.state));
  }
}
