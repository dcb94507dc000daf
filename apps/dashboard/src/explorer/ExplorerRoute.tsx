import { lazy, Suspense } from 'react';
import { useGuest } from '../frame/guest.ts';
import { SkeletonRows } from '../frame/states.tsx';

const Explorer = lazy(async () => ({ default: (await import('./ExplorerPage.tsx')).ExplorerPage }));
const SharedList = lazy(async () => ({ default: (await import('../shared/SharedListPage.tsx')).SharedListPage }));

/** The list of the rollouts of a run: the explorer, or what a share link shows of it. */
export function ExplorerRoute() {
  return <Suspense fallback={<SkeletonRows />}>{useGuest() ? <SharedList /> : <Explorer />}</Suspense>;
}
