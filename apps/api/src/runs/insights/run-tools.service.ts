import { Injectable } from '@nestjs/common';
import { PHASES, type ToolCheckQuery, type ToolQuery } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import type { RunScope } from '../run-scope.ts';
import { checkCalls, type CheckedCalls } from './argument-check.ts';
import type { Violation } from './argument-schema.ts';
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

interface Call {
  rollout: string;
  index: number;
  schema: unknown;
  /** Null: too long, or beyond the maximum of one request. */
  text: string | null;
}

type ReadCall = Omit<Call, 'schema'> & { envId: number };

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
    const known = new Map(environments.map((one) => [one.id, schemaOf(one, query.tool)]));
    const read = await this.#callsOf(callers, query.tool, query.calls);
    const { rollouts, incomplete } = read;
    const calls = read.calls.map(({ envId, ...call }) => ({ ...call, schema: known.get(envId) ?? null }));
    const checked = await checkCalls(this.untrustedWork, run.orgId, calls);
    return {
      tool: query.tool,
      calls: calls.length,
      rollouts,
      ...tallied(calls, checked),
      schemas: environments.flatMap(({ id, environment }) => {
        const schema = known.get(id);
        return checked.usable.has(schema) ? [{ environment, schema }] : [];
      }),
      incomplete,
    };
  }

  /** The newest calls, at most `most`. `incomplete`: the time limit ended the read. */
  async #callsOf(callers: readonly CallerRow[], tool: string, most: number) {
    const deadline = performance.now() + READ_MS;
    const calls: ReadCall[] = [];
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

  async #callsOfRollout(row: CallerRow, tool: string): Promise<ReadCall[]> {
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

function tallied(calls: readonly Call[], { usable, violations: known }: CheckedCalls<Call>) {
  const found = new Map<string, Violation & { count: number; examples: { rollout: string; index: number }[] }>();
  const counts = { checked: 0, valid: 0, invalid: 0, unparsable: 0, without_schema: 0, unread: 0 };
  for (const call of calls) {
    const { rollout, index } = call;
    if (!usable.has(call.schema) || call.text === null) {
      counts[usable.has(call.schema) ? 'unread' : 'without_schema'] += 1;
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
