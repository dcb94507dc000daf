import type { DeployState, DeployView } from '@palestra/protocol';

/** State, mark, colour. The mark is the second channel of the colour. */
export const deployStates: Record<DeployState, readonly [text: string, mark: string, className: string]> = {
  queued: ['Queued', '◌', 'text-ink-2'],
  building: ['Building', '◐', 'text-policy'],
  verifying: ['Verifying', '◐', 'text-policy'],
  ready: ['Ready', '✓', 'text-good'],
  failed: ['Failed', '✕', 'text-infrastructure'],
  cancelled: ['Cancelled', '○', 'text-ink-3'],
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What was deployed: `Uploaded folder`, `https://git.example/envs main/guess`. */
export function sourceText({ source }: Pick<DeployView, 'source'>): string {
  switch (source.kind) {
    case 'git': {
      const where = [text(source['ref']), text(source['subdirectory'])].filter(Boolean).join('/');
      return `${text(source['url'])}${where && ` ${where}`}`;
    }
    case 'image':
      return text(source['image']);
    case 'url':
      return Array.isArray(source['urls']) ? source['urls'].join(', ') : '';
    default:
      return 'Uploaded folder';
  }
}

/** Of a queued deploy: none. Of one that runs: until now. */
export function durationOf({ started_at: from, ended_at: until }: Pick<DeployView, 'started_at' | 'ended_at'>, now: number): number | null {
  if (from === null) return null;
  return Math.max(0, (until === null ? now : Date.parse(until)) - Date.parse(from));
}

export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, '').slice(0, 12);
export const shortCommit = (commit: string): string => commit.slice(0, 10);

const protocols: Record<string, string> = { remote: 'ORS', openenv: 'OpenEnv', mcp: 'MCP' };
/** The name of what a server speaks. */
export const protocolText = (protocol: string): string => protocols[protocol] ?? protocol;
