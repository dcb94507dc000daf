import { Injectable } from '@nestjs/common';
import type { SearchQuery } from '@palestra/protocol';
import pMap from 'p-map';
import { Database } from '../../platform/database/database.ts';
import { decodeCursor, encodeCursor, exactly, INT32, INT64 } from '../../platform/http/cursor.ts';
import { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import { QueryFilter } from '../../rollouts/query-filter.service.ts';
import { regexQuery, rolloutQuery, type RolloutQuery } from '../../rollouts/rollout-query.ts';
import { rowOf, type StoredMessageRow, TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { presentHit, textOf } from './hit.presenter.ts';
import { countRunRollouts, FIRST_REGEX_PARAMETER, type RegexPage, selectRegexRollouts } from './regex-search.sql.ts';
import type { RegexInput } from './regex.work.ts';
import { selectHitHeads } from './search.sql.ts';
import { programSize, MAX_SEARCHED, type Snippet } from './snippet.ts';
import { wordFragments } from './word-fragments.ts';

/** Time limit of one page (docs/reference/metrics.md#size-limits). */
const PAGE_MS = 5_000;
/** Of it for finding candidates before their transcripts are read. */
const COLLECT_MS = 1_500;
/** Rollouts of one statement. */
const ROLLOUTS = 1_000;
/** Candidates whose messages are in memory at the same time, first and at most, and bytes of their texts. */
const FIRST_CANDIDATES = 100;
const MAX_CANDIDATES = 800;
const CANDIDATE_BYTES = 8 * 1024 * 1024;
const TRANSCRIPTS_AT_ONCE = 8;
/** Characters times instructions of the compiled pattern that one process works on: RE2 takes at most some 50 ns each, of the ten seconds that it has. */
const WORK = 50_000_000;
const MAX_CHARACTERS = 4_000_000;

/** The message of a rollout at which a page begins or ended. `passed`: messages of this index, `before`: rollouts before this one. */
interface MessagePosition {
  seq: string;
  index: number;
  passed: number;
  before: number;
}
type Message = MessagePosition & { row: StoredMessageRow };
type Hit = Message & { snippet: Snippet };

/** Finds messages by a regex: the index of words narrows the rollouts, and a process of its own searches their texts. */
@Injectable()
export class RegexSearch {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    private readonly filter: QueryFilter,
    private readonly work: UntrustedWork,
  ) {}

  /** Throws `invalid_query`, `too_expensive`, `capacity_exhausted`. `runSeqs`: all of `orgId`. */
  async search(orgId: string, runSeqs: readonly number[], { q, within, limit, cursor }: SearchQuery) {
    const { pool } = this.database;
    const inside = within === undefined || within.trim() === '' ? null : await rolloutQuery(pool, within, runSeqs, FIRST_REGEX_PARAMETER);
    const { where } = await regexQuery(pool, q, within ?? '', runSeqs, FIRST_REGEX_PARAMETER);
    const page = { runSeqs, limit: ROLLOUTS, fragments: wordFragments(q), where };
    const deadline = performance.now() + PAGE_MS;
    const start = positionOf(cursor);
    const hits: Hit[] = [];
    // The rollout of the cursor again, from behind its message.
    let after = { seq: start ? String(BigInt(start.seq) - 1n) : '0', before: start?.before ?? 0 };
    let next: MessagePosition | null = null;
    for (let isLast = false, size = FIRST_CANDIDATES; !isLast && next === null; size = Math.min(2 * size, MAX_CANDIDATES)) {
      const group = await this.#candidates(page, inside, after, size);
      const messages = await this.#messages(group.candidates, start);
      const wanted = limit + 1 - hits.length;
      const searched = await this.#matches(orgId, q, messages, wanted, deadline);
      hits.push(...searched.hits);
      if (hits.length > limit) next = hits[limit - 1]!;
      else if (searched.end) next = searched.end;
      else if (!group.isLast && performance.now() > deadline)
        next = { seq: group.after.seq, index: 2_147_483_647, passed: 0, before: group.after.before - 1 };
      ({ after, isLast } = group);
    }
    const shown = hits.slice(0, limit);
    const [heads, total] = await Promise.all([
      selectHitHeads(
        pool,
        shown.map(({ seq }) => seq),
      ),
      countRunRollouts(pool, runSeqs),
    ]);
    const searched = next ? next.before + 1 : after.before;
    return {
      hits: shown.flatMap(({ seq, row, snippet }) => {
        const head = heads.get(seq);
        return (head && presentHit({ ...head, index: row.index }, row, snippet)) ?? [];
      }),
      next: next && encodeCursor(['regex', next.seq, String(next.index), String(next.passed), String(next.before)]),
      steps: null,
      steps_capped: false,
      query: inside?.text ?? null,
      progress: { rollouts: searched, of: Math.max(searched, total) },
    };
  }

  /** The next rollouts in which a message may match: enough for one process, or those found in a moment. */
  async #candidates(page: Omit<RegexPage, 'after'>, inside: RolloutQuery | null, from: { seq: string; before: number }, size: number) {
    const until = performance.now() + COLLECT_MS;
    const filter = inside?.compiled.postFilter;
    const candidates: { seq: string; before: number }[] = [];
    let bytes = 0;
    let after = from;
    for (;;) {
      const rollouts = await selectRegexRollouts(this.database.pool, { ...page, after: after.seq });
      const likely = rollouts.filter(({ candidate }) => candidate).map(({ seq }) => seq);
      const { accepted, read } = filter
        ? await this.filter.accepted(filter, likely, until)
        : { accepted: new Set(likely), read: likely.length };
      const undecided = likely[read];
      for (const rollout of rollouts) {
        if (candidates.length === size || bytes > CANDIDATE_BYTES || rollout.seq === undecided) return { candidates, after, isLast: false };
        if (accepted.has(rollout.seq)) {
          candidates.push({ seq: rollout.seq, before: after.before });
          bytes += rollout.bytes;
        }
        after = { seq: rollout.seq, before: after.before + 1 };
      }
      const listed = rollouts[0]?.listed ?? 0;
      if (rollouts.length === listed && listed < page.limit) return { candidates, after, isLast: true };
      if (performance.now() > until) return { candidates, after, isLast: false };
    }
  }

  /** Their messages in order, from behind `start` on. */
  async #messages(candidates: readonly { seq: string; before: number }[], start: MessagePosition | null): Promise<Message[]> {
    const heads = await selectHitHeads(
      this.database.pool,
      candidates.map(({ seq }) => seq),
    );
    const packed = await this.transcripts.sealedMessages([...heads.values()].filter((head) => head.packed).map(({ seq }) => seq));
    const read = async ({ seq, before }: { seq: string; before: number }): Promise<Message[]> => {
      const head = heads.get(seq);
      if (head === undefined) return [];
      const first = start?.seq === seq ? start : { index: 0, passed: 0 };
      let position = { index: -1, passed: 0 };
      const rows = packed
        .get(seq)
        ?.map(rowOf)
        .filter(({ index }) => index >= first.index);
      const messages = (rows ?? (await this.transcripts.messages(head, { from: first.index }))).map((row) => {
        position = { index: row.index, passed: row.index === position.index ? position.passed + 1 : 1 };
        return { seq, before, ...position, row };
      });
      return messages.filter(({ index, passed }) => index !== first.index || passed > first.passed);
    };
    return (await pMap(candidates, read, { concurrency: TRANSCRIPTS_AT_ONCE })).flat();
  }

  /** The first `wanted` matches. `end`: the last message that was searched, if the deadline passed before the others were. */
  async #matches(orgId: string, pattern: string, messages: readonly Message[], wanted: number, deadline: number) {
    const hits: Hit[] = [];
    const characters = Math.min(MAX_CHARACTERS, WORK / programSize(pattern));
    let at = 0;
    while (at < messages.length && hits.length < wanted) {
      if (at > 0 && performance.now() > deadline) return { hits, end: messages[at - 1]! };
      const texts = textsFrom(messages, at, characters);
      const input: RegexInput = { pattern, texts, limit: wanted - hits.length };
      const module = new URL('./regex.work.js', import.meta.url);
      const snippets = await this.work.run<(Snippet | null)[]>({ module, input, owner: orgId, lane: 'check' });
      snippets.forEach((snippet, offset) => snippet && hits.push({ ...messages[at + offset]!, snippet }));
      at += texts.length;
    }
    return { hits, end: null };
  }
}

/** Texts of some messages, of so many characters or of one message. */
function textsFrom(messages: readonly Message[], from: number, characters: number): string[] {
  const texts: string[] = [];
  for (let at = from, left = characters; at < messages.length; at += 1) {
    const text = textOf(messages[at]!.row).slice(0, MAX_SEARCHED);
    left -= text.length;
    if (left < 0 && texts.length > 0) break;
    texts.push(text);
  }
  return texts;
}

function positionOf(cursor: string | undefined): MessagePosition | null {
  if (cursor === undefined) return null;
  const [, seq, index, passed, before] = decodeCursor(cursor, exactly('regex'), INT64, INT32, INT32, INT32);
  return { seq: seq!, index: Number(index), passed: Number(passed), before: Number(before) };
}
