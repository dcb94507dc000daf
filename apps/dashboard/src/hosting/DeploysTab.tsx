import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { DeployView, EnvironmentDetails } from '@palestra/protocol';
import { lazy, Suspense, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { deploysQuery } from '../data/hosting/hosting.ts';
import { formatCount, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { Dialog } from '../frame/Dialog.tsx';
import { useNow } from '../frame/now.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { durationOf, shortCommit, sourceText } from './deploy-texts.ts';
import { DeployDetails } from './DeployDetails.tsx';
import { DeployState } from './DeployState.tsx';

const DeployForm = lazy(async () => ({ default: (await import('./DeployForm.tsx')).DeployForm }));
const from = '/environments/$owner/$name' as const;

function Duration({ deploy }: { deploy: DeployView }) {
  return formatDuration(durationOf(deploy, useNow()));
}

const columns: readonly Column<DeployView>[] = [
  { id: 'state', head: 'State', track: '104px', phone: '104px', cell: (deploy) => <DeployState deploy={deploy} /> },
  {
    id: 'source',
    head: 'Source',
    track: 'minmax(200px,2fr)',
    phone: 'minmax(0,1fr)',
    title: (deploy) => deploy.error?.detail ?? sourceText(deploy),
    cell: (deploy) => (
      <>
        {sourceText(deploy)}
        {deploy.error && <span className="text-ink-3"> · {deploy.error.detail.split('\n', 1)[0]}</span>}
      </>
    ),
  },
  {
    id: 'commit',
    head: 'Commit',
    track: '100px',
    title: ({ commit }) => commit ?? undefined,
    cell: ({ commit }) => (commit === null ? <span className="text-ink-3">{UNKNOWN}</span> : <code>{shortCommit(commit)}</code>),
  },
  {
    id: 'version',
    head: 'Version',
    track: '72px',
    align: 'right',
    title: ({ reused }) => (reused ? 'The same source was deployed before' : undefined),
    cell: ({ version, reused }) => (version === null ? UNKNOWN : `${reused ? '= ' : ''}${formatCount(version)}`),
  },
  { id: 'channel', head: 'Promotes', track: '90px', cell: ({ channel }) => channel ?? <span className="text-ink-3">{UNKNOWN}</span> },
  { id: 'author', head: 'Author', track: 'minmax(110px,.7fr)', title: ({ author }) => author, cell: ({ author }) => author },
  { id: 'duration', head: 'Duration', track: '88px', align: 'right', cell: (deploy) => <Duration deploy={deploy} /> },
  {
    id: 'created',
    head: 'Created',
    track: '100px',
    phone: '92px',
    align: 'right',
    cell: ({ created_at: at }) => (
      <span className="text-ink-3">
        <Age iso={at} />
      </span>
    ),
  },
];

/** The last deploys, or the one in the address with its build log. */
export function DeploysTab({ environment }: { environment: EnvironmentDetails }) {
  const { owner, name } = environment;
  const { deploy: chosen } = useSearch({ from });
  const navigate = useNavigate({ from });
  const deploys = useQuery(deploysQuery({ owner, name }));
  const [deploying, setDeploying] = useState(false);
  if (chosen !== undefined)
    return (
      <DeployDetails
        key={chosen}
        id={chosen}
        canManage={environment.can_manage}
        back={
          <Link from={from} to="." search={{ tab: 'deploys' }} className="link">
            ← All deploys
          </Link>
        }
      />
    );
  const error = errorInstead(deploys);
  if (error) return <ErrorState error={error} retry={() => void deploys.refetch()} />;
  if (!deploys.data) return <SkeletonRows />;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-none items-center gap-3 border-b border-line px-4 py-[5px]">
        <span className="text-ink-3">A deploy that is ready is a new version. The last 100 deploys are shown.</span>
        <button type="button" className="button ml-auto" onClick={() => setDeploying(true)}>
          Deploy
        </button>
      </div>
      <div className="min-h-[160px] flex-1">
        <DataTable
          label="Deploys, newest first"
          columns={columns}
          rows={deploys.data.deploys}
          rowKey={({ id }) => id}
          minWidth={900}
          onOpen={({ id }) => void navigate({ search: { tab: 'deploys', deploy: id } })}
          empty={
            <div className="p-4 text-ink-3">
              <p>Nothing was deployed yet. Choose “Deploy”, or in the folder of the environment:</p>
              <pre className="code-block mt-2 inline-block max-w-full" tabIndex={0}>{`palestra env deploy . --name ${owner}/${name}`}</pre>
            </div>
          }
        />
      </div>
      <Dialog title={`Deploy ${owner}/${name}`} open={deploying} onClose={() => setDeploying(false)} width={640}>
        <Suspense fallback={<SkeletonRows count={3} />}>
          <DeployForm environment={environment} />
        </Suspense>
      </Dialog>
    </div>
  );
}
