import type { OpenEnvError } from './errors.ts';

/** The reply to `reset` and `step`. All fields but `done` are JSON texts. `observation` also contains its `metadata`. */
export interface Observed {
  kind: 'observation';
  observation: string;
  reward: string;
  done: boolean;
  /** null: empty. */
  metadata: string | null;
}
export type Reply =
  | Observed
  /** JSON texts. `state`: the state object; `mcp`: the JSON-RPC response; `frame`: a whole frame of an OpenEnv server. */
  | { kind: 'state' | 'mcp' | 'frame'; text: string };

/**
 * The frame of a reply. Leaves out empty `metadata`, because typed clients from 0.4 refuse null there
 * (docs/reference/openenv.md#serialization).
 */
export function frameOf(reply: Reply): string {
  switch (reply.kind) {
    case 'observation': {
      const top = reply.metadata === null ? '' : `,"metadata":${reply.metadata}`;
      return `{"type":"observation","data":{"observation":${reply.observation},"reward":${reply.reward},"done":${reply.done}${top}}}`;
    }
    case 'state':
      return `{"type":"state","data":${reply.text}}`;
    case 'mcp':
      return `{"type":"mcp","data":${reply.text}}`;
    case 'frame':
      return reply.text;
  }
}

/** The body of an HTTP `/reset` or `/step`: always with `metadata` and a float as reward. */
export function bodyOf({ observation, reward, done, metadata }: Observed): string {
  return `{"observation":${observation},"reward":${floatText(reward)},"done":${done},"metadata":${metadata ?? 'null'}}`;
}

/** JSON text of a reward as a float. */
export function floatText(reward: string): string {
  if (reward === 'true') return '1.0';
  if (reward === 'false') return '0.0';
  return /^-?\d+$/.test(reward) ? `${reward}.0` : reward;
}

export const frameOfResult = (result: Reply | OpenEnvError): string => ('kind' in result ? frameOf(result) : result.frame());

/** JSON text of an ORS reward, always a float. */
export function rewardText(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return 'null';
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value);
}
