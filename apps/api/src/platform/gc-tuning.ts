import { setFlagsFromString } from 'node:v8';

/** How far the old space may grow between collections, as a share of the live bytes. */
const GROWTH_PERCENT = 100;

/**
 * On a machine with much memory V8 lets the old space grow to four times the live bytes: a service that needs 80 MB holds 400 MB during an
 * export. A factor of two costs one concurrent collection (about 10 ms) per 100 MB. Unlike `--max-old-space-size` this sets no limit. V8 reads
 * the flag after each collection, so call this before the heap has grown.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
