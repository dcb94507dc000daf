import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import os from 'node:os';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { DEMO_ENVIRONMENT, DEMO_RUNS, DEMO_TAG, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { KeyService } from '../accounts/key.service.ts';
import { EnvironmentsService } from '../environments/environments.service.ts';
import { Database } from '../platform/database/database.ts';
import type { SecretKeys } from '../platform/secret-keys.ts';
import { SERVER_SECRET } from '../platform/tokens.ts';
import { RunService } from '../runs/run.service.ts';
import { SessionService } from '../sessions/management/session.service.ts';
import { eraseSessionsOfRuns } from '../store/storage/ledger-retention.sql.ts';
import { hasNoRuns, selectDemoRuns, selectLiveSids } from './demo.sql.ts';

/** The command line, which plays the demo. An optional peer: a service that was installed without it has no demo. */
const COMMAND_LINE = 'palestra/main';
/** How long a stopped demo may take to close its sessions. */
const STOP_MS = 5_000;
/** The demo runs with this priority, so that it leaves the processor to others. */
const NICE = 10;

/**
 * The demo of an empty server: a process that plays two runs through the API with its own API key. The key also stores the state of the
 * demo. Without the key the demo was never played. With a valid key the demo starts or continues. With a revoked key the demo is complete or
 * removed, and does not start again. The key is derived from the key material of the service, so every replica and every start finds it.
 */
@Injectable()
export class DemoService implements OnModuleDestroy {
  #player: ChildProcess | null = null;

  constructor(
    private readonly database: Database,
    private readonly keys: KeyService,
    private readonly runs: RunService,
    private readonly environments: EnvironmentsService,
    private readonly sessions: SessionService,
    @Inject(SERVER_SECRET) private readonly secret: SecretKeys,
  ) {}

  /** Starts or continues the demo in the organisation of `owner`, unless it is complete, removed, or there are other runs. */
  async play(url: string, owner: { orgId: string; userId: string }): Promise<void> {
    const known = await this.#knownKeys();
    if (known.length === 0 ? !(await hasNoRuns(this.database.pool)) : known.some(({ revokedAt }) => revokedAt !== null)) return;
    const main = createRequire(import.meta.url).resolve(COMMAND_LINE);
    const apiKey = demoKey(this.secret.current);
    await this.keys.store({ ...owner, name: 'demo', scopes: ['sessions', 'environments', 'rollouts'] }, apiKey);
    this.#start(main, url, apiKey);
  }

  /** Erases the runs of the demo with their sessions, and its environment. A demo that still plays is stopped first. */
  async remove(caller: Caller): Promise<void> {
    const keys = (await this.#knownKeys()).filter(({ orgId }) => orgId === caller.orgId);
    if (keys.length > 0) await this.#stop();
    for (const { hash } of keys) await this.keys.retire(hash);
    const keyIds = keys.map(({ id }) => id);
    // A killed demo leaves sessions open. Those of another replica expire.
    for (const sid of await selectLiveSids(this.database.pool, caller.orgId, keyIds)) await this.sessions.end(caller, sid).catch(() => {});
    const runs = await selectDemoRuns(this.database.pool, caller.orgId, DEMO_RUNS, DEMO_TAG);
    await eraseSessionsOfRuns(
      this.database.pool,
      caller.orgId,
      runs.map(({ seq }) => seq),
      keyIds,
    );
    for (const { id } of runs) await this.runs.delete(caller, id);
    await this.#removeEnvironment(caller);
  }

  async onModuleDestroy(): Promise<void> {
    await this.#stop();
  }

  #start(main: string, url: string, apiKey: string): void {
    const player = spawn(process.execPath, [main, 'demo', '--exit-with-parent'], {
      stdio: ['pipe', 'inherit', 'inherit'],
      env: {
        ...process.env,
        PALESTRA_URL: '',
        PALESTRA_API_KEY: '',
        OPENREWARD_URL: url,
        OPENREWARD_API_URL: url,
        OPENREWARD_SESSION_URL: url,
        OPENREWARD_API_KEY: apiKey,
      },
    });
    this.#player = player;
    player.on('error', (error) => process.stderr.write(`palestra: the demo did not start: ${error.message}\n`));
    player.on('spawn', () => os.setPriority(player.pid!, NICE));
    player.on('exit', (code) => {
      this.#player = null;
      if (code === 0) void this.#complete();
    });
  }

  /** After an error the next start continues the demo, which then has nothing to do. */
  async #complete(): Promise<void> {
    for (const { hash } of await this.#knownKeys().catch(() => [])) await this.keys.retire(hash).catch(() => {});
  }

  async #stop(): Promise<void> {
    const player = this.#player;
    if (player === null || player.exitCode !== null || player.signalCode !== null) return;
    const ended = once(player, 'exit');
    const timer = setTimeout(() => player.kill('SIGKILL'), STOP_MS);
    player.kill();
    await ended;
    clearTimeout(timer);
  }

  #knownKeys() {
    return this.keys.findByKey(this.secret.accepted.map(demoKey));
  }

  /** Its name belongs to the demo only where it runs a bundled environment. */
  async #removeEnvironment(caller: Caller): Promise<void> {
    try {
      const { source } = await this.environments.get(caller, caller.orgName, DEMO_ENVIRONMENT);
      if (source.kind === 'bundled') await this.environments.delete(caller, caller.orgName, DEMO_ENVIRONMENT);
    } catch (error) {
      if (!(error instanceof PalestraError) || error.code !== 'environment_not_found') throw error;
    }
  }
}

const demoKey = (secret: string): string => `or_${createHmac('sha256', secret).update('api key of the demo').digest('base64url')}`;
