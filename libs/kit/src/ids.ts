/** A UUIDv4, the format of session, rollout and message ids on the wire. Uses the crypto of the platform, which browsers and Node share. */
export const newUuid = (): string => crypto.randomUUID();

/** 32 lower-case hex characters, as Python's `uuid4().hex`: the format of the task ids of calls. */
export const newTaskId = (): string => newUuid().replaceAll('-', '');

const PROCESS = newTaskId().slice(0, 12);
let counted = 0;
let time = { at: -1, text: '' };

/**
 * A task id for a call that no client can resume. It is unique but guessable. Ids of one moment are adjacent, which makes index inserts
 * cheaper. `now`: milliseconds since the Unix epoch.
 */
export function newOrderedTaskId(now: number): string {
  if (time.at !== now) time = { at: now, text: now.toString(16).padStart(12, '0') };
  counted = (counted + 1) % 0x1_0000_0000;
  return time.text + PROCESS + counted.toString(16).padStart(8, '0');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isUuid = (text: string): boolean => UUID.test(text);
