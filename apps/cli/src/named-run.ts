import { PalestraApiError } from '@palestra/client';

/** The answer to a request about a run. The error for an unknown run names it. */
export const aboutRun = <T>(run: string, answer: Promise<T>): Promise<T> =>
  answer.catch((error: unknown) => {
    if (!(error instanceof PalestraApiError) || error.code !== 'run_not_found') throw error;
    throw new PalestraApiError(error.code, error.status, `No such run: ${run}. List your runs with "palestra runs".`);
  });
