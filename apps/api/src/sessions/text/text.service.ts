import { Inject, Injectable } from '@nestjs/common';
import { TextServer, type TextTurnRequest } from '@palestra/text/server';
import { taskMessages } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import {
  type JsonObject,
  type JsonValue,
  type OpenText,
  PalestraError,
  parseJson,
  type TextStepBody,
  type ToolSpec,
} from '@palestra/protocol';
import { type Caller, SecretMask } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { SessionServer } from '../server/session-server.ts';
import { readSecrets, SessionService } from '../management/session.service.ts';
import { SqlTextStore } from './text-turns.sql.ts';

const DEFAULT_TURNS = { tool_call: 10, action: 1 };

/** The operations of text sessions, for HTTP and for the socket. Each returns the body of the response. */
@Injectable()
export class TextService {
  readonly #text: TextServer;

  constructor(
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(SessionService) private readonly sessions: SessionService,
    @Inject(Database) database: Database,
  ) {
    this.#text = new TextServer(server.engine, new SqlTextStore(database.pool, server.box));
  }

  /** `signal` ends the wait for a slot. Throws `session_moved` when the slot is on another process: send the same request there. */
  async openAs(caller: Caller, sid: string, body: OpenText, signal: AbortSignal): Promise<JsonObject> {
    const { environment, variant, split, index, toolset, secrets, recording, parse } = body;
    const clientPrompt = readPrompt(body.prompt);
    const maxTurns = body.max_turns ?? DEFAULT_TURNS[parse];
    const task = 'task_spec' in body ? { task_spec: body.task_spec } : { split, index };
    await this.sessions.open(caller, { environment, variant, ...task, toolset_name: toolset, secrets, run: recording, sid }, signal);
    try {
      const { tools, config } = await this.#text.prepare(caller, sid, { parse, maxTurns, environment });
      const prompt = clientPrompt ?? (await this.#defaultPrompt(caller, sid, parse, tools));
      await this.#text.begin(caller, sid, config, new SecretMask(readSecrets(secrets) ?? {}).hideIn(prompt));
      return { id: sid, prompt, metadata: {}, max_turns: maxTurns, tools };
    } catch (error) {
      // A failed session must not keep a slot.
      if (!(error instanceof PalestraError && error.code === 'session_moved')) await this.server.engine.delete(caller, sid);
      throw error;
    }
  }

  /** The prompt when the client sends none: as SkyRL's `prepare_tasks.py` writes it, or the first observation (docs/reference/skyrl.md). */
  async #defaultPrompt(caller: Caller, sid: string, parse: OpenText['parse'], tools: ToolSpec[]): Promise<JsonValue[]> {
    const blocks = await this.server.engine.prompt(caller, sid);
    const messages = taskMessages(blocks, tools);
    return (parse === 'tool_call' ? messages : messages.filter(({ role }) => role === 'user')).map((message) => ({ ...message }));
  }

  async step(caller: Caller, id: string, { text, turn = null, wait_s: waitS }: TextStepBody): Promise<JsonObject> {
    const request: TextTurnRequest = { text, turn, waitMs: waitS * 1_000 };
    const {
      turn: played,
      observations,
      reward,
      done,
      metadata,
    } = await this.#text.step(caller, await this.server.engine.sidOf(caller, id), request);
    return { turn: played, observations, reward, done, metadata };
  }

  async get(caller: Caller, id: string): Promise<JsonObject> {
    const { config, totals } = await this.#text.view(caller, await this.server.engine.sidOf(caller, id));
    const { environment, parse, maxTurns } = config;
    return { id, environment, parse, max_turns: maxTurns, turns: totals.turns, done: totals.done };
  }

  async ping(caller: Caller, id: string): Promise<void> {
    await this.#text.ping(caller, await this.server.engine.sidOf(caller, id));
  }

  async metrics(caller: Caller, id: string): Promise<JsonObject> {
    return { ...(await this.#text.metrics(caller, await this.server.engine.sidOf(caller, id))) };
  }

  async close(caller: Caller, id: string): Promise<JsonObject> {
    await this.#text.close(caller, await this.server.engine.sidOf(caller, id));
    return { id };
  }
}

/** Clients retry on these numbers anywhere in an error text, which may contain the id (docs/reference/skyrl.md#retry-rule). */
const RETRY_WORDS = /429|502|503/;

export function newTextId(): string {
  for (;;) {
    const id = newUuid();
    if (!RETRY_WORDS.test(id)) return id;
  }
}

function readPrompt(prompt: OpenText['prompt']): JsonValue[] | null {
  if (prompt === null || prompt === undefined) return null;
  const messages = typeof prompt === 'string' ? parseMessages(prompt) : prompt;
  if (Array.isArray(messages)) return messages;
  const problem = {
    type: 'value_error',
    loc: ['body', 'prompt'],
    msg: 'a prompt is a list of messages, or the JSON text of one',
    input: prompt,
  };
  throw new PalestraError('invalid_body', { detail: [problem] });
}

function parseMessages(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
