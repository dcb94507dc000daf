import type { NewSavedView, SavedView } from '@palestra/protocol';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { deleteView, saveView, replaceView, viewsQuery } from '../data/views.ts';
import { Popover } from '../frame/Popover.tsx';
import { useRun } from '../run/context.ts';
import { readFilter } from '../run/filter.ts';
import { searchText } from '../search.ts';

interface ViewState {
  q: string;
  sort: string | undefined;
  cols: string | undefined;
}

/** Saved views: a named query with its order, columns and the filter of the run. */
export function ViewsMenu({ q, sort, cols }: ViewState) {
  const { run, filter } = useRun();
  const views = useQuery(viewsQuery(run.id));
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: viewsQuery(run.id).queryKey });
  const body = (name: string, everywhere: boolean): NewSavedView => {
    const { lens, ...rest } = filter;
    const state = Object.fromEntries(Object.entries({ ...rest, sort, cols }).filter(([, value]) => value !== undefined));
    return { run: everywhere ? null : run.id, name, query: q, lens: lens ?? null, state };
  };
  const save = useMutation({
    mutationFn: ({ name, everywhere }: { name: string; everywhere: boolean }) => saveView(body(name, everywhere)),
    onSuccess: refresh,
  });
  const replace = useMutation({
    mutationFn: (view: SavedView) => replaceView(view.id, body(view.name, view.run === null)),
    onSuccess: refresh,
  });
  const remove = useMutation({ mutationFn: (id: string) => deleteView(id), onSuccess: refresh });
  const failed = save.error ?? replace.error ?? remove.error ?? views.error;
  return (
    <Popover label="Saved views" button="Views" align="end">
      {views.data?.length === 0 && <p className="mb-2 text-ink-3">No saved views yet.</p>}
      <ul className="-mx-1 mb-2 flex flex-col" aria-label="Views">
        {views.data?.map((view) => (
          <ViewRow key={view.id} view={view} onReplace={() => replace.mutate(view)} onDelete={() => remove.mutate(view.id)} />
        ))}
      </ul>
      <SaveForm busy={save.isPending} onSave={(name, everywhere) => save.mutateAsync({ name, everywhere })} />
      {failed && (
        <p role="alert" className="mt-2 text-bad">
          {failed.message}
        </p>
      )}
    </Popover>
  );
}

function ViewRow({ view, onReplace, onDelete }: { view: SavedView; onReplace: () => void; onDelete: () => void }) {
  const navigate = useNavigate();
  const [sure, setSure] = useState(false);
  const open = () => {
    const filter = readFilter({ ...view.state, lens: view.lens ?? undefined });
    const { sort, cols } = view.state;
    void navigate({ to: '.', search: { ...filter, q: view.query || undefined, sort: searchText(sort), cols: searchText(cols) } as never });
  };
  const small = 'label link flex-none px-1';
  return (
    <li className="flex min-h-[30px] items-center gap-1 rounded-[3px] px-1 hover:bg-paper-2">
      <button type="button" className="flex min-w-0 flex-1 flex-col py-[3px] text-left" onClick={open} title={`Saved by ${view.author}`}>
        <span className="w-full truncate">
          {view.name}
          {view.run === null && <span className="label"> · all runs</span>}
        </span>
        <span className="mono w-full truncate text-[11px] text-ink-3">{view.query || 'All rollouts'}</span>
      </button>
      <button type="button" className={small} aria-label={`Replace ${view.name} with the current view`} onClick={onReplace}>
        Replace
      </button>
      <button
        type="button"
        className={`${small} ${sure ? 'text-bad strong' : ''}`}
        aria-label={sure ? `Delete the view ${view.name} now` : `Delete the view ${view.name}`}
        onClick={() => (sure ? onDelete() : setSure(true))}
        onBlur={() => setSure(false)}
      >
        {sure ? 'Delete now' : 'Delete'}
      </button>
    </li>
  );
}

function SaveForm({ busy, onSave }: { busy: boolean; onSave: (name: string, everywhere: boolean) => Promise<unknown> }) {
  const [name, setName] = useState('');
  const [everywhere, setEverywhere] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onSave(name.trim(), everywhere).then(
      () => setName(''),
      () => undefined,
    );
  };
  return (
    <form className="flex flex-col gap-2 border-t border-line pt-3" onSubmit={submit}>
      <div className="flex gap-2">
        <input
          className="input min-w-0 flex-1"
          aria-label="Name of the view"
          placeholder="Save the current view as…"
          required
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit" className="button primary" disabled={busy || name.trim() === ''}>
          Save
        </button>
      </div>
      <label className="flex items-center gap-2 text-ink-2">
        <input type="checkbox" className="accent-[var(--accent)]" checked={everywhere} onChange={() => setEverywhere(!everywhere)} />
        For all runs of the organisation
      </label>
    </form>
  );
}
