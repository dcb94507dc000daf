import type { RolloutExportView } from '@palestra/protocol';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { deleteExport, exportFileHref, exportsQuery, isInProgress } from '../data/exports.ts';
import { formatBytes, formatCount, formatReward, plural } from '../format/number.ts';

const stateNames: Record<RolloutExportView['state'], readonly [text: string, className: string]> = {
  pending: ['waiting', 'text-ink-2'],
  running: ['writing', 'text-ink-1'],
  complete: ['complete', 'text-good'],
  failed: ['failed', 'text-bad'],
};

export function JobState({ job }: { job: RolloutExportView }) {
  const [text, className] = stateNames[job.state];
  return (
    <span className={className}>
      <span aria-hidden="true">{job.state === 'complete' ? '✓ ' : job.state === 'failed' ? '✕ ' : '◌ '}</span>
      {text}
    </span>
  );
}

/** Written rows of the expected rows. Pairs, tasks and regex matches are not counted in advance. */
export function JobProgress({ job }: { job: RolloutExportView }) {
  const share = job.state === 'complete' ? 1 : job.total ? Math.min(1, (job.written + job.skipped) / job.total) : 0;
  const text =
    job.total !== null && isInProgress(job) ? `${formatCount(job.written)} of ${formatCount(job.total)} rows` : plural(job.written, 'row');
  return (
    <div className="flex items-center gap-3">
      <div
        role="progressbar"
        aria-label="Rows written"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        className="h-[4px] min-w-[60px] flex-1 rounded-[2px] bg-paper-2"
      >
        <div className="h-full rounded-[2px] bg-good" style={{ width: `${share * 100}%` }} />
      </div>
      <span className="flex-none tabular-nums">{text}</span>
    </div>
  );
}

/** The progress, figures and files of an export, and a button that cancels or erases it. */
export function JobDetails({ job }: { job: RolloutExportView }) {
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-center gap-3">
        <JobState job={job} />
        <span className="flex-1">
          <JobProgress job={job} />
        </span>
      </div>
      {job.error !== null && (
        <p role="alert" className="text-bad [overflow-wrap:anywhere]">
          {job.error}
        </p>
      )}
      {job.too_large.length > 0 && (
        <p className="text-ink-3">
          {plural(job.too_large.length, 'rollout')} left out, because the messages take more than 128 MiB. The file manifest.json has the
          ids.
        </p>
      )}
      {job.skipped > 0 && (
        <p className="text-ink-3">{plural(job.skipped, 'row')} skipped, because they have no model message or their prompts differ.</p>
      )}
      {job.figures && (
        <p className="text-ink-2">
          {plural(job.figures.rollouts, 'rollout')}, {formatCount(job.figures.scored)} scored · mean reward{' '}
          {formatReward(job.figures.reward_mean)} ±{formatReward(job.figures.reward_std)}
        </p>
      )}
      {job.state === 'complete' && (
        <ul aria-label="Files" className="border-t border-line">
          {job.files.map((file) => (
            <li key={file.name} className="flex h-[28px] items-center gap-3 border-b border-line">
              <a
                className="link mono min-w-0 flex-1 truncate"
                href={exportFileHref(job.id, file.name)}
                download={file.name.split('/').at(-1)}
              >
                {file.name}
              </a>
              <span className="num flex-none text-ink-2">{file.rows > 0 && plural(file.rows, 'row')}</span>
              <span className="num w-[72px] flex-none text-ink-3">{formatBytes(file.size)}</span>
            </li>
          ))}
        </ul>
      )}
      <Erase job={job} />
    </div>
  );
}

function Erase({ job }: { job: RolloutExportView }) {
  const client = useQueryClient();
  const [sure, setSure] = useState(false);
  const erase = useMutation({ mutationFn: () => deleteExport(job.id), onSuccess: () => client.invalidateQueries(exportsQuery) });
  const what = isInProgress(job) ? 'Cancel export' : `Erase ${plural(job.files.length, 'file')}, ${formatBytes(job.bytes)}`;
  return (
    <div className="flex items-center gap-2">
      <button
        type="button"
        className={`button ${sure ? 'text-bad' : ''}`}
        disabled={erase.isPending}
        onClick={() => (sure ? erase.mutate() : setSure(true))}
        onBlur={() => setSure(false)}
      >
        {sure ? `${what} now` : what}
      </button>
      {erase.error && <span className="text-bad">{erase.error.message}</span>}
    </div>
  );
}
