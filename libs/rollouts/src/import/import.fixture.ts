import { createReadStream } from 'node:fs';
import path from 'node:path';
import type { RolloutEvent } from '@palestra/protocol';
import { readBatch } from '../events/event-reader.ts';
import { parseTolerant } from '../json/tolerant-json.ts';
import type { Imported } from './imported.ts';

export const OPTIONS = { runName: 'imported', at: Date.parse('2026-01-01T00:00:00Z') };
export const fixture = (name: string): string => path.join(import.meta.dirname, 'fixtures', name);
export const bytesOf = (name: string): AsyncIterable<Uint8Array> => createReadStream(fixture(name), { highWaterMark: 100 });

export async function* textBytes(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield typeof piece === 'string' ? Buffer.from(piece) : piece;
}

export async function all<T>(items: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** The events as the wire sees them, and that ingest takes every one of them. */
export function sent(items: readonly Imported[]): { where: string; events?: RolloutEvent[]; problem?: string }[] {
  const wire = JSON.parse(JSON.stringify(items)) as Imported[];
  const { rejected } = readBatch(parseTolerant(JSON.stringify({ events: wire.flatMap((item) => ('events' in item ? item.events : [])) })));
  if (rejected.length > 0) throw new Error(`ingest refuses ${JSON.stringify(rejected)}`);
  return wire;
}

/** The events of each rollout without their ids, which hash the record. */
export function shapes(items: readonly Imported[]) {
  return sent(items).map(({ where, events, problem }) => {
    if (events === undefined) return { where, problem };
    const [start, ...messages] = events;
    const known = new Set(['eventId', 'eventType', 'rolloutEventId']);
    const strip = (event: object) => Object.fromEntries(Object.entries(event).filter(([key]) => !known.has(key)));
    return { where, start: strip(start!), messages: messages.map(strip) };
  });
}

export const golden = (items: readonly Imported[]): string => `${JSON.stringify(sent(items), null, 1)}\n`;
