import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Who may import whom. Every import of every source file is read, so that a forbidden one fails here rather than in review,
 * and the number of files seen is asserted, so that this test cannot go blind.
 */
const root = path.resolve(import.meta.dirname, '..');

const allowed: Record<string, string[]> = {
  'libs/protocol': [],
  'libs/kit': ['protocol'],
  'libs/session': ['protocol', 'kit'],
  'libs/rollouts': ['protocol', 'kit'],
  'libs/metrics': ['protocol', 'kit'],
  'libs/query': ['protocol', 'kit'],
  'libs/outbound': ['protocol'],
  'libs/ors': ['protocol', 'session', 'kit', 'outbound'],
  'libs/openenv': ['protocol', 'session', 'kit', 'outbound'],
  'libs/mcp': ['protocol', 'session', 'kit', 'outbound'],
  'libs/text': ['protocol', 'session', 'kit'],
  'libs/hosting': ['protocol', 'session', 'kit', 'environment-kit'],
  'libs/blobs': ['kit'],
  'libs/exports': ['protocol', 'rollouts', 'kit'],
  'libs/client': ['protocol', 'kit'],
  'libs/environment-kit': ['protocol', 'kit'],
  'libs/sandbox': ['protocol', 'environment-kit'],
  'apps/dashboard': ['protocol', 'kit', 'rollouts', 'metrics', 'query'],
};
/**
 * What the rooms of a crowded folder may import of each other: only rooms above them, so that imports go one way. What stands beside the
 * rooms (`index.ts`, the entry file) may import all of them, and is imported by none of them, except the `foundation`.
 */
const rooms: Record<string, { foundation: string[]; folders: Record<string, string[]> }> = {
  'libs/rollouts/src': {
    foundation: [],
    folders: {
      json: [],
      provenance: ['json'],
      events: ['json'],
      outcome: ['json', 'provenance', 'events'],
      failure: ['json', 'events'],
      'fill-rules': ['json', 'provenance'],
      steps: ['provenance', 'fill-rules'],
      ledger: ['json', 'outcome'],
      transcript: [],
      import: ['json'],
    },
  },
  'libs/session/src': {
    foundation: ['state.ts'],
    folders: {
      ports: [],
      tasks: ['ports'],
      registry: ['ports'],
      lifecycle: ['ports', 'registry'],
      admission: ['ports', 'registry', 'lifecycle'],
      calls: ['ports', 'registry', 'lifecycle'],
    },
  },
  'apps/api/src': {
    foundation: [],
    folders: {
      platform: [],
      accounts: ['platform'],
      jobs: ['platform'],
      environments: ['platform', 'accounts', 'jobs'],
      files: ['platform', 'accounts', 'environments'],
      store: ['platform', 'accounts', 'jobs'],
      sessions: ['platform', 'accounts', 'environments', 'store'],
      rollouts: ['platform', 'accounts', 'store'],
      runs: ['platform', 'accounts', 'environments', 'store', 'rollouts'],
      annotations: ['platform', 'accounts', 'rollouts', 'runs'],
      shares: ['platform', 'accounts', 'rollouts', 'runs'],
      reviews: ['platform', 'accounts', 'annotations', 'store', 'rollouts', 'runs'],
      exports: ['platform', 'accounts', 'jobs', 'environments', 'store', 'rollouts', 'runs', 'reviews'],
      demo: ['platform', 'accounts', 'environments', 'store', 'runs', 'sessions'],
      alerts: ['platform', 'accounts', 'jobs', 'store', 'rollouts', 'runs'],
      health: ['platform', 'accounts', 'jobs', 'environments'],
    },
  },
  'apps/api/src/sessions': {
    foundation: [],
    folders: {
      http: [],
      persistence: [],
      ledger: [],
      views: [],
      slots: ['persistence', 'views'],
      events: ['views'],
      observers: [],
      server: ['http', 'persistence', 'ledger', 'views', 'slots'],
      management: ['http', 'views', 'events', 'server'],
      ors: ['http'],
      openenv: ['http'],
      mcp: ['http'],
      'nemo-gym': ['http'],
      text: ['http', 'ledger', 'server', 'management'],
      socket: ['http', 'events', 'server', 'management'],
      recording: ['observers', 'server', 'management', 'text'],
    },
  },
  'apps/api/src/store': {
    foundation: [
      'vocabulary-codes.ts',
      'bisect-batch.ts',
      'each-item.ts',
      'quarantine.ts',
      'run-activity.service.ts',
      'run-order.sql.ts',
      'search-marks.sql.ts',
    ],
    folders: {
      storage: [],
      ingest: ['storage'],
      figures: [],
      derive: ['storage', 'figures'],
    },
  },
  'apps/api/src/platform': {
    foundation: ['config.ts', 'limits.ts', 'tokens.ts', 'generated'],
    folders: {
      database: [],
      http: ['database'],
      telemetry: [],
      'untrusted-work': [],
    },
  },
};
/** A folder with more files than this is divided before another one is added; tests stand beside what they test and do not count. */
const MOST_FILES = 30;
/** The one way from an application to another: what apps/worker runs is the API in another role (docs/adr/0015). */
const doors: Record<string, string> = { 'apps/worker': '@palestra/api/worker' };
const frameworks = /^(@nestjs\/|@prisma\/|prisma$|fastify$|@fastify\/)/;

