import { createHash } from 'node:crypto';
import {
  type ErrorCode,
  type JsonObject,
  type JsonValue,
  parseJson,
  PalestraError,
  stringifyJson,
  type ToolSpec,
} from '@palestra/protocol';
import type { CallOutcome, Caller, OpenCall, SessionEngine } from '@palestra/session';
import { type ActionTool, actionToolOf } from '../wire/action.ts';
import type { BegunTurn, TextOutcome, TextStore, TextTotals } from './text-store.port.ts';
import { type PlayedTurn, playedTurn, readTurn, type TextConfig, type TextStep } from './turn.ts';

export interface TextTurnRequest {
  text: string;
  /** From 1; with it the request may be repeated. null: the turn after the last one. */
  turn: number | null;
  /** The answer comes within this, or is `turn_running`; milliseconds. */
  waitMs: number;
}

/** What `get_metrics` answers in SkyRL. */
export interface TextMetrics {
  turns: number;
  total_reward: JsonValue;
  num_rewards: number;
}

/** The call was certainly not run: the turn may be played anew. */
const NOT_RUN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'backend_unreachable',
  'environment_starting',
  'capacity_exhausted',
  'session_moved',
  'shutting_down',
  'call_abandoned',
]);
/** Attempts to store a turn that another process stores at the same moment, or whose call the ledger took for that of an earlier turn. */
const ATTEMPTS = 10;

/**
 * SkyRL-Gym's `BaseTextEnv` over the session engine: a model's text in, observation texts out. Turns of a session come one after another. A
 * turn runs its tool once: a repeated one joins the running call or gets its outcome, on any replica, also after a restart. Framework-free.
 */
export class TextServer {
  /** Sessions whose turns run here, with the end of the last one. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(
    readonly engine: SessionEngine,
    readonly store: TextStore,
  ) {}

  /** How an open engine session can be played. Throws `invalid_request` where `action` is not possible. */
  async prepare(caller: Caller, sid: string, wanted: Omit<TextConfig, 'action'>): Promise<{ tools: ToolSpec[]; config: TextConfig }> {
    const { tools } = await this.engine.taskTools(caller, sid);
    let action: ActionTool | null = null;
    if (wanted.parse === 'action') {
      action = actionToolOf(tools);
      if (action === null) {
        const detail = 'parse: "action" needs an environment of actions, or one whose only tool takes one argument.';
        throw new PalestraError('invalid_request', { detail });
      }
    }
    return { tools, config: { ...wanted, action } };
  }

  /** From here on it takes turns. `prompt`: the chat messages that its model reads first, secrets hidden. */
  async begin(caller: Caller, sid: string, config: TextConfig, prompt: JsonValue[]): Promise<void> {
    await this.store.insert(sid, caller.orgId, config, prompt);
  }

