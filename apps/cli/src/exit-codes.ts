/** Exit codes of every command. `docker` has Docker's instead. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, unauthorised: 4, unmet: 5 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The documented meaning of each code (`palestra help exit-codes`, docs/cli.md). */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.ok, 'The command did its work.'],
  [
    EXIT.failed,
    'It failed: the server refused the request, or a task, file or record failed. "env validate": a check failed. "eval": an episode has no score.',
  ],
  [EXIT.usage, 'Wrong usage: an unknown option, a missing file, an invalid value or setting.'],
  [EXIT.unreachable, 'The service cannot be reached, or is not available now.'],
  [EXIT.unauthorised, 'The API key is missing, refused or lacks a scope.'],
  [
    EXIT.unmet,
    'A condition of "--fail-if" is met ("compare", "eval"), "env diff --fail-on-breaking" found something, or a check of "doctor" failed.',
  ],
  [130, 'Interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP).'],
];

/** Exit codes of commands that were ended by a signal. */
export const EXIT_SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** A command that was ended by a signal. */
export class InterruptedError extends Error {
  readonly exitCode: number;
  constructor(signal: keyof typeof EXIT_SIGNALS) {
    super('Interrupted.');
    this.exitCode = EXIT_SIGNALS[signal];
  }
}