interface Source {
  file: string;
  workspace: string;
  imports: string[];
}

const importPattern = /(?:^|\n)\s*(?:import|export)\s(?:[^'";]*?\sfrom\s*)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

function importsOf(text: string): string[] {
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2]!);
}

function readSources(): Source[] {
  return ['apps', 'libs'].flatMap((area) =>
    readdirSync(path.join(root, area)).flatMap((name) => {
      const folder = path.join(root, area, name, 'src');
      if (!existsSync(folder)) return [];
      return readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file) && !file.includes('generated'))
        .map((file) => ({
          file: `${area}/${name}/src/${file}`,
          workspace: `${area}/${name}`,
          imports: importsOf(readFileSync(path.join(folder, file), 'utf8')),
        }));
    }),
  );
}

const sources = readSources();
const isTest = ({ file }: Source): boolean => /\.(?:spec|fixture)\.tsx?$/.test(file);
/** `libs/kit` for '@palestra/kit' and for a relative path that leads there; null for a package of somebody else. */
function workspaceOf(source: Source, specifier: string): string | null {
  if (specifier.startsWith('@palestra/')) {
    const name = specifier.split('/')[1]!;
    return existsSync(path.join(root, 'libs', name)) ? `libs/${name}` : `apps/${name}`;
  }
  if (!specifier.startsWith('.')) return null;
  return path.join(path.dirname(source.file), specifier).split(path.sep).slice(0, 2).join('/');
}

