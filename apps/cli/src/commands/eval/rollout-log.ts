import { newUuid } from '@palestra/kit';
import type { JsonObject, MessageType, RolloutEvent, RolloutMessageEvent, RolloutStartEvent } from '@palestra/protocol';

type Details = Partial<Pick<RolloutMessageEvent, 'content' | 'name' | 'callId' | 'reward' | 'isFinished' | 'metadata'>>;

/**
 * The messages of one episode, in memory. They are uploaded when the episode has ended, so that an interrupted or repeated attempt leaves
 * nothing behind.
 */
export class RolloutLog {
  readonly id = newUuid();
  sessionId: string | null = null;
  readonly #startedAt = Date.now();
  readonly #messages: RolloutMessageEvent[] = [];

  add(type: MessageType, { reward, ...details }: Details): void {
    this.#messages.push({
      eventType: 'message',
      eventId: newUuid(),
      rolloutEventId: this.id,
      timestamp: Date.now(),
      index: this.#messages.length,
      isFinished: false,
      metadata: {},
      type,
      ...details,
      ...(reward === null || reward === undefined ? {} : { reward }),
    });
  }

  /** A reward of 0 on the last message of the policy. The results of calls keep the rewards of the environment. */
  scoreZero(): void {
    const ofPolicy = () =>
      this.#messages.findLast(({ type }) => type === 'assistant_message' || type === 'tool_call' || type === 'reasoning');
    if (ofPolicy() === undefined) this.add('assistant_message', { content: '' });
    ofPolicy()!.reward = 0;
  }

  /** All events of the rollout. `end`: merged into `rollout_info` by the last event, without which the rollout is not complete. */
  events(start: Omit<RolloutStartEvent, 'eventType' | 'eventId' | 'timestamp'>, end: JsonObject): RolloutEvent[] {
    const { metadata } = start;
    const named = this.sessionId === null ? metadata : { ...metadata, session_id: this.sessionId };
    return [
      { eventType: 'rollout', eventId: this.id, timestamp: this.#startedAt, ...start, metadata: named },
      ...this.#messages,
      {
        eventType: 'rollout_update',
        eventId: this.id,
        timestamp: Date.now(),
        rollout_info: { ...end, duration_ms: Date.now() - this.#startedAt },
      },
    ];
  }
}
