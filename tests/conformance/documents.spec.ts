import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { allSnippets, programOf, root, type Snippet, snippetsOf, writeTools } from './support/snippets.ts';

/** Every code block of the documents is run here or by another test, or says why not. */

/** What the reader of a document that runs here sees. `languages`: of its blocks, the others have another test. */
const RUN: Record<string, { languages?: string[]; sees: RegExp[]; python?: string }> = {
  'README.md': { languages: ['sh', 'ts'], sees: [/\d+ rows? in 1 files? written to good/] },
  'docs/tutorials/trainer.md': {
    sees: [/reward 1\.0/, /800 of 800 events are stored/, /tutorial +160/, /\{ reward: 1, finished: true \}/],
  },
  'docs/tutorials/environment-author.md': {
    sees: [/guess: 12 passed, 0 failed/, /exit status 1/, /local\/guess@\d/, /5 tasks written/, /10 passed, 0 failed, 2 skipped/],
  },
  'docs/tutorials/researcher.md': {
    sees: [/Reward fell by \.4\d+ at step 12/, /decode failed in \d+ of \d+ calls; 0 of/, /libcipher/, /B - A +reward_mean/, /mean_reward/],
  },
  'docs/tutorials/operator.md': { sees: [/ok +server/, /scope_missing/, /revoked trainer/] },
  'docs/openenv.md': { languages: ['python'], sees: [/./], python: 'PALESTRA_PYTHON_OE_0_10_0' },
};

/** Blocks that other tests run or check: document, language or the start of the code, test. */
const ELSEWHERE: [document: string, what: string, test: string][] = [
  ['README.md', 'python', 'tests/packages/install.spec.ts'],
  ['README.md', '// mine.ts', 'tests/packages/install.spec.ts'],
  ['README.md', 'npm init -y && npm pkg set type=module', 'tests/packages/install.spec.ts'],
  ['README.md', 'npm run pack:all', 'tests/packages/install.spec.ts'],
  ['README.md', 'npm ci && npm start', 'tests/contributing.spec.ts'],
  ['README.md', 'npm ci && npm test', 'tests/contributing.spec.ts'],
  ['CONTRIBUTING.md', 'sh', 'tests/contributing.spec.ts'],
  ['libs/client/README.md', 'ts', 'tests/packages/install.spec.ts'],
  ['libs/environment-kit/README.md', 'ts', 'tests/packages/install.spec.ts'],
  ['libs/protocol/README.md', 'ts', 'tests/packages/install.spec.ts'],
  ['integrations/python/README.md', 'python', 'tests/conformance/python/palestra_package.py'],
  ['docs/environments.md', 'ts', 'tests/environments-doc.spec.ts'],
  ['docs/trainers/art.md', 'python', 'tests/conformance/trainers/art.spec.ts'],
  ['docs/trainers/verifiers.md', 'toml', 'tests/conformance/trainers/verifiers.spec.ts'],
  ['docs/lake.md', 'sql', 'tests/conformance/lake.spec.ts'],
  ['docs/mcp.md', 'python', 'tests/conformance/mcp.spec.ts'],
  ['docs/trainers/trl.md', 'python', 'tests/conformance/trainers/trl.torch.spec.ts'],
  ['docs/trainers/skyrl.md', 'python', 'tests/conformance/trainers/skyrl.torch.spec.ts'],
  ['docs/trainers/skyrl.md', 'python -m skyrl', 'tests/conformance/trainers/skyrl.torch.spec.ts'],
  ['docs/trainers/openrlhf.md', 'python', 'tests/conformance/trainers/openrlhf.torch.spec.ts'],
  ['docs/trainers/openrlhf.md', '--train.agent_func_path', 'tests/conformance/trainers/openrlhf.torch.spec.ts'],
  ['docs/hosting.md', 'palestra env init guess', 'tests/integration/hosting/cli.spec.ts'],
  ['docs/hosting.md', 'palestra env deploy --no-promote', 'tests/integration/hosting/cli.spec.ts'],
  ['docs/operations.md', 'aws --endpoint-url', 'tests/operations/backup.spec.ts'],
  ['docs/operations.md', 'psql "$DATABASE_MIGRATION_URL"', 'tests/operations/backup.spec.ts'],
  ['docs/operations.md', 'sql', 'tests/conformance/documents.spec.ts'],
  ['docs/operations.md', 'cat > /tmp/sql.cjs', 'tests/conformance/documents.spec.ts'],
];

