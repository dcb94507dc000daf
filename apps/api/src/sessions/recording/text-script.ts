import { playedTurn, readTurn, type TextStep } from '@palestra/text/server';
import { type JsonObject, parseJson, toPlainNumber } from '@palestra/protocol';
import type { CallOutcome } from '@palestra/session';
import type { RecordedCall } from './recording.sql.ts';
import { extrasOf, type RecordedText, type RecordedTurn } from '../text/recorded-text.sql.ts';
import { type PromptLine, promptLines } from '../text/text-prompt.ts';

/** A message of the conversation that is neither a call nor a result. */
export interface Line {
  /** Unique in the session. */
  key: string;
  type: PromptLine['type'];
  content: string;
  index: number;
  /** Milliseconds since the epoch. Turns have no time, so this is the time of a call beside them. */
  at: number;
  /** For a turn: the trainer's answer, in addition to the reward of the call. */
  metadata: JsonObject;
}

/**
 * The texts of a text session between the calls of its recording. A call has two messages, and a turn has additional ones. The index of a message
 * follows from the turns and calls before it, so it does not depend on when it is written.
 */
export class TextScript {
  readonly #text: RecordedText;
  readonly #calls = new Map<string, RecordedTurn>();
  #next = 0;
  /** How many messages so far belong to no call. */
  #extras: number;
  /** How many calls there are, up to the call of the last turn. */
  #ordinal: number;

  constructor(text: RecordedText, ordinal: number) {
    this.#text = text;
    this.#extras = text.promptMessages + text.extras;
    this.#ordinal = ordinal;
    for (const turn of text.turns) if (turn.task_id !== null) this.#calls.set(turn.task_id, turn);
  }

  /** The lines of the prompt; empty when they have been written. */
  prompt(at: number): Line[] {
    const { prompt } = this.#text;
    return prompt === null ? [] : promptLines(prompt).map((line, index) => ({ ...line, key: `prompt:${index}`, index, at }));
  }

  /** The lines before a call: turns without a call, and the text that made this call. `ordinal`: how many calls are before it. */
  before(call: RecordedCall, ordinal: number): Line[] {
    const turn = this.#calls.get(call.task_id);
    // A call of another client, or a call that did not run, has no turn.
    if (turn === undefined) return [];
    const at = call.started_at;
    const lines = this.#until(turn.turn, at);
    this.#next += 1;
    if (turn.said !== null) lines.push({ ...this.#line(turn, 'assistant_message', turn.said, 0), index: this.indexOf(ordinal), at });
    this.#extras += extrasOf(turn);
    this.#ordinal = ordinal + 1;
    return lines;
  }

  /** The index of the call after the lines of `before`. */
  indexOf(ordinal: number): number {
    return 2 * ordinal + this.#extras;
  }

  /** The answer to the model after a call; null if the call has no turn or its turn has no answer. */
  answerTo(call: RecordedCall): { content: string | null; turn: number; step_reward: number | null } | null {
    const turn = this.#calls.get(call.task_id);
    if (turn === undefined) return null;
    const outcome = outcomeOf(call);
    if (outcome === null) return null;
    try {
      const input = parseJson(call.input) as JsonObject;
      const { step } = playedTurn(this.#text.config, turn.turn, { tool: call.tool, input }, outcome);
      return { content: contentOf(step), turn: turn.turn, step_reward: toPlainNumber(step.reward) };
    } catch {
      // A failure of the infrastructure: the trainer got an error, and the model got nothing.
      return null;
    }
  }

  /** The turns after the last call, up to one whose call is not written yet. Every round writes them again until a call follows. */
  rest(at: number): Line[] {
    return this.#until(Infinity, at);
  }

  #until(end: number, at: number): Line[] {
    const lines: Line[] = [];
    for (let turn = this.#text.turns[this.#next]; turn !== undefined && turn.turn < end && turn.task_id === null;) {
      if (turn.said !== null) {
        lines.push({ ...this.#line(turn, 'assistant_message', turn.said, 0), at });
        const read = readTurn(this.#text.config, turn.turn, turn.said);
        const answer = read.type === 'played' ? contentOf(read.played.step) : null;
        if (answer !== null) lines.push({ ...this.#line(turn, 'user_message', answer, 1), at });
      }
      this.#extras += extrasOf(turn);
      this.#next += 1;
      turn = this.#text.turns[this.#next];
    }
    return lines;
  }

  #line(
    { turn, reward, done, task_id: taskId }: RecordedTurn,
    type: PromptLine['type'],
    content: string,
    offset: number,
  ): Omit<Line, 'at'> {
    const answered = taskId === null && { step_reward: reward === null ? null : Number(reward), done };
    return { key: `${turn}:${type}`, type, content, index: this.indexOf(this.#ordinal) + offset, metadata: { turn, ...answered } };
  }
}

const contentOf = ({ observations }: TextStep): string | null =>
  observations.length === 0 ? null : observations.map(({ content }) => content).join('\n');

function outcomeOf({ state, result, ok, reward, finished }: RecordedCall): CallOutcome | null {
  if (state === 'running' || result === null) return null;
  if (state !== 'result') return JSON.parse(result) as CallOutcome;
  return { type: 'result', text: result, ok: ok === true, reason: null, reward, finished: finished === true };
}
