import { Injectable } from '@nestjs/common';
import { groupBy, type GroupSums, type Moments, momentsOf, type Sides } from '@palestra/metrics';
import { PalestraError } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { type CheckedCall, checkCalls } from '../insights/argument-check.ts';
import type { Violation } from '../insights/argument-schema.ts';
import { publishedTools } from '../insights/run-tools.service.ts';
import { selectRunEnvironments } from '../insights/run-tools.sql.ts';
import { type MoveScope, type SampleRow, selectSample } from './run-moves.sql.ts';

/** Rollouts of a step whose calls are checked, and of its baseline. */
const MAX_ROLLOUTS = 200;
const READ_MS = 1_500;
/** Rollouts that are read together, and the most bytes of one. */
const BATCH = 20;
const MAX_BYTES = 1_000_000;
const MAX_CALLS = 5_000;
/** Longer arguments are not parsed. */
const MAX_ARGUMENTS = 100_000;

interface Call extends CheckedCall {
  rollout: SampleRow;
  tool: string;
  index: number;
}

/** The calls of one tool whose arguments do not fit the schema that its environment publishes. */
export interface InvalidCalls {
  tool: string;
  calls: Record<keyof Sides, { errors: number; calls: number }>;
  /** Rollouts with such a call. */
  rollouts: Record<keyof Sides, SampleRow[]>;
  moments: Sides;
  /** The most frequent violation, at the step if there is one. */
  violation: Violation;
  /** The first such call at the step. */
  example: { rollout: string; index: number } | null;
}

export interface CheckedSample {
  invalid: InvalidCalls[];
  /** Rollouts whose calls were checked. */
  rollouts: Record<keyof Sides, SampleRow[]>;
}

/** Checks the calls of the first rollouts of a step and of its baseline against the schemas of their tools. */
@Injectable()
export class InvalidArguments {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    private readonly untrustedWork: UntrustedWork,
  ) {}

  /** Null without a schema, and where its check is too expensive. Throws `capacity_exhausted`. */
  async of(scope: MoveScope, step: number, baseline: readonly number[]): Promise<CheckedSample | null> {
    const { pool } = this.database;
    const environments = await selectRunEnvironments(pool, scope.runSeq);
    const schemas = new Map(
      environments.map((one) => [one.id, new Map((publishedTools(one) ?? []).map((tool) => [tool.name, tool.input_schema as unknown]))]),
    );
    if ([...schemas.values()].every(({ size }) => size === 0)) return null;
    const sample = await selectSample(pool, scope, { step, baseline, most: MAX_ROLLOUTS });
    const { rollouts, calls } = await this.#read(sample, schemas);
    const owner = sample[0]?.org_id;
    if (owner === undefined || calls.length === 0) return null;
    try {
      const { violations } = await checkCalls(this.untrustedWork, owner, calls);
      return invalidOf(rollouts, calls, violations);
    } catch (error) {
      if (error instanceof PalestraError && error.code === 'too_expensive') return null;
      throw error;
    }
  }

  /** Both sides in turn, until the time is over. */
  async #read(sample: readonly SampleRow[], schemas: ReadonlyMap<number, ReadonlyMap<string, unknown>>) {
    const deadline = performance.now() + READ_MS;
    const [now, before] = [true, false].map((side) => sample.filter((row) => row.now === side && row.bytes <= MAX_BYTES)) as [
      SampleRow[],
      SampleRow[],
    ];
    const rollouts: SampleRow[] = [];
    const calls: Call[] = [];
    for (let at = 0; at < Math.max(now.length, before.length) && performance.now() < deadline && calls.length < MAX_CALLS; at += BATCH) {
      const batch = [...now.slice(at, at + BATCH), ...before.slice(at, at + BATCH)];
      const messages = await this.transcripts.messagesOfMany(batch);
      for (const rollout of batch) {
        rollouts.push(rollout);
        for (const { type, name, index, content, blob_key } of messages.get(rollout.seq) ?? []) {
          if (type !== 'tool_call' || name === null) continue;
          const text = content ?? '';
          const isRead = blob_key === null && text.length <= MAX_ARGUMENTS;
          const schema = schemas.get(rollout.env_id)?.get(name) ?? null;
          if (schema !== null) calls.push({ rollout, tool: name, index, schema, text: isRead ? text : null });
        }
      }
    }
    return { rollouts, calls };
  }
}

const sidesOf = <T>(of: (now: boolean) => T): Record<keyof Sides, T> => ({ now: of(true), before: of(false) });

function invalidOf(sample: readonly SampleRow[], calls: readonly Call[], violations: ReadonlyMap<Call, Violation | null>): CheckedSample {
  const rollouts = sidesOf((now) => sample.filter((row) => row.now === now));
  const checked = calls.filter((call) => violations.has(call));
  const isInvalid = (call: Call) => violations.get(call) !== null;
  const tools = [...new Set(checked.filter(isInvalid).map(({ tool }) => tool))];
  const invalid = tools.map((tool): InvalidCalls => {
    const own = checked.filter((call) => call.tool === tool);
    const wrong = own.filter(isInvalid);
    const having = new Set(wrong.map(({ rollout }) => rollout));
    const first = wrong.find(({ rollout }) => rollout.now);
    const atStep = wrong.filter(({ rollout }) => rollout.now);
    return {
      tool,
      calls: sidesOf((now) => ({
        errors: wrong.filter(({ rollout }) => rollout.now === now).length,
        calls: own.filter(({ rollout }) => rollout.now === now).length,
      })),
      rollouts: sidesOf((now) => rollouts[now ? 'now' : 'before'].filter((row) => having.has(row))),
      moments: sidesOf((now) => momentsOfRows(rollouts[now ? 'now' : 'before'], having)),
      violation: mostFrequent((atStep.length > 0 ? atStep : wrong).map((call) => violations.get(call)!)),
      example: first ? { rollout: first.rollout.id, index: first.index } : null,
    };
  });
  return { invalid, rollouts };
}

/** By environment. */
function momentsOfRows(rows: readonly SampleRow[], having: ReadonlySet<SampleRow>): Moments[] {
  const scored = rows.filter(({ reward }) => reward !== null);
  return [...groupBy(scored, ({ env_id }) => env_id).values()].map((own) =>
    momentsOf([...groupBy(own, ({ cluster }) => cluster).values()].map((group) => sumsOf(group, having))),
  );
}

function sumsOf(group: readonly SampleRow[], having: ReadonlySet<SampleRow>): GroupSums {
  const own = group.filter((row) => having.has(row));
  const sum = (rows: readonly SampleRow[]) => rows.reduce((total, { reward }) => total + reward!, 0);
  return { n: group.length, s: sum(group), n1: own.length, s1: sum(own) };
}

function mostFrequent(violations: readonly Violation[]): Violation {
  const counts = new Map<string, number>();
  for (const one of violations) counts.set(JSON.stringify(one), (counts.get(JSON.stringify(one)) ?? 0) + 1);
  return violations.reduce((most, one) => (counts.get(JSON.stringify(one))! > counts.get(JSON.stringify(most))! ? one : most));
}
