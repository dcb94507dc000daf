import type { Provenance, RunConfig } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { configQuery } from '../data/insights.ts';
import { formatBytes, formatCount, formatShare, UNKNOWN } from '../format/number.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { useRun } from '../run/context.ts';
import { Housekeeping } from './Housekeeping.tsx';
import { NormaliserSettings } from './NormaliserSettings.tsx';

function Panel({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <section className="min-w-0 bg-paper-0 p-4">
      <h2 className="panel-title">
        {title} {note && <span className="label">{note}</span>}
      </h2>
      {children}
    </section>
  );
}

function ValueList({ rows }: { rows: readonly (readonly [name: string, value: ReactNode, explain?: string])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(120px,1fr)_auto]">
      {rows.map(([name, value, explain]) => (
        <div key={name} className="contents" title={explain}>
          <dt className="border-b border-line py-[4px] text-ink-2">{name}</dt>
          <dd className="num border-b border-line py-[4px] pl-4">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const kinds: readonly [Provenance, fill: string][] = [
  ['reported', 'bg-good'],
  ['parsed', 'bg-good opacity-60'],
  ['inferred', 'bg-policy'],
  ['unknown', 'bg-paper-2'],
];

function ProvenanceMix({ provenance }: { provenance: RunConfig['provenance'] }) {
  return (
    <table className="w-full">
      <thead>
        <tr className="label text-left">
          <th className="font-[450]">Field</th>
          <th className="w-[24%] font-[450]" aria-hidden="true" />
          {kinds.map(([kind]) => (
            <th key={kind} className="num pl-3 font-[450]">
              {kind[0]!.toUpperCase() + kind.slice(1)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {Object.entries(provenance).map(([field, counts]) => {
          const all = Object.values(counts ?? {}).reduce<number>((sum, count) => sum + (count ?? 0), 0);
          return (
            <tr key={field} className="border-b border-line">
              <th className="py-[4px] pr-3 text-left font-[450]">{field}</th>
              <td aria-hidden="true" className="pr-1">
                <span className="flex h-[6px] overflow-hidden rounded-[3px] bg-paper-2">
                  {kinds.map(([kind, fill]) => (
                    <span key={kind} className={fill} style={{ width: `${all === 0 ? 0 : (100 * (counts?.[kind] ?? 0)) / all}%` }} />
                  ))}
                </span>
              </td>
              {kinds.map(([kind]) => (
                <td key={kind} className={`num pl-3 ${counts?.[kind] ? '' : 'text-ink-3'}`}>
                  {formatCount(counts?.[kind] ?? 0)}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const byCount = (counts: Record<string, number | undefined>): [string, string][] =>
  Object.entries(counts)
    .map(([name, count]) => [name, count ?? 0] as const)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, count]) => [name, formatCount(count)]);

const verdicts: Record<string, string> = {
  verified: 'Verified: every call is in the ledger',
  partial: 'Partial: some calls are in the ledger',
  unverified: 'Unverified: no matching session',
  not_yet: 'Not checked yet',
};

function Figures({ data }: { data: RunConfig }) {
  const { ingest } = data;
  const of = `Newest ${formatCount(data.looked_at)} of ${formatCount(data.rollouts)} rollouts`;
  return (
    <div className="grid grid-cols-3 gap-px border-b border-line bg-line max-[1100px]:grid-cols-2 max-[760px]:grid-cols-1">
      <Panel title="Ingest">
        <ValueList
          rows={[
            ['Events accepted', formatCount(ingest.accepted)],
            ['Duplicates', formatCount(ingest.duplicates), 'Events received twice, because clients repeat requests that got no response'],
            [
              'Conflicts',
              formatCount(ingest.conflicts),
              'Events with the id of an earlier event but other content; the first event is kept',
            ],
            ['Late', formatCount(ingest.late), 'Events received after the end of their rollout'],
            [
              'Not finite',
              formatCount(ingest.nonfinite),
              'Events with NaN or Infinity, stored as null, or with a reward that exceeds single precision',
            ],
            ['Missing messages', formatCount(data.gaps), 'Messages whose index is missing although later ones were received'],
            ['Messages', formatCount(data.messages)],
            ['Size of messages', `${formatBytes(data.bytes)}`, of],
          ]}
        />
      </Panel>
      <Panel title="Provenance" note={of}>
        <ProvenanceMix provenance={data.provenance} />
      </Panel>
      <Panel title="Sources" note={of}>
        <ValueList rows={byCount(data.sources)} />
        <h3 className="label mb-1 mt-3">Models</h3>
        <ValueList rows={Object.keys(data.models).length === 0 ? [['Not named', UNKNOWN]] : byCount(data.models)} />
        <h3 className="label mb-1 mt-3">Verified by the session ledger</h3>
        <ValueList
          rows={Object.entries(data.verified)
            .filter(([, count]) => (count ?? 0) > 0)
            .map(([verdict, count]) => [verdicts[verdict] ?? verdict, `${formatCount(count)} · ${formatShare(count, data.looked_at)}`])}
        />
      </Panel>
      <Panel title="Success" note="Threshold of each environment">
        <ValueList
          rows={data.success.map(({ environment, variant, threshold, strict }) => [
            `${environment ?? 'No environment'}${variant === null ? '' : ` (${variant})`}`,
            `reward ${strict ? '>' : '≥'} ${threshold}`,
          ])}
        />
      </Panel>
      <Panel title="Step inference" note="For rollouts uploaded without a step">
        {data.inference === null ? (
          <p className="text-ink-3">Not needed: every rollout has a step.</p>
        ) : (
          <ValueList rows={Object.entries(data.inference).map(([name, value]) => [name, value === null ? UNKNOWN : String(value)])} />
        )}
      </Panel>
      <Panel title="Normaliser">
        <ValueList
          rows={[
            ['Current version', formatCount(data.normaliser.current)],
            ...Object.entries(data.normaliser.rows).map(
              ([version, count]) => [`Rollouts of version ${version}`, formatCount(count)] as const,
            ),
          ]}
        />
      </Panel>
    </div>
  );
}

/** The ingest counts of a run, the provenance of its fields, and the settings of its owner. */
export function ConfigPage() {
  const { run } = useRun();
  const config = useQuery(configQuery(run.id));
  return (
    <Loaded query={config}>
      {(data) => (
        <>
          <Figures data={data} />
          <div className="grid grid-cols-[minmax(0,2fr)_minmax(0,1fr)] gap-px bg-line max-[1100px]:grid-cols-1">
            <NormaliserSettings key={run.id} settings={data.settings} />
            <Housekeeping config={data} />
          </div>
        </>
      )}
    </Loaded>
  );
}
