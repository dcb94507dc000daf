import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { addJob } from '../../../apps/api/src/jobs/job-queue.sql.ts';
import type { TestServer } from '../../support/server.ts';

/** Rollouts of one step: each calls `accuse` once; the first `failed` results are errors. */
export interface Step {
  step: number;
  n?: number;
  failed?: number;
  /** Reward of every rollout. */
  reward?: number;
  environment?: string;
  variant?: string;
}

export function stepEvents(
  runName: string,
  { step, n = 20, failed = 0, reward = 1, environment = 'acme/whodunit', variant }: Step,
): object[] {
  return Array.from({ length: n }, (_, sample) => {
    const id = randomUUID();
    const message = (index: number, more: object) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp: 1_000 + index,
      index,
      content: '',
      isFinished: false,
      metadata: {},
      ...more,
    });
    const start = {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1_000,
      runName,
      step,
      environment,
      split: 'train',
      ...(variant && { variant }),
    };
    const metadata = { group_id: `g${step}-${sample % 4}`, sample_idx: Math.floor(sample / 4), stop_reason: 'finished' };
    return [
      { ...start, metadata, rollout_info: { task_index: sample % 4 } },
      message(0, { type: 'tool_call', name: 'accuse', callId: 'c', content: '{}' }),
      message(1, {
        type: 'tool_result',
        callId: 'c',
        content: 'x',
        isFinished: true,
        reward,
        metadata: sample < failed ? { is_error: true } : {},
      }),
    ];
  }).flat();
}

export async function uploadStep(server: Pick<TestServer, 'request'>, runName: string, step: Step): Promise<void> {
  const { status, body } = await server.request('POST', '/v1/rollouts', { body: { events: stepEvents(runName, step) } });
  if (status !== 200) throw new Error(JSON.stringify(body));
}

/** The next round of judgements begins now, instead of within ten seconds. */
export const judgeNow = ({ database }: TestServer) => {
  const key = 'every:evaluate-alerts';
  return addJob(database.pool, {
    name: 'evaluate-alerts',
    payload: {},
    key,
    runAt: new Date(),
    maxAttempts: 1,
    serialKey: key,
    keepTime: false,
  });
};

export const toolErrors = (change: object = {}) => ({
  name: 'tool errors of accuse',
  condition: { kind: 'metric', metric: 'tool_error', tool: 'accuse', op: 'above', value: 0.1 },
  ...change,
});

export interface Received {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** A real receiver of webhooks. */
export interface Receiver {
  url: string;
  received: Received[];
  /** Replaced by tests; default: 200. */
  answer: (request: http.IncomingMessage, response: http.ServerResponse, count: number) => void;
  stop(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = {
    url: '',
    received: [],
    answer: (_request, response) => response.end('ok'),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      receiver.received.push({ headers: request.headers, body });
      receiver.answer(request, response, receiver.received.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}

/** As the Standard Webhooks specification says, written without the code of the service. */
export function isSigned({ headers, body }: Received, secret: string): boolean {
  const [id, timestamp] = [headers['webhook-id'], headers['webhook-timestamp']];
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key)
    .update(`${String(id)}.${String(timestamp)}.${body}`)
    .digest();
  return String(headers['webhook-signature'])
    .split(' ')
    .map((part) => part.split(','))
    .some(([version, signature]) => version === 'v1' && timingSafeEqual(Buffer.from(signature!, 'base64'), expected));
}

/** Lets waiting deliveries be due now, instead of after their pause. */
export const skipPauses = ({ database }: TestServer) =>
  database.pool.query(
    `UPDATE webhook_deliveries SET next_at = now() WHERE state = 'waiting' AND tries > 0 AND next_at < now() + interval '9 hours'`,
  );
