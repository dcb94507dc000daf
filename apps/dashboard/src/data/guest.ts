import type { OpenShare } from '@palestra/protocol';
import { ApiError, limitRequests } from './http.ts';

/** What the pages of a share link read (`@Shareable()` in apps/api). Other requests are not sent: pages show that these parts need an account. */
const OF_ROLLOUT = /^\/v1\/rollouts\/([^/]+)(?:\/(?:header|outline|calls|messages|messages\/\d+\/body|objects\/[^/]+))?$/;
const FIGURES = /^\/v1\/runs\/([^/]+)(?:\/(?:summary|series|heatmap|steps))?$/;
const LIST = /^\/v1\/runs\/([^/]+)\/rollouts$/;

let opened: OpenShare | null = null;

/** Limits requests to what a share link covers; null removes the limit. */
export function limitToShare(share: OpenShare | null): void {
  opened = share;
  if (share === null) return limitRequests(null);
  const isRun = (id: string | undefined) => share.runs.some((run) => run.id === id);
  limitRequests((path) => {
    const plain = path.toLowerCase().split('?')[0]!;
    if (plain === '/v1/me' || plain === '/v1/shared' || plain === '/v1/login') return null;
    const rollout = OF_ROLLOUT.exec(plain)?.[1];
    if (rollout !== undefined && (share.with_rollouts || share.rollouts.includes(rollout))) return null;
    if ((share.kind === 'run' || share.kind === 'runs') && isRun(FIGURES.exec(plain)?.[1])) return null;
    if ((share.kind === 'query' || share.with_rollouts) && isRun(LIST.exec(plain)?.[1])) return null;
    if (share.kind === 'runs' && /^\/v1\/compare(?:\/tasks)?$/.test(plain)) return null;
    if (share.kind === 'rollouts' && plain === '/v1/diff') return null;
    return new ApiError(403, 'account_needed', 'This needs an account of the organisation. The link shows only what was shared.');
  });
}

/** The id of a shared run: guests cannot look for runs by name. Undefined for members. */
export const sharedRunId = (run: string): string | undefined => opened?.runs.find(({ id, name }) => name === run || id === run)?.id;

export interface Address {
  /** Of `/rollout/{id}`. */
  rollout?: string | undefined;
  /** Of the overview of a run, or of its list of rollouts. */
  run?: { org: string; name: string; list: boolean } | undefined;
  compared?: { runs: readonly string[]; rollouts: readonly string[] } | undefined;
}

/** Whether the link shows the page at this address. */
export function isShown(share: OpenShare, { rollout, run, compared }: Address): boolean {
  if (rollout !== undefined) return share.with_rollouts || share.rollouts.includes(rollout);
  if (run !== undefined) {
    const isShared = share.org === run.org && share.runs.some(({ id, name }) => name === run.name || id === run.name);
    return isShared && (run.list ? share.kind === 'query' || share.with_rollouts : share.kind === 'run');
  }
  if (compared === undefined) return false;
  const covers = (ids: readonly string[], known: readonly string[]) => ids.length > 1 && ids.every((id) => known.includes(id));
  if (share.kind === 'rollouts') return covers(compared.rollouts, share.rollouts);
  return (
    share.kind === 'runs' &&
    covers(
      compared.runs,
      share.runs.map(({ id }) => id),
    )
  );
}
