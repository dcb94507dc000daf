import { createHash } from 'node:crypto';

const STYLE = 'body{font:16px system-ui;margin:20vh auto;max-width:24em;padding:0 1em}button{font:inherit;padding:.5em 1em}';

/** Replace the headers of other responses: this page has one style, and one form that posts to this origin. */
export const SIGN_IN_PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'`,
  'cache-control': 'no-store',
};

export const signInPage = (token: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in to Palestra</title>
<style>${STYLE}</style>
<h1>Sign in to Palestra</h1>
<p>This signs the browser in. The link works once.</p>
<form method="post" action="/login">
<input type="hidden" name="token" value="${encodeURIComponent(token)}">
<button>Sign in</button>
</form>
`;
