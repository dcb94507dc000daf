import type { RunFacets as FacetCounts } from '@palestra/protocol';
import { findKey, type QueryKey } from '@palestra/query';
import { type ReactNode, useState } from 'react';
import { boundsOf, choicesOf, choose, setBounds } from '../query/query-edit.ts';
import { type FacetContext, useFacets } from './facet-counts.ts';
import { Row } from './FacetRow.tsx';
import { ProvenanceFacet } from './Provenance.tsx';
import { RangeFields } from './RangeFields.tsx';
import { RewardBins } from './RewardBins.tsx';

export function Facets(context: FacetContext) {
  const approximate = useFacets(context, 'step')?.approximate ?? false;
  return (
    <aside
      aria-label="Facets"
      className="flex h-full w-[200px] flex-none flex-col overflow-y-auto max-[639px]:w-full border-r border-line bg-paper-1 pb-4"
    >
      {approximate && <p className="label flex-none px-3 pt-3">The counts ignore the regex of the query.</p>}
      <StepFacet title="Step" of="step" {...context} />
      <StepFacet title="Policy step" of="policy_step" {...context} />
      <ValueFacet title="Phase" of="phase" counts={(facets) => facets.phase} {...context} />
      <ValueFacet title="Environment" of="env" counts={(facets) => facets.env} name={shortName} {...context} />
      <ValueFacet title="Split" of="split" counts={(facets) => facets.split} {...context} />
      <RewardFacet {...context} />
      <ValueFacet title="Stop reason" of="stop" counts={(facets) => facets.stop} {...context} />
      <ValueFacet
        title="Errors"
        of="has"
        counts={(facets) => [{ value: 'error', count: facets.errors }]}
        name={() => 'With tool errors'}
        {...context}
      />
      <ValueFacet title="Tool" of="tool" counts={(facets) => facets.tool} {...context} />
      <ValueFacet title="Failed tool" of="tool.error" counts={(facets) => facets.tool_error} {...context} />
      <ValueFacet title="Tag" of="tag" counts={(facets) => facets.tag} {...context} />
      <ValueFacet title="Model" of="model" counts={(facets) => facets.model} {...context} />
      <ProvenanceFacet {...context} />
    </aside>
  );
}

/** The name of an environment without its owner, which the title has. */
const shortName = (value: string): string => value.split('/').at(-1)!;

export function Section({ title, of, children }: { title: string; of: QueryKey; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex-none px-3 pt-3">
      <h2 className="label mb-1 strong" title={`${of}: ${findKey(of)?.description ?? ''}`}>
        {title}
      </h2>
      {children}
    </section>
  );
}

function StepFacet({ title, of, ...context }: FacetContext & { title: string; of: 'step' | 'policy_step' }) {
  const { query, onQuery } = context;
  const facets = useFacets(context, of);
  const bounds = boundsOf(query, of);
  const range = facets?.[of];
  if (range?.min === null && Object.keys(bounds).length === 0) return null;
  return (
    <Section title={title} of={of}>
      <RangeFields
        name={title}
        bounds={bounds}
        least={range?.min ?? null}
        most={range?.max ?? null}
        whole
        onChange={(next) => onQuery(setBounds(query, of, next))}
      />
    </Section>
  );
}

function RewardFacet(context: FacetContext) {
  const { query, onQuery } = context;
  const facets = useFacets(context, 'reward');
  const unscored = choicesOf(query, 'reward').get('null') ?? null;
  return (
    <Section title="Reward" of="reward">
      {facets && facets.reward.bins.length > 0 && (
        <RewardBins
          bins={facets.reward.bins}
          more={facets.total_is === 'at_least'}
          bounds={boundsOf(query, 'reward')}
          onBounds={(bounds) => onQuery(setBounds(query, 'reward', bounds))}
        />
      )}
      <RangeFields
        name="Reward"
        bounds={boundsOf(query, 'reward')}
        least={facets?.reward.min ?? null}
        most={facets?.reward.max ?? null}
        onChange={(bounds) => onQuery(setBounds(query, 'reward', bounds))}
      />
      <Row
        name="Unscored"
        count={facets?.reward.unscored}
        more={facets?.total_is === 'at_least'}
        choice={unscored}
        onChoose={(choice) => onQuery(choose(query, 'reward', 'null', choice))}
      />
    </Section>
  );
}

const SHOWN = 8;

interface ValueFacetProps extends FacetContext {
  title: string;
  of: QueryKey;
  counts: (facets: FacetCounts) => readonly { value: string; count: number }[];
  name?: (value: string) => string;
}

function ValueFacet({ title, of, counts, name = (value) => value, ...context }: ValueFacetProps) {
  const { query, onQuery } = context;
  const facets = useFacets(context, of);
  const [all, setAll] = useState(false);
  const choices = choicesOf(query, of);
  const found = facets ? counts(facets) : [];
  // Values in the query that no rollout has, so that they can be removed.
  const absent = of === 'has' ? [] : [...choices.keys()].filter((value) => !found.some((one) => one.value === value));
  const values = [...found.filter(({ count, value }) => count > 0 || choices.has(value)), ...absent.map((value) => ({ value, count: 0 }))];
  if (values.length === 0) return null;
  const shown = all ? values : values.filter(({ value }, i) => i < SHOWN || choices.has(value));
  return (
    <Section title={title} of={of}>
      {shown.map(({ value, count }) => (
        <Row
          key={value}
          name={name(value)}
          title={`${of}:${value}`}
          count={count}
          more={facets?.total_is === 'at_least'}
          choice={choices.get(value) ?? null}
          onChoose={(choice) => onQuery(choose(query, of, value, choice))}
        />
      ))}
      {values.length > SHOWN && (
        <button type="button" className="label link" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show all ${values.length}`}
        </button>
      )}
    </Section>
  );
}
