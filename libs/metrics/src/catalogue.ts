import { type Lens, LENSES } from '@palestra/protocol';
import { type MetricAnswer, unavailable } from './figure.ts';
import {
  fillKey,
  type LensDefinition,
  matchKey,
  type MetricDefinition,
  type MetricTemplate,
  type Parameter,
  placeholderOf,
} from './lens.ts';
import { canonicalLens } from './lenses/canonical.ts';
import { primeRlLens } from './lenses/prime-rl.ts';
import { rllmLens } from './lenses/rllm.ts';
import { skyrlLens } from './lenses/skyrl.ts';
import { slimeLens } from './lenses/slime.ts';
import { tinkerLens } from './lenses/tinker.ts';
import { trlLens } from './lenses/trl.ts';
import { verlLens } from './lenses/verl.ts';
import type { MetricContext, RolloutColumns } from './rollout-columns.ts';

const definitions: Record<Lens, LensDefinition> = {
  canonical: canonicalLens,
  skyrl: skyrlLens,
  verl: verlLens,
  trl: trlLens,
  'prime-rl': primeRlLens,
  slime: slimeLens,
  tinker: tinkerLens,
  rllm: rllmLens,
};

export function isLens(name: string): name is Lens {
  return (LENSES as readonly string[]).includes(name);
}

/** Stored figures belong to a revision of their lens. */
export function lensRevision(lens: Lens): number {
  return definitions[lens].revision ?? 1;
}

const isOfPhase = (template: MetricTemplate, { phase }: MetricContext): boolean =>
  template.phase === undefined || phase === undefined || template.phase === (phase === 'eval' ? 'eval' : 'train');

function bind({ lens, source }: LensDefinition, template: MetricTemplate, parameter: Parameter): MetricDefinition {
  const key = parameter === '' ? template.key : fillKey(template.key, parameter);
  return {
    lens,
    key,
    label: template.label,
    formula: template.formula,
    source,
    needs: template.needs,
    keysFor(columns, context = {}) {
      if (!isOfPhase(template, context)) return [];
      if (parameter !== '' || template.parameters === undefined) return [key];
      return template.parameters(columns, context).map((value) => fillKey(template.key, value));
    },
    compute(columns, context = {}) {
      if (parameter === '' && template.parameters !== undefined) return unavailable(`${key} needs a value for {${placeholderOf(key)}}`);
      if (!isOfPhase(template, context)) return unavailable(`${lens} prints it for ${template.phase} rollouts only`);
      return template.compute(columns, context, parameter);
    },
  };
}

/** A metric by its exact key: `pass@4`, or its template `pass@{k}`, which has keys but no figure. null for an unknown key. */
export function metric(lens: Lens, key: string): MetricDefinition | null {
  const definition = definitions[lens];
  // A key without placeholder wins: `eval/all/avg_score` is not the data source `all`.
  const matches = definition.metrics
    .map((template) => ({ template, parameter: matchKey(template.key, key) }))
    .filter((match): match is { template: MetricTemplate; parameter: Parameter } => match.parameter !== null);
  const best = matches.find(({ parameter }) => parameter === '') ?? matches[0];
  return best === undefined ? null : bind(definition, best.template, best.parameter);
}

/** All metrics of a lens; a family is one template. */
export function listMetrics(lens: Lens): MetricDefinition[] {
  const definition = definitions[lens];
  return definition.metrics.map((template) => bind(definition, template, ''));
}

/** All metrics of a lens, by key with its parameter. */
export function computeLens(lens: Lens, columns: RolloutColumns, context: MetricContext = {}): Map<string, MetricAnswer> {
  const answers = new Map<string, MetricAnswer>();
  for (const template of listMetrics(lens)) {
    for (const key of template.keysFor(columns, context))
      if (!answers.has(key)) answers.set(key, metric(lens, key)!.compute(columns, context));
  }
  return answers;
}

export interface ResolvedMetric {
  lens: Lens;
  key: string;
}

export type MetricResolution = { matches: [ResolvedMetric, ...ResolvedMetric[]] } | { matches: []; suggestion: string | null };

/**
 * Resolves a name of the parameter `m`: a key of ours, a trainer's key, or what its logger prints with prefixes. Matches of the given lens
 * come first, then canonical, then the others in their order, one per lens. For an unknown name it suggests the nearest key.
 */
export function resolveMetricName(name: string, lens?: Lens): MetricResolution {
  const order = lens === undefined ? [...LENSES] : [lens, ...LENSES.filter((other) => other !== lens)];
  // Exact keys of every lens come before aliases: `reward` is TRL's key, and not an alias of another lens.
  const exact = order.flatMap((candidate) => keysIn(candidate, [name]));
  const found = exact.length > 0 ? exact : order.flatMap((candidate) => keysIn(candidate, definitions[candidate].aliases?.(name) ?? []));
  const [first, ...rest] = found;
  return first === undefined ? { matches: [], suggestion: suggest(name, order) } : { matches: [first, ...rest] };
}

function keysIn(lens: Lens, names: readonly string[]): ResolvedMetric[] {
  const key = names.find((name) => metric(lens, name) !== null);
  return key === undefined ? [] : [{ lens, key }];
}

/** The nearest key by edit distance, with at most a third of its letters wrong. Digits of the name fill its placeholder. */
function suggest(name: string, order: readonly Lens[]): string | null {
  const wanted = name.slice(0, 200).toLowerCase();
  const number = /\d+/.exec(wanted)?.[0];
  let best: { key: string; distance: number } | null = null;
  for (const lens of order) {
    for (const { key: template } of definitions[lens].metrics) {
      const key = number !== undefined && /\{[knN]\}/.test(template) ? fillKey(template, number) : template;
      const distance = editDistance(wanted, key.toLowerCase());
      if (distance <= Math.max(2, key.length / 3) && (best === null || distance < best.distance)) best = { key, distance };
    }
  }
  return best?.key ?? null;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
