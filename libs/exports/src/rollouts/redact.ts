import type { ExportedMessage, NarrowRollout } from './exported-rollout.ts';

/**
 * Shapes of credentials, each with a fixed prefix, so that a text is read once without backtracking. Matches are replaced by a mark that
 * names the kind. Credentials without a recognisable shape are not found.
 */
const SHAPES: [kind: string, pattern: RegExp][] = [
  ['private_key', /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\[^"]){0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?/g],
  ['api_key', /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,300}/g],
  ['github_token', /\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})/g],
  ['huggingface_token', /\bhf_[A-Za-z0-9]{20,100}/g],
  ['aws_key', /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ['google_key', /\bAIza[A-Za-z0-9_-]{30,60}/g],
  ['slack_token', /\bxox[abeprs]-[A-Za-z0-9-]{10,250}/g],
  ['json_web_token', /\beyJ[A-Za-z0-9_-]{10,400}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,4000}/g],
  ['bearer_token', /(?<=\bBearer )[A-Za-z0-9._~+/-]{16,4000}=*/g],
];

/** Replaces everything in the text that looks like a credential. */
export function redactText(text: string): string {
  return SHAPES.reduce((redacted, [kind, pattern]) => redacted.replaceAll(pattern, `[redacted:${kind}]`), text);
}

const redactNullable = (text: string | null): string | null => (text === null ? null : redactText(text));

/** Redacts the free texts of a row. JSON stays valid: marks need no escaping, and no shape matches a quote or the backslash before one. */
export function redactNarrow<Row extends NarrowRollout>(row: Row): Row {
  const { metadata, task_spec, rollout_info, annotations } = row;
  return {
    ...row,
    metadata: redactNullable(metadata),
    task_spec: redactNullable(task_spec),
    rollout_info: redactNullable(rollout_info),
    annotations: redactNullable(annotations),
  };
}

export function redactMessages(messages: readonly ExportedMessage[]): ExportedMessage[] {
  return messages.map((message) => ({
    ...message,
    content: redactNullable(message.content),
    summary: redactNullable(message.summary),
    metadata: redactNullable(message.metadata),
  }));
}
