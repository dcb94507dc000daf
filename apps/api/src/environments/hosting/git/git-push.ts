import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '@palestra/protocol';

const BRANCH = 'refs/heads/';
/** All zeros: the branch was deleted. */
const NO_COMMIT = /^0+$/;

/** What a webhook reports. */
export type GitEvent = { kind: 'push'; branch: string; defaultBranch: string | null } | { kind: 'other'; what: string };

/** Whether the secret signed the body (GitHub, Gitea, Forgejo), or is in the header (GitLab). Compares in constant time. */
export function isSigned(headers: IncomingHttpHeaders, body: Uint8Array, secret: string): boolean {
  const token = headers['x-gitlab-token'];
  if (typeof token === 'string') return isEqual(token, secret);
  const signature = signatureOf(headers);
  return signature !== null && isEqual(signature.toLowerCase(), createHmac('sha256', secret).update(body).digest('hex'));
}

/** Hexadecimal; null without one. */
function signatureOf(headers: IncomingHttpHeaders): string | null {
  const prefixed = headers['x-hub-signature-256'];
  if (typeof prefixed === 'string') return prefixed.startsWith('sha256=') ? prefixed.slice('sha256='.length) : null;
  const plain = headers['x-gitea-signature'] ?? headers['x-forgejo-signature'];
  return typeof plain === 'string' ? plain : null;
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digestOf(a), digestOf(b));

/** `body`: the JSON of the webhook. The three servers send the same fields for a push, but for the default branch. */
export function gitEventOf(headers: IncomingHttpHeaders, body: unknown): GitEvent {
  const name = String(headers['x-gitlab-event'] ?? headers['x-gitea-event'] ?? headers['x-github-event'] ?? 'unknown').slice(0, 100);
  if (name !== 'push' && name !== 'Push Hook') return { kind: 'other', what: `The event is ${JSON.stringify(name)}, not a push.` };
  if (!isObject(body)) return { kind: 'other', what: 'The push has no fields.' };
  const { ref, after } = body;
  if (typeof ref !== 'string' || !ref.startsWith(BRANCH)) return { kind: 'other', what: 'The push is not to a branch.' };
  if (typeof after !== 'string' || NO_COMMIT.test(after)) return { kind: 'other', what: 'The branch was deleted.' };
  const repository = isObject(body['repository']) ? body['repository'] : {};
  const project = isObject(body['project']) ? body['project'] : {};
  const defaultBranch = repository['default_branch'] ?? project['default_branch'];
  return { kind: 'push', branch: ref.slice(BRANCH.length), defaultBranch: typeof defaultBranch === 'string' ? defaultBranch : null };
}
