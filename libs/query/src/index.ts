export type { Query, Clause, FieldClause, Value, Operand } from './ast.ts';
export {
  STOP_REASONS,
  type Phase,
  ROLLOUT_STATES,
  PROVENANCES,
  type Provenance,
  PROVENANCE_FIELDS,
  type ProvenanceField,
  ROLLOUT_FLAGS,
  type QueryKeyEntry,
  type QueryKey,
  QUERY_KEYS,
  findKey,
} from './catalogue.ts';
export { compileQuery, joinSql, type CompiledQuery, type CompileOptions, type PostFilter } from './compiler.ts';
export { type Completion, type Completions, completions } from './completions.ts';
export { defaultSchema } from './default-schema.ts';
export { matches, needsMessages, needsTexts } from './evaluator.ts';
export { likePattern } from './like.ts';
export { parseQuery, QUERY_LIMITS } from './parser.ts';
export { printQuery, printText } from './printer.ts';
export { QueryError } from './query-error.ts';
export { compileRegex } from './regex.ts';
export type { QueryRow, QueryGroup, QueryMessage } from './row.ts';
export type { QuerySchema } from './schema.ts';
export { searchWords } from './search-words.ts';
