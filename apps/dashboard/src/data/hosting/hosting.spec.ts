import { afterEach, expect, test, vi } from 'vitest';
import { deployArchive } from './hosting.ts';

afterEach(() => void vi.unstubAllGlobals());

test('an uploaded folder makes the environment public when the reader chose that', async () => {
  const urls: string[] = [];
  vi.stubGlobal('fetch', (url: string) => {
    urls.push(url);
    return Promise.resolve(Response.json({}));
  });
  const upload = (isPrivate: boolean | undefined) =>
    deployArchive(
      { owner: 'acme', name: 'guess' },
      new Blob(['archive']),
      { create: true, ...(isPrivate !== undefined && { private: isPrivate }) },
      new AbortController().signal,
    );
  await upload(false);
  await upload(true);
  await upload(undefined);
  expect(urls).toEqual([
    '/v1/environments/acme/guess/deploys?create=true&private=false',
    '/v1/environments/acme/guess/deploys?create=true&private=true',
    '/v1/environments/acme/guess/deploys?create=true',
  ]);
});
