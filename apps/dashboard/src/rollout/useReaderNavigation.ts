import type { RolloutHeader } from '@palestra/protocol';
import { useCanGoBack, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import type { FromList } from '../data/list-order.ts';
import { beside } from '../data/rollout.ts';

/** The ways from one rollout to others, and the comparison in the address. `notify` says why there is no other rollout. */
export function useReaderNavigation({ id, run, neighbours }: RolloutHeader, notify: (text: string) => void) {
  const navigate = useNavigate();
  const router = useRouter();
  const canGoBack = useCanGoBack();
  const { q, sort, diff } = useSearch({ from: '/rollout/$id' });
  const list: FromList = { q, sort };
  const best = neighbours.best_sample;

  const openRollout = (to: { id: string } | null | undefined, missingMessage: string) => {
    if (!to) return notify(missingMessage);
    void navigate({ to: '/rollout/$id', params: { id: to.id }, search: (old) => ({ ...old, diff: undefined }), replace: true });
  };
  const setDiff = (other: string | undefined) =>
    void navigate({
      to: '.',
      search: (old: object) => ({ ...old, diff: other }) as never,
      hash: location.hash.slice(1),
      replace: true,
      hashScrollIntoView: false,
    });
  const toggleDiff = () => {
    if (diff !== undefined) setDiff(undefined);
    else if (best) setDiff(best.id);
    else notify('This is the best sample of its group');
  };
  const stepInList = async (step: 1 | -1) => {
    const sides = await beside(id, list).catch((error: Error) => notify(error.message));
    if (!sides) return;
    const name = q ? 'query' : 'run';
    openRollout(
      step > 0 ? sides.next : sides.previous,
      sides.incomplete ? `No rollout found yet, because the ${name} is long` : `The ${name} has no more rollouts`,
    );
  };
  /** Closes the comparison, or else leaves the rollout. */
  const back = () => {
    if (diff !== undefined) setDiff(undefined);
    else if (canGoBack) router.history.back();
    else void navigate({ to: '/$org/runs/$run', params: { org: run.org, run: run.name }, search: {} });
  };
  return { list, fromList: q !== undefined || sort !== undefined, diff, best, openRollout, setDiff, toggleDiff, stepInList, back };
}

export type ReaderNavigation = ReturnType<typeof useReaderNavigation>;
