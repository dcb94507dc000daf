import { createHash } from 'node:crypto';

/** The look of the dashboard (apps/dashboard/src/theme/tokens.css), for pages that the service writes itself. */
const STYLE = `:root{color-scheme:light dark}
body{margin:0;font:450 14px/22px 'Inter Variable',system-ui,sans-serif;color:light-dark(oklch(.42 .012 250),oklch(.78 .01 250));background:light-dark(oklch(.995 .002 250),oklch(.172 .012 255))}
header{display:flex;align-items:center;gap:8px;height:44px;padding:0 16px;border-bottom:1px solid light-dark(oklch(.91 .004 250),oklch(.29 .014 255));font-weight:600}
main{max-width:560px;margin:12vh auto 0;padding:0 16px}
header,h1{color:light-dark(oklch(.22 .012 250),oklch(.94 .006 250))}
h1{margin:0 0 12px;font-size:18px;line-height:24px;font-weight:550}
p{margin:0 0 12px;overflow-wrap:anywhere}
a{color:light-dark(oklch(.52 .14 255),oklch(.72 .12 255))}
button{height:32px;padding:0 14px;border:0;border-radius:4px;font:inherit;cursor:pointer;color:light-dark(oklch(.99 0 0),oklch(.17 .02 255));background:light-dark(oklch(.52 .14 255),oklch(.72 .12 255))}`;

/** The source of the style of a plain page, for its Content-Security-Policy. */
export const PLAIN_STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

const LOGO =
  '<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path d="M2 16V9a7 7 0 0 1 14 0v7M6 16V9.5a3 3 0 0 1 6 0V16" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/></svg>';

/** A page without scripts, beside the dashboard. All arguments are HTML: the caller escapes texts. */
export const plainPage = ({ title, head = '', main }: { title: string; head?: string; main: string }): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width">
${head}
<style>${STYLE}</style>
</head>
<body><header>${LOGO} Palestra</header><main>${main}</main></body>
</html>
`;