  /** Errors are those of the service and of the session: none of them is an outcome of the turn. */
  async step(caller: Caller, sid: string, request: TextTurnRequest): Promise<TextStep & { turn: number }> {
    let late = false;
    const played = this.#inOrder(sid, () => {
      // Nobody could learn what became of it.
      if (late && request.turn === null) throw stillRunning();
      return this.#step(caller, sid, request);
    });
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        late = true;
        reject(stillRunning());
      }, request.waitMs);
    });
    try {
      return await Promise.race([played, deadline]);
    } finally {
      clearTimeout(timer);
    }
  }

  async metrics(caller: Caller, sid: string): Promise<TextMetrics> {
    await this.#config(caller, sid);
    const { turns, rewards } = await this.store.totals(sid);
    return { turns, total_reward: pythonSum(rewards), num_rewards: rewards.length };
  }

  /** Keeps the session alive, as a ping does: within its idle timeout. */
  async view(caller: Caller, sid: string): Promise<{ config: TextConfig; totals: TextTotals }> {
    await this.ping(caller, sid);
    const known = await this.store.read(sid, null);
    if (known === null) throw unknownSession();
    return { config: known.config, totals: await this.store.totals(sid) };
  }

  async ping(caller: Caller, sid: string): Promise<void> {
    if (sid.includes('\0')) throw unknownSession();
    await this.engine.ping(caller, sid);
  }

  /** Idempotent. */
  async close(caller: Caller, sid: string): Promise<void> {
    await this.#config(caller, sid);
    await this.engine.delete(caller, sid);
  }

  async #config(caller: Caller, sid: string): Promise<TextConfig> {
    const known = await this.#known(caller, sid, null);
    return known.config;
  }

  async #known(caller: Caller, sid: string, turn: number | null) {
    // Another organisation's session does not exist.
    const hosted = sid.includes('\0') ? null : await this.engine.environmentOf(caller, sid);
    const known = hosted === null ? null : await this.store.read(sid, turn);
    if (known === null) throw unknownSession();
    return known;
  }

  /** Runs work of a session after all that was asked for before. */
  async #inOrder<T>(sid: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(sid) ?? Promise.resolve();
    const mine = before.then(work);
    const end = mine
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(sid) === end) this.#turns.delete(sid);
      });
    this.#turns.set(sid, end);
    return mine;
  }

  async #step(caller: Caller, sid: string, { text, turn: wanted }: TextTurnRequest): Promise<TextStep & { turn: number }> {
    const fingerprint = createHash('sha256').update(text).digest('base64url');
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const { config, mask, last, asked } = await this.#known(caller, sid, wanted);
      const turn = wanted ?? (last?.turn ?? 0) + 1;
      if (asked !== null && asked.fingerprint !== fingerprint) throw conflict('This turn was played with another text.');
      const read = readTurn(config, turn, text);
      if (asked === null) assertNext(turn, last);
      const said = mask.hide(text);
      if (read.type === 'played') {
        if (asked !== null || (await this.#playAlone(caller, sid, { turn, fingerprint, taskId: null, said }, read.played)))
          return { ...read.played.step, turn };
        continue;
      }
      // After a crash the ledger can take the first attempt for a repeat of an earlier turn (ADR 7); one that has no row repeats nothing.
      const call = await this.engine.call(caller, sid, { ...read, taskId: asked?.taskId ?? null, isNew: attempt > 0 });
      if (call.taskId === null) throw new PalestraError('session_lost', { detail: 'What became of this turn cannot be known any more.' });
      const begun = asked !== null || (await this.store.begin(sid, { turn, fingerprint, taskId: call.taskId, said }, null));
      if (begun) return { ...(await this.#play(sid, turn, config, read, call)), turn };
      call.abandon();
    }
    throw conflict('Other turns of this session were played at the same moment.');
  }

  /** A turn that makes no call. False when the session has the turn already. */
  async #playAlone(caller: Caller, sid: string, turn: BegunTurn, played: PlayedTurn): Promise<boolean> {
    await this.engine.ping(caller, sid);
    return this.store.begin(sid, turn, outcomeOf(played));
  }

  async #play(
    sid: string,
    turn: number,
    config: TextConfig,
    call: { tool: string; input: JsonObject },
    { taskId, outcome: run }: OpenCall,
  ): Promise<TextStep> {
    const outcome: CallOutcome = await run();
    if (taskId !== null && outcome.type === 'refused' && NOT_RUN.has(outcome.code)) await this.store.release(sid, turn, taskId);
    const played = playedTurn(config, turn, call, outcome);
    await this.store.settle(sid, turn, outcomeOf(played));
    return played.step;
  }
}

const outcomeOf = ({ step, counted }: PlayedTurn): TextOutcome => ({ reward: stringifyJson(step.reward), done: step.done, counted });

const unknownSession = () => new PalestraError('session_not_found', { detail: 'No such text session.' });
const conflict = (detail: string) => new PalestraError('turn_conflict', { detail });
const stillRunning = () => new PalestraError('turn_running', { retryAfterSeconds: 1 });

function assertNext(turn: number, last: { turn: number; settled: boolean } | null): void {
  if (turn !== (last?.turn ?? 0) + 1) throw conflict('Turns are played in order, each once; this is not the next one.');
  if (last?.settled === false) throw conflict('The turn before has no outcome yet: send it again, with its number and text.');
}

/** Python's `sum` of JSON numbers: ints stay an int, of any size; floats are added from left to right. */
export function pythonSum(rewards: string[]): JsonValue {
  if (rewards.every((reward) => /^-?\d+$/.test(reward))) {
    return parseJson(rewards.reduce((sum, reward) => sum + BigInt(reward), 0n).toString());
  }
  const sum = rewards.reduce((before, reward) => before + Number(reward), 0);
  return Number.isInteger(sum) && Math.abs(sum) < 1e16 ? parseJson(`${sum}.0`) : sum;
}
