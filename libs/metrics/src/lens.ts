import type { Lens } from '@palestra/protocol';
import type { MetricAnswer, MetricContext, RolloutFacts } from './facts.ts';

/** What a key's placeholder stands for: `{k}`, `{n}`, `{N}` whole numbers, `{p}` a percentile, `{value}` a rounded reward, `{source}` a name. */
export type Parameter = string;

/** A metric, or with placeholders a family of them, under the trainer's own name. */
export interface MetricTemplate {
  key: string;
  label: string;
  formula: string;
  needs: readonly (keyof RolloutFacts)[];
  /** The values that the placeholder takes for these rows; only for a key with one. */
  parameters?(rows: readonly RolloutFacts[], context: MetricContext): Parameter[];
  compute(rows: readonly RolloutFacts[], context: MetricContext, parameter: Parameter): MetricAnswer;
}

export interface LensDefinition {
  lens: Lens;
  /** File and commit that the formulas were read at. */
  source: string;
  /** Raised whenever the same rows could give another figure, so that nobody takes one that was kept from before; 1 unless said. */
  revision?: number;
  metrics: readonly MetricTemplate[];
  /** A name as the trainer's logger prints it (with its prefixes) as keys of this lens, best first. */
  aliases?(name: string): string[];
}

export interface MetricDefinition {
  lens: Lens;
  /** With the parameter filled in, when `metric` was asked for one. */
  key: string;
  label: string;
  formula: string;
  source: string;
  needs: readonly (keyof RolloutFacts)[];
  /** For a key with a placeholder: its values for these rows, as whole keys. */
  keysFor(rows: readonly RolloutFacts[], context?: MetricContext): string[];
  compute(rows: readonly RolloutFacts[], context?: MetricContext): MetricAnswer;
}

const PLACEHOLDER = /\{(\w+)\}/;
const PATTERNS: Record<string, string> = {
  k: '[1-9]\\d{0,5}',
  n: '[1-9]\\d{0,5}',
  N: '[1-9]\\d{0,5}',
  p: '\\d{1,2}',
  value: '-?\\d+\\.\\d',
  source: '[^/]+',
};

export function placeholderOf(key: string): string | null {
  return PLACEHOLDER.exec(key)?.[1] ?? null;
}

export function fillKey(key: string, parameter: Parameter): string {
  return key.replace(PLACEHOLDER, () => parameter);
}

/** The parameter, '' for a key without placeholder; null when the name is another metric's. The template itself matches as ''. */
export function matchKey(key: string, name: string): Parameter | null {
  if (key === name) return '';
  const placeholder = placeholderOf(key);
  if (placeholder === null) return null;
  const [before, after] = key.split(`{${placeholder}}`) as [string, string];
  if (!name.startsWith(before) || !name.endsWith(after) || name.length <= before.length + after.length) return null;
  const middle = name.slice(before.length, name.length - after.length);
  return new RegExp(`^${PATTERNS[placeholder]!}$`).test(middle) ? middle : null;
}
