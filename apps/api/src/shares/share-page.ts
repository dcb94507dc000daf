import { plainPage } from '../platform/http/plain-page.ts';
import { HEIGHT, WIDTH } from './share-chart.ts';
import type { Preview } from './share-preview.service.ts';

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character]!);
/** Code points of a title or description; previews show fewer. */
const MOST = 300;
/** Characters that change the direction of the text after them, which would turn around what the chat shows beside it. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const NO_INDEX = '<meta name="robots" content="noindex">';

/** A text on one line, as it is shown in a chat. */
function line(text: string): string {
  const points = [
    ...text
      .toWellFormed()
      .replace(DIRECTIONS, '')
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
  ];
  return points.length > MOST ? `${points.slice(0, MOST - 1).join('')}…` : points.join('');
}

/** A page without scripts that describes what a link shows (Open Graph) and redirects to `target`. */
export function sharePage(preview: Preview, { target, url }: { target: string; url: string }): string {
  const title = escape(line(preview.title));
  const description = escape(line(preview.description));
  const image = escape(`${url}/image.png`);
  return plainPage({
    title: `${title} · Palestra`,
    head: `${NO_INDEX}
<meta property="og:type" content="article">
<meta property="og:site_name" content="Palestra">
<meta property="og:url" content="${escape(url)}">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta property="og:image" content="${image}">
<meta property="og:image:type" content="image/png">
<meta property="og:image:width" content="${WIDTH}">
<meta property="og:image:height" content="${HEIGHT}">
<meta property="og:image:alt" content="Chart of the rewards">
<meta name="twitter:card" content="summary_large_image">
<meta name="description" content="${description}">
<meta http-equiv="refresh" content="0; url=${escape(target)}">`,
    main: `<p><a href="${escape(target)}">${title}</a></p>`,
  });
}

/** The page for a link that is unknown, deleted or expired. */
export const sharePageGone = (): string =>
  plainPage({
    title: 'This link has ended · Palestra',
    head: NO_INDEX,
    main: '<h1>This link has ended</h1><p>It expired, was revoked, or is mistyped. Ask the sender for a new one.</p>',
  });
