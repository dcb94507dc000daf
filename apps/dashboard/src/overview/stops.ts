import type { StopReason } from '@palestra/protocol';

/** The colour (tokens.css) of a stop reason, by who caused the stop: normal end, policy, environment, infrastructure, or unknown. */
const colours: Readonly<Record<string, string>> = {
  finished: 'good',
  max_turns: 'policy',
  max_tokens: 'policy',
  context_length: 'policy',
  no_tool_call: 'policy',
  parse_error: 'policy',
  env_error: 'environment',
  infra_error: 'infrastructure',
  timeout: 'infrastructure',
  aborted: 'infrastructure',
  cancelled: 'infrastructure',
} satisfies Record<Exclude<StopReason, 'unknown'>, string>;
export const stopColour = (stop: string): string => colours[stop] ?? 'unscored';

const order = ['good', 'policy', 'environment', 'infrastructure', 'unscored'];
const alphas = [0.75, 0.5, 0.32, 0.2, 0.12];

/** Stop reasons as layers from bottom to top, grouped by colour, each in a different shade. */
export function stopShades(stops: readonly string[]): { stop: string; colour: string; alpha: number }[] {
  return order.flatMap((colour) =>
    stops
      .filter((stop) => stopColour(stop) === colour)
      .map((stop, i) => ({ stop, colour, alpha: alphas[Math.min(i, alphas.length - 1)]! })),
  );
}

/** The number of rollouts that the environment or the infrastructure interrupted; `effective` figures exclude them. */
export const interruptedCount = (stops: Readonly<Record<string, number>>): number =>
  Object.entries(stops).reduce((sum, [stop, count]) => sum + (['environment', 'infrastructure'].includes(stopColour(stop)) ? count : 0), 0);
