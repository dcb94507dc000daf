import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { SessionView } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { keepSession, keptQuery } from '../data/playground.ts';
import { meQuery } from '../data/queries.ts';
import { Dialog } from '../frame/Dialog.tsx';

/** Saves the session as a rollout of a run, and then links to the rollout. */
export function SaveButton({ session, onSaved }: { session: SessionView; onSaved: () => void }) {
  const [open, setOpen] = useState(false);
  const { recording } = session;
  return (
    <>
      {recording ? (
        <RolloutLink id={recording.rollout_id} run={recording.run} />
      ) : (
        <button type="button" className="button" disabled={session.task === null} onClick={() => setOpen(true)}>
          Save as rollout
        </button>
      )}
      <Dialog title="Save as rollout" open={open && !recording} onClose={() => setOpen(false)}>
        <SaveForm
          sid={session.sid}
          onSaved={() => {
            setOpen(false);
            onSaved();
          }}
        />
      </Dialog>
    </>
  );
}

function RolloutLink({ id, run }: { id: string; run: string }) {
  const saved = useQuery(keptQuery(id));
  if (!saved.data) return <span className="label">Saving to {run}…</span>;
  return (
    <Link to="/rollout/$id" params={{ id }} className="button" title={`Rollout of the run ${run}, recorded from the ledger`}>
      Open rollout
    </Link>
  );
}

function SaveForm({ sid, onSaved }: { sid: string; onSaved: () => void }) {
  const me = useQuery(meQuery);
  const [run, setRun] = useState('playground');
  const [rollout, setRollout] = useState('');
  const save = useMutation({
    mutationFn: () => keepSession(sid, { run: run.trim(), rollout: rollout.trim() || null }),
    onSuccess: onSaved,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (run.trim() !== '') save.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <p className="text-ink-2">
        The calls, results, rewards and latencies of the rollout come from the server’s ledger, so it is verified. The server adds later
        calls of this session to it.
      </p>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Run{me.data ? ` of ${me.data.org.name}` : ''}, created if it does not exist</span>
        <input className="input" required value={run} onChange={(event) => setRun(event.target.value)} />
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Rollout name (optional)</span>
        <input className="input" value={rollout} onChange={(event) => setRollout(event.target.value)} />
      </label>
      <div className="flex items-center gap-2">
        <button type="submit" className="button primary" disabled={save.isPending || run.trim() === ''}>
          {save.isPending ? 'Saving…' : 'Save rollout'}
        </button>
        <span role="alert" className="text-bad">
          {save.error?.message}
        </span>
      </div>
    </form>
  );
}
