import type { RunningInstance } from '../../provider/provider.port.ts';
import { LABEL } from '../cluster/names.ts';
import type { Pod } from '../instance/pod.ts';
import { viewOf } from '../instance/pod-view.ts';
import type { Claim } from './objects.ts';

/**
 * The instance that a claim and its pod are. Of the conditions of a claim only `Ready` counts. `bound`: uid of the pod that it was seen running
 * with; null: with none yet.
 */
export function claimView(claim: Claim, pod: Pod | null, bound: string | null): RunningInstance {
  const { labels = {}, deletionTimestamp } = claim.metadata;
  const own = { id: labels[LABEL.instance] ?? '', versionId: labels[LABEL.version] ?? '' };
  const none: RunningInstance = { ...own, state: 'starting', endpoint: null, exit: null, startedAt: null, restarts: 0 };
  if (deletionTimestamp) return ended(none, 'The cluster removes its claim: it was deleted.');
  if (bound !== null && pod?.metadata.uid !== bound) return ended(none, 'Its pod is gone: it was deleted, or its node was.');
  const view: RunningInstance = pod === null ? none : { ...viewOf(pod), ...own };
  if (view.state === 'exited' || bound !== null) return view;
  const ready = claim.status?.conditions?.find(({ type }) => type === 'Ready');
  if (view.state === 'running' && ready?.status === 'True') return view;
  const why = view.waiting ?? waitingFor(ready, pod !== null);
  return { ...view, state: 'starting', endpoint: null, startedAt: null, ...(why !== null && { waiting: why }) };
}

const ended = (view: RunningInstance, reason: string): RunningInstance => ({ ...view, state: 'exited', exit: { code: null, reason } });

function waitingFor(ready: { reason?: string; message?: string } | undefined, hasPod: boolean): string | null {
  if (hasPod) return null;
  if (ready === undefined) return 'agent-sandbox has not answered its claim. Check that its controller runs.';
  return `agent-sandbox has no pod for it yet (${ready.reason ?? 'no reason'}): ${ready.message ?? 'no message'}`;
}
