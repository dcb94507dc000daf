import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { SessionView } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { keepSession, keptQuery } from '../data/playground.ts';
import { meQuery } from '../data/queries.ts';
import { Dialog } from '../frame/Dialog.tsx';

/** Stores the played session as a rollout of a run; says where it is, once it can be read. */
export function KeepButton({ session, onKept }: { session: SessionView; onKept: () => void }) {
  const [open, setOpen] = useState(false);
  const { recording } = session;
  return (
    <>
      {recording ? (
        <KeptLink id={recording.rollout_id} run={recording.run} />
      ) : (
        <button type="button" className="button" disabled={session.task === null} onClick={() => setOpen(true)}>
          Keep as rollout
        </button>
      )}
      <Dialog title="Keep as rollout" open={open && !recording} onClose={() => setOpen(false)}>
        <KeepForm
          sid={session.sid}
          onKept={() => {
            setOpen(false);
            onKept();
          }}
        />
      </Dialog>
    </>
  );
}

function KeptLink({ id, run }: { id: string; run: string }) {
  const kept = useQuery(keptQuery(id));
  if (!kept.data) return <span className="label">being written to {run}…</span>;
  return (
    <Link to="/rollout/$id" params={{ id }} className="button" title={`Rollout of the run ${run}, written from the ledger`}>
      Open the rollout
    </Link>
  );
}

function KeepForm({ sid, onKept }: { sid: string; onKept: () => void }) {
  const me = useQuery(meQuery);
  const [run, setRun] = useState('playground');
  const [rollout, setRollout] = useState('');
  const keep = useMutation({ mutationFn: () => keepSession(sid, { run: run.trim(), rollout: rollout.trim() || null }), onSuccess: onKept });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (run.trim() !== '') keep.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <p className="text-ink-2">
        Its calls, results, rewards and true latencies are written from the server’s own ledger, so the rollout is verified. What you call
        from here on is added to it.
      </p>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Run{me.data ? ` of ${me.data.org.name}` : ''}; made unless it is there</span>
        <input className="input" required value={run} onChange={(event) => setRun(event.target.value)} />
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Name of the rollout, optional</span>
        <input className="input" value={rollout} onChange={(event) => setRollout(event.target.value)} />
      </label>
      <div className="flex items-center gap-2">
        <button type="submit" className="button primary" disabled={keep.isPending || run.trim() === ''}>
          {keep.isPending ? 'Writing…' : 'Keep it'}
        </button>
        <span role="alert" className="text-bad">
          {keep.error?.message}
        </span>
      </div>
    </form>
  );
}
