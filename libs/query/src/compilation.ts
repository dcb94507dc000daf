import type { Bind, FieldName, QuerySchema, TextCondition } from './schema.ts';

/** The state of one compilation. */
export interface Compilation {
  schema: QuerySchema;
  now: number;
  bind: Bind;
  column(name: FieldName): string;
  /** The phrases found so far that are not negated. */
  text: TextCondition[];
}
