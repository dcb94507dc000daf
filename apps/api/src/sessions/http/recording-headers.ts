import type { IncomingHttpHeaders } from 'node:http';
import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Recording } from '@palestra/session';

/** The text of a header. Characters that a header cannot carry are `%`-escaped. */
function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  if (typeof value !== 'string' || value.trim() === '') return null;
  try {
    return decodeURIComponent(value.trim());
  } catch {
    return value.trim();
  }
}

function integerOf(headers: IncomingHttpHeaders, name: string): number | null {
  const text = textOf(headers, name);
  if (text === null) return null;
  if (!/^-?\d{1,9}$/.test(text)) throw new PalestraError('invalid_request', { detail: `${name}: expected an integer, got "${text}".` });
  return Number(text);
}

/**
 * Reads `X-Palestra-Run` and the other headers of a recording: the session is recorded as a rollout of that run. Null without a run. Throws
 * `invalid_request` for a step or task index that is not an integer.
 */
export function readRecording(headers: IncomingHttpHeaders): Recording | null {
  const run = textOf(headers, 'x-palestra-run');
  if (run === null) return null;
  const stop = textOf(headers, 'x-palestra-stop');
  return {
    run,
    rolloutId: newUuid(),
    name: textOf(headers, 'x-palestra-rollout'),
    step: integerOf(headers, 'x-palestra-step'),
    split: textOf(headers, 'x-palestra-split'),
    taskIndex: integerOf(headers, 'x-palestra-task-index'),
    metadata: null,
    ...(stop === null ? {} : { closedStop: stop }),
  };
}
