import { UNKNOWN } from '../format/number.ts';

/** Which part ended the rollout: `▲` policy, `◆` environment, `✕` infrastructure. */
const causes: Record<string, readonly [mark: string, className: string]> = {
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
  const cause = causes[stop];
  return (
    <span className={cause?.[1] ?? 'text-ink-2'}>
      {cause && <span aria-hidden="true">{cause[0]} </span>}
      {stop}
    </span>
  );
}
