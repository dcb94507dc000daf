/** A UUIDv4: the form of session, rollout and message ids on the wire. The platform's own crypto: browsers and Node have the same. */
export const newUuid = (): string => crypto.randomUUID();

/** 32 lower-case hex characters: the form of call task ids (openreward-wire.md 2.4), as Python's `uuid4().hex`. */
export const newTaskId = (): string => newUuid().replaceAll('-', '');

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isUuid = (text: string): boolean => UUID.test(text);
