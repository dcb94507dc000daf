import { Injectable } from '@nestjs/common';
import { needsTexts, type PostFilter } from '@palestra/query';
import { Database } from '../platform/database/database.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { selectQueryRows, withTexts } from './query-rows.sql.ts';
import { selectPlaces } from './rollout-place.sql.ts';

/** Decides what the database could not: which of the rollouts that it let through a query with regexes finds. */
@Injectable()
export class QueryFilter {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
  ) {}

  /** Those that the filter accepts; the caller bounds how many are asked for. */
  async accepted(filter: PostFilter, seqs: readonly string[]): Promise<Set<string>> {
    const rows = await selectQueryRows(this.database.pool, seqs);
    if (needsTexts(filter.query)) {
      for (const place of await selectPlaces(this.database.pool, seqs)) {
        const row = rows.get(place.seq);
        if (row) rows.set(place.seq, withTexts(row, await this.transcripts.messages(place)));
      }
    }
    return new Set([...rows].flatMap(([seq, row]) => (filter.accepts(row) ? [seq] : [])));
  }
}
