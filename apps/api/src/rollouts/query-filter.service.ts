import { Injectable } from '@nestjs/common';
import { needsTexts, type PostFilter, type QueryRow } from '@palestra/query';
import { Database } from '../platform/database/database.ts';
import { UntrustedWork } from '../platform/untrusted-work/untrusted-work.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { filterRows } from './filter-rows.ts';
import { selectQueryRows, withTexts } from './query-rows.sql.ts';
import { type OwnedLocation, selectTranscriptLocations } from './transcript-location.sql.ts';

/** Applies the part of a query that the database cannot evaluate, such as a regex, to the rollouts that the database returned. */
@Injectable()
export class QueryFilter {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    private readonly work: UntrustedWork,
  ) {}

  /**
   * The rollouts of one organisation that the filter accepts. `read`: how many were looked at, from the first on: all, or those until the
   * time (`performance.now()`) was over, at least one. Throws `too_expensive`, `capacity_exhausted`.
   */
  async accepted(filter: PostFilter, seqs: readonly string[], until = Infinity): Promise<{ accepted: Set<string>; read: number }> {
    const { pool } = this.database;
    const [rows, located] = await Promise.all([selectQueryRows(pool, seqs), selectTranscriptLocations(pool, seqs)]);
    const locations = new Map(located.map((location) => [location.seq, location]));
    const { accepted, undecided } = await filterRows(
      this.work,
      located[0]?.org_id ?? '',
      filter,
      this.#rows(seqs, rows, needsTexts(filter.query) ? locations : null),
      until,
    );
    return { accepted: new Set(accepted.map(({ seq }) => seq)), read: undecided?.at ?? seqs.length };
  }

  /** One transcript at a time. A rollout that was erased meanwhile is absent. `locations`: null when no texts are needed. */
  async *#rows(seqs: readonly string[], rows: ReadonlyMap<string, QueryRow>, locations: ReadonlyMap<string, OwnedLocation> | null) {
    for (const [at, seq] of seqs.entries()) {
      const row = rows.get(seq);
      const location = locations?.get(seq);
      if (row) yield { at, seq, row: location ? withTexts(row, await this.transcripts.messages(location)) : row };
    }
  }
}
