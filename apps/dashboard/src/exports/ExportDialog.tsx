import { type Lens, LENSES, type RolloutExportBody, type RolloutExportFormat } from '@palestra/protocol';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { createExport, exportsQuery } from '../data/exports.ts';
import { rolloutCountQuery } from '../data/selection.ts';
import { plural } from '../format/number.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Dialog } from '../frame/Dialog.tsx';
import { useRun } from '../run/context.ts';
import { lensNames } from '../run/LensMenu.tsx';
import { asCommand, asCurl } from './commands.ts';
import { estimateRows, EXPORT_FORMATS, FORMAT_NAMES } from './formats.ts';
import { JobDetails } from './JobDetails.tsx';

/** Chosen rollouts instead of all of the query, or the rollouts that had arrived when they were counted. */
type Part = Pick<RolloutExportBody, 'rollouts' | 'as_of'>;

/** Exports the rollouts of a query as a dataset. `q`: the query including the filter of the run. `of`: only a part of them. */
export function ExportDialog({ q, of = {}, open, onClose }: { q: string; of?: Part; open: boolean; onClose: () => void }) {
  return (
    <Dialog title={of.rollouts ? 'Export the selection' : 'Export the rollouts of the query'} open={open} onClose={onClose} width={720}>
      <ExportForm q={q} of={of} />
    </Dialog>
  );
}

function ExportForm({ q, of }: { q: string; of: Part }) {
  const { run, filter } = useRun();
  const client = useQueryClient();
  const [format, setFormat] = useState<RolloutExportFormat>('parquet');
  const [lens, setLens] = useState<Lens>(filter.lens ?? 'canonical');
  const [redact, setRedact] = useState(false);
  const chosen = of.rollouts?.length;
  const counted = useQuery({ ...rolloutCountQuery(run.id, q), enabled: chosen === undefined });
  const size = chosen === undefined ? counted.data : ({ count: chosen, count_is: 'exact' } as const);
  const create = useMutation({ mutationFn: createExport, onSuccess: () => client.invalidateQueries(exportsQuery) });
  const jobs = useQuery({ ...exportsQuery, enabled: create.data !== undefined });
  const job = jobs.data?.find(({ id }) => id === create.data?.id) ?? create.data;
  const body = { run: run.name, query: q, ...of, format, lens, redact };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ ...body, run: run.id });
  };
  if (job) {
    const gone = jobs.data && !jobs.data.some(({ id }) => id === job.id) && !jobs.isFetching;
    return (
      <div className="flex flex-col gap-3">
        <p className="text-ink-2">
          {EXPORT_FORMATS[job.format].label}: {EXPORT_FORMATS[job.format].row}. The export continues in the background if you close this
          dialog.{' '}
          <Link to="/exports" search={{}} className="link">
            All exports
          </Link>
        </p>
        {gone ? <p className="text-ink-3">This export was cancelled, and its files were erased.</p> : <JobDetails job={job} />}
        <div>
          <button type="button" className="button" onClick={() => create.reset()}>
            Create another export
          </button>
        </div>
      </div>
    );
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <div>
        <p className="label mb-1">
          {chosen === undefined ? 'Query' : 'Selection'} in {run.name}
        </p>
        <pre className="code-block whitespace-pre-wrap">
          {chosen === undefined ? q || 'All rollouts of the run' : plural(chosen, 'selected rollout')}
        </pre>
      </div>
      <fieldset>
        <legend className="label mb-1">Format, and what each row contains</legend>
        <div className="grid grid-cols-1 border-t border-line">
          {FORMAT_NAMES.map((name) => (
            <FormatChoice key={name} name={name} chosen={format === name} onChoose={() => setFormat(name)} />
          ))}
        </div>
      </fieldset>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <label className="flex items-center gap-2">
          <span className="label">Lens</span>
          <select
            className="input"
            value={lens}
            onChange={(event) => setLens(LENSES.find((one) => one === event.target.value) ?? 'canonical')}
          >
            {LENSES.map((name) => (
              <option key={name} value={name}>
                {lensNames[name]}
              </option>
            ))}
          </select>
        </label>
        <label className="flex items-center gap-2" title="Replaces only credentials with a recognisable format.">
          <input type="checkbox" className="accent-[var(--accent)]" checked={redact} onChange={() => setRedact(!redact)} />
          Replace credentials
        </label>
      </div>
      {create.error && (
        <p role="alert" className="text-bad">
          {create.error.message}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2 border-t border-line pt-3">
        <span className="min-w-0 flex-1 text-ink-2 first-letter:uppercase">{estimateRows(format, size)}</span>
        {chosen === undefined && <CopyButton text={asCommand(body)} label="Copy as command" />}
        <CopyButton text={asCurl(location.origin, body)} label="Copy as curl" />
        <button type="submit" className="button primary" disabled={create.isPending || size?.count === 0}>
          Export
        </button>
      </div>
    </form>
  );
}

function FormatChoice({ name, chosen, onChoose }: { name: RolloutExportFormat; chosen: boolean; onChoose: () => void }) {
  const { label, row, files, purpose } = EXPORT_FORMATS[name];
  return (
    <label
      className={`grid min-h-[30px] cursor-pointer grid-cols-[20px_120px_minmax(0,1fr)_minmax(0,1.3fr)] items-center max-[560px]:grid-cols-[20px_minmax(0,1fr)] max-[560px]:py-1 border-b border-line px-1 ${chosen ? 'bg-accent-wash' : 'hover:bg-paper-1'}`}
    >
      <input type="radio" name="format" value={name} className="accent-[var(--accent)]" checked={chosen} onChange={onChoose} />
      <span className="strong">{label}</span>
      <span className="pr-3 text-ink-2 max-[560px]:col-start-2">{row}</span>
      <span className="label max-[560px]:hidden" title={files}>
        {purpose}
      </span>
    </label>
  );
}
