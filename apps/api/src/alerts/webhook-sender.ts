import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { retryAfterMs } from '@palestra/kit';
import { outboundAgent, outboundFetch, OutboundPolicy } from '@palestra/outbound';
import { PalestraError } from '@palestra/protocol';
import type { Agent } from 'undici';
import { JobQueue } from '../jobs/job-queue.service.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { readSecretKeys } from '../platform/secret-keys.ts';
import { nextAttempt } from './webhook-schedule.ts';
import { openSecrets } from './webhook-secrets.ts';
import { messageIdOf, signatureHeaders } from './webhook-signature.ts';
import { type Attempt, claimDeliveries, type ClaimedDelivery, deleteOldDeliveries, disableWebhook, storeAttempt } from './webhook.sql.ts';

const EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
/** Of an attempt, with connection and answer. */
const ATTEMPT_MS = 10_000;
const CONNECT_MS = 5_000;
/** Longer than an attempt: a delivery that is taken twice is sent twice. */
const LEASE_S = 30;
/** Attempts at the same time. A receiver that hangs takes one for ten seconds, and no more than four of its organisation. */
const LIMITS = { limit: 32, perOrganisation: 4, leaseS: LEASE_S };
/** Bytes of an answer that are read, and characters that are stored. */
const ANSWER_BYTES = 4_096;
const ANSWER_CHARS = 1_000;
const KEEP_DAYS = 30;
const BATCH = 1_000;
const GONE = 410;
/** Of these the header Retry-After counts. */
const ASKS_TO_WAIT = new Set([429, 503]);

/** Sends webhooks: signed, without redirects, through the outbound policy. One job at a time sends; many attempts run in it. */
@Injectable()
export class WebhookSender implements OnModuleInit, OnApplicationShutdown {
  readonly #agent: Agent;
  readonly #fetch: typeof globalThis.fetch;

  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    policy: OutboundPolicy,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.#agent = outboundAgent(policy, CONNECT_MS, {
      // The signal of an attempt ends it; a second clock with the same time would name another reason.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 1,
      pipelining: 0,
    });
    this.#fetch = outboundFetch(this.#agent);
  }

  onModuleInit(): void {
    this.jobs.handle('deliver-webhooks', { everyMs: EVERY_MS, deadlineMs: 60_000 }, (_payload, signal) => this.deliver(signal));
    this.jobs.handle('forget-deliveries', { everyMs: HOUR_MS, deadlineMs: HOUR_MS }, async (_payload, signal) => {
      while (!signal.aborted && (await deleteOldDeliveries(this.database.pool, KEEP_DAYS, BATCH)) === BATCH);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#agent.destroy();
  }

  /** Sends what is due. */
  async deliver(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const claimed = await claimDeliveries(this.database.pool, LIMITS);
      if (claimed.length === 0) return;
      await Promise.all(claimed.map((delivery) => this.#attempt(delivery, signal)));
    }
  }

  async #attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
    const at = new Date();
    const started = performance.now();
    const { retryAfterS, ...outcome } = await this.#post(delivery, at.getTime(), signal);
    // Another process repeats it: whether the receiver got it is not known.
    if (signal.aborted) return;
    const attempt: Attempt = { at, latencyMs: Math.round(performance.now() - started), ...outcome };
    const isGone = attempt.status === GONE;
    await storeAttempt(this.database.pool, delivery, attempt, isGone ? null : nextAttempt(delivery.tries, retryAfterS));
    if (isGone) await disableWebhook(this.database.pool, delivery.webhook_id, 'The receiver answered 410 Gone.');
  }

  async #post({ id, org_id, webhook_id, url, body, secrets }: ClaimedDelivery, now: number, stop: AbortSignal): Promise<Outcome> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(ATTEMPT_MS)]);
    try {
      // Each time: the operator may have replaced the key since this process started.
      const keys = await readSecretKeys(this.config);
      const signed = signatureHeaders(messageIdOf(id), now, body, openSecrets(keys, { id: webhook_id, orgId: org_id }, secrets, now));
      const headers = { ...signed, 'content-type': 'application/json', 'user-agent': 'Palestra-Webhooks/1' };
      const response = await this.#fetch(url, { method: 'POST', headers, body, signal });
      const { status } = response;
      const answer = await beginningOf(response);
      return { status, error: response.ok ? null : faultOf(status), response: answer, retryAfterS: retryAfterOf(response) };
    } catch (error) {
      return { status: null, error: reasonOf(error), response: '', retryAfterS: 0 };
    }
  }
}

type Outcome = Pick<Attempt, 'status' | 'error' | 'response'> & { retryAfterS: number };

/** Seconds that the receiver asks to wait; 0 if it does not. */
function retryAfterOf({ status, headers }: Response): number {
  const waitMs = ASKS_TO_WAIT.has(status) ? retryAfterMs(headers.get('retry-after'), Date.now()) : null;
  return Math.ceil((waitMs ?? 0) / 1_000);
}

/** The beginning of an answer. The rest is not read: the connection closes. */
async function beginningOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return '';
  const pieces: Uint8Array[] = [];
  try {
    for (let bytes = 0; bytes < ANSWER_BYTES;) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      bytes += value.length;
    }
  } catch {
    // The status has arrived: a body that breaks or does not end changes nothing.
  }
  reader.cancel().catch(() => {});
  return Buffer.concat(pieces).subarray(0, ANSWER_BYTES).toString('utf8').replaceAll('\0', '').slice(0, ANSWER_CHARS);
}

const faultOf = (status: number): string =>
  status >= 300 && status < 400 ? `The receiver answered ${status}; redirects are not followed.` : `The receiver answered ${status}.`;

/** Without texts of the receiver, which may name addresses that it must not learn. */
function reasonOf(error: unknown): string {
  if (error instanceof PalestraError)
    return error.code === 'secrets_invalid' ? 'This process cannot decrypt the secret of the webhook.' : error.message;
  const { name, cause } = error as { name?: string; cause?: { code?: string } };
  if (name === 'TimeoutError') return `No response within ${ATTEMPT_MS / 1000} s.`;
  return `The receiver could not be reached (${cause?.code ?? 'connection failed'}).`;
}
