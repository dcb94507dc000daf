import type { RunConfig } from '@palestra/protocol';
import { type Query, useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { changeRun, eraseRun } from '../data/insights.ts';
import { feed } from '../data/live/useFeed.ts';
import { plural } from '../format/number.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { useRun } from '../run/context.ts';

/** Tags, retention, the end and erasure of a run. */
export function Housekeeping({ config }: { config: RunConfig }) {
  const { run } = useRun();
  const client = useQueryClient();
  const [tags, setTags] = useState(run.tags.join(', '));
  const [days, setDays] = useState(config.retention_days === null ? '' : String(config.retention_days));
  const save = useMutation({
    mutationFn: () =>
      changeRun(run.id, {
        tags: tags
          .split(',')
          .map((tag) => tag.trim())
          .filter(Boolean),
        retention_days: days === '' ? null : Number(days),
      }),
    onSuccess: () => Promise.all([client.invalidateQueries({ queryKey: ['run'] }), client.invalidateQueries({ queryKey: ['runs'] })]),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <section className="min-w-0 bg-paper-0 p-4">
      <h2 className="panel-title">Tags and retention</h2>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <label className="flex flex-col gap-1">
          <span className="text-ink-2">Tags, separated by commas</span>
          <input className="input" value={tags} onChange={(event) => setTags(event.target.value)} />
        </label>
        <label className="flex flex-col gap-1">
          <span className="text-ink-2">Days until rollouts without new events are erased</span>
          <input
            type="number"
            min={1}
            max={36_500}
            className="input num"
            placeholder="Setting of the organisation"
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
        </label>
        <div className="flex items-center gap-3">
          <button type="submit" className="button" disabled={save.isPending}>
            Save
          </button>
          <span role="status" className={save.error ? 'text-bad' : 'text-ink-2'}>
            {save.error ? save.error.message : save.isSuccess ? 'Saved.' : ''}
          </span>
        </div>
      </form>
      <FinishRun />
      <EraseRun />
    </section>
  );
}

function FinishRun() {
  const { run } = useRun();
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => changeRun(run.id, { finished: !run.finished }),
    onSuccess: () => Promise.all([client.invalidateQueries({ queryKey: ['run'] }), client.invalidateQueries({ queryKey: ['runs'] })]),
  });
  return (
    <div className="mt-6 border-t border-line pt-4">
      <p className="mb-2 max-w-[60ch] text-ink-2">
        {run.finished
          ? 'This run is finished: its silence is no alert. New rollouts continue it.'
          : 'A finished run causes no alert when it is silent. New rollouts continue it. A trainer marks its run with palestra runs finish.'}
      </p>
      <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate()}>
        {run.finished ? 'Mark as not finished' : 'Mark as finished'}
      </button>
      <p role="alert" className="text-bad">
        {change.error?.message}
      </p>
    </div>
  );
}

function EraseRun() {
  const { org, run } = useRun();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const erased = { predicate: ({ queryKey }: Query) => queryKey[1] === run.id || queryKey[1] === run.name };
  const erase = useMutation({
    mutationFn: () => eraseRun(run.id),
    // The server would refuse requests for the erased run, also those that are under way.
    onMutate: async () => {
      const stay = feed.leave([run.id, run.name]);
      await client.cancelQueries(erased);
      return stay;
    },
    onError: (_error, _none, stay) => stay?.(),
    onSuccess: async (_erased, _none, stay) => {
      await client.cancelQueries(erased);
      await navigate({ to: '/$org/runs', params: { org }, search: {} });
      client.removeQueries(erased);
      // The next run can have its name.
      stay();
      await client.invalidateQueries({ queryKey: ['runs'] });
    },
  });
  return (
    <div className="mt-6 border-t border-line pt-4">
      <button type="button" className="button text-bad" onClick={() => setOpen(true)}>
        Erase this run…
      </button>
      <Dialog title={`Erase ${run.name}`} open={open} onClose={() => setOpen(false)}>
        <p className="mb-3 text-ink-2">
          This erases {plural(run.num_rollouts, 'rollout')} with all messages, images, annotations and figures, also from the object store.
          Exports of the run are kept.
        </p>
        <form
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            erase.mutate();
          }}
        >
          <label className="flex flex-col gap-1">
            <span className="text-ink-2">
              Type <code>{run.name}</code> to erase it
            </span>
            <input className="input mono" value={typed} onChange={(event) => setTyped(event.target.value)} />
          </label>
          <button type="submit" className="button text-bad" disabled={typed !== run.name || erase.isPending}>
            Erase permanently
          </button>
          <p role="alert" className="text-bad">
            {erase.error?.message}
          </p>
        </form>
      </Dialog>
    </div>
  );
}
