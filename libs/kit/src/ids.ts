/** A UUIDv4: the form of session, rollout and message ids on the wire. The platform's own crypto: browsers and Node have the same. */
export const newUuid = (): string => crypto.randomUUID();

/** 32 lower-case hex characters: the form of call task ids (openreward-wire.md 2.4), as Python's `uuid4().hex`. */
export const newTaskId = (): string => newUuid().replaceAll('-', '');

const PROCESS = newTaskId().slice(0, 12);
let counted = 0;
let time = { at: -1, text: '' };

/**
 * A task id for a call that no client can resume. It is unique but can be guessed. Ids of one moment are neighbours, which makes an insert into
 * an index cheaper. `now`: milliseconds since the Unix epoch.
 */
export function newOrderedTaskId(now: number): string {
  if (time.at !== now) time = { at: now, text: now.toString(16).padStart(12, '0') };
  counted = (counted + 1) % 0x1_0000_0000;
  return time.text + PROCESS + counted.toString(16).padStart(8, '0');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isUuid = (text: string): boolean => UUID.test(text);
