import { argumentCheck, type Violation } from './argument-schema.ts';

export interface ArgumentCheckInput {
  /** Schemas as JSON texts. */
  schemas: string[];
  calls: { schema: number; text: string }[];
}
export interface ArgumentCheckOutput {
  /** For each schema, whether it can be used. */
  usable: boolean[];
  /** For each call; null: valid, or its schema cannot be used. */
  violations: (Violation | null)[];
}

/** Runs in a process of its own (UntrustedWork): environments choose the schemas, models the arguments. */
export default function checkArguments({ schemas, calls }: ArgumentCheckInput): ArgumentCheckOutput {
  const checks = schemas.map((schema) => argumentCheck(JSON.parse(schema) as unknown));
  return {
    usable: checks.map((check) => check !== null),
    violations: calls.map(({ schema, text }) => checks[schema]?.(text) ?? null),
  };
}
