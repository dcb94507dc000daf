import { Injectable } from '@nestjs/common';
import { needsTexts, type PostFilter } from '@palestra/query';
import { Database } from '../platform/database/database.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { selectQueryRows, withTexts } from './query-rows.sql.ts';
import { selectTranscriptLocations } from './transcript-location.sql.ts';

/** Applies the part of a query that the database cannot evaluate, such as a regex, to the rollouts that the database returned. */
@Injectable()
export class QueryFilter {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
  ) {}

  /** The rollouts that the filter accepts. The caller bounds their number. */
  async accepted(filter: PostFilter, seqs: readonly string[]): Promise<Set<string>> {
    const rows = await selectQueryRows(this.database.pool, seqs);
    if (needsTexts(filter.query)) {
      for (const location of await selectTranscriptLocations(this.database.pool, seqs)) {
        const row = rows.get(location.seq);
        if (row) rows.set(location.seq, withTexts(row, await this.transcripts.messages(location)));
      }
    }
    return new Set([...rows].flatMap(([seq, row]) => (filter.accepts(row) ? [seq] : [])));
  }
}
