import type { OpenEnvError } from './errors.ts';

/** The answer to `reset` and `step`; all but `done` are JSON texts. `observation` holds its `metadata`, too. */
export interface Observed {
  kind: 'observation';
  observation: string;
  reward: string;
  done: boolean;
  /** null when it is empty */
  metadata: string | null;
}
export type Reply =
  | Observed
  /** `state`: the state object; `mcp`: the JSON-RPC answer; `frame`: a whole frame of an OpenEnv server. JSON texts. */
  | { kind: 'state' | 'mcp' | 'frame'; text: string };

/** A socket's one frame for a message. `metadata` is left out when empty: typed clients from 0.4 refuse null there (openenv-wire.md section 6). */
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

/** The body of an HTTP `/reset` or `/step`: always with `metadata`, and a reward that is a float. */
export function bodyOf({ observation, reward, done, metadata }: Observed): string {
  return `{"observation":${observation},"reward":${floatOf(reward)},"done":${done},"metadata":${metadata ?? 'null'}}`;
}

/** JSON text of a reward over HTTP. */
export function floatOf(reward: string): string {
  if (reward === 'true') return '1.0';
  if (reward === 'false') return '0.0';
  return /^-?\d+$/.test(reward) ? `${reward}.0` : reward;
}

export const frameOfResult = (result: Reply | OpenEnvError): string => ('kind' in result ? frameOf(result) : result.frame());

/** A reward as ORS means it: a float, also when JavaScript writes it as an integer. */
export function rewardText(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return 'null';
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value);
}
