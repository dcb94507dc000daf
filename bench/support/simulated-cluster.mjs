import { setTimeout as sleep } from 'node:timers/promises';

const CAPABILITIES = {
  isolation: ['none', 'container'],
  egress: ['none', 'hosts', 'open'],
  gpus: false,
  limits: true,
  maxMemoryMb: null,
  builds: false,
};
/** Milliseconds: an order of the size that the API of a cluster takes. */
const LIST_MS = 500;
const ACCEPT_MS = [50, 150];
const REMOVE_MS = [50, 150];
const ANSWER_MS = 2;
/** From the acceptance to the first answer: a node starts a container whose image it has. */
const START_MS = [1_000, 3_000];

const between = ([least, most]) => least + Math.random() * (most - least);

/** An engine in memory, which takes the time that a cluster takes, and has as much room as it needs. */
export class SimulatedCluster {
  name = 'docker';
  #instances = new Map();

  async capabilities() {
    return CAPABILITIES;
  }

  async ensure({ id, versionId }, signal) {
    await sleep(between(ACCEPT_MS), undefined, { signal });
    let instance = this.#instances.get(id);
    if (instance === undefined) {
      const endpoint = `http://${id}.cluster.invalid`;
      instance = {
        id,
        versionId,
        state: 'running',
        endpoint,
        exit: null,
        startedAt: new Date(),
        restarts: 0,
        answersAt: Date.now() + between(START_MS),
      };
      this.#instances.set(id, instance);
    }
    return instance;
  }

  async list(signal) {
    await sleep(LIST_MS, undefined, { signal });
    return [...this.#instances.values()];
  }

  async remove(id, _graceMs, signal) {
    await sleep(between(REMOVE_MS), undefined, { signal });
    this.#instances.delete(id);
  }

  async *logs(id, since, signal) {
    if (since === null) yield { at: new Date(), stream: 'stdout', text: 'listening' };
    while (!signal.aborted && this.#instances.get(id)?.state === 'running') await sleep(5_000, undefined, { signal }).catch(() => {});
  }

  async stats(id) {
    return this.#instances.get(id)?.state === 'running' ? { cpus: 0.1, memoryMb: 100, pids: 4 } : null;
  }

  async close() {}

  /** In the place of `fetch`: the answer of an instance, once it answers. */
  fetch = async (url, { signal }) => {
    await sleep(ANSWER_MS, undefined, { signal });
    const instance = this.#instances.get(new URL(url).hostname.split('.')[0]);
    if (instance?.state !== 'running' || instance.answersAt > Date.now()) throw new TypeError('fetch failed');
    return new Response(null, { status: 200 });
  };

  /** A share of all instances ends without warning. Returns how many. */
  kill(share) {
    const dying = [...this.#instances.values()].filter(() => Math.random() < share);
    for (const instance of dying)
      Object.assign(instance, { state: 'exited', endpoint: null, exit: { code: 137, reason: 'its node ended' } });
    return dying.length;
  }

  get size() {
    return this.#instances.size;
  }

  get dead() {
    return [...this.#instances.values()].filter(({ state }) => state === 'exited').length;
  }
}
