import { serve } from '@palestra/environment-kit';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { full } from '../support/full.ts';
import { addRemote, type Palestra, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { type Replicas, startReplicas } from '../support/replicas.ts';
import { startRoundRobinProxy } from '../support/round-robin-proxy.ts';
import { type KitSuite, kitSuites } from './kit-suite-environments.ts';
import { clientEnv } from './support/client-env.ts';
import { forwardIpv6 } from './support/forwarder.ts';
import { type PythonName, python, run, sdist, startUpstream, type UpstreamOptions } from './support/python.ts';
import { startTcpForwarder } from './support/tcp-forwarder.ts';
import { suiteEnvironments } from './suite-environments.ts';

/**
 * The SDK's own test suites, unmodified, against us. Every fixture starts a server on a fixed port of `localhost`; when that
 * port is taken its thread dies silently and the whole suite talks to whoever holds the port, which is us.
 */
const stops: (() => Promise<void> | undefined)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** A suite uses up to two servers. Each is a service of two replicas, every unknown deployment being its environment `local/suite`. */
let services: Replicas[] = [];
/** Without a deployment of all unknown names. */
let plain: SharedPalestra;
beforeAll(async () => {
  const env = { PALESTRA_ANONYMOUS: '1', PALESTRA_FALLBACK_DEPLOYMENT: 'local/suite' };
  services = await Promise.all([startReplicas(2, { env }), startReplicas(2, { env })]);
  plain = await sharedPalestra();
});
afterAll(() => Promise.all(services.map((service) => service.stop())));

/** Makes the environment at `upstream` that of all unknown deployments. */
async function setSuite({ all }: Replicas, upstream: string): Promise<void> {
  const [first, second] = all as [Palestra, Palestra];
  const ask = (to: Palestra, method: string, route: string, body?: object) =>
    fetch(`${to.url}/v1/environments/local/suite${route}`, {
      method,
      headers: { 'x-api-key': first.apiKey, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const deleted = await ask(first, 'DELETE', '');
  expect([200, 404], await deleted.text()).toContain(deleted.status);
  await addRemote(first, 'suite', upstream);
  // A replica caches names for seconds and clears the cache when it changes one itself.
  const changed = await ask(second, 'PUT', '/details', { new_description: 'The environment of the suite' });
  expect(changed.status, await changed.text()).toBe(200);
}

/** One process of a service on `port` of both addresses of `localhost`, every unknown deployment being the environment at `upstream`. */
async function serveSuite(service: Replicas, port: number, upstream: string): Promise<void> {
  await setSuite(service, upstream);
  const ipv4 = await startTcpForwarder(service.all[0]!.port, port);
  stops.push(() => ipv4.stop());
  const ipv6 = await forwardIpv6(port);
  stops.push(() => ipv6?.stop());
}

async function hostUpstream(options: UpstreamOptions): Promise<string> {
  const upstream = await startUpstream(options);
  stops.push(() => upstream.stop());
  return upstream.url;
}

/** Runs one test file and returns the last line of pytest, such as `91 passed in 40.1s`, without its warnings and time. */
async function pytest(interpreter: PythonName, version: '0.1.167' | '0.1.112', file: string, env: Record<string, string> = {}) {
  const finished = await run(python(interpreter), ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', `tests/${file}`], {
    cwd: sdist(`openreward-${version}`),
    timeoutMs: 170_000,
    env: { OPENREWARD_API_KEY: '', ...env },
  });
  const outcomes = [...finished.output.matchAll(/\b(\d+) (passed|failed|error|errors|skipped|xfailed|deselected)\b(?=[^\n]* in [\d.:]+)/g)];
  const counts = outcomes.map(([, count, outcome]) => `${count} ${outcome}`).join(', ');
  return { counts, output: finished.output };
}

function assertPassed(result: { counts: string; output: string }, tests: number): void {
  if (result.counts !== `${tests} passed`) {
    throw new Error(`expected ${tests} passed, got "${result.counts}":\n${result.output.slice(-20_000)}`);
  }
  expect(result.counts).toBe(`${tests} passed`);
}

const environmentClasses = {
  '0.1.112': ['Foo', 'Bar', 'AsyncBaz', 'LargeEnv', 'EnvWithTaskTools'],
  '0.1.167': [
    'Foo',
    'Bar',
    'AsyncBaz',
    'LargeEnv',
    'EnvWithTaskTools',
    'SlowSetupEnv',
    'BlockingPromptEnv',
    'BlockingListTasksEnv',
    'BlockingToolEnv',
    'BlockingInitEnv',
  ],
};
/** The tests of 0.1.112 are older versions of those of 0.1.167: with CI_FULL=1. */
const versions: { interpreter: PythonName; version: '0.1.167' | '0.1.112'; tests: number }[] = [
  { interpreter: 'v167', version: '0.1.167', tests: 91 },
  ...(full ? [{ interpreter: 'v112', version: '0.1.112', tests: 79 } as const] : []),
];

const tests = (version: '0.1.167' | '0.1.112') => path.join(sdist(`openreward-${version}`), 'tests');

describe('tests/test_environment.py', () => {
  test.each(versions)('$tests tests of $version through us to the SDK’s server', async ({ interpreter, version, tests: count }) => {
    const url = await hostUpstream({
      interpreter,
      module: 'test_environment',
      classes: environmentClasses[version],
      folders: [tests(version)],
    });
    await serveSuite(services[0]!, 8080, url);
    assertPassed(await pytest(interpreter, version, 'test_environment.py'), count);
  });

  // On two replicas they run below.
  test.each(full ? versions : [])(
    '$tests tests of $version through us to environments written in the kit',
    async ({ interpreter, version, tests: count }) => {
      const server = await serve(suiteEnvironments);
      stops.push(() => server.close());
      await serveSuite(services[0]!, 8080, server.url);
      assertPassed(await pytest(interpreter, version, 'test_environment.py'), count);
    },
  );

  test.each(versions)('$tests tests of $version against the kit’s own server', async ({ interpreter, version, tests: count }) => {
    const server = await serve(suiteEnvironments, { port: 8080 });
    stops.push(() => server.close());
    const ipv6 = await forwardIpv6(8080);
    stops.push(() => ipv6?.stop());
    assertPassed(await pytest(interpreter, version, 'test_environment.py'), count);
  });
});

interface Suite {
  file: string;
  count: number;
  servers: { port: number; classes: string[]; dropRoutes?: string[] }[];
}

const suites: Suite[] = [
  { file: 'test_session_toolset.py', count: 8, servers: [{ port: 8082, classes: ['EnvWithSandbox', 'EnvWithoutSandbox'] }] },
  { file: 'test_gemini_cli_toolset.py', count: 19, servers: [{ port: 8083, classes: ['EnvWithGeminiCli'] }] },
  { file: 'test_terminal_tool.py', count: 21, servers: [{ port: 8087, classes: ['TerminalEnv', 'PlainEnv'] }] },
  { file: 'test_episode_finished.py', count: 7, servers: [{ port: 8091, classes: ['GradedEnv'] }] },
  {
    file: 'test_messages.py',
    count: 22,
    servers: [
      { port: 8091, classes: ['PromptEnv', 'ConversationEnv', 'AsyncConversationEnv', 'SetupConversationEnv'] },
      { port: 8092, classes: ['PromptEnv', 'ConversationEnv'], dropRoutes: ['/messages'] },
    ],
  },
  {
    file: 'test_score_group.py',
    count: 10,
    servers: [
      { port: 8093, classes: ['ScoringEnv', 'FloatScoringEnv', 'FailingEnv', 'MiscountingEnv', 'PlainEnv'] },
      { port: 8094, classes: ['ScoringEnv'], dropRoutes: ['/score_group'] },
    ],
  },
  { file: 'test_rich_messages.py', count: 27, servers: [{ port: 8095, classes: ['RichScoringEnv'] }] },
];

describe('the other suites of 0.1.167, through us to the SDK’s server', () => {
  test.each(suites)('$file: $count tests', async ({ file, count, servers }) => {
    await Promise.all(
      servers.map(async ({ port, classes, dropRoutes }, index) => {
        const module = path.basename(file, '.py');
        const url = await hostUpstream({ interpreter: 'v167', module, classes, dropRoutes, folders: [tests('0.1.167')] });
        await serveSuite(services[index]!, port, url);
      }),
    );
    assertPassed(await pytest('v167', '0.1.167', file), count);
  });

  test('test_errors.py: 17 tests', async () => {
    assertPassed(await pytest('v167', '0.1.167', 'test_errors.py', clientEnv(plain)), 17);
  });
});

/** Two replicas behind `port` of both addresses of `localhost`: each request goes to the other one than the request before. */
async function serveKitSuite(
  { port, environments, withoutRoutes = [] }: KitSuite['servers'][number],
  service: Replicas,
): Promise<number[]> {
  const kit = await serve(environments);
  stops.push(() => kit.close());
  const older = await startRoundRobinProxy({ targets: [kit.port], withoutRoutes });
  stops.push(() => older.close());
  await setSuite(service, older.url);
  const balancer = await startRoundRobinProxy({ port, targets: service.all.map((replica) => replica.port) });
  stops.push(() => balancer.close());
  const ipv6 = await forwardIpv6(port);
  stops.push(() => ipv6?.stop());
  return balancer.served;
}

describe('the eight suites of 0.1.167 on two replicas without stickiness, their environments written in the kit', () => {
  test('are 205 tests', () => {
    expect(kitSuites.reduce((sum, suite) => sum + suite.tests, 0)).toBe(205);
  });

  test.each(kitSuites)('$file: $tests tests', async ({ file, tests: count, servers }) => {
    const served = await Promise.all(servers.map((server, index) => serveKitSuite(server, services[index]!)));
    assertPassed(await pytest('v167', '0.1.167', file), count);
    // Every server of the suite was asked, and each of its replicas did its share.
    for (const replicas of served) for (const requests of replicas) expect(requests).toBeGreaterThan(1);
  });
});
