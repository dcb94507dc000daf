import { DEMO_RUNS, DEMO_TAG, type ListedRun } from '@palestra/protocol';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { removeDemo } from '../data/runs.ts';

const isDemo = ({ name, tags }: ListedRun): boolean => (DEMO_RUNS as readonly string[]).includes(name) && tags.includes(DEMO_TAG);

/** Says that runs of the list are the demo, and removes it. `onRemoved` reads the list again. */
export function DemoNotice({ runs, onRemoved }: { runs: readonly ListedRun[]; onRemoved: () => void }) {
  const client = useQueryClient();
  const demo = runs.filter(isDemo);
  const remove = useMutation({
    mutationFn: removeDemo,
    onSuccess: async () => {
      onRemoved();
      await client.invalidateQueries();
    },
  });
  if (demo.length === 0) return null;
  const ends = remove.isPending || remove.isSuccess;
  return (
    <section
      aria-label="Demonstration"
      className="flex min-h-[40px] flex-none flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-paper-1 px-3 py-[6px]"
    >
      <p className="text-ink-2">
        <span className="text-ink-1">{demo.length === 1 ? 'This run is a demonstration.' : 'These runs are a demonstration.'}</span>{' '}
        Scripted policies played these episodes. One tool breaks at step 12.
      </p>
      <span className="ml-auto flex items-center gap-3">
        <span role="status" className="text-bad">
          {remove.error?.message}
        </span>
        {demo.length > 1 && (
          <Link to="/compare" search={{ runs: demo.map(({ name }) => name).join(',') }} className="link whitespace-nowrap">
            Compare runs
          </Link>
        )}
        <button
          type="button"
          className="button"
          title="Erases the runs, their sessions and the environment demo-ctf. The command “palestra demo” creates them again."
          disabled={ends}
          onClick={() => remove.mutate()}
        >
          {ends ? 'Removing…' : 'Remove demo'}
        </button>
      </span>
    </section>
  );
}
