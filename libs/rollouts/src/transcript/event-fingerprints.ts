/**
 * Tells which chunks of a transcript may hold an event, without reading them: four bytes per event id, base64, in the pointer of the
 * transcript. Equal ids have equal fingerprints. Of a hundred thousand other ids about two collide, which costs an unnecessary read.
 */
const BYTES = 4;

/** FNV-1a with 32 bits. Ids are in lower case. */
function fingerprint(eventId: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < eventId.length; at += 1) hash = Math.imul(hash ^ eventId.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

export function fingerprintsOf(eventIds: readonly string[]): string {
  const bytes = Buffer.alloc(eventIds.length * BYTES);
  eventIds.forEach((eventId, at) => bytes.writeUInt32LE(fingerprint(eventId), at * BYTES));
  return bytes.toString('base64');
}

/** Input of `mayHold` for many chunks. */
export const wantedFingerprints = (eventIds: Iterable<string>): ReadonlySet<number> => new Set(Array.from(eventIds, fingerprint));

/** False: the chunk with these `ids` has none of the wanted events. A chunk without fingerprints may hold any event. */
export function mayHold(ids: string | undefined, wanted: ReadonlySet<number>): boolean {
  if (wanted.size === 0) return false;
  if (ids === undefined) return true;
  const bytes = Buffer.from(ids, 'base64');
  for (let at = 0; at < bytes.length; at += BYTES) if (wanted.has(bytes.readUInt32LE(at))) return true;
  return false;
}