describe('architecture', () => {
  test.each([
    'kit',
    'protocol',
    'session',
    'rollouts',
    'metrics',
    'query',
    'outbound',
    'ors',
    'openenv',
    'mcp',
    'text',
    'hosting',
    'blobs',
    'exports',
    'client',
    'environment-kit',
    'sandbox',
  ])('sees the files and imports of libs/%s', (name) => {
    const own = sources.filter((source) => source.workspace === `libs/${name}`);
    expect(own.length).toBeGreaterThanOrEqual(3);
    expect(own.flatMap((source) => source.imports).length).toBeGreaterThan(0);
  });

  test.each([
    ['apps/api', 50],
    ['apps/cli', 5],
    ['apps/dashboard', 10],
    ['apps/environments', 5],
  ])('sees the files and imports of %s', (workspace, least) => {
    const own = sources.filter((source) => source.workspace === workspace);
    expect(own.length).toBeGreaterThanOrEqual(least);
    expect(own.flatMap((source) => source.imports).length).toBeGreaterThan(least);
  });

  test('reads every form of import', () => {
    const text = [
      `import a from 'a';`,
      `import type { B } from "b";`,
      `import 'c';`,
      `export * from './d.ts';`,
      `import {\n  e,\n} from 'e';`,
      `const f = await import('f');`,
    ].join('\n');
    expect(importsOf(text).toSorted()).toEqual(['./d.ts', 'a', 'b', 'c', 'e', 'f']);
  });

  test('a workspace imports only what its line of the table allows', () => {
    const wrong = sources.flatMap((source) =>
      source.imports
        .map((specifier) => ({ specifier, target: workspaceOf(source, specifier) }))
        .filter(({ target }) => target !== null && target !== source.workspace)
        .filter(({ target }) => !(isTest(source) && target === 'tests/support'))
        .filter(({ specifier }) => specifier !== doors[source.workspace])
        .filter(({ target }) => {
          const libs = allowed[source.workspace];
          return target!.startsWith('apps/') || (libs !== undefined && !libs.includes(target!.slice('libs/'.length)));
        })
        .map(({ specifier }) => `${source.file} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });

  test('only the API loads the schemas of the wire: others import their types, which cost no bundle and no start', () => {
    const loaded = sources.filter(({ imports }) => imports.includes('@palestra/protocol/schemas'));
    expect(new Set(loaded.map(({ workspace }) => workspace))).toEqual(new Set(['apps/api']));
  });

  test('what comes from the server comes through apps/dashboard/src/data', () => {
    const pages = sources.filter(
      ({ file }) => file.startsWith('apps/dashboard/src/') && !file.includes('/data/') && !file.includes('.spec.'),
    );
    expect(pages.length).toBeGreaterThan(40);
    const asks = /\bfetch\(|\bnew (?:EventSource|WebSocket|XMLHttpRequest|SharedWorker)\b|\b(?:api|request)(?:<[^>]*>)?\(['"`]/;
    expect(pages.filter(({ file }) => asks.test(readFileSync(path.join(root, file), 'utf8'))).map(({ file }) => file)).toEqual([]);
  });

  test('apps/worker is nothing but the door that it opens', () => {
    const own = sources.filter((source) => source.workspace === 'apps/worker');
    expect(own.map(({ file, imports }) => ({ file, imports }))).toEqual([
      { file: 'apps/worker/src/main.ts', imports: ['@palestra/api/worker'] },
    ]);
  });

  test('every lib has its line in the table', () => {
    const libs = readdirSync(path.join(root, 'libs')).map((name) => `libs/${name}`);
    expect(libs.filter((lib) => allowed[lib] === undefined)).toEqual([]);
  });

  test('libs know neither Nest, Fastify nor Prisma', () => {
    const wrong = sources
      .filter((source) => source.workspace.startsWith('libs/'))
      .flatMap((source) =>
        source.imports.filter((specifier) => frameworks.test(specifier)).map((specifier) => `${source.file} imports ${specifier}`),
      );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(rooms))('the folders of %s import one way', (base, { foundation, folders }) => {
    const order = Object.keys(folders);
    expect(order.filter((folder, at) => folders[folder]!.some((known) => !order.slice(0, at).includes(known)))).toEqual([]);
    const inside = sources.filter((source) => source.file.startsWith(`${base}/`) && path.dirname(source.file) !== base && !isTest(source));
    const roomOf = (file: string) => path.relative(base, file).split(path.sep)[0]!;
    expect([...new Set(inside.map(({ file }) => roomOf(file)))].toSorted()).toEqual(order.toSorted());
    const doors = inside.flatMap(({ file, imports }) =>
      imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => ({ file, from: roomOf(file), to: roomOf(path.join(path.dirname(file), specifier)) }))
        .filter(({ from, to }) => from !== to && to !== '..'),
    );
    const used = new Set(doors.map(({ from, to }) => `${from} > ${to}`));
    const open = order.flatMap((from) => folders[from]!.map((to) => `${from} > ${to}`));
    expect(open.filter((door) => !used.has(door))).toEqual([]);
    expect(
      doors
        .filter(({ from, to }) => !folders[from]!.includes(to) && !foundation.includes(to))
        .map(({ file, to }) => `${file} imports from ${to}`),
    ).toEqual([]);
  });

  test(`no folder holds more than ${MOST_FILES} files`, () => {
    const sizes = new Map<string, number>();
    for (const source of sources) {
      if (isTest(source)) continue;
      const folder = path.dirname(source.file);
      sizes.set(folder, (sizes.get(folder) ?? 0) + 1);
    }
    expect(sizes.size).toBeGreaterThan(60);
    expect([...sizes].filter(([, files]) => files > MOST_FILES).map(([folder, files]) => `${folder}: ${files}`)).toEqual([]);
  });

  test(`no room of tests/integration holds more than ${MOST_FILES} files`, () => {
    const sizes = new Map<string, number>();
    for (const one of readdirSync(path.join(root, 'tests/integration'), { recursive: true, withFileTypes: true })) {
      if (one.isFile()) sizes.set(one.parentPath, (sizes.get(one.parentPath) ?? 0) + 1);
    }
    expect(sizes.size).toBeGreaterThan(5);
    expect([...sizes].filter(([, files]) => files > MOST_FILES).map(([room, files]) => `${path.relative(root, room)}: ${files}`)).toEqual(
      [],
    );
  });
});
