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
  /** From 1. With it the request can be repeated. null: the next turn. */
  turn: number | null;
  /** Limit of the response; then the error `turn_running`. */
  waitMs: number;
}

/** The result of `get_metrics` in SkyRL. */
export interface TextMetrics {
  turns: number;
  total_reward: JsonValue;
  num_rewards: number;
}

/** The call did not run, so the turn can be played again. */
const NOT_RUN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'backend_unreachable',
  'environment_starting',
  'capacity_exhausted',
  'session_moved',
  'shutting_down',
  'call_abandoned',
]);
/** Attempts to store a turn while another process stores one, or after the ledger took its call for that of an earlier turn. */
const ATTEMPTS = 10;

/**
 * Serves SkyRL-Gym's `BaseTextEnv` over the session engine: text of a model in, observation texts out. Turns of a session run one after
 * another. A turn runs its tool once: a repeated turn joins the running call or gets its outcome, on any replica, also after a restart.
 * Independent of the web framework.
 */
export class TextServer {
  /** The last turn of each session with running turns. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(
    readonly engine: SessionEngine,
    readonly store: TextStore,
  ) {}

  /** Chooses how an engine session is played. Throws `invalid_request` if `action` is not possible. */
  async prepare(caller: Caller, sid: string, options: Omit<TextConfig, 'action'>): Promise<{ tools: ToolSpec[]; config: TextConfig }> {
    const { tools } = await this.engine.taskTools(caller, sid);
    let action: ActionTool | null = null;
    if (options.parse === 'action') {
      action = actionToolOf(tools);
      if (action === null) {
        const detail = 'parse: "action" needs an environment of actions, or one whose only tool takes one argument.';
        throw new PalestraError('invalid_request', { detail });
      }
    }
    return { tools, config: { ...options, action } };
  }

  /** Starts to accept turns. `prompt`: the chat messages that the model reads first, with secrets masked. */
  async begin(caller: Caller, sid: string, config: TextConfig, prompt: JsonValue[]): Promise<void> {
    await this.store.insert(sid, caller.orgId, config, prompt);
  }

  /** Errors are those of the service and the session. None of them is an outcome of the turn. */
  async step(caller: Caller, sid: string, request: TextTurnRequest): Promise<TextStep & { turn: number }> {
    let late = false;
    const played = this.#inOrder(sid, () => {
      // Without a turn number the client could not learn the outcome.
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

  /** Keeps the session alive like a ping, within its idle timeout. */
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
    const known = await this.#read(caller, sid, null);
    return known.config;
  }

  async #read(caller: Caller, sid: string, turn: number | null) {
    // Sessions of other organisations do not exist.
    const hosted = sid.includes('\0') ? null : await this.engine.environmentOf(caller, sid);
    const known = hosted === null ? null : await this.store.read(sid, turn);
    if (known === null) throw unknownSession();
    return known;
  }

  /** Runs `work` after all earlier work of the session. */
  async #inOrder<T>(sid: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(sid) ?? Promise.resolve();
    const result = before.then(work);
    const end = result
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(sid) === end) this.#turns.delete(sid);
      });
    this.#turns.set(sid, end);
    return result;
  }

  async #step(caller: Caller, sid: string, { text, turn: requestedTurn }: TextTurnRequest): Promise<TextStep & { turn: number }> {
    const fingerprint = createHash('sha256').update(text).digest('base64url');
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const { config, mask, last, stored } = await this.#read(caller, sid, requestedTurn);
      const turn = requestedTurn ?? (last?.turn ?? 0) + 1;
      if (stored !== null && stored.fingerprint !== fingerprint) throw conflict('This turn was played with another text.');
      const read = readTurn(config, turn, text);
      if (stored === null) assertNext(turn, last);
      const maskedText = mask.hide(text);
      if (read.type === 'played') {
        if (stored !== null || (await this.#storeWithoutCall(caller, sid, { turn, fingerprint, taskId: null, maskedText }, read.played)))
          return { ...read.played.step, turn };
        continue;
      }
      // After a crash the ledger can take the first attempt for a repeat of an earlier turn (ADR 7). An attempt without a row repeats
      // nothing.
      const call = await this.engine.call(caller, sid, { ...read, taskId: stored?.taskId ?? null, isNew: attempt > 0 });
      if (call.taskId === null) throw new PalestraError('session_lost', { detail: 'The outcome of this turn is unknown.' });
      const begun = stored !== null || (await this.store.begin(sid, { turn, fingerprint, taskId: call.taskId, maskedText }, null));
      if (begun) return { ...(await this.#play(sid, turn, config, read, call)), turn };
      call.abandon();
    }
    throw conflict('Other turns of this session were played at the same moment.');
  }

  /** Stores a turn without a call. False if the session already has the turn. */
  async #storeWithoutCall(caller: Caller, sid: string, turn: BegunTurn, played: PlayedTurn): Promise<boolean> {
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

/** Python's `sum` of JSON numbers: integers of any size stay integers; floats are added from left to right. */
export function pythonSum(rewards: string[]): JsonValue {
  if (rewards.every((reward) => /^-?\d+$/.test(reward))) {
    return parseJson(rewards.reduce((sum, reward) => sum + BigInt(reward), 0n).toString());
  }
  const sum = rewards.reduce((before, reward) => before + Number(reward), 0);
  return Number.isInteger(sum) && Math.abs(sum) < 1e16 ? parseJson(`${sum}.0`) : sum;
}
