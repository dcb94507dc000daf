import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError, PalestraApiError, PalestraClient, type Session, SessionTerminatedError } from '@palestra/client';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { startReplicas } from '../../support/replicas.ts';
import { requestWith } from '../../support/server.ts';
import { treeOf, workerOf } from '../../support/process-tree.ts';

/** Two services, each with a process for jobs, on one database and one folder, whose instances are processes. Each process can be killed. */
export async function startCrashes() {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-crashes-'));
  const replicas = await startReplicas(2, {
    env: { PALESTRA_DATA_DIR: folder, PALESTRA_HOSTING: 'process', PALESTRA_ALLOW_COMMANDS: '1', DATABASE_POOL_SIZE: '10' },
  });
  const [first] = replicas.all;
  const database = new Database(first!.databaseUrl!, 2);
  const countFile = path.join(folder, 'calls');
  const instances = path.join(folder, 'hosting/instances');
  return {
    server: { database, request: requestWith(first!.url, first!.apiKey) },
    replicas,
    countFile,
    instances,
    client: () => new PalestraClient({ url: replicas.client.url, apiKey: replicas.client.apiKey }),
    /** Ids of all calls that ran. */
    runs: (): string[] => readFileSync(countFile, 'utf8').trim().split('\n'),
    /** Processes of an instance: the one that starts its server, and its server. */
    processesOf(id: string): number[] {
      const { pid } = JSON.parse(readFileSync(path.join(instances, id, 'record.json'), 'utf8')) as { pid: number };
      return treeOf(pid);
    },
    /** Ids of instances of which a process or a folder is left. */
    leftovers: (): Set<string> => new Set([...namesIn(instances), ...idsOfProcesses(instances)]),
    async killWorker(index: number): Promise<void> {
      const pid = replicas.all[index]!.pid();
      const found = workerOf(pid);
      if (found === undefined) throw new Error(`the service ${index} has no process for jobs`);
      process.kill(found, 'SIGKILL');
      while (workerOf(pid) === found) await sleep(20);
    },
    async restart(index: number): Promise<void> {
      await replicas.all[index]!.kill();
      await replicas.all[index]!.restart();
    },
    async close() {
      await database.close();
      await replicas.stop();
      // Instances end with their folder.
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
export type CrashesWorld = Awaited<ReturnType<typeof startCrashes>>;

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

function idsOfProcesses(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const found = readFileSync(`/proc/${pid}/environ`, 'utf8').split(`PALESTRA_INSTANCE_FOLDER=${folder}/`)[1];
        return found === undefined ? [] : [found.split('\0')[0]!];
      } catch {
        // It has ended.
        return [];
      }
    });
}

/** `faults` of players when there are none. */
export const NONE = { twice: [], lost: [], odd: [] };

/** Clients that play episodes one after the other until `end`. */
export class Players {
  /** Ids of calls that were answered. */
  readonly answered: string[] = [];
  /** Answers that do not follow the answer before: an acknowledged call was lost, or ran twice. */
  readonly #odd: string[] = [];
  /** Codes of the errors of sessions that ended early. */
  readonly lost: string[] = [];
  episodes = 0;
  readonly #client: PalestraClient;
  readonly #environment: string;
  readonly #pauseMs: number;
  readonly #playing: Promise<void>[];
  #isOver = false;

  /** `pauseMs`: how long a call takes. */
  constructor(client: PalestraClient, environment: string, count: number, pauseMs: number) {
    this.#client = client;
    this.#environment = environment;
    this.#pauseMs = pauseMs;
    this.#playing = Array.from({ length: count }, (_, player) => this.#play(player));
  }

  /** Resolves after so many more answers. */
  async answers(more: number): Promise<void> {
    for (const goal = this.answered.length + more; this.answered.length < goal;) await sleep(20);
  }

  /** What is wrong with the calls: it should be empty. `runs`: ids of all calls that ran. */
  faults(runs: readonly string[]): { twice: string[]; lost: string[]; odd: string[] } {
    const seen = new Set<string>();
    const twice = runs.filter((id) => seen.size === seen.add(id).size);
    return { twice, lost: this.answered.filter((id) => !seen.has(id)), odd: this.#odd };
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#playing);
    await this.#client.close();
  }

  async #play(player: number): Promise<void> {
    for (let episode = 0; !this.#isOver; episode += 1) {
      let session: Session | null = null;
      try {
        session = await this.#client.session({ environment: this.#environment, split: 'train', index: player % 10 });
        for (let call = 1; !this.#isOver && call <= 100; call += 1) {
          const id = `${player}-${episode}-${call}`;
          const { blocks } = await session.call('add', { id, pause_ms: this.#pauseMs });
          this.answered.push(id);
          const said = blocks.map((block) => (block as { text?: string }).text ?? '').join('');
          if (Number(said.split(':')[2]) !== call) this.#odd.push(`${id}: ${said}`);
        }
        this.episodes += 1;
      } catch (error) {
        this.lost.push(codeOf(error));
      }
      await session?.close().catch(() => {});
    }
  }
}

function codeOf(error: unknown): string {
  if (error instanceof PalestraApiError || error instanceof SessionTerminatedError) return error.code ?? error.message;
  return error instanceof ClientError ? error.name : String(error);
}
