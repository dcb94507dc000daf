import type { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import type { Violation } from './argument-schema.ts';
import type { ArgumentCheckInput, ArgumentCheckOutput } from './argument-schema.work.ts';

/** Calls are not checked against a larger schema. */
const MAX_SCHEMA_CHARS = 100_000;

export interface CheckedCall {
  /** Null: the environment publishes none. */
  schema: unknown;
  /** Null: it is not checked. */
  text: string | null;
}

export interface CheckedCalls<Call> {
  /** Schemas that can be used. */
  usable: ReadonlySet<unknown>;
  /** Of checked calls; null: valid. */
  violations: ReadonlyMap<Call, Violation | null>;
}

/** Runs in a limited process, because environments choose the schemas. Throws `too_expensive`, `capacity_exhausted`. */
export async function checkCalls<Call extends CheckedCall>(
  work: UntrustedWork,
  owner: string,
  calls: readonly Call[],
): Promise<CheckedCalls<Call>> {
  const known = [...new Set(calls.map(({ schema }) => schema))].flatMap((schema) => {
    const text = schema === null ? '' : JSON.stringify(schema);
    return text === '' || text.length > MAX_SCHEMA_CHARS ? [] : [{ schema, text }];
  });
  if (known.length === 0) return { usable: new Set(), violations: new Map() };
  const places = new Map(known.map(({ schema }, at) => [schema, at]));
  const sent = calls.flatMap((call) => {
    const schema = places.get(call.schema);
    return schema === undefined || call.text === null ? [] : [{ call, schema, text: call.text }];
  });
  const input: ArgumentCheckInput = { schemas: known.map(({ text }) => text), calls: sent.map(({ schema, text }) => ({ schema, text })) };
  const module = new URL('./argument-schema.work.js', import.meta.url);
  const output = await work.run<ArgumentCheckOutput>({ module, input, owner, lane: 'check' });
  return {
    usable: new Set(known.filter((_, at) => output.usable[at]).map(({ schema }) => schema)),
    violations: new Map(sent.flatMap(({ call, schema }, at) => (output.usable[schema] ? [[call, output.violations[at]!]] : []))),
  };
}
