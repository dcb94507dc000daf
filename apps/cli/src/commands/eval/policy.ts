import { UsageError } from '../../server-settings.ts';
import type { EpisodeOptions } from './episode.ts';
import { openModel } from './model.ts';
import { findPlayer } from './players.ts';

export interface PolicyOptions {
  model?: string;
  baseUrl?: string;
  apiKeyEnv?: string;
  player?: string;
  module?: string;
  maxTurns?: number;
  temperature?: number;
  maxTokens?: number;
  extraBody?: object;
  /** Seconds. */
  timeout: number;
}

/** Who plays. */
export interface Policy {
  /** As the rollouts name it. */
  name: string;
  play: EpisodeOptions['policy'];
  maxTurns: number;
  /** Settings of the sampling, for the rollouts. */
  settings: Record<string, string | number>;
}

const MODEL_TURNS = 10;
/** As many calls as `palestra env validate` lets a player make. */
const PLAYER_CALLS = 1_000;

/** Throws `UsageError` for options that name no policy. */
export async function policyOf(environment: string, options: PolicyOptions): Promise<Policy> {
  const { model, player, module, maxTurns } = options;
  if (model !== undefined && player === undefined) return modelPolicy(model, options);
  if (model !== undefined || player === undefined) throw new UsageError('Pass either --model or --player.');
  const play = { player: await findPlayer(player, environment, module) };
  return { name: `scripted-${player}`, play, maxTurns: maxTurns ?? PLAYER_CALLS, settings: {} };
}

function modelPolicy(model: string, options: PolicyOptions): Policy {
  const { temperature, maxTokens, extraBody, timeout, maxTurns } = options;
  const baseUrl = options.baseUrl ?? process.env['OPENAI_BASE_URL'];
  if (!baseUrl) throw new UsageError('Pass --base-url with the address of the model, such as http://127.0.0.1:8000/v1.');
  const apiKey = apiKeyOf(options);
  const settings = { ...(temperature !== undefined && { temperature }), ...(maxTokens !== undefined && { max_tokens: maxTokens }) };
  try {
    const play = openModel({ baseUrl, model, apiKey, temperature, maxTokens, extraBody, timeoutMs: timeout * 1_000 });
    return { name: model, play: { model: play }, maxTurns: maxTurns ?? MODEL_TURNS, settings };
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError('Invalid --base-url. Expected an http(s) URL without credentials.');
    throw error;
  }
}

/** From the environment only: other users of the machine can read arguments. */
function apiKeyOf({ apiKeyEnv }: PolicyOptions): string | undefined {
  const key = process.env[apiKeyEnv ?? 'OPENAI_API_KEY'];
  if (!key && apiKeyEnv !== undefined) throw new UsageError(`The variable ${apiKeyEnv} of --api-key-env is not set.`);
  return key || undefined;
}
