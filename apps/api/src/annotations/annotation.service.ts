import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { isLens } from '@palestra/metrics';
import { type AnnotationBody, type AnnotationQuery, PalestraError, type SavedViewBody } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { decodeCursor, encodeCursor, TIME } from '../platform/http/cursor.ts';
import { Database } from '../platform/database/database.ts';
import { RunService } from '../runs/run.service.ts';
import {
  type AnnotationRow,
  deleteAnnotation,
  deleteView,
  insertAnnotation,
  insertView,
  selectAnnotations,
  selectUserName,
  selectViews,
  updateView,
  type ViewRow,
} from './annotation.sql.ts';
import { canonicalQuery } from '../rollouts/rollout-query.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';

const MAX_STATE_BYTES = 16_384;

/** Annotations of rollouts and saved views. All members of an organisation see and change both. */
@Injectable()
export class AnnotationService {
  constructor(
    private readonly database: Database,
    private readonly runs: RunService,
    private readonly rollouts: RolloutService,
  ) {}

  /** Throws `rollout_not_found`. */
  async create(caller: Caller, body: AnnotationBody) {
    const { head } = await this.rollouts.find(caller, body.rollout);
    if (head.run_seq === null)
      throw new PalestraError('rollout_not_found', {
        detail: 'The start event of the rollout has not arrived yet. Try again after its upload.',
      });
    const author = await selectUserName(this.database.pool, caller.userId);
    const target = { orgId: caller.orgId, seq: head.seq, runSeq: head.run_seq, rollout: head.id };
    const row = await insertAnnotation(this.database.pool, target, body, author);
    if (!row) throw new PalestraError('rollout_not_found');
    return present(row);
  }

  /** A page has fewer annotations while a run is being erased. Throws `rollout_not_found`, `run_not_found`, `invalid_cursor`. */
  async list(caller: Caller, { rollout, run, tag, limit, cursor }: AnnotationQuery) {
    const head = rollout === undefined ? null : (await this.rollouts.find(caller, rollout)).head;
    const runSeq = run === undefined ? null : await this.runs.seqOf(caller, run);
    const [at, id] = cursor === undefined ? [] : decodeCursor(cursor, TIME, isUuid);
    const rows = await selectAnnotations(this.database.pool, {
      orgId: caller.orgId,
      runSeq,
      rolloutSeq: head?.seq ?? null,
      tag: tag ?? null,
      after: at === undefined ? null : { at, id: id! },
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      annotations: page.filter(({ shown }) => shown).map(present),
      next: rows.length > limit && last ? encodeCursor([last.at, last.id]) : null,
    };
  }

  /** Throws `annotation_not_found`, and `annotation_of_review` for the answer of a review. */
  async delete(caller: Caller, id: string): Promise<void> {
    const outcome = isUuid(id) ? await deleteAnnotation(this.database.pool, caller.orgId, id) : 'missing';
    if (outcome === 'missing') throw new PalestraError('annotation_not_found');
    if (outcome === 'review') throw new PalestraError('annotation_of_review');
  }

  async createView(caller: Caller, body: SavedViewBody) {
    const { runSeq, view } = await this.#validate(caller, body);
    return presentView(
      await insertView(this.database.pool, caller.orgId, runSeq, view, await selectUserName(this.database.pool, caller.userId)),
    );
  }

  async listViews(caller: Caller, run: string | undefined) {
    const runSeq = run === undefined ? null : await this.runs.seqOf(caller, run);
    return { views: (await selectViews(this.database.pool, caller.orgId, runSeq)).map(presentView) };
  }

  /** Throws `view_not_found`. */
  async replaceView(caller: Caller, id: string, body: SavedViewBody) {
    const { runSeq, view } = await this.#validate(caller, body);
    const row = isUuid(id) ? await updateView(this.database.pool, caller.orgId, id, runSeq, view) : null;
    if (!row) throw new PalestraError('view_not_found');
    return presentView(row);
  }

  async deleteView(caller: Caller, id: string): Promise<void> {
    if (!isUuid(id) || !(await deleteView(this.database.pool, caller.orgId, id))) throw new PalestraError('view_not_found');
  }

  /** Stores the query as the printer formats it, so that an invalid query fails now and not when the view is opened. */
  async #validate(caller: Caller, { run, ...view }: SavedViewBody): Promise<{ runSeq: number | null; view: Omit<SavedViewBody, 'run'> }> {
    const runSeq = run === null ? null : await this.runs.seqOf(caller, run);
    if (view.lens !== null && !isLens(view.lens)) throw invalidField('lens', `Unknown lens ${JSON.stringify(view.lens)}.`);
    if (Buffer.byteLength(JSON.stringify(view.state)) > MAX_STATE_BYTES) throw invalidField('state', `At most ${MAX_STATE_BYTES} bytes.`);
    const query = view.query.trim() === '' ? '' : canonicalQuery(view.query);
    return { runSeq, view: { ...view, query } };
  }
}

const invalidField = (key: string, msg: string) =>
  new PalestraError('invalid_body', { detail: [{ type: 'value_error', loc: ['body', key], msg }] });
const present = ({ created_at, id, rollout, from_index, to_index, verdict, score, tag, note, author, queue }: AnnotationRow) => ({
  id,
  rollout,
  from_index,
  to_index,
  verdict,
  score,
  tag,
  note,
  author,
  queue,
  created_at: created_at.toISOString(),
});
const presentView = ({ created_at, ...view }: ViewRow) => ({ ...view, created_at: created_at.toISOString() });
