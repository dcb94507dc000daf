import { newUuid } from '@palestra/kit';
import { isObject, type JsonObject, type JsonValue, PalestraError, toFiniteNumber } from '@palestra/protocol';
import type { Recording } from '@palestra/session';
import type { NemoGymAddress } from './nemo-gym-address.ts';

/** A request to begin an episode, in either form of NeMo Gym 0.7 (`nemo_gym/base_resources_server.py`). */
export interface SeedRequest {
  /** Chosen by an environment server, which may repeat the request; null for an agent's `/run`, which sends its row. */
  sessionId: string | null;
  variant: string | null;
  split: string;
  index: number;
  recording: Recording | null;
}

/** Ids of sessions stand in headers (libs/session/src/registry/session-registry.ts). */
const SESSION_ID = /^[\x21-\x7e]{1,200}$/;

/** The id of a session that the client chose; null without one. Throws `invalid_request`. */
export function readSessionId(body: JsonValue): string | null {
  const id = isObject(body) ? (body['resources_session_id'] ?? null) : null;
  if (id === null || (typeof id === 'string' && SESSION_ID.test(id))) return id;
  throw new PalestraError('invalid_request', { detail: 'resources_session_id: expected 1 to 200 printable characters without spaces.' });
}

const textOf = (value: JsonValue): string | null => (typeof value === 'string' && value !== '' ? value : null);
const objectOf = (value: JsonValue): JsonObject => (isObject(value) ? value : {});

/** Throws `invalid_request` for a row that names no task, or one of another environment. */
export function readSeed(body: JsonValue, address: NemoGymAddress): SeedRequest {
  const request = objectOf(body);
  const row = isObject(request['task_data']) ? request['task_data'] : request;
  const facts = factsOf(row);
  const [split, index] = [textOf(facts['split']), toFiniteNumber(facts['task_index'])];
  if (split === null || index === null || !Number.isSafeInteger(index)) {
    const detail = 'The row names no task: expected "split" and "task_index" in "palestra" or "verifier_metadata.palestra".';
    throw new PalestraError('invalid_request', { detail });
  }
  const [expected, named] = [`${address.owner}/${address.name.replace(/@\d+$/, '')}`, textOf(facts['env_name'])];
  if (named !== null && named !== expected) {
    throw new PalestraError('invalid_request', { detail: `The row is of ${named}, but this address is of ${expected}.` });
  }
  return {
    sessionId: readSessionId(request),
    variant: textOf(facts['variant']),
    split,
    index,
    recording: address.run === null ? null : recordingOf(address.run, { split, index }, facts, placeOf(request, row)),
  };
}

/** The facts that `palestra.rows` writes, wherever its rows have them. */
function factsOf(row: JsonObject): JsonObject {
  const places = [row['palestra'], objectOf(row['verifier_metadata'])['palestra'], objectOf(row['metadata'])['palestra'], row];
  return places.find((place): place is JsonObject => isObject(place) && 'task_index' in place) ?? {};
}

interface Place {
  rollout: string | null;
  group: number | null;
  sample: number | null;
}

/** Task and repeat numbers of a collection, from the row or from the id that NeMo Gym derives from them: `{task}-{repeat}`. */
function placeOf(request: JsonObject, row: JsonObject): Place {
  const rollout = textOf(objectOf(request['episode_id'])['rollout_id']) ?? textOf(row['_ng_rollout_id']);
  const derived = /^(\d{1,9})-(\d{1,9})$/.exec(rollout ?? '');
  const group = toFiniteNumber(row['_ng_task_index']) ?? (derived === null ? null : Number(derived[1]));
  const sample = toFiniteNumber(row['_ng_rollout_index']) ?? (derived === null ? null : Number(derived[2]));
  return { rollout, group, sample };
}

function recordingOf(run: string, task: { split: string; index: number }, facts: JsonObject, place: Place): Recording {
  const metadata = {
    group_id: place.group === null ? undefined : String(place.group),
    sample_idx: place.sample ?? undefined,
    task_key: textOf(facts['task_key']) ?? undefined,
    env_version: toFiniteNumber(facts['env_version']) ?? undefined,
  };
  return {
    run,
    rolloutId: newUuid(),
    name: place.rollout,
    step: toFiniteNumber(facts['step']),
    split: task.split,
    taskIndex: task.index,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined)) as JsonObject,
  };
}
