/** Who ended a rollout, as a colour of tokens.css: its own end, the policy, the environment, the infrastructure, or nobody knows. */
const colours: Record<string, string> = {
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
};
export const stopColour = (stop: string): string => colours[stop] ?? 'unscored';

const order = ['good', 'policy', 'environment', 'infrastructure', 'unscored'];
const alphas = [0.75, 0.5, 0.32, 0.2, 0.12];

/** Stops as layers from the ground up, those of one culprit together, each of them in another shade of its colour. */
export function stopShades(stops: readonly string[]): { stop: string; colour: string; alpha: number }[] {
  return order.flatMap((colour) =>
    stops
      .filter((stop) => stopColour(stop) === colour)
      .map((stop, i) => ({ stop, colour, alpha: alphas[Math.min(i, alphas.length - 1)]! })),
  );
}

/** Rollouts that something else than the policy broke off; `effective` figures leave them out. */
export const brokenOff = (stops: Readonly<Record<string, number>>): number =>
  Object.entries(stops).reduce((sum, [stop, count]) => sum + (['environment', 'infrastructure'].includes(stopColour(stop)) ? count : 0), 0);
