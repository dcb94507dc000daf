import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { PalestraError, type RolloutMessageView, type RolloutView } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { ReadSettler } from '../store/derive/read-settler.service.ts';
import { EraseService } from '../store/storage/erase.service.ts';
import { presentHeader, presentMessage, presentPreview } from './rollout.presenter.ts';
import { type RolloutDetail, type RolloutHead, selectHead, selectRollout } from './rollout.sql.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { MAX_WHOLE_BYTES, sizeOf } from '../store/storage/whole-rollout.ts';

/** Of a large rollout, whose reads are limited: texts and their response are in memory at the same time. */
const LARGE_BYTES = 8 * 1024 * 1024;

/** Reads and erasure of single rollouts, within the caller's organisation. */
@Injectable()
export class RolloutService {
  readonly #large = new TenantConcurrency('reads of large rollouts', { owner: 2, all: 3 });

  constructor(
    private readonly database: Database,
    private readonly settler: ReadSettler,
    private readonly transcripts: TranscriptReader,
    private readonly eraser: EraseService,
  ) {}

  /**
   * The whole rollout without paging, as readers expect it (docs/reference/ors.md#rest-endpoints). `onHold` gets the function to call when
   * the response is sent. Throws as `hold`.
   */
  async get(caller: Caller, id: string, onHold: (release: () => void) => void): Promise<RolloutView> {
    const { head, record } = await this.find(caller, id);
    onHold(this.hold(caller, head));
    const messages = await this.transcripts.messages(head);
    return { ...presentHeader(head, record, caller.orgName, messages), messages: messages.map(presentMessage) };
  }

  /**
   * Call it before all messages of a rollout are read, and the returned function when they are no longer needed. Throws `too_expensive` for
   * a rollout that is read page by page only, and `capacity_exhausted` while other large ones are read.
   */
  hold(caller: Caller, head: RolloutHead): () => void {
    const size = sizeOf(head);
    if (size > MAX_WHOLE_BYTES) {
      throw new PalestraError('too_expensive', {
        detail: `Rollout ${head.id} has ${head.bytes} bytes in ${head.messages} messages, more than the server reads at once. Read it page by page: GET /v1/rollouts/${head.id}/messages.`,
      });
    }
    return size > LARGE_BYTES ? this.#large.acquire(caller.orgId) : () => {};
  }

  async messages(
    caller: Caller,
    id: string,
    { from, limit, bodies }: { from: number; limit: number; bodies: 'full' | 'preview' },
  ): Promise<{ messages: RolloutMessageView[]; total: number }> {
    const { head, record } = await this.find(caller, id);
    const messages = await this.transcripts.messages(head, { from, limit });
    return { messages: messages.map(bodies === 'preview' ? presentPreview : presentMessage), total: record?.messages ?? head.messages };
  }

  async delete(caller: Caller, id: string): Promise<void> {
    if (!isUuid(id) || !(await this.eraser.eraseRollout(caller.orgId, id))) throw new PalestraError('rollout_not_found');
  }

  /** The current rollout: its narrow row is derived from all acknowledged events first. Throws `rollout_not_found`. */
  async find(caller: Caller, id: string): Promise<{ head: RolloutHead; record: RolloutDetail | null }> {
    let head = isUuid(id) ? await selectHead(this.database.pool, caller.orgId, id) : null;
    if (!head) throw new PalestraError('rollout_not_found');
    if (head.dirty && head.run_seq !== null) {
      await this.settler.settleRollout(head.seq);
      head = (await selectHead(this.database.pool, caller.orgId, id)) ?? head;
    }
    return { head, record: await selectRollout(this.database.pool, head.seq) };
  }
}
