import { type Environment, serve } from '@palestra/environment-kit';
import { createCaller } from './callers.ts';
import { createDatabase, startServer, type TestServer } from './server.ts';

/** Two API processes on one database, two organisations, and a private environment of the first one behind a URL. */
export interface TwoReplicas {
  first: TestServer;
  second: TestServer;
  databaseUrl: string;
  /** Headers of the other organisation. */
  stranger: Record<string, string>;
  /** Its name. */
  strangerName: string;
  /** `owner/name` of the environment. */
  environment: string;
  close(): Promise<void>;
}

/** `name`: of the environment with all `variants`; `sessions`: its session policy; `bundled`: with the bundled environments. */
export async function startTwoReplicas(
  name: string,
  variants: Environment[],
  { sessions = null, bundled = false }: { sessions?: object | null; bundled?: boolean } = {},
): Promise<TwoReplicas> {
  const ends: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const running = await serve(variants);
    ends.push(() => running.close());
    const database = await createDatabase();
    ends.push(() => database.drop());
    const start = async (overrides: object) => {
      const server = await startServer({ databaseUrl: database.url, bundledEnvironments: bundled, ...overrides });
      ends.push(() => server.close());
      return server;
    };
    const first = await start({});
    const second = await start({ dataDir: first.config.dataDir, apiKey: first.apiKey });
    const { headers: stranger, caller } = await createCaller(first, 'stranger');
    const { body } = await asked(first, 'POST', '/v1/environments', {
      name,
      isPrivate: false,
      source: { kind: 'remote', url: running.url },
    });
    const environment = `${body.owner}/${name}`;
    if (sessions !== null) await asked(first, 'PUT', `/v1/environments/${environment}/details`, { sessions });
    return { first, second, databaseUrl: database.url, stranger, strangerName: caller.orgName, environment, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function asked(server: TestServer, method: string, path: string, body: object) {
  const answer = await server.request(method, path, { body });
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer;
}
