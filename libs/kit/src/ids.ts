import { randomBytes, randomUUID } from 'node:crypto';

/** A UUIDv4: the form of session, rollout and message ids on the wire. */
export const newUuid = (): string => randomUUID();

/** 32 lower-case hex characters: the form of call task ids (openreward-wire.md 2.4). */
export const newTaskId = (): string => randomBytes(16).toString('hex');

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isUuid = (text: string): boolean => UUID.test(text);
