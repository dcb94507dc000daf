import { PalestraError } from '@palestra/protocol';
import type { ReplicaLeases } from '../ports/call-ledger.port.ts';
import type { Caller } from '../ports/directory.port.ts';
import type { SessionRecord } from '../ports/session-store.port.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isDead } from '../state.ts';
import type { SessionReaper } from './reaper.ts';

/** The process that serves a session. */
export type ServingLocation = { here: true } | { here: false; replicaId: string; address: string };

export interface PlacementOptions {
  leases: ReplicaLeases;
  replicaId: string;
}

const HERE: ServingLocation = { here: true };

/**
 * Decides which API process serves a session. Any process can serve most sessions. A session whose environment runs in a child process
 * belongs to the API process that owns the child, and the others forward its requests (ADR 8). The first process that notices the death of
 * an owner settles its sessions.
 */
export class Placement {
  #refusesNew = false;

  constructor(
    readonly registry: SessionRegistry,
    readonly reaper: SessionReaper,
    readonly options: PlacementOptions,
  ) {}

  async locate(caller: Caller, sid: string): Promise<ServingLocation> {
    const live = await this.registry.find(sid, caller);
    if (live === null) return HERE;
    // Another process may have opened it since.
    if (live.record.state === 'reserved' && !this.options.leases.alone()) await this.registry.refresh(live);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { state, ownerReplicaId } = live.record;
      if (isDead(state) || ownerReplicaId === this.options.replicaId) return HERE;
      if (ownerReplicaId === null) {
        if (state !== 'restoring') return HERE;
        if (this.#refusesNew) throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
        // A process that ended handed it over, or died. It is ours now, and its next request replays it.
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

  /** Takes over no sessions from now on, because this process is about to end. */
  refuseNew(): void {
    this.#refusesNew = true;
  }

  /** Reads the session again, because it is not where `locate` said. */
  async refresh(caller: Caller, sid: string): Promise<void> {
    const live = await this.registry.find(sid, caller);
    if (live !== null) await this.registry.refresh(live);
  }

  /** How many sessions of this process no other process can continue. */
  countUnmovable(): number {
    return this.#owned().filter((live) => live.hosted?.policy.deterministic !== true).length;
  }

  /** Releases the sessions that another process can restore. */
  async handOver(): Promise<void> {
    const restorable = this.#owned().filter((live) => live.hosted?.policy.deterministic === true);
    // Nothing ran yet, and the client will send its request again: the process that gets it opens the session.
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
