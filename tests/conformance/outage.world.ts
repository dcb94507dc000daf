import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Palestra } from '../support/palestra.ts';

/** Clients that keep a batch until it is acknowledged, as trainers do, and what they were told meanwhile. */

export interface Sent {
  id: string;
  eventIds: string[];
  /** SHA-256 of the picture or the large body that went with it. */
  digest: string | null;
}

interface Batch extends Sent {
  events: object[];
}

export type Kind = 'text' | 'image' | 'large';

/** One try of one batch. Times are milliseconds of `Date.now`; status 0: the connection broke. */
export interface Try {
  kind: Kind;
  from: number;
  to: number;
  status: number;
  code: string | null;
  retryAfter: string | null;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const digestOf = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

/** Over 8 MB, so that it becomes an object; each one is another. */
const LARGE_BYTES = 8 * 1024 * 1024 + 4_096;
const IMAGE_BYTES = 12_000;

/** A finished rollout of three messages; the second one holds what needs the object store, if anything does. */
function batchOf(kind: Kind, runName: string): Batch {
  const id = randomUUID();
  const image = randomBytes(IMAGE_BYTES);
  const large = `${id} `.repeat(Math.ceil(LARGE_BYTES / (id.length + 1)));
  const contents = { text: `answer of ${id}`, image: `look: data:image/png;base64,${image.toString('base64')}`, large };
  const digests = { text: null, image: digestOf(image), large: digestOf(large) };
  const texts = [`question of ${id}`, contents[kind], 'thanks'];
  const messages = texts.map((content, index) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    timestamp: Date.now(),
    index,
    type: index === 1 ? 'assistant_message' : 'user_message',
    content,
    isFinished: index === texts.length - 1,
  }));
  const start = { eventType: 'rollout', eventId: id, timestamp: Date.now(), runName, rolloutName: kind, environment: 'acme/outage' };
  return { id, eventIds: messages.map(({ eventId }) => eventId), digest: digests[kind], events: [start, ...messages] };
}

export class Clients {
  readonly tries: Try[] = [];
  readonly acknowledged: Record<Kind, Sent[]> = { text: [], image: [], large: [] };
  readonly #running: Promise<void>[] = [];
  #stopped = false;

  constructor(
    private readonly palestra: Palestra,
    private readonly runName: string,
  ) {}

  /** `pauseMs`: after each acknowledged batch. */
  start(kind: Kind, pauseMs: number): void {
    const running = this.#run(kind, pauseMs);
    // Told by `finish`.
    running.catch(() => {});
    this.#running.push(running);
  }

  /** No further batches; those that are not acknowledged yet are sent until they are. */
  async finish(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async send(kind: Kind): Promise<Sent> {
    const { events, ...sent } = batchOf(kind, this.runName);
    const body = JSON.stringify({ events });
    for (;;) {
      const { status, retryAfter } = await this.#try(kind, body);
      if (status === 200) break;
      if (status === 0) this.#expectAlive();
      await pause(Number(retryAfter ?? 1) * 1_000);
    }
    this.acknowledged[kind].push(sent);
    return sent;
  }

  /** Nobody starts it again: without this, clients would ask a dead service for ever. */
  #expectAlive(): void {
    try {
      process.kill(this.palestra.pid(), 0);
    } catch {
      throw new Error(`the service ended:\n${this.palestra.output()}`);
    }
  }

  async #run(kind: Kind, pauseMs: number): Promise<void> {
    while (!this.#stopped) {
      await this.send(kind);
      await pause(pauseMs);
    }
  }

  async #try(kind: Kind, body: string): Promise<Try> {
    const from = Date.now();
    const headers = { 'x-api-key': this.palestra.apiKey, 'content-type': 'application/json' };
    const told = await fetch(`${this.palestra.url}/v1/rollouts`, { method: 'POST', headers, body })
      .then(async (answer) => ({
        status: answer.status,
        code: ((await answer.json()) as { code?: string }).code ?? null,
        retryAfter: answer.headers.get('retry-after'),
      }))
      .catch(() => ({ status: 0, code: null, retryAfter: null }));
    const one = { kind, from, to: Date.now(), ...told };
    this.tries.push(one);
    return one;
  }
}

export interface ReadBack {
  eventIds: string[];
  digest: string | null;
}

/** What the service gives back of a rollout: its messages, and the object of the second one. */
export async function readBack(palestra: Palestra, kind: Kind, id: string): Promise<ReadBack> {
  const get = async (route: string) => {
    const answer = await fetch(`${palestra.url}/v1/rollouts/${id}${route}`, { headers: { 'x-api-key': palestra.apiKey } });
    if (!answer.ok) throw new Error(`${kind} ${id}${route}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const { messages } = (await (await get('')).json()) as { messages: { eventId: string; content: string }[] };
  const eventIds = messages.map(({ eventId }) => eventId);
  if (kind === 'text') return { eventIds, digest: null };
  const route = kind === 'large' ? '/messages/1/body' : `/objects/${/palestra-object:(\S+)/.exec(messages[1]?.content ?? '')?.[1]}`;
  return { eventIds, digest: digestOf(Buffer.from(await (await get(route)).arrayBuffer())) };
}