const fail = (text: string): never => {
  throw new Error(`not a file of variables:\n${text}`);
};
const DATA: Record<string, (text: string) => unknown> = {
  json: (text) => JSON.parse(text),
  yaml: (text) => parse(text),
  ini: (text) =>
    text
      .trim()
      .split('\n')
      .every((line) => /^[A-Z0-9_]+=\S*$/.test(line)) || fail(text),
};

/** Commands whose arguments tests/command-docs.spec.ts checks, settings, and servers of models, which need a GPU. */
const CHECKED_LINE =
  /^(?:(?:[A-Z_]+=\S+ )*(?:npx |npm run )?palestra\b|export |source <\(palestra |pip install '?palestra|vllm serve |\s*#|\s*$)/;
const isElsewhere = ({ file, language, code }: Snippet): boolean =>
  ELSEWHERE.some(([document, what]) => document === file && (what === language || code.startsWith(what)));
const isChecked = ({ language, code }: Snippet): boolean =>
  language === 'sh' &&
  code
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .every((line) => CHECKED_LINE.test(line));
const runsHere = (snippet: Snippet): boolean => {
  const here = RUN[snippet.file];
  const mayRun = snippet.notRun === null && DATA[snippet.language] === undefined && !isElsewhere(snippet);
  return here !== undefined && mayRun && (here.languages?.includes(snippet.language) ?? true);
};
const snippets = allSnippets();
const named = ({ file, line, language }: Snippet): string => `${file}:${line} (${language})`;

describe('every code block', () => {
  test('is found', () => {
    expect(snippets.length).toBeGreaterThan(90);
    expect(new Set(snippets.map(({ file }) => file)).size).toBeGreaterThan(20);
    const [one] = snippetsOf('example', 'text\n\n<!-- not run: needs a cluster -->\n\n```sh\nkubectl get pods\n```\n');
    expect(one).toMatchObject({ notRun: 'needs a cluster', code: 'kubectl get pods\n', line: 3 });
  });

  test('is run or checked by a test, or says why not', () => {
    const left = snippets.filter(
      (one) => one.notRun === null && !runsHere(one) && !isElsewhere(one) && !isChecked(one) && DATA[one.language] === undefined,
    );
    expect(left.map(named), 'run it here (RUN), name its test (ELSEWHERE), or write why it does not run').toEqual([]);
  });

  test('that does not run has a reason, and there are few', () => {
    const reasons = snippets.filter(({ notRun }) => notRun !== null);
    // What trains needs a GPU.
    const [training, other] = [true, false].map((is) => reasons.filter(({ file }) => /^(?:docs\/trainers|examples)\//.test(file) === is));
    expect(other!.length).toBeLessThanOrEqual(18);
    expect(training!.length).toBeLessThanOrEqual(18);
    for (const { notRun } of reasons) {
      expect(notRun!.length).toBeGreaterThan(20);
      for (const [file] of notRun!.matchAll(/tests\/[\w./-]+/g)) expect(existsSync(path.join(root, file)), file).toBe(true);
    }
  });

  test.each(ELSEWHERE)('of %s, %j, is in %s', (document, what, spec) => {
    expect(snippets.some(({ file, language, code }) => file === document && (what === language || code.startsWith(what)))).toBe(true);
    expect(readFileSync(path.join(root, spec), 'utf8')).toContain(path.basename(document));
  });

  test.each(snippets.filter(({ language }) => DATA[language] !== undefined).map((one) => [named(one), one] as const))(
    '%s parses',
    (_, one) => {
      expect(DATA[one.language]!(one.code)).toBeTruthy();
    },
  );

  test.each(snippets.filter((one) => one.language === 'sh').map((one) => [named(one), one] as const))('%s is shell', async (_, one) => {
    expect(await shell(one.code, { args: ['-n'] })).toBe('');
  });
});

/** The output of a program, which must end with status 0. It and all that it started end with the deadline. */
function shell(program: string, { args = [] as string[], cwd = root, env = process.env as NodeJS.ProcessEnv } = {}): Promise<string> {
  const child = spawn('bash', args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  child.stdin.end(program);
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 240_000);
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      clearTimeout(timer);
      if (code === 0) resolve(output);
      else reject(new Error(`ended with ${code}:\n${output}`));
    });
  });
}

