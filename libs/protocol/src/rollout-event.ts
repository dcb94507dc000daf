import type { JsonObject } from './json.ts';
import type { MessageType } from './vocabularies.ts';

/** Events of `POST /v1/rollouts`; source: openreward-wire.md section 4. Unknown keys are kept in the raw event. */
export interface RolloutStartEvent {
  eventType: 'rollout';
  eventId: string;
  timestamp: number;
  runName: string;
  step?: number;
  environment?: string;
  environment_id?: string;
  variant_id?: string;
  rolloutName?: string;
  variant?: string;
  split?: string;
  metadata?: JsonObject;
  task_spec?: JsonObject;
  run_info?: JsonObject;
  rollout_info?: JsonObject;
}

export interface RolloutMessageEvent {
  eventType: 'message';
  eventId: string;
  timestamp: number;
  rolloutEventId: string;
  index: number;
  environment_id?: string;
  type: MessageType;
  content?: string;
  contentReference?: string;
  summary?: string;
  name?: string;
  callId?: string;
  /** null when the client sent NaN or Infinity; the event is then flagged nonfinite. */
  reward?: number | null;
  isFinished: boolean;
  metadata: JsonObject;
}

export interface RolloutUpdateEvent {
  eventType: 'rollout_update';
  eventId: string;
  timestamp: number;
  rollout_info: JsonObject;
}

export type RolloutEvent = RolloutStartEvent | RolloutMessageEvent | RolloutUpdateEvent;
