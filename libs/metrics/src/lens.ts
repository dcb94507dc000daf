import type { KnownPhase, Lens } from '@palestra/protocol';
import type { MetricAnswer } from './figure.ts';
import type { MetricContext, RolloutColumns, RolloutFigures } from './rollout-columns.ts';

/** What a key's placeholder stands for: `{k}`, `{n}`, `{N}` whole numbers, `{p}` a percentile, `{value}` a rounded reward, `{source}` a name, `{source_pass}` a name and a number. */
export type Parameter = string;

/** A metric, or with placeholders a family of them, under the trainer's own name. */
export interface MetricTemplate {
  key: string;
  label: string;
  formula: string;
  needs: readonly (keyof RolloutFigures)[];
  /** The trainer prints it for this phase only; rollouts of an unknown phase count as training. */
  phase?: KnownPhase;
  /** The values that the placeholder takes for these rollouts; only for a key with one. */
  parameters?(columns: RolloutColumns, context: MetricContext): Parameter[];
  compute(columns: RolloutColumns, context: MetricContext, parameter: Parameter): MetricAnswer;
}

export interface LensDefinition {
  lens: Lens;
  /** File and commit of the formulas. */
  source: string;
  /** Raise it when the same rollouts can give another figure: stored figures of an earlier revision are then not used. Default 1. */
  revision?: number;
  metrics: readonly MetricTemplate[];
  /** A name as the trainer's logger prints it (with its prefixes) as keys of this lens, best first. */
  aliases?(name: string): string[];
}

export interface MetricDefinition {
  lens: Lens;
  /** With the parameter filled in, when the caller of `metric` gave one. */
  key: string;
  label: string;
  formula: string;
  source: string;
  needs: readonly (keyof RolloutFigures)[];
  /** For a key with a placeholder: the keys with its values for these rollouts. */
  keysFor(columns: RolloutColumns, context?: MetricContext): string[];
  compute(columns: RolloutColumns, context?: MetricContext): MetricAnswer;
}

const PLACEHOLDER = /\{(\w+)\}/;
const PATTERNS: Record<string, string> = {
  k: '[1-9]\\d{0,5}',
  n: '[1-9]\\d{0,5}',
  N: '[1-9]\\d{0,5}',
  p: '\\d{1,2}',
  value: '-?\\d+\\.\\d',
  source: '[^/]+',
  source_pass: '[^/]+/pass_at_[1-9]\\d{0,5}',
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
