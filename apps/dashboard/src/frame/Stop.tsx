import { UNKNOWN } from '../format/number.ts';

/** Who ended the rollout, by colour and mark: `▲` the policy, `◆` the environment, `✕` the infrastructure (look.md). */
const blame: Record<string, readonly [mark: string, className: string]> = {
  max_turns: ['▲', 'text-policy'],
  max_tokens: ['▲', 'text-policy'],
  context_length: ['▲', 'text-policy'],
  no_tool_call: ['▲', 'text-policy'],
  parse_error: ['▲', 'text-policy'],
  env_error: ['◆', 'text-environment'],
  infra_error: ['✕', 'text-infrastructure'],
  timeout: ['✕', 'text-infrastructure'],
  aborted: ['✕', 'text-infrastructure'],
  cancelled: ['✕', 'text-infrastructure'],
};

export function Stop({ stop }: { stop: string | null }) {
  if (stop === null || stop === 'unknown') return <span className="text-ink-3">{UNKNOWN}</span>;
  const known = blame[stop];
  return (
    <span className={known?.[1] ?? 'text-ink-2'}>
      {known && <span aria-hidden="true">{known[0]} </span>}
      {stop}
    </span>
  );
}
