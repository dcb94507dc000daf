import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useId, useState } from 'react';
import { membersQuery } from '../data/accounts.ts';
import { createReviewQueue } from '../data/reviews.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { useRun } from '../run/context.ts';

/** Creates a review queue from a sample of a query. `q`: the query including the filter of the run. */
export function CreateQueueDialog({ q, open, onClose }: { q: string; open: boolean; onClose: () => void }) {
  return (
    <Dialog title="Review a sample of the query" open={open} onClose={onClose} width={560}>
      <QueueForm q={q} />
    </Dialog>
  );
}

const LABELS = 'good, bad, exploit';
const labelsOf = (text: string) =>
  text
    .split(',')
    .map((label) => label.trim())
    .filter(Boolean);
const whole = (text: string, fallback: number) => (/^\d{1,9}$/.test(text.trim()) ? Number(text) : fallback);

function QueueForm({ q }: { q: string }) {
  const { run } = useRun();
  const navigate = useNavigate();
  const members = useQuery(membersQuery).data ?? [];
  const [name, setName] = useState(`Review of ${run.name}`.slice(0, 200));
  const [mode, setMode] = useState<'labels' | 'pairs'>('labels');
  const [sample, setSample] = useState('50');
  const [seed, setSeed] = useState('0');
  const [overlap, setOverlap] = useState('1');
  const [labels, setLabels] = useState(LABELS);
  const [criteria, setCriteria] = useState('');
  const [reviewers, setReviewers] = useState<ReadonlySet<string>>(new Set());
  const help = useId();
  const create = useMutation({
    mutationFn: createReviewQueue,
    onSuccess: ({ id }) => void navigate({ to: '/reviews', search: { queue: id } }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({
      name,
      run: run.id,
      query: q,
      mode,
      sample: whole(sample, 50),
      seed: whole(seed, 0),
      overlap: whole(overlap, 1),
      ...(mode === 'labels' && { labels: labelsOf(labels) }),
      criteria: criteria.trim() || null,
      reviewers: [...reviewers],
    });
  };
  const toggle = (id: string) =>
    setReviewers((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  const number = 'input num w-full';
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <div>
        <p className="label mb-1">Query in {run.name}</p>
        <pre className="code-block whitespace-pre-wrap">{q || 'All rollouts of the run'}</pre>
      </div>
      <label className="flex flex-col gap-1">
        <span className="label">Name</span>
        <input className="input" required maxLength={200} value={name} data-autofocus onChange={(event) => setName(event.target.value)} />
      </label>
      <fieldset>
        <legend className="label mb-1">Task of the reviewers</legend>
        <div className="flex flex-col gap-1">
          <label className="flex items-center gap-2">
            <input
              type="radio"
              name="mode"
              className="accent-[var(--accent)]"
              checked={mode === 'labels'}
              onChange={() => setMode('labels')}
            />
            Label each rollout
          </label>
          <label className="flex items-center gap-2">
            <input
              type="radio"
              name="mode"
              className="accent-[var(--accent)]"
              checked={mode === 'pairs'}
              onChange={() => setMode('pairs')}
            />
            Choose the better of two rollouts of a group
          </label>
        </div>
      </fieldset>
      <div className="grid grid-cols-3 gap-3">
        <label className="flex flex-col gap-1">
          <span className="label">{mode === 'pairs' ? 'Pairs' : 'Rollouts'}</span>
          <input
            className={number}
            type="number"
            min={1}
            max={10_000}
            required
            value={sample}
            onChange={(event) => setSample(event.target.value)}
          />
        </label>
        <label className="flex flex-col gap-1">
          <span className="label">Answers per item</span>
          <input
            className={number}
            type="number"
            min={1}
            max={10}
            required
            value={overlap}
            onChange={(event) => setOverlap(event.target.value)}
          />
        </label>
        <label className="flex flex-col gap-1">
          <span className="label">Seed</span>
          <input
            className={number}
            type="number"
            min={0}
            max={2_147_483_647}
            required
            aria-describedby={help}
            value={seed}
            onChange={(event) => setSeed(event.target.value)}
          />
        </label>
      </div>
      <p id={help} className="label -mt-2">
        The same seed draws the same sample. Agreement needs at least two answers per item.
      </p>
      {mode === 'labels' && (
        <label className="flex flex-col gap-1">
          <span className="label">Labels for the keys 1 to 9, separated by commas</span>
          <input className="input" required value={labels} onChange={(event) => setLabels(event.target.value)} />
        </label>
      )}
      <label className="flex flex-col gap-1">
        <span className="label">Criteria, in Markdown (optional)</span>
        <textarea
          className="input h-[88px] resize-y py-1"
          maxLength={20_000}
          value={criteria}
          onChange={(event) => setCriteria(event.target.value)}
        />
      </label>
      {members.length > 1 && (
        <fieldset>
          <legend className="label mb-1">Reviewers: {reviewers.size === 0 ? 'all members' : `${reviewers.size} chosen`}</legend>
          <div className="flex max-h-[120px] flex-wrap gap-x-4 gap-y-1 overflow-y-auto">
            {members.map((member) => (
              <label key={member.id} className="flex items-center gap-2">
                <input
                  type="checkbox"
                  className="accent-[var(--accent)]"
                  checked={reviewers.has(member.id)}
                  onChange={() => toggle(member.id)}
                />
                {member.name}
              </label>
            ))}
          </div>
        </fieldset>
      )}
      <p role="alert" className="text-bad empty:hidden">
        {create.error?.message}
      </p>
      <div className="flex justify-end border-t border-line pt-3">
        <button type="submit" className="button primary" disabled={create.isPending}>
          Create queue
        </button>
      </div>
    </form>
  );
}
