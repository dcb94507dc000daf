/** The engine refused a request. */
export class EngineError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'EngineError';
    this.status = status;
  }
}

export const isStatus = (error: unknown, ...statuses: number[]): boolean => error instanceof EngineError && statuses.includes(error.status);
