import { DENOMINATORS, KNOWN_PHASES, LENSES } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { type RunFilter } from '../data/run-queries.ts';
import { searchText } from '../search.ts';

const oneOf = <T extends string>(values: readonly T[], value: unknown): T | undefined => values.find((one) => one === value);
const stepRange = /^(?:\d{1,9}\.\.\d{0,9}|\.\.\d{1,9}|\d{1,9})$/;

/** Parses the filter of an address. Invalid parts are ignored, so that a mistyped link still opens. */
export function readFilter(search: Record<string, unknown>): RunFilter {
  const steps = searchText(search['steps']);
  return {
    steps: steps !== undefined && stepRange.test(steps) ? steps : undefined,
    env: searchText(search['env']),
    phase: oneOf(KNOWN_PHASES, search['phase']),
    lens: oneOf(LENSES, search['lens']),
    den: oneOf(DENOMINATORS, search['den']),
  };
}

/** The filter as clauses of the query language, which a page adds to its query. Empty for the whole run. */
export function filterClauses({ steps, env, phase }: RunFilter): string {
  return [steps !== undefined && `step:${steps}`, env !== undefined && `env:${printText(env)}`, phase !== undefined && `phase:${phase}`]
    .filter(Boolean)
    .join(' ');
}
