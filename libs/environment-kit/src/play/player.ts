import type { JsonObject, ToolSpec } from '@palestra/protocol';

/** A call of a tool and its arguments. */
export interface ToolInput {
  tool: string;
  input: JsonObject;
}

export interface PlayedResult {
  /** The text blocks of the result, or the error of a call that was refused. */
  text: string;
  /** Null for a call that is not scored. */
  reward: number | null;
  /** The episode has ended. Later calls are refused. */
  finished: boolean;
}

/** An open session of an environment as a player sees it: in this process or on a server. */
export interface PlayedSession {
  /** The text blocks of the prompt. */
  readonly prompt: string;
  readonly tools: readonly ToolSpec[];
  /** Rejects if the environment failed. A mistake of the player is a result. */
  call(tool: string, input: JsonObject): Promise<PlayedResult>;
  /** A number in [0, 1). The same seed gives the same numbers. */
  random(): number;
}

/** A scripted policy. It knows only what a model would know: the prompt, the tools and the results of its calls. */
export interface Player {
  /** For example `random`, `naive` or `expert`. `expert` should reach the maximum reward. */
  name: string;
  /** One sentence for the page of the environment. */
  description: string;
  /** Plays until the episode ends, or returns earlier to give up. */
  play(session: PlayedSession): Promise<void>;
}
