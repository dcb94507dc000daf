import { expect, test } from 'vitest';
import { parseImageName, publicImageName } from './image-name.ts';

test.each([
  ['python', 'docker.io/library/python', 'latest'],
  ['python:3.12', 'docker.io/library/python', '3.12'],
  ['owner/name', 'docker.io/owner/name', 'latest'],
  ['ghcr.io/owner/name:1', 'ghcr.io/owner/name', '1'],
  ['localhost:5000/name', 'localhost:5000/name', 'latest'],
  ['localhost/name:2', 'localhost/name', '2'],
  ['name@sha256:abc', 'docker.io/library/name@sha256:abc', null],
])('%s is %s with the tag %s', (name, repository, tag) => {
  expect(parseImageName(name)).toEqual({ repository, tag });
});

const digest = `sha256:${'a1'.repeat(32)}`;

test.each([
  ['python', 'docker.io/library/python:latest'],
  ['ghcr.io/owner/name_x/y-z:1.2', 'ghcr.io/owner/name_x/y-z:1.2'],
  ['registry.acme.example:5000/name', 'registry.acme.example:5000/name:latest'],
  ['localhost/palestra-test/node:1', 'localhost/palestra-test/node:1'],
  // An engine would take them for the beginning of an id, or for its local image.
  ['cafe', 'docker.io/library/cafe:latest'],
  ['palestra/installation:key', 'docker.io/palestra/installation:key'],
  [`name@${digest}`, `docker.io/library/name@${digest}`],
  [`ghcr.io/a/b:1@${digest}`, `ghcr.io/a/b@${digest}`],
])('%s is public: %s', (name, full) => {
  expect(publicImageName(name)).toBe(full);
});

test.each([
  ['', 'not a name'],
  ['sha256:a1', 'it is an id'],
  [digest, 'it is an id'],
  ['A1'.repeat(32), 'it is an id'],
  ['localhost/palestra/installation:key', 'it belongs to'],
  ['LOCALHOST/palestra/x', 'not a name'],
  ['docker-archive:/etc/passwd', 'not a public domain'],
  ['dir:/', 'not a name'],
  ['oci:/x', 'not a public domain'],
  ['containers-storage:[overlay@/]x', 'not a name'],
  ['docker://docker.io/x', 'not a name'],
  ['a?b', 'not a name'],
  ['a#b', 'not a name'],
  ['a%2fb', 'not a name'],
  ['a/../b', 'not a name'],
  ['../../containers/json', 'not a name'],
  ['a b', 'not a name'],
  ['a\n', 'not a name'],
  ['name@sha256:abc', 'not a name'],
  ['localhost:5000/x', 'not a public domain'],
  ['a.localhost/x', 'not a public domain'],
  ['localhost./x', 'not a public domain'],
  ['127.0.0.1/x', 'not a public domain'],
  ['127.1:5000/x', 'not a public domain'],
  ['0x7f.0x1/x', 'not a public domain'],
  ['[::1]:5000/x', 'not a name'],
  ['internal:5000/x', 'not a public domain'],
  [`a/${'b'.repeat(300)}`, 'not a name'],
])('%j is refused: %s', (name, why) => {
  expect(() => publicImageName(name)).toThrow(why);
});
