import { formatReward } from '@palestra/kit/reward-text';
import type { RolloutView } from '@palestra/protocol';

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character]!);

/** A page without scripts that shows a rollout's task and reward in link previews (Open Graph) and redirects to `target`. */
export function sharePage(rollout: Omit<RolloutView, 'messages'>, target: string): string {
  const task = rollout.task_index === null ? (rollout.rolloutName ?? 'rollout') : `${rollout.split ?? 'task'} ${rollout.task_index}`;
  const reward = rollout.reward === null ? 'not scored' : `reward ${formatReward(rollout.reward)}`;
  const title = escape(`${task}: ${reward}`);
  const parts = [
    rollout.environment,
    rollout.run.name,
    rollout.step === null ? null : `step ${rollout.step}`,
    rollout.stop,
    `${rollout.turns} turns`,
  ];
  const description = escape(parts.filter((part) => part !== null).join(' · '));
  return page(
    `${title} · Palestra`,
    `<meta property="og:type" content="article">
<meta property="og:site_name" content="Palestra">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta name="description" content="${description}">
<meta http-equiv="refresh" content="0; url=${escape(target)}">`,
    `<p><a href="${escape(target)}">${title}</a></p>`,
  );
}

/** The page for a link that is unknown, deleted or expired. */
export const sharePageGone = (): string =>
  page(
    'This link has ended · Palestra',
    '',
    '<h1>This link has ended</h1><p>It was deleted, has expired, or is mistyped. Ask the sender for another one.</p>',
  );

function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
${head}
</head>
<body>${body}</body>
</html>
`;
}
