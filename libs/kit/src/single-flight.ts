/** Joins concurrent loads of the same key. A settled load is not kept. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  do(key: string, load: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running) return running;
    const started = load().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
