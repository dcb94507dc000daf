/** What has to stop, in order, each within its time; a step that fails or hangs does not keep the next from running. */
export class ShutdownList {
  readonly #steps: { name: string; limitMs: number; stop: () => Promise<unknown> }[] = [];

  /** Later steps stop first: what was started last depends on what was started before. */
  push(name: string, limitMs: number, stop: () => Promise<unknown>): void {
    this.#steps.unshift({ name, limitMs, stop });
  }

  async run(onProblem: (name: string, error: unknown) => void): Promise<void> {
    for (const step of this.#steps.splice(0)) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`did not stop within ${step.limitMs} ms`)), step.limitMs);
      });
      try {
        await Promise.race([step.stop(), limit]);
      } catch (error) {
        onProblem(step.name, error);
      } finally {
        clearTimeout(timer);
      }
    }
  }
}
