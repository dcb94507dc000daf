import { setFlagsFromString } from 'node:v8';

/** Garbage that may lie about before it is collected, as a share of what is in use. */
const GROWTH_PERCENT = 100;

/**
 * On a machine with much memory V8 collects its old space only when it is four times what is in use: a service that needs 80 MB holds 400 while it
 * exports. Twice as much costs a collection (concurrent, some ten milliseconds of ours) every hundred megabytes. Unlike
 * `--max-old-space-size` it limits nothing. V8 reads this after each collection; to be called before the heap has grown.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
