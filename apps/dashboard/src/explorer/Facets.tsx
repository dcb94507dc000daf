import { useQuery } from '@tanstack/react-query';
import { findKey, type Query, type QueryKey } from '@palestra/query';
import { type ReactNode, useState } from 'react';
import { type Facets as FacetCounts, facetsQuery } from '../data/explorer.ts';
import type { RunScope } from '../data/run-reads.ts';
import { formatCount } from '../format/number.ts';
import { boundsOf, type Choice, choicesOf, choose, effectiveQuery, setBounds, withoutKey } from './query-edit.ts';
import { RangeFields } from './RangeFields.tsx';

export interface FacetContext {
  run: string;
  scope: RunScope;
  snapshot: string;
  /** The query of the bar, without the scope. */
  query: Query;
  onQuery: (text: string) => void;
}

/** Counts are of the query without what it wants of `key`, so that the other values of an open choice are still there. */
function useFacets({ run, scope, snapshot, query }: FacetContext, key: QueryKey): FacetCounts | undefined {
  return useQuery(facetsQuery(run, effectiveQuery(scope, withoutKey(query, key)), snapshot)).data;
}

export function Facets(context: FacetContext) {
  return (
    <aside aria-label="Facets" className="flex h-full w-[200px] flex-none flex-col overflow-y-auto border-r border-line bg-paper-1 pb-4">
      <StepFacet {...context} />
      <ValueFacet title="Phase" of="phase" counts={(facets) => facets.phase} {...context} />
      <ValueFacet title="Environment" of="env" counts={(facets) => facets.env} name={shortName} {...context} />
      <ValueFacet title="Split" of="split" counts={(facets) => facets.split} {...context} />
      <RewardFacet {...context} />
      <ValueFacet title="Stop" of="stop" counts={(facets) => facets.stop} {...context} />
      <ValueFacet
        title="Errors"
        of="has"
        counts={(facets) => [{ value: 'error', count: facets.errors }]}
        name={() => 'a tool failed'}
        {...context}
      />
      <ValueFacet title="Tool" of="tool" counts={(facets) => facets.tool} {...context} />
      <ValueFacet title="Tag" of="tag" counts={(facets) => facets.tag} {...context} />
      <ValueFacet title="Model" of="model" counts={(facets) => facets.model} {...context} />
    </aside>
  );
}

/** The owner stands in the title: names of environments are read by their end. */
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

function StepFacet(context: FacetContext) {
  const { query, onQuery } = context;
  const facets = useFacets(context, 'step');
  if (facets?.step.min === null && facets.step.max === null && Object.keys(boundsOf(query, 'step')).length === 0) return null;
  return (
    <Section title="Step" of="step">
      <RangeFields
        name="Step"
        bounds={boundsOf(query, 'step')}
        least={facets?.step.min ?? null}
        most={facets?.step.max ?? null}
        whole
        onChange={(bounds) => onQuery(setBounds(query, 'step', bounds))}
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
      <RangeFields
        name="Reward"
        bounds={boundsOf(query, 'reward')}
        least={facets?.reward.min ?? null}
        most={facets?.reward.max ?? null}
        onChange={(bounds) => onQuery(setBounds(query, 'reward', bounds))}
      />
      <Row
        name="unscored"
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
  // What the query names and no rollout has: it can still be taken back.
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
          {all ? 'fewer' : `all ${values.length}`}
        </button>
      )}
    </Section>
  );
}

interface RowProps {
  name: string;
  title?: string;
  count: number | undefined;
  /** Counting stopped: there may be more. */
  more: boolean;
  choice: Choice | null;
  onChoose: (choice: Choice | null) => void;
}

/** A value of a facet: the box wants it, the minus refuses it, each once more takes it back. */
export function Row({ name, title = name, count, more, choice, onChoose }: RowProps) {
  return (
    <div className="group -mx-1 flex h-[22px] items-center gap-[6px] rounded-[3px] px-1 hover:bg-paper-2">
      <label className="flex min-w-0 flex-1 cursor-pointer items-center gap-[6px]" title={title}>
        <input
          type="checkbox"
          className="size-[13px] flex-none accent-[var(--accent)]"
          checked={choice === 'in'}
          onChange={() => onChoose(choice === 'in' ? null : 'in')}
        />
        <span className={`truncate ${choice === 'out' ? 'text-ink-3 line-through' : choice === 'in' ? 'strong' : 'text-ink-2'}`}>
          {name}
        </span>
      </label>
      <button
        type="button"
        aria-label={`Without ${name}`}
        aria-pressed={choice === 'out'}
        className={`h-[18px] w-[16px] flex-none rounded-[3px] text-ink-3 hover:text-bad focus-visible:opacity-100 group-hover:opacity-100 ${choice === 'out' ? 'text-bad' : 'opacity-0'}`}
        onClick={() => onChoose(choice === 'out' ? null : 'out')}
      >
        −
      </button>
      <span className="label num flex-none tabular-nums">
        {formatCount(count)}
        {more && count !== undefined && count > 0 ? '+' : ''}
      </span>
    </div>
  );
}