describe('the documents', () => {
  let folder: string;
  const served: number[] = [];
  let palestra: Palestra;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'palestra-documents-'));
    // As `npx palestra up` in an empty folder: its own PostgreSQL, the bundled environments, the demo.
    palestra = await startPalestra({ ownPostgres: true, env: { PALESTRA_BUNDLED_ENVIRONMENTS: '1', PALESTRA_DEMO: '1' } });
    await vi.waitUntil(() => /demo-baseline: \d+ scored/.test(palestra.output()), { timeout: 180_000, interval: 200 });
  });
  afterAll(async () => {
    for (const pid of served) process.kill(pid);
    await palestra.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(Object.entries(RUN))('%s runs as it is written', async (file, { sees, python = 'PALESTRA_PYTHON_V167' }) => {
    const interpreter = process.env[python];
    if (!interpreter) throw new Error(`${python} must name a Python interpreter`);
    const work = path.join(folder, path.basename(file, '.md'));
    const tools = path.join(work, '.tools');
    writeTools(tools, interpreter);
    const { url, apiKey, dataDir } = palestra;
    const variables = { OPENREWARD_URL: url, OPENREWARD_API_URL: url, OPENREWARD_SESSION_URL: url, OPENREWARD_API_KEY: apiKey };
    mkdirSync(path.join(work, '.palestra'));
    const lines = Object.entries(variables).map(([name, value]) => `  export ${name}=${value}\n`);
    writeFileSync(path.join(work, '.palestra/sign-in.txt'), lines.join(''));
    writeFileSync(path.join(work, 'package.json'), '{ "type": "module" }\n');
    await shell('npm install', { cwd: work, env: { ...process.env, PATH: `${tools}:${process.env['PATH']}` } });

    const program = programOf(snippets.filter((one) => one.file === file && runsHere(one)))
      .replaceAll('http://key:or_...@127.0.0.1:8080', `http://key:${apiKey}@127.0.0.1:${palestra.port}`)
      .replaceAll('http://127.0.0.1:8080', url)
      .replaceAll('or_...', apiKey);
    const env = {
      ...process.env,
      PATH: `${tools}:${process.env['PATH']}`,
      HOME: work,
      PALESTRA_DATA_DIR: dataDir,
      OPENREWARD_DISABLE_UPDATE_CHECK: '1',
      NODE_OPTIONS: '',
      NPM_CONFIG_UPDATE_NOTIFIER: 'false',
      ...(file === 'README.md' && variables),
    };
    const output = await shell(program, { cwd: work, env });
    for (const [, pid] of output.matchAll(/^Process (\d+) serves/gm)) served.push(Number(pid));
    for (const expected of sees) expect(output).toMatch(expected);
  });

  test('the statements of docs/operations.md run on the PostgreSQL of the service', async () => {
    const blocks = snippetsOf('docs/operations.md');
    const connect = blocks.find(({ code }) => code.startsWith('cat > /tmp/sql.cjs'))!;
    const statements = blocks
      .filter(({ language }) => language === 'sql')
      .flatMap(({ code }) => code.replaceAll(/--.*$/gm, '').split(';'))
      .map((statement) => statement.trim().replaceAll("'…'", "'00000000-0000-0000-0000-000000000000'"))
      .filter((statement) => statement !== '');
    expect(statements.length).toBeGreaterThanOrEqual(4);
    const run = statements
      .map((statement) => `NODE_PATH=node_modules node ${folder}/sql.cjs "$PALESTRA_DATA_DIR" "${statement}"\n`)
      .join('');
    const program = `set -euo pipefail\n${connect.code}${run}`.replaceAll('/tmp/sql.cjs', `${folder}/sql.cjs`);
    await shell(program, { env: { ...process.env, PALESTRA_DATA_DIR: palestra.dataDir } });
  });
});
