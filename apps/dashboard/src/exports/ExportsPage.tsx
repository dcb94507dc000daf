import type { RolloutExportView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { errorInstead } from '../data/http.ts';
import { exportsQuery, isInProgress } from '../data/exports.ts';
import { meQuery } from '../data/queries.ts';
import { formatBytes, formatCount, plural, UNKNOWN } from '../format/number.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { Details, ListAndDetails } from '../table/ListAndDetails.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { lensNames } from '../run/LensMenu.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { asCommand } from './commands.ts';
import { EXPORT_FORMATS } from './formats.ts';
import { JobDetails, JobProgress, JobState } from './JobDetails.tsx';

const queryText = ({ query, chosen }: RolloutExportView): string =>
  chosen === null ? query || 'All rollouts' : plural(chosen, 'selected rollout');

const columns: Column<RolloutExportView>[] = [
  { id: 'state', head: 'State', track: '88px', phone: '88px', cell: (job) => <JobState job={job} /> },
  {
    id: 'run',
    head: 'Run',
    track: 'minmax(110px,1.4fr)',
    phone: 'minmax(0,1fr)',
    title: (job) => job.run ?? undefined,
    cell: (job) => job.run ?? 'All runs',
  },
  {
    id: 'query',
    head: 'Query',
    track: 'minmax(106px,2fr)',
    title: queryText,
    cell: (job) => <span className="mono text-ink-2">{queryText(job)}</span>,
  },
  { id: 'format', head: 'Format', track: '128px', phone: '128px', cell: (job) => EXPORT_FORMATS[job.format].label },
  {
    id: 'rows',
    head: 'Rows',
    track: 'minmax(84px,0.8fr)',
    cell: (job) => (isInProgress(job) ? <JobProgress job={job} /> : plural(job.written, 'row')),
  },
  { id: 'bytes', head: 'Size', track: '70px', align: 'right', cell: (job) => (job.bytes > 0 ? formatBytes(job.bytes) : UNKNOWN) },
  {
    id: 'asked',
    head: 'Created',
    track: '92px',
    align: 'right',
    title: (job) => formatAbsolute(job.created_at),
    cell: (job) => <Age iso={job.created_at} />,
  },
];

/** All rollout exports of the organisation, and the files of the selected one. */
export function ExportsPage() {
  const { job: chosen } = useSearch({ from: '/exports' });
  const navigate = useNavigate({ from: '/exports' });
  const jobs = useQuery(exportsQuery);
  const error = errorInstead(jobs);
  const job = jobs.data?.find(({ id }) => id === chosen);
  return (
    <>
      <TopBar title="Exports" crumbs={<Crumb>Exports</Crumb>}>
        {jobs.data && <span className="label">{plural(jobs.data.length, 'export')}</span>}
      </TopBar>
      {error ? (
        <ErrorState error={error} retry={() => void jobs.refetch()} />
      ) : !jobs.data ? (
        <SkeletonRows />
      ) : (
        <ListAndDetails
          list={
            <DataTable
              label="Exports, newest first"
              columns={columns}
              rows={jobs.data}
              rowKey={({ id }) => id}
              current={chosen ?? null}
              onOpen={({ id }) => void navigate({ search: { job: id }, replace: true })}
              minWidth={700}
              empty={<NoExport />}
            />
          }
          details={job && <SelectedExport job={job} />}
        />
      )}
    </>
  );
}

function NoExport() {
  const command = asCommand({ run: 'RUN', query: 'reward:>0.5', format: 'hf', lens: 'canonical', redact: false });
  return (
    <div className="flex flex-col gap-3 p-4 text-ink-2">
      <p>No exports yet. Open the rollouts of a run, enter a query and choose Export, or run:</p>
      <pre className="code-block" tabIndex={0}>
        {command}
      </pre>
    </div>
  );
}

function SelectedExport({ job }: { job: RolloutExportView }) {
  const me = useQuery(meQuery);
  const details: [string, string][] = [
    ['Format', `${EXPORT_FORMATS[job.format].label}: ${EXPORT_FORMATS[job.format].row}`],
    ['Files', EXPORT_FORMATS[job.format].files],
    ['Lens', lensNames[job.lens]],
    ['Credentials', job.redact ? 'Replaced' : 'Kept as uploaded'],
    ['Arrivals', `Up to number ${formatCount(Number(job.as_of))}`],
    ['Finished', formatAbsolute(job.finished_at) ?? UNKNOWN],
  ];
  return (
    <Details label="Selected export">
      <h2 className="truncate text-[15px] leading-[20px] strong">{job.run ?? 'All runs'}</h2>
      <pre className="code-block whitespace-pre-wrap">{queryText(job)}</pre>
      {job.run !== null && me.data && (
        <p>
          <Link
            to="/$org/runs/$run/rollouts"
            params={{ org: me.data.org.name, run: job.run }}
            search={{ q: job.query || undefined }}
            className="link"
          >
            Show current rollouts of this query
          </Link>
        </p>
      )}
      <dl className="grid grid-cols-[86px_minmax(0,1fr)] gap-y-1">
        {details.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="label leading-[18px]">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <JobDetails job={job} />
    </Details>
  );
}
