import { Injectable } from '@nestjs/common';
import type { BulkAnnotation, BulkAnnotationBody } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { decodeCursor, encodeCursor, INT64 } from '../platform/http/cursor.ts';
import { Database } from '../platform/database/database.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { RolloutListService } from '../rollouts/rollout-list.service.ts';
import { RunScopes } from '../runs/run-scope.ts';
import { selectUserName } from './annotation.sql.ts';
import { annotateRollouts, selectSeqs } from './bulk-annotation.sql.ts';

/** Requests at the same time. Those of an organisation wait for each other with a connection. */
const LIMITS = { owner: 2, all: 6 };

/**
 * One verdict or tag for many rollouts. A request reads a part of the run and changes at most a thousand rollouts, and a client continues with
 * the cursor, so that no request is long. Repeating a request changes nothing.
 */
@Injectable()
export class BulkAnnotationService {
  readonly #limits = new TenantConcurrency('bulk annotations', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly scopes: RunScopes,
    private readonly lists: RolloutListService,
  ) {}

  /** Throws `run_not_found`, `invalid_query`, `invalid_cursor`, and `capacity_exhausted`. */
  create(caller: Caller, run: string, body: BulkAnnotationBody): Promise<BulkAnnotation> {
    return this.#limits.use(caller.orgId, () => this.#create(caller, run, body));
  }

  async #create(caller: Caller, run: string, body: BulkAnnotationBody): Promise<BulkAnnotation> {
    const { pool } = this.database;
    const { seq: runSeq } = await this.scopes.open(caller, run);
    const { seqs, more, requested } = await this.#chosen(caller, runSeq, body);
    const author = await selectUserName(pool, caller.userId);
    const { verdict, tag } = body;
    const { found, annotated } = await annotateRollouts(pool, { orgId: caller.orgId, runSeq, seqs }, { verdict, tag, author });
    return {
      annotated,
      unchanged: found - annotated,
      not_found: requested - found,
      next: more === null ? null : encodeCursor([more]),
    };
  }

  async #chosen(caller: Caller, runSeq: number, { rollouts, query, as_of: asOf, limit, cursor }: BulkAnnotationBody) {
    if (rollouts !== undefined) {
      const ids = [...new Set(rollouts)];
      return { seqs: await selectSeqs(this.database.pool, caller.orgId, runSeq, ids), more: null, requested: ids.length };
    }
    const after = cursor === undefined ? null : decodeCursor(cursor, INT64)[0]!;
    const { seqs, more } = await this.lists.arrivals({ runSeq, q: query ?? '', asOf: asOf!, after, limit });
    return { seqs, more, requested: seqs.length };
  }
}
