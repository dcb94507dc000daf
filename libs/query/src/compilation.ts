import type { Bind, FieldName, QuerySchema, TextCondition } from './schema.ts';

/** What a statement is being made of. */
export interface Compilation {
  schema: QuerySchema;
  now: number;
  bind: Bind;
  /** The SQL of a logical column; remembers the join that it needs. */
  column(name: FieldName): string;
  text: TextCondition[];
}
