import { regexSize } from '@palestra/protocol';
import type { PostFilter, QueryRow } from '@palestra/query';
import type { UntrustedWork } from '../platform/untrusted-work/untrusted-work.ts';
import type { FilterInput } from './filter-rows.work.ts';

/** Characters times parts of the regexes that one process works on: RE2 takes at most some 50 ns each, of the ten seconds that it has. */
const WORK = 50_000_000;
const MAX_CHARACTERS = 4_000_000;
/** Work that is done here, because it takes less time than the start of a process: some 25 ms at most. */
const LITTLE_WORK = 500_000;
/** Of the other fields of a row. */
const ROW_CHARACTERS = 500;

/**
 * The items whose rows the filter accepts, in their order. A regex can take seconds for one message, so a separate process applies it.
 * `undecided`: the first item that was not looked at because the time (`performance.now()`) was over; at least one is. Throws
 * `too_expensive`, `capacity_exhausted`.
 */
export async function filterRows<Item extends { row: QueryRow }>(
  work: UntrustedWork,
  owner: string,
  filter: PostFilter,
  items: AsyncIterable<Item> | Iterable<Item>,
  until = Infinity,
): Promise<{ accepted: Item[]; undecided: Item | null }> {
  const parts = filter.regexes.reduce((sum, { pattern }) => sum + Math.max(1, regexSize(pattern)), 0);
  const most = Math.min(MAX_CHARACTERS, WORK / parts);
  const accepted: Item[] = [];
  let batch: Item[] = [];
  let characters = 0;
  const decide = async () => {
    const rows = batch.map(({ row }) => row);
    const verdicts =
      characters * parts <= LITTLE_WORK
        ? rows.map((row) => filter.accepts(row))
        : await work.run<boolean[]>({
            module: new URL('./filter-rows.work.js', import.meta.url),
            input: { query: filter.query, now: filter.now, rows } satisfies FilterInput,
            owner,
            lane: 'check',
          });
    accepted.push(...batch.filter((_item, at) => verdicts[at]));
    batch = [];
    characters = 0;
  };
  for await (const item of items) {
    const size = charactersOf(item.row);
    if (batch.length > 0 && characters + size > most) {
      await decide();
      if (performance.now() > until) return { accepted, undecided: item };
    }
    batch.push(item);
    characters += size;
  }
  if (batch.length > 0) await decide();
  return { accepted, undecided: null };
}

const charactersOf = ({ messages, annotations }: QueryRow): number =>
  ROW_CHARACTERS +
  messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0) +
  annotations.reduce((sum, { note }) => sum + (note?.length ?? 0), 0);
