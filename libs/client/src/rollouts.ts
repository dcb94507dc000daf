import { newUuid } from '@palestra/kit';
import type { EventResult, IngestReceipt, JsonObject, MessageType, RolloutEvent } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { uploadRetry } from './retry.ts';
import { RolloutUploader, type UploaderOptions, type UploadReport } from './rollout-uploader.ts';

export interface RolloutStart {
  /** The run of the rollout; the first rollout creates it. */
  runName: string;
  rolloutName?: string;
  /** `owner/name` */
  environment?: string;
  variant?: string;
  split?: string;
  /** Training step. */
  step?: number;
  taskSpec?: JsonObject;
  metadata?: JsonObject;
  /** Settings of the run: `model_name`, `framework`, ... (docs/reference/ors.md#rollout-events). */
  runInfo?: JsonObject;
  /** Settings of the rollout: `task_index`, `current_step`, `temperature`, ... */
  rolloutInfo?: JsonObject;
}

export interface RolloutMessage {
  type: MessageType;
  content?: string;
  /** For `tool_call` only. */
  name?: string;
  /** Connects a `tool_call` with its `tool_result`. */
  callId?: string;
  reward?: number | null;
  isFinished?: boolean;
  metadata?: JsonObject;
}

/** A rollout that is being recorded. */
export class Rollout {
  readonly id = newUuid();
  readonly #uploader: RolloutUploader;
  #index = 0;

  constructor(uploader: RolloutUploader) {
    this.#uploader = uploader;
  }

  log(message: RolloutMessage): Promise<void> {
    const { reward, isFinished = false, metadata = {}, ...rest } = message;
    const index = this.#index;
    this.#index += 1;
    return this.#uploader.add({
      eventType: 'message',
      eventId: newUuid(),
      rolloutEventId: this.id,
      timestamp: Date.now(),
      index,
      isFinished,
      metadata,
      ...(reward === null || reward === undefined ? {} : { reward }),
      ...rest,
    });
  }

  /** Merges into the rollout's `rollout_info`. */
  update(rolloutInfo: JsonObject): Promise<void> {
    return this.#uploader.add({ eventType: 'rollout_update', eventId: this.id, timestamp: Date.now(), rollout_info: rolloutInfo });
  }
}

/** Recording of rollouts. One uploader for all of them: `flush` before the process ends. */
export class Rollouts {
  readonly #connection: Connection;
  readonly #uploader: RolloutUploader;

  constructor(connection: Connection, options?: UploaderOptions) {
    this.#connection = connection;
    this.#uploader = new RolloutUploader(connection, options);
  }

  /**
   * Sends one batch of at most 128 events without changes, and retries during outages. Resolves with one result per event; rejects with a
   * 422 `invalid_body` if no event is valid. `history`: the events are from a past recording, so none of them counts as late.
   */
  async send(events: readonly RolloutEvent[], { history = false }: { history?: boolean } = {}): Promise<EventResult[]> {
    const headers = { prefer: 'return=representation' };
    const body = { events, ...(history ? { history } : {}) };
    const receipt = await this.#connection.json({ method: 'POST', path: '/v1/rollouts', headers, body, retry: uploadRetry });
    return (receipt as Required<IngestReceipt>).results;
  }

  async start(start: RolloutStart): Promise<Rollout> {
    const rollout = new Rollout(this.#uploader);
    const { taskSpec, runInfo, rolloutInfo, ...rest } = start;
    await this.#uploader.add({
      eventType: 'rollout',
      eventId: rollout.id,
      timestamp: Date.now(),
      ...rest,
      ...(taskSpec ? { task_spec: taskSpec } : {}),
      ...(runInfo ? { run_info: runInfo } : {}),
      ...(rolloutInfo ? { rollout_info: rolloutInfo } : {}),
    });
    return rollout;
  }

  /** Sends every recorded event. Resolves when all are stored, or when the service fails to store one; then they stay queued. */
  flush(): Promise<UploadReport> {
    return this.#uploader.flush();
  }

  /** Recorded events that are not known to be stored, such as to save them before the process ends. `send` stores them later, once each. */
  unsent(): RolloutEvent[] {
    return this.#uploader.unsent();
  }
}
