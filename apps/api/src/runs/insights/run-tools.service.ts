import { Injectable } from '@nestjs/common';
import { PHASES, type ToolCheckQuery, type ToolQuery } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import type { RunScope } from '../run-scope.ts';
import type { Violation } from './argument-schema.ts';
import type { ArgumentCheckInput, ArgumentCheckOutput } from './argument-schema.work.ts';
import {
  type CallerRow,
  type RunEnvironmentRow,
  selectCallers,
  selectRunEnvironments,
  selectToolSteps,
  type ToolScope,
} from './run-tools.sql.ts';

const READ_MS = 2_000;
const LANES = 4;
const EXAMPLES = 5;
const MAX_VIOLATIONS = 50;
/** Longer arguments are not parsed. */
const MAX_ARGUMENTS = 1_000_000;
/** Maximum of characters of arguments that one request checks. */
const MAX_CHECKED = 20_000_000;
/** Calls are not checked against a larger schema. */
const MAX_SCHEMA_CHARS = 100_000;

interface Call {
  rollout: string;
  index: number;
  envId: number;
  /** Null: too long, or beyond the maximum of one request. */
  text: string | null;
}

/** One tool of a run: its figures by step, and its calls checked against the schema that its environment publishes. */
@Injectable()
export class RunToolsService {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    private readonly untrustedWork: UntrustedWork,
  ) {}

  async steps(run: RunScope, query: ToolQuery) {
    const rows = await selectToolSteps(this.database.pool, scopeOf(run, query), query.tool);
    const known = rows.filter(({ step }) => step >= 0);
    const column = <K extends keyof (typeof rows)[number]>(name: K) => known.map((row) => row[name]);
    return {
      tool: query.tool,
      step: column('step'),
      rollouts: column('rollouts'),
      calls: column('calls'),
      errors: column('errors'),
      result_bytes: column('result_bytes'),
      timed: column('timed'),
      p50_ms: column('p50_ms'),
      p95_ms: column('p95_ms'),
      unknown_step: rows.filter(({ step }) => step < 0).reduce((sum, { calls }) => sum + calls, 0),
    };
  }

  async check(run: RunScope, query: ToolCheckQuery) {
    const { pool } = this.database;
    const [environments, callers] = await Promise.all([
      selectRunEnvironments(pool, run.seq),
      selectCallers(pool, scopeOf(run, query), query.tool, query.calls),
    ]);
    const { calls, rollouts, incomplete } = await this.#callsOf(callers, query.tool, query.calls);
    const envIds = new Set(calls.map(({ envId }) => envId));
    const schemas = new Map(environments.filter(({ id }) => envIds.has(id)).map((one) => [one.id, schemaOf(one, query.tool)]));
    const checked = await this.#checked(run.orgId, schemas, calls);
    return {
      tool: query.tool,
      calls: calls.length,
      rollouts,
      ...tallied(calls, checked),
      schemas: environments.flatMap(({ id, environment }) => (checked.usable.has(id) ? [{ environment, schema: schemas.get(id) }] : [])),
      incomplete,
    };
  }

  /** Runs in a limited process, because environments choose the schemas. Throws `too_expensive`, `capacity_exhausted`. */
  async #checked(orgId: string, schemas: ReadonlyMap<number, unknown>, calls: readonly Call[]): Promise<Checked> {
    const texts = [...schemas].flatMap(([id, schema]) => (schema === null ? [] : [{ id, text: JSON.stringify(schema) }]));
    const known = texts.filter(({ text }) => text.length <= MAX_SCHEMA_CHARS);
    const sent = calls.flatMap((call) => {
      const schema = known.findIndex(({ id }) => id === call.envId);
      return schema === -1 || call.text === null ? [] : [{ call, schema, text: call.text }];
    });
    if (known.length === 0) return { usable: new Set(), violations: new Map() };
    const input: ArgumentCheckInput = { schemas: known.map(({ text }) => text), calls: sent.map(({ schema, text }) => ({ schema, text })) };
    const module = new URL('./argument-schema.work.js', import.meta.url);
    const output = await this.untrustedWork.run<ArgumentCheckOutput>({ module, input, owner: orgId, lane: 'check' });
    return {
      usable: new Set(known.filter((_, at) => output.usable[at]).map(({ id }) => id)),
      violations: new Map(sent.map(({ call }, at) => [call, output.violations[at]!])),
    };
  }

  /** The newest calls, at most `most`. `incomplete`: the time limit ended the read. */
  async #callsOf(callers: readonly CallerRow[], tool: string, most: number) {
    const deadline = performance.now() + READ_MS;
    const calls: Call[] = [];
    let rollouts = 0;
    while (rollouts < callers.length && calls.length < most && performance.now() < deadline) {
      const batch = callers.slice(rollouts, rollouts + LANES);
      rollouts += batch.length;
      calls.push(...(await Promise.all(batch.map((row) => this.#callsOfRollout(row, tool)))).flat());
    }
    const incomplete = rollouts < callers.length && calls.length < most;
    const newest = calls.slice(0, most);
    let characters = 0;
    for (const call of newest) {
      characters += call.text?.length ?? 0;
      if (characters > MAX_CHECKED) call.text = null;
    }
    return { calls: newest, rollouts: new Set(newest.map(({ rollout }) => rollout)).size, incomplete };
  }

  async #callsOfRollout(row: CallerRow, tool: string): Promise<Call[]> {
    const messages = await this.transcripts.messages(row);
    return messages
      .filter(({ type, name }) => type === 'tool_call' && name === tool)
      .map(({ index, content, blob_key }) => {
        const text = content ?? '';
        return { rollout: row.id, index, envId: row.env_id, text: blob_key === null && text.length <= MAX_ARGUMENTS ? text : null };
      })
      .toReversed();
  }
}

const scopeOf = (run: RunScope, { steps, phase }: ToolQuery): ToolScope => ({
  runSeq: run.seq,
  phase: phase === undefined ? null : codeOf(PHASES, phase),
  from: steps?.from ?? -1,
  to: steps?.to ?? 2_147_483_647,
});

/** The tools that the environment publishes for the rollout's variant, else for the default one. Null: not known. */
export function publishedTools({ discovery, variant }: RunEnvironmentRow) {
  const variants = discovery?.variants ?? [];
  const published = variants.find(({ name }) => name === variant) ?? variants.find(({ is_default }) => is_default);
  return published?.tools.tools ?? null;
}

const schemaOf = (environment: RunEnvironmentRow, tool: string): unknown =>
  publishedTools(environment)?.find(({ name }) => name === tool)?.input_schema ?? null;

interface Checked {
  /** Environments whose schema can be used. */
  usable: ReadonlySet<number>;
  /** Null: valid. */
  violations: ReadonlyMap<Call, Violation | null>;
}

function tallied(calls: readonly Call[], { usable, violations: known }: Checked) {
  const found = new Map<string, Violation & { count: number; examples: { rollout: string; index: number }[] }>();
  const counts = { checked: 0, valid: 0, invalid: 0, unparsable: 0, without_schema: 0, unread: 0 };
  for (const call of calls) {
    const { rollout, index } = call;
    if (!usable.has(call.envId) || call.text === null) {
      counts[usable.has(call.envId) ? 'unread' : 'without_schema'] += 1;
      continue;
    }
    counts.checked += 1;
    const violation = known.get(call) ?? null;
    counts[violation ? 'invalid' : 'valid'] += 1;
    if (!violation) continue;
    if (violation.rule === 'json') counts.unparsable += 1;
    const key = JSON.stringify(violation);
    const one = found.get(key) ?? { ...violation, count: 0, examples: [] };
    found.set(key, one);
    one.count += 1;
    if (one.examples.length < EXAMPLES) one.examples.push({ rollout, index });
  }
  const violations = [...found.values()].toSorted((a, b) => b.count - a.count || a.path.localeCompare(b.path)).slice(0, MAX_VIOLATIONS);
  return { ...counts, violations };
}
