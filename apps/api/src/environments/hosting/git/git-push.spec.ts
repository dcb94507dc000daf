import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { gitEventOf, isSigned } from './git-push.ts';

const secret = 'a-secret-of-32-characters-or-more';
const body = Buffer.from('{"ref":"refs/heads/main"}');
const hex = createHmac('sha256', secret).update(body).digest('hex');

describe('signatures', () => {
  test.each([
    ['GitHub', { 'x-hub-signature-256': `sha256=${hex}` }],
    ['Gitea', { 'x-gitea-signature': hex }],
    ['Forgejo', { 'x-forgejo-signature': hex }],
    ['GitLab', { 'x-gitlab-token': secret }],
  ])('of %s is accepted, for this body and secret only', (server, headers) => {
    expect(isSigned(headers, body, secret)).toBe(true);
    expect(isSigned(headers, body, `${secret}!`)).toBe(false);
    if (server !== 'GitLab') expect(isSigned(headers, Buffer.concat([body, Buffer.of(32)]), secret)).toBe(false);
  });

  test.each([
    {},
    { 'x-hub-signature-256': hex },
    { 'x-hub-signature-256': `sha1=${hex}` },
    { 'x-hub-signature': `sha1=${hex}` },
    { 'x-gitea-signature': '' },
    { 'x-gitlab-token': '' },
    // A wrong signature is not made good by a right one of another header.
    { 'x-gitlab-token': 'wrong', 'x-hub-signature-256': `sha256=${hex}` },
  ])('%j is refused', (headers) => {
    expect(isSigned(headers as never, body, secret)).toBe(false);
  });
});

describe('events', () => {
  const after = 'b'.repeat(40);
  test.each([
    [{ 'x-github-event': 'push' }, { ref: 'refs/heads/a/b', after, repository: { default_branch: 'main' } }],
    [
      { 'x-gitea-event': 'push', 'x-github-event': 'push' },
      { ref: 'refs/heads/a/b', after, repository: { default_branch: 'main' } },
    ],
    [{ 'x-gitlab-event': 'Push Hook' }, { ref: 'refs/heads/a/b', after, project: { default_branch: 'main' } }],
  ])('a push with %j', (headers, payload) => {
    expect(gitEventOf(headers, payload)).toEqual({ kind: 'push', branch: 'a/b', defaultBranch: 'main' });
  });

  test.each([
    ['a ping', { 'x-github-event': 'ping' }, { zen: 'x' }],
    ['a tag', { 'x-github-event': 'push' }, { ref: 'refs/tags/v1', after }],
    ['a tag of GitLab', { 'x-gitlab-event': 'Tag Push Hook' }, { ref: 'refs/tags/v1', after }],
    ['a deleted branch', { 'x-github-event': 'push' }, { ref: 'refs/heads/main', after: '0'.repeat(40) }],
    ['no event', {}, { ref: 'refs/heads/main', after }],
    ['no object', { 'x-github-event': 'push' }, [1]],
  ])('%s is none', (_name, headers, payload) => {
    expect(gitEventOf(headers, payload)).toMatchObject({ kind: 'other' });
  });
});
