import { Injectable } from '@nestjs/common';
import { PalestraError, type SearchQuery } from '@palestra/protocol';
import { decodeCursor, encodeCursor, exactly, INT32, INT64 } from '../../platform/http/cursor.ts';
import { Database } from '../../platform/database/database.ts';
import { ReadSettler } from '../../store/derive/read-settler.service.ts';
import { rolloutQuery } from '../../rollouts/rollout-query.ts';
import { type StoredMessageRow, TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import {
  countSteps,
  FIRST_SEARCH_PARAMETER,
  hasUnsearched,
  type HitPosition,
  type HitRow,
  selectHitHeads,
  selectHits,
  selectRunSeqs,
} from './search.sql.ts';
import { selectBlocks } from '../../store/derive/search/found-blocks.sql.ts';
import { headOf, presentHit, textOf } from './hit.presenter.ts';
import { RegexSearch } from './regex-search.service.ts';
import { type Finder, type Snippet, snippetOf, wordFinder } from './snippet.ts';

/** Maximum of messages that are counted by step, and of blocks that are read for it: those of the first three statements, about 20 ms. */
const COUNTED = 10_000;
const COUNTED_BLOCKS = 56;
/** Time limit of one page, when few messages match. */
const PAGE_MS = 2_000;
/** Blocks per statement, first and at most: a block takes about 0.3 ms. */
const FIRST_BLOCKS = 8;
const MAX_BLOCKS = 64;
const LISTED_BLOCKS = 2_000;
/** Maximum of runs of an organisation that one search covers: the newest. */
const MAX_RUNS = 1_000;

/** Finds messages by their text. */
@Injectable()
export class SearchService {
  constructor(
    private readonly database: Database,
    private readonly settler: ReadSettler,
    private readonly transcripts: TranscriptReader,
    private readonly regexes: RegexSearch,
  ) {}

  async organisation(orgId: string, request: SearchQuery) {
    const runSeqs = await selectRunSeqs(this.database.pool, orgId, MAX_RUNS);
    await this.settler.settle(runSeqs);
    return this.search(orgId, runSeqs, request);
  }

  /** `runSeqs`: all of `orgId`. */
  async search(orgId: string, runSeqs: readonly number[], request: SearchQuery) {
    const pending = await hasUnsearched(this.database.pool, runSeqs);
    const found = request.mode === 'text' ? await this.#byText(runSeqs, request) : await this.regexes.search(orgId, runSeqs, request);
    return { ...found, pending, incomplete: pending };
  }

  async #byText(runSeqs: readonly number[], { q, within, limit, cursor }: SearchQuery) {
    const query =
      within === undefined || within.trim() === '' ? null : await rolloutQuery(this.database.pool, within, runSeqs, FIRST_SEARCH_PARAMETER);
    if (query?.compiled.postFilter) throw invalid('within', 'A regex cannot be combined with a search: use mode=regex.', within!);
    const text = { runSeqs, text: q.replaceAll('\0', ' '), where: query?.where };
    const { positions, last } = await this.#positions(text, { after: afterOf(cursor), limit, counted: cursor === undefined });
    const shown = positions.slice(0, limit);
    const { pool } = this.database;
    const [heads, steps] = await Promise.all([
      selectHitHeads(
        pool,
        shown.map(({ seq }) => seq),
      ),
      cursor === undefined ? countSteps(pool, positions.slice(0, COUNTED)) : null,
    ]);
    const find = wordFinder(q);
    const read = await Promise.all(
      shown.map(async ({ seq, index }) => {
        const head = heads.get(seq);
        if (head === undefined) return null;
        const hit = { ...head, index };
        return presentHit(hit, ...(await this.#messageOf(hit, find)));
      }),
    );
    const end = positions.length > limit ? shown.at(-1)! : last;
    return {
      hits: read.filter((hit) => hit !== null),
      next: end && encodeCursor(['text', end.block, end.seq, String(end.index)]),
      steps: steps && steps.map(({ step, hits }) => ({ step: step < 0 ? null : step, hits })),
      steps_capped: steps !== null && (last !== null || positions.length > COUNTED),
      query: query?.text ?? null,
    };
  }

  /**
   * Searches block by block until it has more than `limit` positions, and on the first page those of `COUNTED_BLOCKS`.
   * `last`: where the search stopped; null when it has read every block.
   */
  async #positions(text: Parameters<typeof selectHits>[1], page: { after: HitPosition | null; limit: number; counted: boolean }) {
    const { pool } = this.database;
    const start = performance.now();
    let read = 0;
    const isEnough = (found: number) => {
      if (found <= page.limit) return performance.now() - start > PAGE_MS;
      return !page.counted || found > COUNTED || read >= COUNTED_BLOCKS;
    };
    const positions: HitPosition[] = [];
    let from = page.after?.block ?? '0';
    for (let size = FIRST_BLOCKS; text.runSeqs.length > 0;) {
      const { blocks, total } = await selectBlocks(pool, text, from, LISTED_BLOCKS);
      for (let at = 0; at < blocks.length; at += size, size = Math.min(2 * size, MAX_BLOCKS)) {
        const some = blocks.slice(at, at + size);
        positions.push(...(await selectHits(pool, text, some, page.after)));
        read += some.length;
        const isLast = at + size >= blocks.length && blocks.length === total;
        if (!isLast && isEnough(positions.length)) return { positions, last: endOf(some.at(-1)!) };
      }
      if (blocks.length === total) break;
      from = String(BigInt(blocks.at(-1)!) + 1n);
    }
    return { positions, last: null };
  }

  /** The message of a hit: the one with its index that contains the words. */
  async #messageOf(hit: HitRow, find: Finder): Promise<[StoredMessageRow | null, Snippet]> {
    const rows = (await this.transcripts.messages(hit, { from: hit.index, limit: 4 })).filter(({ index }) => index === hit.index);
    for (const row of rows) {
      const snippet = snippetOf(textOf(row), find);
      if (snippet) return [row, snippet];
    }
    // The words are in its name, which a snippet does not show.
    const row = rows.find((one) => snippetOf(headOf(one), find)) ?? rows[0] ?? null;
    return [row, { snippet: (row ? textOf(row) : '').slice(0, 400), matches: [], offset: 0 }];
  }
}

function afterOf(cursor: string | undefined): HitPosition | null {
  if (cursor === undefined) return null;
  const [, block, seq, index] = decodeCursor(cursor, exactly('text'), INT64, INT64, INT32);
  return { block: block!, seq: seq!, index: Number(index) };
}

/** After all messages of a block. */
const endOf = (block: string): HitPosition => ({ block, seq: '9223372036854775807', index: 2_147_483_647 });

function invalid(key: string, msg: string, input: string): PalestraError {
  return new PalestraError('invalid_query', { detail: [{ type: 'value_error', loc: ['query', key], msg, input: input.slice(0, 200) }] });
}
