import { expect, test } from 'vitest';
import { assertBase, nameImages } from './base-images.ts';

const named = (text: string, buildArguments: Record<string, string> = {}) => {
  const { dockerfile, images } = nameImages(text, buildArguments);
  return { lines: dockerfile.split('\n'), names: images.map(({ name }) => name) };
};
const PYTHON = 'docker.io/library/python:3.12';

test('images get full names, stages keep theirs', () => {
  const text = `FROM python:3.12 AS base
# a comment
FROM --platform=linux/amd64 \\
  # why
  a1
FROM scratch
FROM base AS Last
FROM scratch
COPY --from=0 --chown=1:1 /a \\
  /b
COPY --from=last /a /b
COPY --from=7 /a /b
COPY --from=cafe /a /b
RUN --mount=type=bind,from=d --mount=type=bind,from=base,target=/x --mount=from=dx,type=bind x
ONBUILD COPY --from=b2 /a /b
COPY a /b`;
  expect(named(text)).toEqual({
    lines: [
      `FROM ${PYTHON} AS base`,
      '# a comment',
      'FROM docker.io/library/a1:latest',
      'FROM scratch',
      'FROM base AS Last',
      'FROM scratch',
      'COPY --from=0 --chown=1:1 /a \\',
      '  /b',
      // As its stage is written.
      'COPY --from=Last /a /b',
      'COPY --from=docker.io/library/7:latest /a /b',
      'COPY --from=docker.io/library/cafe:latest /a /b',
      'RUN --mount=type=bind,from=docker.io/library/d:latest --mount=type=bind,from=base,target=/x --mount=from=docker.io/library/dx:latest,type=bind x',
      'ONBUILD COPY --from=docker.io/library/b2:latest /a /b',
      'COPY a /b',
    ],
    names: [PYTHON, 'docker.io/library/a1:latest', ...['7', 'cafe', 'd', 'dx', 'b2'].map((name) => `docker.io/library/${name}:latest`)],
  });
});

test('variables of FROM have the value of a build argument or of ARG', () => {
  const text = 'ARG VERSION=3.11\nARG BASE="python:${VERSION}" AT=x\nFROM ${BASE} AS x\nFROM $AT\nFROM $BASE';
  expect(named(text, { VERSION: '3.12' }).lines.slice(2)).toEqual([`FROM ${PYTHON} AS x`, 'FROM x', `FROM ${PYTHON}`]);
  expect(named('ARG A\nFROM $A', { A: 'python:3.12' }).names).toEqual([PYTHON]);
  for (const without of ['FROM ${A}', 'ARG A\nFROM $A', 'FROM b\nARG A=b\nFROM $A', 'ARG A=b\nFROM ${A:-c}'])
    expect(() => nameImages(without, {}), without).toThrow('whose variable has no value');
});

test('images of other tenants, and what only looks like a stage, are refused', () => {
  for (const text of [
    'FROM localhost/palestra/x:1',
    'FROM sha256:a1',
    'FROM "a1"',
    'FROM docker-archive:/x',
    'ARG A=localhost/palestra/x\nFROM $A',
    'FROM a\nCOPY --from=localhost/palestra/x:1 / /x',
    'FROM a\nCOPY --from=$A / /x',
    'FROM a\nCOPY --"from=b" / /x',
    'FROM a\nRUN --mount="type=bind,from=b" x',
    'FROM a\nRUN --mount=type=bind,from=localhost/palestra/x x',
    'FROM a\nRUN <<EOF\nFROM scratch AS a1\nEOF\nCOPY --from=a1 / /x',
    'FROM a\nRUN <<EOF\n\tEOF\nFROM scratch AS a1\nEOF\nCOPY --from=a1 / /x',
    'FROM a\nRUN <<a1\nFROM scratch AS \\\na1\nCOPY --from=a1 / /x',
    'FROM a AS 7',
    'FROM --other=1 a',
  ])
    expect(() => nameImages(text, {}), text).toThrow(expect.objectContaining({ code: 'source_invalid' }));
});

test('other text stays as it is', () => {
  for (const text of ['', 'FORM x', 'FROM a b', 'FROM scratch\r\nRUN python <<EOF\nfrom os import path\nEOF\n', '# FROM a1'])
    expect(nameImages(text, {})).toEqual({ dockerfile: text, images: [] });
  expect(named('FROM a\nRUN cat <<-EOF\n\tx\n\tEOF\nRUN echo $((1<<2))\nFROM b').names).toHaveLength(2);
});

test('a base image has no ONBUILD, and is one for the platform of the engine', () => {
  const image = { Id: 'x', Size: 1, Os: 'linux', Architecture: 'amd64' };
  const base = { name: PYTHON, platform: null };
  expect(() => assertBase(base, { ...image, Config: { OnBuild: ['RUN x'] } })).toThrow('has ONBUILD instructions');
  expect(() => assertBase({ ...base, platform: 'linux/arm64' }, image)).toThrow('Remove --platform');
  for (const platform of [null, 'linux/amd64', 'linux/amd64/v2']) assertBase({ ...base, platform }, { ...image, Config: { OnBuild: [] } });
  expect(nameImages('FROM --platform=linux/arm64 a\nFROM --platform=$BUILDPLATFORM b', {}).images).toMatchObject([
    { platform: 'linux/arm64' },
    { platform: null },
  ]);
});
