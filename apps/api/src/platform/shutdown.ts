/** Shutdown steps in their order, each with a time limit. A step that fails or hangs does not block the next. */
export class ShutdownList {
  readonly #steps: { name: string; limitMs: number; stop: () => Promise<unknown> }[] = [];

  /** Later steps stop first: a part that started later depends on earlier ones. */
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

/** npm forwards the Ctrl-C that the terminal already sent to every process: signals of the same moment are one. */
const SAME_MS = 1_000;

/** For a process that is stopping after a signal: a later SIGINT ends it at once. */
export function exitOnSecondInterrupt(): void {
  const firstAt = performance.now();
  process.on('SIGINT', () => {
    if (performance.now() - firstAt > SAME_MS) process.exit(130);
  });
}
