import { HostingError } from '../../provider/hosting-error.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { EXTENSIONS, FRESH_MS } from './objects.ts';

/** Whether the cluster serves agent-sandbox (v1beta1) and this service may use it. */
export class AgentSandbox {
  readonly #cluster: Cluster;
  readonly #isAllowed: boolean;
  #known: { isServed: boolean; at: number } | null = null;

  /** `isAllowed`: false: it is not used, and the cluster is not asked. */
  constructor(cluster: Cluster, isAllowed: boolean) {
    this.#cluster = cluster;
    this.#isAllowed = isAllowed;
  }

  async isServed(signal: AbortSignal): Promise<boolean> {
    if (!this.#isAllowed) return false;
    if (this.#known === null || performance.now() - this.#known.at >= FRESH_MS) {
      this.#known = { isServed: await this.#ask(signal), at: performance.now() };
    }
    return this.#known.isServed;
  }

  /** `work`, or `otherwise` where agent-sandbox is not served, also if its definitions were removed just now. */
  async use<T>(work: () => Promise<T>, otherwise: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (!(await this.isServed(signal))) return otherwise();
    try {
      return await work();
    } catch (error) {
      if (!isGone(error)) throw error;
      this.#known = null;
      if (await this.isServed(signal)) throw error;
      return otherwise();
    }
  }

  path(kind: 'sandboxclaims' | 'sandboxtemplates' | 'sandboxwarmpools', name?: string): string {
    const all = `/apis/${EXTENSIONS}/namespaces/${this.#cluster.namespace}/${kind}`;
    return name === undefined ? all : `${all}/${name}`;
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#cluster.request({ method: 'GET', path: this.path('sandboxclaims'), query: { limit: 1 } }, signal);
      return true;
    } catch (error) {
      if (isGone(error) || (error instanceof HostingError && isRefusal(error.cause, 403))) return false;
      throw error;
    }
  }
}

const isGone = (error: unknown): boolean => isRefusal(error, 404) || (error instanceof HostingError && isRefusal(error.cause, 404));
