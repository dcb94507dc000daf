import type { IncomingHttpHeaders } from 'node:http';
import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Recording } from '@palestra/session';

/** Text of a header; `%`-escapes stand for what a header cannot carry. */
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
 * What `X-Palestra-Run` and its friends ask for: the session is written as a rollout of that run. Null without a run. Throws
 * `invalid_request` for a step or task index that is not an integer.
 */
export function readRecording(headers: IncomingHttpHeaders): Recording | null {
  const run = textOf(headers, 'x-palestra-run');
  if (run === null) return null;
  return {
    run,
    rolloutId: newUuid(),
    name: textOf(headers, 'x-palestra-rollout'),
    step: integerOf(headers, 'x-palestra-step'),
    split: textOf(headers, 'x-palestra-split'),
    taskIndex: integerOf(headers, 'x-palestra-task-index'),
    metadata: null,
  };
}
